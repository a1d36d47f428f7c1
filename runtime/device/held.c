/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the thread that watches how long queues wait for their devices. It sleeps while no queue waits. */
#include "runtime/device/held.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

struct clv_held {
    struct clv_held *next; /* `lock` guards this and all other fields above the atomic ones */
    const char *label;
    double told; /* seconds that this wait had lasted at its last warning */
    uint64_t told_of;
    _Atomic(const char *) name;
    atomic_uint_fast64_t since; /* nanoseconds of the clock; 0: the queue does not wait */
};

_Atomic double clv_held_patience_s = 30;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static clv_mutex lock;
static clv_cond changed;
static clv_held *list;
static clv_thread thread;
static bool runs;
static uintptr_t turn; /* number of the thread that is wanted: threads with older numbers end */
static atomic_bool asleep;

static void init(void)
{
    clv_mutex_init(&lock);
    clv_cond_init(&changed);
}

/* Warns if the wait has lasted too long, and again each time its length has doubled. Releases the lock to warn.
 * Returns true if it warned, since the list may then have changed. */
static bool tell(clv_held *h, double now)
{
    char label[128], name[128];
    const uint64_t since = atomic_load(&h->since);
    if (!since) return false;
    if (h->told_of != since) h->told_of = since, h->told = 0;
    const double waited = now - 1e-9 * (double)since;
    if (waited < (h->told > 0 ? 2 * h->told : clv_held_patience_s)) return false;
    h->told = waited;
    const char *first = atomic_load(&h->name);
    clv_copy_string(label, sizeof label, h->label);
    clv_copy_string(name, sizeof name, first ? first : "a command");
    pthread_mutex_unlock(&lock);
    clv_log(CLV_LOG_WARN,
            "%s: %s has not ended after %.0f s, and may never end; the library waits for it, "
            "because it may be using the caller's memory; end the process if this takes too long",
            label, name, waited);
    pthread_mutex_lock(&lock);
    return true;
}

static bool anybody_waits(void)
{
    for (const clv_held *h = list; h; h = h->next)
        if (atomic_load(&h->since)) return true;
    return false;
}

static void *watch(void *argument)
{
    const uintptr_t mine = (uintptr_t)argument;
    pthread_mutex_lock(&lock);
    while (turn == mine) {
        atomic_store(&asleep, true);
        while (turn == mine && !anybody_waits())
            pthread_cond_wait(&changed, &lock);
        atomic_store(&asleep, false);
        if (turn == mine) clv_cond_wait_until(&changed, &lock, clv_now() + clv_held_patience_s / 4);
        for (clv_held *h = list; turn == mine && h;)
            h = tell(h, clv_now()) ? list : h->next;
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

clv_held *clv_held_create(const char *label)
{
    clv_held *held = clv_zalloc(1, sizeof *held);
    if (!held) return NULL;
    pthread_once(&once, init);
    held->label = label;
    atomic_init(&held->name, NULL);
    atomic_init(&held->since, 0);
    pthread_mutex_lock(&lock);
    if (!runs) runs = clv_thread_start(&thread, "cleave-held", watch, (void *)++turn);
    const bool watched = runs;
    if (watched) held->next = list, list = held;
    pthread_mutex_unlock(&lock);
    if (watched) return held;
    clv_free(held);
    return NULL;
}

void clv_held_free(clv_held *held)
{
    if (!held) return;
    pthread_mutex_lock(&lock);
    clv_held **at = &list;
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    const bool last = !list;
    const clv_thread ended = thread;
    if (last) {
        runs = false;
        ++turn;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    if (last) pthread_join(ended, NULL);
    clv_free(held);
}

void clv_held_begin(clv_held *held, const char *name)
{
    if (!held) return;
    atomic_store_explicit(&held->name, name, memory_order_relaxed);
    atomic_store(&held->since, (uint64_t)(1e9 * clv_now()) | 1);
    if (!atomic_load(&asleep)) return;
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

void clv_held_end(clv_held *held)
{
    if (held) atomic_store_explicit(&held->since, 0, memory_order_release);
}
