/* SPDX-License-Identifier: Apache-2.0 */
/* A child of fork of a process that used OpenCL hung for ever in its first call that needed a device, in the context
 * of its parent as in one of its own, and at the end of either. Now each call says at once
 * what is wrong and what to do. */
#include "test.h"

#include <cleave/probe.h>
#include <cleave/runtime.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNITS = 64, PATIENCE_S = 20 };

static bool is_refused(clv_status status)
{
    return status == CLV_E_UNSUPPORTED && strstr(clv_error_message(), "spawn") &&
           strstr(clv_error_message(), "fork");
}

/* Exit code 0: everything was refused, and nothing hung; else the number of the step. */
static int be_the_child(clv_context *context, clv_queue *queue, clv_buffer *buffer)
{
    float numbers[UNITS] = { 1 };
    clv_context *own = NULL;
    clv_probe_report *report = NULL;
    clv_queue *another = NULL;
    alarm(PATIENCE_S); /* a hang ends by a signal */
    if (!is_refused(clv_context_create(NULL, &own)) || own) return 1;
    if (!is_refused(clv_probe_run(NULL, &report))) return 2;
    if (!is_refused(clv_queue_create(clv_queue_device(queue), &another))) return 3;
    if (!is_refused(clv_write(queue, buffer, 0, numbers, sizeof numbers))) return 4;
    if (!is_refused(clv_queue_wait(queue))) return 5;
    if (!is_refused(clv_device_open(clv_context_device(context, 0)))) return 6;
    clv_buffer_free(buffer);
    clv_queue_free(queue);
    clv_context_free(context);
    return 0;
}

static void a_child_is_told(void **state)
{
    (void)state;
    clv_context *context;
    clv_queue *queue;
    clv_buffer *buffer;
    float numbers[UNITS] = { 1 };
    EXPECT_OK(clv_context_create(NULL, &context));
    if (!clv_context_device_count(context)) {
        clv_context_free(context);
        test_skip_without_device();
    }
    EXPECT_OK(clv_queue_create(clv_context_device(context, 0), &queue));
    EXPECT_OK(clv_buffer_create(clv_context_device(context, 0), sizeof numbers, CLV_BUFFER_DEVICE,
                                &buffer));
    EXPECT_OK(clv_write(queue, buffer, 0, numbers, sizeof numbers));
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(be_the_child(context, queue, buffer));
    int ended = -1;
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    assert_true(WIFEXITED(ended)); /* not by the alarm */
    assert_int_equal(WEXITSTATUS(ended), 0);
    EXPECT_OK(clv_write(queue, buffer, 0, numbers, sizeof numbers)); /* the parent goes on */
    clv_buffer_free(buffer);
    clv_queue_free(queue);
    clv_context_free(context);
}

/* A child that is the first to use OpenCL may do so. */
static void a_child_may_be_the_first(void **state)
{
    (void)state;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        clv_context *context;
        alarm(10 * PATIENCE_S);
        if (clv_context_create(NULL, &context)) _exit(1);
        clv_context_free(context);
        _exit(0);
    }
    int ended = -1;
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_may_be_the_first), /* first, before this process uses it */
        cmocka_unit_test(a_child_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
