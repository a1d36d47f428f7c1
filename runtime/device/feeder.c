/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the thread of a device, which carries out a list of calls, one after the other. */
#include "runtime/device/feeder.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <stdio.h>

struct clv_feeder {
    clv_device *device;
    clv_thread thread;
    clv_mutex lock;
    clv_cond changed;
    clv_feeder_call *first, *last;
    bool stop, ended;
    clv_queue *queues[CLV_MAX_DEPTH];
};

static void *work(void *argument)
{
    clv_feeder *feeder = argument;
    pthread_mutex_lock(&feeder->lock);
    for (;;) {
        while (!feeder->first && !feeder->stop)
            pthread_cond_wait(&feeder->changed, &feeder->lock);
        if (!feeder->first) break;
        const clv_feeder_call c = *feeder->first; /* copied, because its body may free it */
        feeder->first = c.next;
        if (!feeder->first) feeder->last = NULL;
        pthread_mutex_unlock(&feeder->lock);
        c.body(c.argument);
        pthread_mutex_lock(&feeder->lock);
    }
    pthread_mutex_unlock(&feeder->lock);
    for (unsigned i = 0; i < CLV_MAX_DEPTH; ++i)
        clv_queue_free(feeder->queues[i]);
    pthread_mutex_lock(&feeder->lock);
    feeder->ended = true;
    pthread_cond_broadcast(&feeder->changed);
    pthread_mutex_unlock(&feeder->lock);
    return NULL;
}

clv_status clv_feeder_get(clv_device *device, clv_feeder **out)
{
    *out = device->feeder;
    if (*out) return CLV_OK;
    clv_feeder *feeder = clv_zalloc(1, sizeof *feeder);
    if (!feeder)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for its thread", device->label);
    feeder->device = device;
    clv_mutex_init(&feeder->lock);
    clv_cond_init(&feeder->changed);
    if (!clv_thread_start(&feeder->thread, "cleave-feeder", work, feeder)) {
        pthread_mutex_destroy(&feeder->lock);
        pthread_cond_destroy(&feeder->changed);
        clv_free(feeder);
        return clv_fail(CLV_E_MEMORY, "%s: its thread cannot be started", device->label);
    }
    *out = device->feeder = feeder;
    return CLV_OK;
}

void clv_feeder_submit(clv_feeder *feeder, clv_feeder_call *call)
{
    pthread_mutex_lock(&feeder->lock);
    call->next = NULL;
    if (feeder->last)
        feeder->last->next = call;
    else
        feeder->first = call;
    feeder->last = call;
    pthread_cond_broadcast(&feeder->changed);
    pthread_mutex_unlock(&feeder->lock);
}

clv_status clv_feeder_queue(clv_feeder *feeder, unsigned slot, clv_queue **queue)
{
    if (!feeder->queues[slot]) {
        CLV_TRY(clv_queue_create(feeder->device, &feeder->queues[slot]));
        feeder->queues[slot]->track = slot;
    }
    *queue = feeder->queues[slot];
    return CLV_OK;
}

bool clv_feeder_stop(clv_device *device, double patience)
{
    clv_feeder *feeder = device->feeder;
    static const double compiling_patience = 300;
    const double started = clv_now();
    clv_deadline last = clv_deadline_after(started, compiling_patience),
                 deadline = clv_deadline_after(started, patience);
    pthread_mutex_lock(&feeder->lock);
    feeder->stop = true;
    pthread_cond_broadcast(&feeder->changed);
    while (!feeder->ended) {
        const double now = clv_now(), longest = clv_deadline_wait(&last, now);
        if (atomic_load(&device->compiling)) deadline = clv_deadline_after(now, patience);
        const double wait = CLV_MIN(clv_deadline_wait(&deadline, now), longest);
        if (wait <= 0) break;
        clv_cond_wait_until(&feeder->changed, &feeder->lock, now + wait);
    }
    const bool ended = feeder->ended;
    pthread_mutex_unlock(&feeder->lock);
    if (!ended) return false;
    device->feeder = NULL;
    pthread_join(feeder->thread, NULL);
    pthread_mutex_destroy(&feeder->lock);
    pthread_cond_destroy(&feeder->changed);
    clv_free(feeder);
    return true;
}
