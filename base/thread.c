/* SPDX-License-Identifier: Apache-2.0 */
/* Mutex and condition on the monotonic clock; a thin name over pthreads. */
#define _GNU_SOURCE
#include "base/thread.h"

#include "base/text.h"

#include <signal.h>
#include <time.h>

bool clv_mutex_init(clv_mutex *mutex)
{
    return pthread_mutex_init(mutex, NULL) == 0;
}

bool clv_cond_init(clv_cond *cond)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes)) return false;
    const bool ok = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                    pthread_cond_init(cond, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return ok;
}

void clv_cond_wait_until(clv_cond *cond, clv_mutex *mutex, double when)
{
    struct timespec at = { .tv_sec = (time_t)when };
    at.tv_nsec = (long)((when - (double)at.tv_sec) * 1e9);
    (void)pthread_cond_timedwait(cond, mutex, &at);
}

bool clv_thread_start(clv_thread *thread, const char *name, void *(*body)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: signals stay with the caller */
    const bool ok = pthread_create(thread, NULL, body, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ok) {
        char cut[16];
        clv_copy_string(cut, sizeof cut, name);
        pthread_setname_np(*thread, cut);
    }
    return ok;
}
