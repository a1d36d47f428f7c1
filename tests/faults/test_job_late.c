/* SPDX-License-Identifier: Apache-2.0 */
/* Tests chunks that finish too late: they are computed again elsewhere, the first result counts, the late one is
 * dropped, and its buffers stay until the device no longer uses them. */
#include "job_test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/context/free.h"

#include <cleave/log.h>

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/* Kernels last a little, and one of them does not end before it is released: nothing here depends
 * on how long anything takes. What would never come to pass fails after a minute. */
static const char hold[] = "throttle=1e-6;hold=4";
static const double for_ever_s = 60;

static size_t dropped(const clv_report *report)
{
    size_t sum = 0;
    for (size_t i = 0; i < clv_report_share_count(report); ++i)
        sum += clv_report_share(report, i).dropped;
    return sum;
}

static void begin(pthread_t *thread, void *(*body)(void *), void *argument)
{
    assert_int_equal(pthread_create(thread, NULL, body, argument), 0);
}

static void end(pthread_t thread)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- the first result ---------------------------------------------------------------------------- */

static void the_first_result_counts(void **state)
{
    (void)state;
    test_job job = { .units = 4000 };
    clv_report *report;
    EXPECT_OK(clv_report_create(&report));
    clv_context *context = job_test_two_parts(CLV_SCHEDULE_ADAPTIVE);
    job_test_as_cards(context);  /* their chunks do not read the caller's memory to the end */
    job_test_expect_ok(context); /* builds */
    context->batch = 200;        /* so that there are many */
    job_test_faults(hold);
    EXPECT_OK(job_test_run(context, &job, report)); /* does not wait for it */
    assert_in_range(dropped(report), 1, 2);         /* one may wait behind it */
    assert_int_equal(job.by_reference, 0);
    job_test_expect_right(&job);

    job_test_expect_ok(context); /* the next one, while the late chunk is still under way */
    clv_report_free(report);
    job_releaser r;
    job_test_release_later(&r, 1);
    job_test_close(context); /* waits for it */
    job_test_expect_released(&r);
    assert_int_equal(job_test_stats().early, 0);
}

/* Lets the late chunk come while the caller's thread is busy here, so that the job is not over. */
static int let_it_come(const char *name, size_t done, size_t total, void *user)
{
    const double until = clv_now() + for_ever_s;
    test_job *job = user;
    (void)name;
    if (done == total) return 0;
    while (atomic_load(&job->committed) < total && clv_now() < until)
        clv_sleep(1e-3);
    (void)job_test_release();
    while (job_test_stats().waiting && clv_now() < until)
        clv_sleep(1e-3);
    clv_sleep(0.3); /* long enough for a mistake to be made */
    return 0;
}

static void a_result_that_comes_second_is_not_committed(void **state)
{
    (void)state;
    test_job job = { .units = 4000, .progress = let_it_come };
    clv_report *report;
    EXPECT_OK(clv_report_create(&report));
    clv_context *context = job_test_two_parts(CLV_SCHEDULE_ADAPTIVE);
    job_test_as_cards(context);
    job_test_expect_ok(context);
    context->batch = 200;
    job_test_faults(hold);
    EXPECT_OK(job_test_run(context, &job, report));
    assert_int_equal(job_test_release(), 0); /* it was told while it ran */
    assert_in_range(dropped(report), 1, 2);
    job_test_expect_right(&job);
    clv_report_free(report);
    job_test_close(context);
}

/* ---- the caller's memory -------------------------------------------------------------------------- */

typedef struct patient {
    test_job *job;
    atomic_bool returned, returned_early;
    atomic_uint held;
} patient;

static void *release_when_done(void *argument)
{
    patient *p = argument;
    const double until = clv_now() + for_ever_s;
    while (atomic_load(&p->job->committed) < p->job->units && clv_now() < until)
        clv_sleep(1e-3);
    clv_sleep(0.3);
    atomic_store(&p->returned_early, atomic_load(&p->returned));
    atomic_store(&p->held, job_test_release());
    return NULL;
}

/* A device that works in the caller's own memory: the job is done early, and returns when nobody
 * looks at that memory any more. */
static void the_callers_memory_is_his_own_afterwards(void **state)
{
    (void)state;
    test_job job = { .units = 4000 };
    patient p = { .job = &job };
    clv_report *report;
    pthread_t thread;
    EXPECT_OK(clv_report_create(&report));
    clv_context *context = job_test_two_parts(CLV_SCHEDULE_ADAPTIVE);
    job_test_expect_ok(context);
    context->batch = 200; /* so that there are many */
    job_test_faults(hold);
    begin(&thread, release_when_done, &p);
    EXPECT_OK(job_test_run(context, &job, report));
    atomic_store(&p.returned, true);
    end(thread);
    assert_false(p.returned_early);
    assert_int_equal(p.held, 1);
    assert_in_range(dropped(report), 1, 2); /* one may wait behind it */
    job_test_expect_right(&job);
    clv_report_free(report);
    job_test_close(context);
    assert_int_equal(job_test_stats().early, 0);
}

/* ---- nobody else is there ------------------------------------------------------------------------- */

typedef struct stopwatch {
    atomic_bool stop;
    double seconds; /* in which this process ran */
} stopwatch;

static void *run_stopwatch(void *argument)
{
    stopwatch *watch = argument;
    for (double then = clv_now(), now; !atomic_load(&watch->stop); then = now) {
        clv_sleep(0.01);
        now = clv_now();
        if (now - then < 0.1) watch->seconds += now - then;
    }
    return NULL;
}

/* Given up after five seconds, the plain C path does the rest. */
static void a_hung_device_is_given_up_and_comes_back(void **state)
{
    (void)state;
    test_job job = { .units = 4000 };
    stopwatch watch = { 0 };
    pthread_t thread;
    clv_context *context = job_test_context(NULL);
    job_test_as_cards(context);
    job_test_expect_ok(context);
    context->batch = 200;
    job_test_faults(hold);
    begin(&thread, run_stopwatch, &watch);
    const double start = clv_now();
    EXPECT_OK(job_test_run(context, &job, NULL));
    assert_true(clv_now() - start > 4.5);
    assert_true(job.by_reference > 0);
    job_test_expect_right(&job);

    test_job next = { 0 };
    EXPECT_OK(job_test_run(context, &next, NULL)); /* does not wait for it */
    atomic_store(&watch.stop, true);
    end(thread);
    if (watch.seconds > 11.5) fail_msg("given up after %g s", watch.seconds);
    assert_int_equal(next.by_reference, next.units);
    job_test_expect_right(&next);

    assert_int_equal(job_test_release(), 1);
    for (const double until = clv_now() + for_ever_s;
         atomic_load(&context->devices[0].hung) && clv_now() < until;)
        clv_sleep(1e-3);
    test_job again = { 0 };
    EXPECT_OK(job_test_run(context, &again, NULL));
    assert_int_equal(again.by_reference, 0);
    job_test_expect_right(&again);
    job_test_close(context);
    assert_int_equal(job_test_stats().early, 0);
}

static void count_errors(clv_log_level level, const char *line, void *count)
{
    if (level == CLV_LOG_ERROR && strstr(line, "is hanging in its driver")) ++*(size_t *)count;
}

/* The memory of such a context was never freed, and only the log said so, which may have no sink. */
static void a_context_freed_during_a_hang_goes_when_the_device_is_back(void **state)
{
    (void)state;
    test_job job = { .units = 4000 };
    size_t told = 0;
    clv_context *context = job_test_context(NULL), *other;
    job_test_as_cards(context);
    job_test_expect_ok(context);
    context->batch = 200;
    job_test_faults(hold);
    EXPECT_OK(job_test_run(context, &job, NULL));
    assert_true(job.by_reference > 0);
    job_test_expect_right(&job);

    clv_log_set(CLV_LOG_ERROR, count_errors, &told);
    const double start = clv_now();
    clv_context_free(context);
    assert_true(clv_now() - start > 9.5);
    assert_int_equal(told, 1);
    assert_int_equal(clv_contexts_left(), 1);
    assert_true(job_test_stats().live > 0);

    other = job_test_context(NULL); /* waits for nothing, frees nothing, says nothing again */
    clv_context_free(other);
    assert_int_equal(clv_contexts_left(), 1);

    assert_int_equal(job_test_release(), 1);
    for (const double until = clv_now() + for_ever_s; clv_contexts_left() && clv_now() < until;) {
        clv_sleep(1e-2);
        clv_context_free(NULL);
    }
    clv_log_set(CLV_LOG_NONE, NULL, NULL);
    assert_int_equal(told, 1);
    assert_int_equal(clv_contexts_left(), 0);
    assert_int_equal(job_test_stats().live, 0);
    assert_int_equal(job_test_stats().early, 0);
    job_test_faults("");
    context = job_test_context(NULL);
    job_test_expect_ok(context);
    job_test_close(context);
}

/* Ctrl-Z while a kernel runs, and fg after longer than a chunk may take. */
static void *stop_us(void *error)
{
    char shell[] = "sh", option[] = "-c", command[] = "kill -STOP $PPID; sleep 6; kill -CONT $PPID";
    char *const stop[] = { shell, option, command, NULL };
    const double until = clv_now() + for_ever_s;
    pid_t pid;
    while (!job_test_stats().waiting && clv_now() < until)
        clv_sleep(1e-3);
    *(int *)error = posix_spawn(&pid, "/bin/sh", NULL, NULL, stop, environ);
    if (!*(int *)error) (void)waitpid(pid, NULL, 0);
    (void)job_test_release();
    return NULL;
}

static void a_stopped_process_blames_no_device(void **state)
{
    (void)state;
    test_job job = { .units = 4000 };
    int error = 0;
    pthread_t thread;
    clv_context *context = job_test_context(NULL);
    job_test_expect_ok(context);
    context->batch = 200;
    job_test_faults(hold);
    begin(&thread, stop_us, &error);
    const double start = clv_now();
    EXPECT_OK(job_test_run(context, &job, NULL));
    end(thread);
    assert_int_equal(error, 0);
    assert_true(clv_now() - start > 6);
    assert_int_equal(job.by_reference, 0);
    job_test_expect_right(&job);
    job_test_close(context);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_result_counts),
        cmocka_unit_test(a_result_that_comes_second_is_not_committed),
        cmocka_unit_test(the_callers_memory_is_his_own_afterwards),
        cmocka_unit_test(a_hung_device_is_given_up_and_comes_back),
        cmocka_unit_test(a_context_freed_during_a_hang_goes_when_the_device_is_back),
        cmocka_unit_test(a_stopped_process_blames_no_device),
    };
    test_choose(argc, argv);
    if (argc == 1) return test_at_once(tests, CLV_LEN(tests)); /* they wait for ten seconds each */
    job_test_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
