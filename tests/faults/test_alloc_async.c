/* SPDX-License-Identifier: Apache-2.0 */
/* Tests asynchronous calls on arrays in which the k-th allocation of the library fails, for k = 1, 2, 3, ... until the
 * calls make fewer, in plain C and on PoCL. Each time every result is right, or its call is refused, or the failure is
 * told to the first who reads the result or waits for it; afterwards the same calls work. */
#include "job_test.h"

#include "device.h"

#include "base/alloc.h"

#include <cleave/array.h>
#include <cleave/array_async.h>
#include <cleave/array_fold.h>
#include <cleave/array_math.h>
#include <cleave/array_typed.h>

#include <math.h>
#include <stdio.h>

enum {
    ROWS = 40,
    COLUMNS = 32,
    ALL = ROWS * COLUMNS,
    ENOUGH = 2000
}; /* too many to be computed at once */

static const size_t matrix[2] = { ROWS, COLUMNS };

/* The arrays of a chain of calls. `out` is read in the end. */
typedef struct arrays {
    clv_context *context;
    clv_array *x, *y, *out, *more[3];
} arrays;

typedef struct chain {
    const char *name;
    clv_status (*run)(arrays *a);
    bool fails; /* even if no allocation does: nobody may read a result */
} chain;

static clv_status add(arrays *a, clv_array *x, clv_array *y, clv_array *out)
{
    const clv_operand operands[] = { { .array = x }, { .array = y } };
    return clv_array_apply(a->context, CLV_OP_ADD, operands, 2, out);
}

static clv_status in_a_row(arrays *a)
{
    CLV_TRY(clv_array_make(a->context, CLV_F32, 2, matrix, &a->more[0]));
    CLV_TRY(add(a, a->x, a->y, a->more[0]));
    a->more[1] = clv_array_compute(CLV_OP_MULTIPLY, a->more[0], NULL, 3);
    if (!a->more[1]) return CLV_E_MEMORY;
    CLV_TRY(clv_array_copy(a->more[1], 2, matrix, &a->out));
    clv_array_free(a->more[1]), a->more[1] = NULL; /* while it is pending */
    return CLV_OK;
}

/* x + y takes the place of x, which must not be read as the sum if the call fails. */
static clv_status in_place(arrays *a)
{
    CLV_TRY(add(a, a->x, a->y, a->x));
    a->out = a->x, a->x = NULL;
    return CLV_OK;
}

static clv_status fold(arrays *a)
{
    CLV_TRY(clv_array_cast(a->x, CLV_I16, &a->more[0]));
    CLV_TRY(clv_array_cast(a->more[0], CLV_F32, &a->more[1]));
    CLV_TRY(clv_array_make(a->context, CLV_F32, 1, matrix, &a->out));
    return clv_array_fold(a->context, CLV_FOLD_SUM, a->more[1], 1 << 1, a->out);
}

static clv_status multiply(arrays *a)
{
    const size_t square[2] = { ROWS, ROWS };
    const clv_product_options o = { .size = sizeof o, .b_transposed = true };
    CLV_TRY(clv_array_make(a->context, CLV_F32, 2, square, &a->out));
    CLV_TRY(clv_product(a->context, a->x, a->y, &o, a->out));
    CLV_TRY(clv_array_make(a->context, CLV_F32, 1, matrix, &a->more[0]));
    return clv_reduce(a->context, CLV_REDUCE_MEAN, a->x, 1, a->more[0]);
}

static clv_status map(arrays *a)
{
    const clv_map_input inputs[] = { { "x", a->x, 0 }, { "y", a->y, 0 } };
    CLV_TRY(clv_array_make(a->context, CLV_F32, 2, matrix, &a->out));
    return clv_map(a->context, "2 * x - y", inputs, 2, a->out);
}

/* Nothing can be computed on a device where there is none. */
static clv_status without_device(arrays *a)
{
    (void)clv_offload_force(CLV_SIDE_DEVICE);
    const clv_status status = in_place(a);
    (void)clv_offload_force(CLV_SIDE_AUTO);
    return status;
}

static const chain chains[] = {
    { "in a row", in_a_row, false }, { "in place", in_place, false },
    { "fold", fold, false },         { "multiply", multiply, false },
    { "map", map, false },           { "fails", without_device, true },
};

static void allow(const chain *c, unsigned long k, const char *where, clv_status status)
{
    if (!status || status == CLV_E_MEMORY || (c->fails && status == CLV_E_NO_DEVICE)) return;
    fail_msg("%s, allocation %lu: %s gives %s \"%s\"", c->name, k, where, clv_status_name(status),
             clv_error_message());
}

/* Runs a chain with the k-th allocation failing, and reads its result, unless `waits`: then it is read after everybody
 * has waited for all calls. Returns whether a result was read. */
static bool run(clv_context *context, const chain *c, unsigned long k, bool waits, float *results,
                size_t *count, bool *met)
{
    float x[ALL], y[ALL];
    uint64_t state = 32;
    for (size_t i = 0; i < ALL; ++i) {
        x[i] = (float)test_uniform(&state, -9, 9);
        y[i] = (float)test_uniform(&state, -9, 9);
    }
    arrays a = { .context = context };
    clv_alloc_fail_at(k);
    clv_status waited = CLV_OK, got = CLV_OK, made = clv_array_from(context, x, 2, matrix, &a.x);
    if (!made) made = clv_array_from(context, y, 2, matrix, &a.y);
    if (!made) made = c->run(&a);
    allow(c, k, "a call", made);
    if (waits) allow(c, k, "the wait", waited = clv_array_synchronize(context));
    if (!made) allow(c, k, "reading", got = clv_array_get(a.out, results));
    const clv_status last = clv_array_synchronize(context);
    allow(c, k, "the last wait", last);
    *met = clv_alloc_calls() >= k;
    clv_alloc_fail_at(0);
    *count = made || got ? 0 : clv_array_elements(a.out);
    for (size_t i = 0; i < CLV_LEN(a.more); ++i)
        clv_array_free(a.more[i]);
    clv_array_free(a.out), clv_array_free(a.x), clv_array_free(a.y);
    /* nobody is told twice, and a failure is told to somebody */
    if (c->fails) assert_true(made || waited || got);
    if (got && !waits) assert_int_equal(last, CLV_OK);
    EXPECT_OK(clv_array_synchronize(context));
    return !made && !got;
}

static void sweep(clv_context *context, const chain *c, bool waits)
{
    static float want[ROWS * ROWS > ALL ? ROWS * ROWS : ALL], got[CLV_LEN(want)];
    size_t count = 0, counted;
    unsigned long k = 1, failed = 0;
    bool met = true;
    EXPECT_OK(clv_array_set_asynchronous(context, true));
    if (run(context, c, 0, waits, want, &count, &met) == c->fails)
        fail_msg("%s: a result %s", c->name, c->fails ? "was read" : "is missing");
    for (; met; ++k) {
        const bool read = run(context, c, k, waits, got, &counted, &met);
        failed += !read;
        if (read && c->fails) fail_msg("%s, allocation %lu: a result was read", c->name, k);
        for (size_t i = 0; read && i < count; ++i)
            if (!(fabsf(got[i] - want[i]) <= 1e-4F * fmaxf(1, fabsf(want[i]))))
                fail_msg("%s, allocation %lu: result %zu is %.9g, expected %.9g", c->name, k, i,
                         (double)got[i], (double)want[i]);
        assert_true(k < ENOUGH);
    }
    EXPECT_OK(clv_array_set_asynchronous(context, false));
    printf("%-9s %lu allocations, %lu failures\n", c->name, k - 2, failed);
    assert_true(failed > 0);
}

static void in_plain_c(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    for (size_t i = 0; i < CLV_LEN(chains); ++i)
        for (int waits = 0; waits < 2; ++waits)
            sweep(context, &chains[i], waits);
    clv_context_free(context);
}

static void on_a_device(void **state)
{
    (void)state;
    clv_context *context = job_test_context(NULL);
    for (size_t i = 0; i < CLV_LEN(chains); ++i) {
        if (chains[i].fails) continue;
        (void)clv_offload_force(CLV_SIDE_DEVICE);
        sweep(context, &chains[i], i % 2);
        (void)clv_offload_force(CLV_SIDE_AUTO);
    }
    job_test_close(context);
}

/* The thread of the calls may not start, and then the caller is told. */
static void a_thread_may_be_missing(void **state)
{
    (void)state;
    bool met = true;
    for (unsigned long k = 1; met; ++k) {
        clv_context *context = test_plain_context();
        clv_alloc_fail_at(k);
        const clv_status status = clv_array_set_asynchronous(context, true);
        met = clv_alloc_calls() >= k;
        clv_alloc_fail_at(0);
        assert_true(met ? status == CLV_E_MEMORY : !status);
        assert_true(clv_array_is_asynchronous(context) == !status);
        EXPECT_OK(clv_array_set_asynchronous(context, true));
        clv_context_free(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_plain_c),
        cmocka_unit_test(on_a_device),
        cmocka_unit_test(a_thread_may_be_missing),
    };
    job_test_begin();
    return cmocka_run_group_tests_name("alloc_async", tests, NULL, NULL);
}
