/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a program whose test fails while a device is open, a kernel is built and memory is in use names the
 * failed test and ends with 1, on every device, however its driver shuts down. */
#include "device.h"
#include "run.h"
#include "test.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

static void fail_in_the_middle(test_device *device)
{
    static const char text[] =
        "__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2; }";
    static const clv_cl_source source = { "twice", text, sizeof text - 1 };
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = &source,
                                .kernel = "twice",
                                .global = { 4 },
                                .local = { 1 } };
    const float ones[4] = { 1, 1, 1, 1 };
    test_array x = test_array_from(device, ones, sizeof ones);
    const clv_arg args[] = { clv_arg_buffer(x.buffer) };
    EXPECT_OK(clv_launch_enqueue(device->queue, &launch, args, CLV_LEN(args), NULL));
    test_array_read(&x);
    assert_true(((const float *)(void *)x.host)[3] == 2); /* that is not it */
    fail_msg("on purpose");
}

static void fails(void **state)
{
    (void)state;
    test_each_device(fail_in_the_middle);
}

static const char *program;

static void a_failure_ends_with_1(void **state)
{
    (void)state;
    (void)test_device_count(); /* without any it is skipped */
    const char *const argv[] = { program, "fail", NULL };
    test_outcome got = test_run(argv, NULL);
    if (got.code != 1 || !strstr(got.err, "on purpose"))
        fail_msg("code %d\n%s\n%s", got.code, got.out, got.err);
    test_outcome_clear(&got);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest inner[] = { cmocka_unit_test(fails) };
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_failure_ends_with_1) };
    program = argv[0];
    return argc > 1 ? cmocka_run_group_tests_name("inner", inner, NULL, NULL)
                    : cmocka_run_group_tests_name("left_open", tests, NULL, NULL);
}
