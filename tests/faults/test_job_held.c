/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a kernel that never ends is reported. A job on a CPU driver used to wait for such a kernel forever,
 * without a message. */
#include "job_test.h"

#include "base/clock.h"
#include "runtime/device/held.h"

#include <pthread.h>
#include <string.h>

/* When all others are done, and for long enough after that. */
static void *release_when_done(void *argument)
{
    test_job *job = argument;
    for (int i = 0; i < 60000 && atomic_load(&job->committed) < job->units; ++i)
        clv_sleep(1e-3);
    clv_sleep(2);
    job_test_release();
    return NULL;
}

static void a_kernel_that_does_not_end_is_told_of(void **state)
{
    (void)state;
    test_job job = { .units = 4000 };
    pthread_t thread;
    const double before = clv_held_patience_s;
    clv_held_patience_s = 0.5; /* before the first wait */
    clv_context *context = job_test_two_parts(CLV_SCHEDULE_ADAPTIVE);
    job_test_expect_ok(context); /* builds */
    test_listen();
    context->batch = 200; /* so that there are many */
    job_test_faults("throttle=1e-6;hold=4");
    assert_int_equal(pthread_create(&thread, NULL, release_when_done, &job), 0);
    EXPECT_OK(job_test_run(context, &job, NULL)); /* the held one uses the caller's memory */
    assert_int_equal(pthread_join(thread, NULL), 0);
    const char *heard = test_heard();
    clv_held_patience_s = before;
    if (!strstr(heard, "has not ended after") || !strstr(heard, "end the process"))
        fail_msg("heard \"%s\"", heard);
    job_test_expect_right(&job);
    job_test_close(context);
}

static void what_ends_in_time_is_not_told_of(void **state)
{
    (void)state;
    clv_context *context = job_test_two_parts(CLV_SCHEDULE_ADAPTIVE);
    job_test_expect_ok(context);
    test_listen();
    for (int i = 0; i < 50; ++i)
        job_test_expect_ok(context);
    assert_string_equal(test_heard(), "");
    job_test_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_that_does_not_end_is_told_of),
        cmocka_unit_test(what_ends_in_time_is_not_told_of),
    };
    job_test_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
