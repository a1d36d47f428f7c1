/* SPDX-License-Identifier: Apache-2.0 */
/* Callers that were compiled with an older header: what lies behind their structures is not looked at.
 * Callers that name no place for what they want. */
#include "device.h"
#include "test.h"

#include "base/options.h"

#include <cleave/array.h>
#include <cleave/runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void what_is_lacking_is_zero(void **unused)
{
    (void)unused;
    struct {
        size_t size, a, b;
    } given = { 0, 5, 7 }, own;
    clv_take_options(&own, sizeof own, &given);
    assert_true(own.size == 0 && own.a == 5 && own.b == 7); /* 0: all of it */
    given.size = 2 * sizeof(size_t);
    clv_take_options(&own, sizeof own, &given);
    assert_true(own.a == 5 && own.b == 0);
    given.size = sizeof given + 64; /* a newer caller */
    clv_take_options(&own, sizeof own, &given);
    assert_true(own.a == 5 && own.b == 7);
    clv_take_options(&own, sizeof own, NULL);
    assert_true(own.size == 0 && own.a == 0 && own.b == 0);
}

/* Nobody may call it. */
static int beyond(const char *job, size_t done, size_t total, void *user)
{
    (void)job, (void)done, (void)total, (void)user;
    abort();
}

static void operations_read_what_callers_have(void **state)
{
    enum { SIDE = 4 };
    clv_context *context = *state;
    const float one = 1;
    float image[SIDE * SIDE], out[SIDE * SIDE], values[2];
    for (int i = 0; i < SIDE * SIDE; ++i)
        image[i] = (float)i;
    const clv_convolve_options convolve = {
        offsetof(clv_convolve_options, constant), CLV_EDGE_WRAP, 3, 100, 100, beyond, NULL
    };
    EXPECT_OK(clv_convolve_2d(context, image, SIDE, SIDE, &one, 1, 1, &convolve, out, NULL));
    assert_memory_equal(image, out, sizeof out);

    const float matrix[] = { 2, 0, 0, 3 };
    const clv_eigen_options eigen = { offsetof(clv_eigen_options, progress), beyond, NULL };
    EXPECT_OK(clv_eigvalsh(context, matrix, 1, 2, &eigen, values, NULL));
    assert_true(values[0] == 2 && values[1] == 3);

    uint64_t inside, plain;
    const clv_monte_carlo_options experiment = {
        offsetof(clv_monte_carlo_options, key), { 1, 2 }, beyond, NULL
    };
    EXPECT_OK(clv_monte_carlo_pi(context, 300000, &experiment, &inside, NULL));
    EXPECT_OK(clv_monte_carlo_pi(context, 300000, NULL, &plain, NULL));
    assert_int_equal(inside, plain);
}

static void nowhere_is_an_error(void **unused)
{
    (void)unused;
    EXPECT_FAIL(CLV_E_ARGUMENT, "context: nowhere", clv_context_create(NULL, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "report: nowhere", clv_report_create(NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL queue", clv_queue_wait(NULL));
}

/* Names longer than there is room for are not cut, and a trace that cannot be written is told. */
static void places_that_cannot_be_are_told(void **unused)
{
    (void)unused;
    char name[2001];
    memset(name, 'x', 2000), name[2000] = '\0';
    const clv_context_options far = { .mode = CLV_MODE_REFERENCE, .cache_dir = name };
    clv_context *context;
    EXPECT_FAIL(CLV_E_ARGUMENT, "cache_dir: a name of 2000 bytes given, expected at most 1023",
                clv_context_create(&far, &context));
    assert_null(context);
    setenv("CLEAVE_TRACE", name, 1);
    const clv_context_options plain = { .mode = CLV_MODE_REFERENCE, .cache_dir = "" };
    EXPECT_FAIL(CLV_E_ARGUMENT, "at most 1023", clv_context_create(&plain, &context));
    snprintf(name, sizeof name, "%s/nowhere/trace.json", test_temp_dir());
    setenv("CLEAVE_TRACE", name, 1);
    EXPECT_FAIL(CLV_E_ARGUMENT, "the environment variable CLEAVE_TRACE is",
                clv_context_create(&plain, &context));
    EXPECT_FAIL(CLV_E_ARGUMENT, "nowhere/trace.json: cannot create",
                clv_context_create(&plain, &context));
    unsetenv("CLEAVE_TRACE");
}

static int open_context(void **state)
{
    *state = test_plain_context();
    return 0;
}

static int close_context(void **state)
{
    clv_context_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lacking_is_zero),
        cmocka_unit_test(operations_read_what_callers_have),
        cmocka_unit_test(nowhere_is_an_error),
        cmocka_unit_test(places_that_cannot_be_are_told),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
