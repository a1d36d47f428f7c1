/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks that come too late: done again elsewhere, the first result counts, the late one is dropped,
 * and its buffers stay until the device is through with them. */
#include "job_test.h"

#include "base/clock.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/* Kernels last a little, and one of them hangs for much longer than everything else takes. */
static const double hang_s = 4;
static const char hang[] = "throttle=1e-6;hang=4:4";

static size_t dropped(const clv_report *report)
{
    size_t sum = 0;
    for (size_t i = 0; i < clv_report_share_count(report); ++i)
        sum += clv_report_share(report, i).dropped;
    return sum;
}

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
    job_test_faults(hang);
    const double start = clv_now();
    EXPECT_OK(job_test_run(context, &job, report));
    const double seconds = clv_now() - start;
    assert_true(seconds < hang_s / 2);
    assert_in_range(dropped(report), 1, 2); /* one may wait behind it */
    assert_int_equal(job.by_reference, 0);
    job_test_expect_right(&job);

    job_test_expect_ok(context); /* the next one, while the late chunk is still under way */
    assert_true(clv_now() - start < hang_s / 2);
    clv_report_free(report);
    job_test_close(context); /* waits for it */
    assert_true(clv_now() - start > hang_s);
    assert_int_equal(job_test_stats().early, 0);
}

/* Holds the caller's thread, so that the job is not over yet when the late chunk arrives. */
static double hold_until;

static int hold(const char *job, size_t done, size_t total, void *user)
{
    (void)job, (void)done, (void)total, (void)user;
    clv_sleep(hold_until - clv_now());
    return 0;
}

static void a_result_that_comes_second_is_not_committed(void **state)
{
    (void)state;
    test_job job = { .units = 4000, .progress = hold };
    clv_report *report;
    EXPECT_OK(clv_report_create(&report));
    clv_context *context = job_test_two_parts(CLV_SCHEDULE_ADAPTIVE);
    job_test_as_cards(context);
    job_test_expect_ok(context);
    context->batch = 200;
    job_test_faults("throttle=1e-6;hang=4:2");
    hold_until = clv_now() + 3;
    EXPECT_OK(job_test_run(context, &job, report));
    assert_true(clv_now() >= hold_until);
    assert_in_range(dropped(report), 1, 2);
    job_test_expect_right(&job);
    clv_report_free(report);
    job_test_close(context);
}

/* A device that works in the caller's own memory: the job is done early, and returns when nobody
 * looks at that memory any more. */
static void the_callers_memory_is_his_own_afterwards(void **state)
{
    (void)state;
    test_job job = { .units = 4000 };
    clv_report *report;
    EXPECT_OK(clv_report_create(&report));
    clv_context *context = job_test_two_parts(CLV_SCHEDULE_ADAPTIVE);
    job_test_expect_ok(context);
    context->batch = 200; /* so that there are many */
    job_test_faults(hang);
    const double start = clv_now();
    EXPECT_OK(job_test_run(context, &job, report));
    assert_true(clv_now() - start > hang_s - 0.5);
    assert_in_range(dropped(report), 1, 2); /* one may wait behind it */
    job_test_expect_right(&job);
    clv_report_free(report);
    job_test_close(context);
    assert_int_equal(job_test_stats().early, 0);
}

/* Nobody else is there: given up after five seconds, the plain C path does the rest. */
static void a_hung_device_is_given_up_and_comes_back(void **state)
{
    (void)state;
    test_job job = { .units = 4000 };
    clv_context *context = job_test_context(NULL);
    job_test_as_cards(context);
    job_test_expect_ok(context);
    context->batch = 200;
    job_test_faults("throttle=1e-6;hang=4:12");
    const double start = clv_now();
    EXPECT_OK(job_test_run(context, &job, NULL));
    const double seconds = clv_now() - start;
    if (!(seconds > 4.5 && seconds < 11.5)) fail_msg("given up after %g s", seconds);
    assert_true(job.by_reference > 0);
    job_test_expect_right(&job);

    test_job next = { 0 };
    EXPECT_OK(job_test_run(context, &next, NULL)); /* does not wait for it */
    assert_true(clv_now() - start < 11.5);
    assert_int_equal(next.by_reference, next.units);
    job_test_expect_right(&next);

    clv_sleep(12.5 - (clv_now() - start));
    test_job again = { 0 };
    EXPECT_OK(job_test_run(context, &again, NULL));
    assert_int_equal(again.by_reference, 0);
    job_test_expect_right(&again);
    job_test_close(context);
    assert_int_equal(job_test_stats().early, 0);
}

/* Ctrl-Z, and fg after longer than a chunk may take: the device did nothing wrong. */
static void a_stopped_process_blames_no_device(void **state)
{
    (void)state;
    char shell[] = "sh", option[] = "-c",
         command[] = "sleep 0.5; kill -STOP $PPID; sleep 6; kill -CONT $PPID";
    char *const stop[] = { shell, option, command, NULL };
    test_job job = { .units = 4000 };
    clv_context *context = job_test_context(NULL);
    job_test_expect_ok(context);
    context->batch = 200;
    job_test_faults("throttle=1e-6;hang=4:8"); /* 6.5 s without, 1.5 s with us */
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, stop, environ), 0);
    const double start = clv_now();
    EXPECT_OK(job_test_run(context, &job, NULL));
    assert_true(clv_now() - start > 7);
    assert_int_equal(job.by_reference, 0);
    job_test_expect_right(&job);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    job_test_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_result_counts),
        cmocka_unit_test(a_result_that_comes_second_is_not_committed),
        cmocka_unit_test(the_callers_memory_is_his_own_afterwards),
        cmocka_unit_test(a_hung_device_is_given_up_and_comes_back),
        cmocka_unit_test(a_stopped_process_blames_no_device),
    };
    job_test_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
