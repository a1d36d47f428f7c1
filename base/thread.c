/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps the mutexes, conditions and threads of pthreads; conditions wait on the monotonic clock. */
#define _GNU_SOURCE
#include "base/thread.h"

#include "base/alloc.h"
#include "base/text.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

bool clv_mutex_init(clv_mutex *mutex)
{
    return pthread_mutex_init(mutex, NULL) == 0;
}

bool clv_mutex_init_recursive(clv_mutex *mutex)
{
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes)) return false;
    const bool ok = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE) == 0 &&
                    pthread_mutex_init(mutex, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    return ok;
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

static bool start(clv_thread *thread, const pthread_attr_t *attributes, const char *name,
                  void *(*body)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: signals stay with the caller */
    const bool ok = pthread_create(thread, attributes, body, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ok) {
        char cut[16];
        clv_copy_string(cut, sizeof cut, name);
        pthread_setname_np(*thread, cut);
    }
    return ok;
}

bool clv_thread_start(clv_thread *thread, const char *name, void *(*body)(void *), void *argument)
{
    return start(thread, NULL, name, body, argument);
}

typedef struct released {
    cpu_set_t may; /* cores on which the thread may run once it has begun */
    void *(*body)(void *);
    void *argument;
} released;

static void *release(void *argument)
{
    const released r = *(released *)argument;
    clv_free(argument);
    (void)sched_setaffinity(0, sizeof r.may, &r.may);
    return r.body(r.argument);
}

static int ring_at(const cpu_set_t *cores, unsigned nth)
{
    nth %= (unsigned)CPU_COUNT(cores);
    int core = sched_getcpu();
    if (core < 0 || core >= CPU_SETSIZE) core = 0;
    while (!CPU_ISSET(core, cores) || nth--)
        core = (core + 1) % CPU_SETSIZE;
    return core;
}

bool clv_thread_start_apart(clv_thread *thread, const char *name, void *(*body)(void *),
                            void *argument, unsigned nth)
{
    cpu_set_t may, one;
    pthread_attr_t attributes;
    released *r = NULL;
    bool ok = false;
    if (sched_getaffinity(0, sizeof may, &may) == 0 && CPU_COUNT(&may) > 1 &&
        pthread_attr_init(&attributes) == 0) {
        CPU_ZERO(&one);
        CPU_SET(ring_at(&may, nth), &one);
        r = clv_alloc(1, sizeof *r);
        if (r && pthread_attr_setaffinity_np(&attributes, sizeof one, &one) == 0) {
            *r = (released){ may, body, argument };
            ok = start(thread, &attributes, name, release, r);
        }
        if (!ok) clv_free(r);
        pthread_attr_destroy(&attributes);
    }
    return ok || start(thread, NULL, name, body, argument);
}

bool clv_thread_try_join(clv_thread thread)
{
    return pthread_tryjoin_np(thread, NULL) == 0;
}
