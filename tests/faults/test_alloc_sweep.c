/* SPDX-License-Identifier: Apache-2.0 */
/* Tests operations on arrays in which the k-th allocation of the library fails, for k = 1, 2, 3, ... until the
 * operation makes fewer, in plain C and on PoCL. Each time the operation gives the right result, or CLV_E_MEMORY with a
 * message; it works when it is repeated, and leaves nothing of OpenCL behind. */
#include "job_test.h"

#include "device.h"

#include "base/alloc.h"

#include <cleave/array.h>
#include <cleave/array_fold.h>
#include <cleave/array_fourier.h>
#include <cleave/array_fuse.h>
#include <cleave/array_math.h>
#include <cleave/array_take.h>
#include <cleave/array_typed.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 12, COLUMNS = 10, MOST = 256, ENOUGH = 2000 };

static const size_t matrix[2] = { ROWS, COLUMNS }, turned[2] = { COLUMNS, ROWS };

/* The arrays of an operation. `out` is copied to the results, unless it is NULL. */
typedef struct arrays {
    clv_context *context;
    clv_array *x, *y, *out, *more[3];
} arrays;

typedef struct operation {
    const char *name;
    clv_status (*run)(arrays *a);
} operation;

static clv_status make(const arrays *a, clv_dtype type, size_t rank, const size_t *shape,
                       clv_array **out)
{
    return clv_array_make(a->context, type, rank, shape, out);
}

/* ---- operations ------------------------------------------------------------------------------------ */

static clv_status apply(arrays *a)
{
    const clv_operand operands[] = { { .array = a->x }, { .array = a->y } };
    CLV_TRY(make(a, CLV_F32, 2, matrix, &a->out));
    return clv_array_apply(a->context, CLV_OP_ADD, operands, 2, a->out);
}

static clv_status apply_to_itself(arrays *a)
{
    CLV_TRY(clv_array_copy(a->x, 2, matrix, &a->out));
    CLV_TRY(clv_array_view(a->out, (ROWS - 1) * COLUMNS, 2, matrix, (ptrdiff_t[]){ -COLUMNS, 1 },
                           &a->more[0]));
    const clv_operand operands[] = { { .array = a->more[0] }, { .array = a->y } };
    return clv_array_apply(a->context, CLV_OP_SUBTRACT, operands, 2, a->out);
}

static clv_status compute(arrays *a)
{
    a->out = clv_array_compute(CLV_OP_MULTIPLY, a->x, NULL, 3);
    return a->out ? CLV_OK : CLV_E_MEMORY;
}

static clv_status cast(arrays *a)
{
    CLV_TRY(clv_array_cast(a->x, CLV_I16, &a->more[0]));
    return clv_array_cast(a->more[0], CLV_F32, &a->out);
}

static clv_status turn(arrays *a)
{
    CLV_TRY(clv_array_view(a->x, 0, 2, turned, (ptrdiff_t[]){ 1, COLUMNS }, &a->more[0]));
    return clv_array_copy(a->more[0], 2, turned, &a->out);
}

static clv_status fold(arrays *a)
{
    CLV_TRY(make(a, CLV_F32, 1, turned, &a->out));
    return clv_array_fold(a->context, CLV_FOLD_SUM, a->x, 1, a->out);
}

static clv_status scan(arrays *a)
{
    CLV_TRY(make(a, CLV_F32, 2, matrix, &a->out));
    return clv_array_scan(a->context, CLV_FOLD_SUM, a->x, 1, a->out);
}

static clv_status reduce(arrays *a)
{
    CLV_TRY(make(a, CLV_F32, 1, matrix, &a->out));
    return clv_reduce(a->context, CLV_REDUCE_STD, a->x, 1, a->out);
}

static clv_status reduce_all(arrays *a)
{
    CLV_TRY(make(a, CLV_F32, 0, NULL, &a->out));
    return clv_reduce(a->context, CLV_REDUCE_ARGMAX, a->x, -1, a->out);
}

static clv_status reduce_shortly(arrays *a)
{
    a->out = clv_array_reduce(CLV_REDUCE_MEAN, a->x, 0);
    return a->out ? CLV_OK : CLV_E_MEMORY;
}

static clv_status order_and_take(arrays *a)
{
    const size_t length = ROWS * COLUMNS;
    CLV_TRY(clv_array_copy(a->x, 1, &length, &a->more[0]));
    CLV_TRY(make(a, CLV_I64, 1, &length, &a->more[1]));
    CLV_TRY(clv_array_order(a->context, a->more[0], 0, CLV_ORDER_DESCENDING, a->more[1]));
    CLV_TRY(make(a, CLV_F32, 1, &length, &a->out));
    return clv_array_take(a->context, a->more[0], 0, a->more[1], a->out);
}

static clv_status locate(arrays *a)
{
    const float row[] = { -0.5F, 0, 0.25F };
    const size_t three = 3;
    CLV_TRY(clv_array_from(a->context, row, 1, &three, &a->more[0]));
    CLV_TRY(make(a, CLV_I64, 2, matrix, &a->more[1]));
    CLV_TRY(clv_array_locate(a->context, a->more[0], a->x, true, a->more[1]));
    return clv_array_cast(a->more[1], CLV_F32, &a->out);
}

static clv_status find_and_put(arrays *a)
{
    const size_t length = ROWS * COLUMNS;
    CLV_TRY(clv_array_copy(a->x, 1, &length, &a->out));
    CLV_TRY(clv_array_find(a->context, a->out, &a->more[0]));
    CLV_TRY(clv_array_copy(a->y, 1, &length, &a->more[1]));
    return clv_array_put_at(a->context, a->out, 0, a->more[0], a->more[1]);
}

static clv_status map(arrays *a)
{
    const clv_map_input inputs[] = { { "x", a->x, 0 }, { "y", a->y, 0 }, { "a", NULL, 2 } };
    CLV_TRY(make(a, CLV_F32, 2, matrix, &a->out));
    return clv_map(a->context, "a * sqrt(x * x + 1) - y", inputs, 3, a->out);
}

static clv_status fuse(arrays *a)
{
    const clv_fuse_name names[] = { { "x", CLV_FUSE_INPUT, CLV_F32 },
                                    { "y", CLV_FUSE_INPUT, CLV_F32 },
                                    { "z", CLV_FUSE_OUTPUT, CLV_F32 } };
    const clv_operand inputs[] = { { .array = a->x }, { .array = a->y } };
    clv_fused *program;
    CLV_TRY(make(a, CLV_F32, 2, matrix, &a->out));
    CLV_TRY(
        clv_fuse_parse("float d = x - y; z = d > 0 ? d * d : fabs(y)", names, 3, &program, NULL));
    const clv_status status = clv_fuse_run(a->context, program, inputs, 2, &a->out, 1);
    clv_fuse_free(program);
    return status;
}

static clv_status multiply(arrays *a)
{
    const size_t square[2] = { ROWS, ROWS };
    CLV_TRY(turn(a));
    clv_array_free(a->more[0]);
    a->more[0] = a->out, a->out = NULL;
    CLV_TRY(make(a, CLV_F32, 2, square, &a->out));
    return clv_product(a->context, a->x, a->more[0], NULL, a->out);
}

static clv_status normalize(arrays *a)
{
    CLV_TRY(make(a, CLV_F32, 2, matrix, &a->out));
    return clv_normalize(a->context, a->x, a->out, NULL, NULL, NULL);
}

static clv_status learn(arrays *a)
{
    const float w[COLUMNS] = { 0 };
    const size_t steps = 3;
    CLV_TRY(clv_array_from(a->context, w, 1, turned, &a->out));
    CLV_TRY(make(a, CLV_F32, 1, matrix, &a->more[0]));
    CLV_TRY(make(a, CLV_F32, 1, &steps, &a->more[1]));
    CLV_TRY(clv_reduce(a->context, CLV_REDUCE_MEAN, a->y, 1, a->more[0]));
    return clv_linear_train(a->context, a->x, a->more[0], a->out, 0.1F, steps, a->more[1]);
}

/* Stands for a library's transform: copies eight rows of a step. */
static void copy_rows(void *length, void *in, void *out)
{
    const size_t row = (*(const size_t *)length + CLV_FOURIER_GAP) * 2 * sizeof(float);
    memcpy(out, in, CLV_FOURIER_ROWS * row);
}

static clv_status fourier(arrays *a)
{
    const size_t twice = 2 * ROWS * COLUMNS;
    size_t steps[] = { ROWS, COLUMNS };
    clv_fourier_options o = { .size = sizeof(clv_fourier_options) };
    clv_fourier *t;
    o.run = copy_rows, o.form = CLV_FOURIER_BY_STEPS;
    o.from = o.to = CLV_C64, o.rank = o.result_rank = 2;
    for (size_t i = 0; i < 2; ++i) {
        o.plan[i] = &steps[i], o.length[i] = steps[i];
        o.shape[i] = o.result_shape[i] = matrix[i];
    }
    CLV_TRY(clv_array_cast(a->x, CLV_C64, &a->more[0]));
    CLV_TRY(clv_fourier_create(&o, &t));
    a->more[1] = clv_array_fourier(a->more[0], t);
    clv_fourier_free(t);
    if (!a->more[1]) return CLV_E_MEMORY;
    return clv_array_view_as(a->more[1], CLV_F32, 0, 1, &twice, (ptrdiff_t[]){ 1 }, &a->out);
}

static const operation operations[] = {
    { "fourier", fourier },
    { "apply", apply },
    { "apply to itself", apply_to_itself },
    { "compute", compute },
    { "cast", cast },
    { "turn", turn },
    { "fold", fold },
    { "scan", scan },
    { "reduce", reduce },
    { "reduce all", reduce_all },
    { "reduce shortly", reduce_shortly },
    { "order and take", order_and_take },
    { "locate", locate },
    { "find and put", find_and_put },
    { "map", map },
    { "fuse", fuse },
    { "multiply", multiply },
    { "normalize", normalize },
    { "learn", learn },
};

/* ---- sweeps ---------------------------------------------------------------------------------------- */

/* Runs an operation with the k-th allocation failing, and returns the number of its results in *count. */
static clv_status run(clv_context *context, const operation *o, unsigned long k, float *results,
                      size_t *count, bool *met)
{
    float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    uint64_t state = 34;
    for (size_t i = 0; i < ROWS * COLUMNS; ++i) {
        x[i] = (float)test_uniform(&state, -1, 1);
        y[i] = (float)test_uniform(&state, -1, 1);
    }
    arrays a = { .context = context };
    clv_alloc_fail_at(k);
    clv_status status = clv_array_from(context, x, 2, matrix, &a.x);
    if (!status) status = clv_array_from(context, y, 2, matrix, &a.y);
    if (!status) status = o->run(&a);
    *count = status ? 0 : clv_array_elements(a.out);
    assert_true(*count <= MOST);
    if (!status) status = clv_array_get(a.out, results);
    *met = clv_alloc_calls() >= k;
    clv_alloc_fail_at(0);
    for (size_t i = 0; i < CLV_LEN(a.more); ++i)
        clv_array_free(a.more[i]);
    clv_array_free(a.out), clv_array_free(a.x), clv_array_free(a.y);
    return status;
}

/* Device and host may differ in the last digits. */
static void expect_right(const operation *o, unsigned long k, const float *got, const float *want,
                         size_t count)
{
    for (size_t i = 0; i < count; ++i)
        if (!(fabsf(got[i] - want[i]) <= 1e-5F * fmaxf(1, fabsf(want[i]))))
            fail_msg("%s, allocation %lu: result %zu is %.9g, expected %.9g", o->name, k, i,
                     (double)got[i], (double)want[i]);
}

static void sweep(clv_context *context, const operation *o)
{
    float want[MOST], got[MOST];
    size_t count, counted;
    unsigned long k = 1, failed = 0;
    bool met = true;
    EXPECT_OK(run(context, o, 0, want, &count, &met));
    for (met = true; met; ++k) {
        const clv_status status = run(context, o, k, got, &counted, &met);
        failed += status != CLV_OK;
        if (status && (!met || status != CLV_E_MEMORY || !*clv_error_message()))
            fail_msg("%s, allocation %lu: %s \"%s\"", o->name, k, clv_status_name(status),
                     clv_error_message());
        bool again;
        if (status) EXPECT_OK(run(context, o, 0, got, &counted, &again));
        assert_int_equal(counted, count);
        expect_right(o, k, got, want, count);
        assert_true(k < ENOUGH);
    }
    printf("%-16s %lu allocations, %lu failures\n", o->name, k - 2, failed);
    assert_true(failed > 0);
}

static void in_plain_c(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    for (size_t i = 0; i < CLV_LEN(operations); ++i)
        sweep(context, &operations[i]);
    clv_context_free(context);
}

static void on_a_device(void **state)
{
    (void)state;
    clv_context *context = job_test_context(NULL);
    (void)clv_offload_force(CLV_SIDE_DEVICE);
    for (size_t i = 0; i < CLV_LEN(operations); ++i)
        sweep(context, &operations[i]);
    (void)clv_offload_force(CLV_SIDE_AUTO);
    job_test_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_plain_c),
        cmocka_unit_test(on_a_device),
    };
    job_test_begin();
    return cmocka_run_group_tests_name("alloc_sweep", tests, NULL, NULL);
}
