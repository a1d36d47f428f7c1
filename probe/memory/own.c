/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the memory that this process holds on each device. */
#include "probe/memory/own.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list, not the counters */
static clv_own *first;

void clv_own_join(clv_own *own, const char *id)
{
    if (!id || own->id) return;
    pthread_mutex_lock(&lock);
    own->id = id;
    own->next = first;
    first = own;
    pthread_mutex_unlock(&lock);
}

void clv_own_leave(clv_own *own)
{
    if (!own->id) return;
    pthread_mutex_lock(&lock);
    clv_own **link = &first;
    while (*link != own)
        link = &(*link)->next;
    *link = own->next;
    own->id = NULL;
    pthread_mutex_unlock(&lock);
}

uint64_t clv_own_bytes(const char *id)
{
    uint64_t sum = 0;
    pthread_mutex_lock(&lock);
    for (clv_own *own = first; own; own = own->next)
        if (id && strcmp(own->id, id) == 0) sum += atomic_load(&own->bytes);
    pthread_mutex_unlock(&lock);
    return sum;
}
