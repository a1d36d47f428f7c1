/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the plain C path when its threads do not get to run, as on cores where other programs compute: the caller
 * computes, waits for nobody, and starts no more threads. Here the threads wait at a gate. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/record/context.h"

#include <cleave/job.h>

#include <stdatomic.h>
#include <string.h>

enum { UNITS = 1000 };

static struct {
    clv_mutex lock;
    clv_cond changed;
    bool open, in_vain;
    int started, passed;
} gate;

typedef struct held {
    void *(*body)(void *);
    void *argument;
} held;

static void *pass(void *argument)
{
    const held h = *(held *)argument;
    clv_free(argument);
    pthread_mutex_lock(&gate.lock);
    for (const double until = clv_now() + 30; !gate.open && clv_now() < until;)
        clv_cond_wait_until(&gate.changed, &gate.lock, until);
    gate.in_vain |= !gate.open;
    ++gate.passed;
    pthread_mutex_unlock(&gate.lock);
    return h.body(h.argument);
}

/* The linker takes this function in place of the library's. */
bool __wrap_clv_thread_start_apart(clv_thread *thread, const char *name, void *(*body)(void *),
                                   void *argument, unsigned nth);

bool __wrap_clv_thread_start_apart(clv_thread *thread, const char *name, void *(*body)(void *),
                                   void *argument, unsigned nth)
{
    held *h = clv_alloc(1, sizeof *h);
    (void)nth;
    assert_non_null(h);
    *h = (held){ body, argument };
    pthread_mutex_lock(&gate.lock);
    ++gate.started;
    pthread_mutex_unlock(&gate.lock);
    return clv_thread_start(thread, name, pass, h);
}

static void set_gate(bool open)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = open;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static int started(void)
{
    pthread_mutex_lock(&gate.lock);
    const int count = gate.started;
    pthread_mutex_unlock(&gate.lock);
    return count;
}

typedef struct task {
    pthread_t caller;
    atomic_int by_caller, by_others;
    unsigned char commits[UNITS];
} task;

static clv_cost cost(size_t first, size_t count, void *user)
{
    (void)first, (void)user;
    return (clv_cost){ .flops = (double)count };
}

static clv_status no_device(clv_slot *slot, size_t first, size_t count, void *user)
{
    (void)slot, (void)first, (void)count, (void)user;
    return clv_fail(CLV_E_INTERNAL, "no device was asked for");
}

static clv_status reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    task *t = user;
    (void)slot, (void)first, (void)count;
    ++*(pthread_equal(pthread_self(), t->caller) ? &t->by_caller : &t->by_others);
    return CLV_OK;
}

static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    task *t = user;
    (void)slot;
    for (size_t i = 0; i < count; ++i)
        ++t->commits[first + i];
    return CLV_OK;
}

static int go_on(const char *job, size_t done, size_t total, void *user)
{
    (void)job, (void)done, (void)total, (void)user;
    return 0;
}

static clv_context *two_threads(void)
{
    clv_context *context = test_plain_context();
    context->plain_threads = 2;
    return context;
}

static void run(clv_context *context, task *t, clv_progress *progress)
{
    memset(t, 0, sizeof *t);
    t->caller = pthread_self();
    const clv_job job = { .size = sizeof(clv_job),
                          .name = "late",
                          .units = UNITS,
                          .cost = cost,
                          .enqueue = no_device,
                          .commit = commit,
                          .reference = reference,
                          .progress = progress };
    EXPECT_OK(clv_job_run(context, &job, t, NULL));
    for (size_t i = 0; i < UNITS; ++i)
        assert_int_equal(t->commits[i], 1);
}

static void who_has_not_begun_is_not_waited_for(void **state)
{
    (void)state;
    task t;
    clv_context *context = two_threads();
    const int before = started();
    set_gate(false);
    for (int i = 0; i < 5; ++i) { /* one thread is started in all: its core is another's yet */
        run(context, &t, NULL);
        assert_true(t.by_caller > 0 && t.by_others == 0);
        assert_int_equal(started(), before + 1);
    }
    set_gate(true);
    for (const double until = clv_now() + 30; started() == before + 1 && clv_now() < until;)
        run(context, &t, NULL); /* until that one has come to its end */
    assert_int_equal(started(), before + 2);
    clv_context_free(context);
    assert_false(gate.in_vain);
}

static void *open_later(void *unused)
{
    clv_sleep(0.02);
    set_gate(true);
    return unused;
}

static void the_context_waits_for_them(void **state)
{
    (void)state;
    task t;
    clv_context *context = two_threads();
    set_gate(false);
    run(context, &t, NULL);
    clv_thread opener;
    assert_true(clv_thread_start(&opener, "opener", open_later, NULL));
    clv_context_free(context);
    pthread_mutex_lock(&gate.lock);
    assert_int_equal(gate.passed, gate.started);
    pthread_mutex_unlock(&gate.lock);
    pthread_join(opener, NULL);
    assert_false(gate.in_vain);
}

/* Who reports progress watches instead: threads do the work. */
static void with_progress_the_caller_watches(void **state)
{
    (void)state;
    task t;
    clv_context *context = two_threads();
    set_gate(true);
    run(context, &t, go_on);
    assert_true(t.by_caller == 0 && t.by_others > 0);
    clv_context_free(context);
}

int main(void)
{
    clv_mutex_init(&gate.lock), clv_cond_init(&gate.changed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_not_begun_is_not_waited_for),
        cmocka_unit_test(the_context_waits_for_them),
        cmocka_unit_test(with_progress_the_caller_watches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
