/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that runs asynchronous calls, and the list of calls that wait for it. */
#include "runtime/job/backlog.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

/* Waking a sleeping thread costs several microseconds, which the next call of a chain would have to wait. */
static const double spin_s = 20e-6;

struct clv_backlog {
    clv_thread thread;
    clv_mutex lock; /* guards everything below */
    clv_cond added, finished;
    clv_backlog_entry *first, **end;
    size_t waiting, waiting_bytes; /* calls in the list, and their bytes */
    bool running, asleep, stops;
    size_t sleepers; /* threads that wait for `finished` */
    uint64_t serials;
    uint64_t failed; /* the call to which `failure` belongs; 0: no failure is kept */
    clv_error failure;
    atomic_size_t unfinished; /* calls that have not ended; read without the lock */
};

static void spin_while(const atomic_size_t *number, bool zero)
{
    const double until = clv_now() + spin_s;
    while ((atomic_load_explicit(number, memory_order_relaxed) == 0) == zero && clv_now() < until)
        ;
}

/* Takes the next call from the list; NULL: the thread is to end. */
static clv_backlog_entry *next(clv_backlog *b)
{
    pthread_mutex_lock(&b->lock);
    b->running = false;
    if (b->sleepers) pthread_cond_broadcast(&b->finished);
    if (!b->first && !b->stops) {
        pthread_mutex_unlock(&b->lock);
        spin_while(&b->unfinished, true);
        pthread_mutex_lock(&b->lock);
    }
    while (!b->first && !b->stops) {
        b->asleep = true;
        pthread_cond_wait(&b->added, &b->lock);
    }
    b->asleep = false;
    clv_backlog_entry *entry = b->first;
    if (entry) {
        b->first = entry->next;
        if (!b->first) b->end = &b->first;
        --b->waiting;
        b->waiting_bytes -= entry->bytes;
        b->running = true;
        if (b->sleepers) pthread_cond_broadcast(&b->finished); /* the list has room again */
    }
    pthread_mutex_unlock(&b->lock);
    return entry;
}

static void *body(void *argument)
{
    clv_backlog *b = argument;
    for (clv_backlog_entry *entry; (entry = next(b));) {
        entry->run(entry);
        atomic_fetch_sub(&b->unfinished, 1);
    }
    return NULL;
}

clv_backlog *clv_backlog_start(void)
{
    clv_backlog *b = clv_zalloc(1, sizeof *b);
    if (!b) return NULL;
    b->end = &b->first;
    if (clv_mutex_init(&b->lock)) {
        if (clv_cond_init(&b->added)) {
            if (clv_cond_init(&b->finished)) {
                if (clv_thread_start(&b->thread, "cleave-calls", body, b)) return b;
                pthread_cond_destroy(&b->finished);
            }
            pthread_cond_destroy(&b->added);
        }
        pthread_mutex_destroy(&b->lock);
    }
    clv_free(b);
    return NULL;
}

void clv_backlog_stop(clv_backlog *b)
{
    if (!b) return;
    pthread_mutex_lock(&b->lock);
    const bool joins = !b->stops;
    b->stops = true;
    pthread_cond_signal(&b->added);
    pthread_mutex_unlock(&b->lock);
    if (!joins) return;
    pthread_join(b->thread, NULL);
    if (b->failed)
        clv_log(CLV_LOG_WARN, "an asynchronous call failed, and nobody asked for its result: %s",
                b->failure.message);
}

void clv_backlog_free(clv_backlog *b)
{
    if (!b) return;
    clv_error_clear(&b->failure);
    pthread_cond_destroy(&b->finished);
    pthread_cond_destroy(&b->added);
    pthread_mutex_destroy(&b->lock);
    clv_free(b);
}

bool clv_backlog_is_mine(const clv_backlog *b)
{
    return pthread_equal(pthread_self(), b->thread);
}

static void sleep_once(clv_backlog *b)
{
    ++b->sleepers;
    pthread_cond_wait(&b->finished, &b->lock);
    --b->sleepers;
}

static bool is_full(const clv_backlog *b, size_t bytes)
{
    return b->waiting >= BACKLOG_MOST ||
           (b->waiting && b->waiting_bytes + bytes > BACKLOG_MOST_BYTES);
}

bool clv_backlog_add(clv_backlog *b, clv_backlog_entry *entry)
{
    pthread_mutex_lock(&b->lock);
    while (!b->stops && is_full(b, entry->bytes))
        sleep_once(b);
    const bool takes = !b->stops;
    if (takes) {
        entry->next = NULL;
        entry->serial = ++b->serials;
        *b->end = entry;
        b->end = &entry->next;
        ++b->waiting;
        b->waiting_bytes += entry->bytes;
        atomic_fetch_add(&b->unfinished, 1);
        if (b->asleep) pthread_cond_signal(&b->added);
        b->asleep = false; /* one signal serves all calls that come before the thread wakes up */
    }
    pthread_mutex_unlock(&b->lock);
    return takes;
}

void clv_backlog_wait(clv_backlog *b, const atomic_size_t *pending)
{
    spin_while(pending ? pending : &b->unfinished, false);
    pthread_mutex_lock(&b->lock);
    while (pending ? *pending != 0 : b->first || b->running)
        sleep_once(b);
    pthread_mutex_unlock(&b->lock);
}

void clv_backlog_keep(clv_backlog *b, uint64_t serial, const clv_error *error)
{
    pthread_mutex_lock(&b->lock);
    if (!b->failed) {
        clv_error_give(error);
        clv_error_take(&b->failure, error->status);
        b->failed = serial;
    }
    pthread_mutex_unlock(&b->lock);
}

void clv_backlog_forget(clv_backlog *b, uint64_t serial)
{
    pthread_mutex_lock(&b->lock);
    if (b->failed == serial) {
        clv_error_clear(&b->failure);
        b->failed = 0;
    }
    pthread_mutex_unlock(&b->lock);
}

clv_status clv_backlog_report(clv_backlog *b)
{
    clv_status status = CLV_OK;
    pthread_mutex_lock(&b->lock);
    if (b->failed) {
        status = clv_error_give(&b->failure);
        clv_error_clear(&b->failure);
        b->failed = 0;
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}
