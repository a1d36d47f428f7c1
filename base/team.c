/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share short pieces of work with a caller. */
#include "base/team.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A thread waits this long in a loop before it sleeps: longer than the gap between the calls of a loop in Python. */
static const double spin_s = 50e-6;

/* The state: how many threads are at work, whether more may join, and the number of the piece of work. */
enum { AT_WORK = 0xffff, OPEN = 1 << 16, NUMBER = 17 };

struct clv_team {
    atomic_uint_fast64_t state;
    atomic_uint sleepers;
    atomic_bool stops;
    clv_mutex busy; /* held by the caller whose work the team does */
    clv_mutex lock; /* for `woken` */
    clv_cond woken;
    void (*body)(void *user); /* written before the state is opened */
    void *user;
    unsigned count;
    clv_thread thread[];
};

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static bool is_new(uint_fast64_t state, uint_fast64_t seen)
{
    return (state & OPEN) && state >> NUMBER != seen;
}

/* Waits for a piece of work after number `seen`, or for the end. */
static void wait_for_work(clv_team *t, uint_fast64_t seen)
{
    const double until = clv_now() + spin_s;
    while (clv_now() < until) {
        if (is_new(atomic_load(&t->state), seen) || t->stops) return;
        pause_briefly();
    }
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->sleepers, 1);
    while (!is_new(atomic_load(&t->state), seen) && !t->stops)
        pthread_cond_wait(&t->woken, &t->lock);
    atomic_fetch_sub(&t->sleepers, 1);
    pthread_mutex_unlock(&t->lock);
}

static void *work(void *argument)
{
    clv_team *t = argument;
    uint_fast64_t seen = 0;
    for (; !t->stops; wait_for_work(t, seen)) {
        uint_fast64_t state = atomic_load(&t->state);
        if (!is_new(state, seen)) continue;
        if (!atomic_compare_exchange_strong(&t->state, &state, state + 1)) continue;
        seen = state >> NUMBER;
        t->body(t->user);
        atomic_fetch_sub(&t->state, 1);
    }
    return NULL;
}

static void wake(clv_team *t)
{
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->woken);
    pthread_mutex_unlock(&t->lock);
}

void clv_team_run(clv_team *t, void (*body)(void *user), void *user)
{
    enum {
        PATIENCE = 20000
    }; /* about 0.2 ms; a thread that has not ended by then may need this core */
    if (!t || pthread_mutex_trylock(&t->busy)) {
        body(user);
        return;
    }
    t->body = body, t->user = user;
    atomic_store(&t->state, ((atomic_load(&t->state) >> NUMBER) + 1) << NUMBER | OPEN);
    if (atomic_load(&t->sleepers)) wake(t);
    body(user);
    atomic_fetch_and(&t->state, ~(uint_fast64_t)OPEN);
    for (unsigned turns = 0; atomic_load(&t->state) & AT_WORK; ++turns)
        turns < PATIENCE ? pause_briefly() : (void)sched_yield();
    pthread_mutex_unlock(&t->busy);
}

clv_team *clv_team_start(unsigned threads)
{
    clv_team *t = threads ? clv_zalloc(1, sizeof *t + threads * sizeof *t->thread) : NULL;
    if (!t) return NULL;
    const bool busy = clv_mutex_init(&t->busy), lock = busy && clv_mutex_init(&t->lock),
               woken = lock && clv_cond_init(&t->woken);
    while (woken && t->count < threads &&
           clv_thread_start_apart(&t->thread[t->count], "cleave-team", work, t, t->count + 1))
        ++t->count;
    if (t->count) return t;
    if (woken) pthread_cond_destroy(&t->woken);
    if (lock) pthread_mutex_destroy(&t->lock);
    if (busy) pthread_mutex_destroy(&t->busy);
    clv_free(t);
    return NULL;
}

void clv_team_free(clv_team *t)
{
    if (!t) return;
    t->stops = true;
    wake(t);
    for (unsigned i = 0; i < t->count; ++i)
        pthread_join(t->thread[i], NULL);
    pthread_cond_destroy(&t->woken);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->busy);
    clv_free(t);
}
