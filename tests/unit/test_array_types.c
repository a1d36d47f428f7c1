/* SPDX-License-Identifier: Apache-2.0 */
/* What plain C computes of arrays, in every type: operations, conversions, reductions and running sums of small whole
 * numbers, which all types hold, agree with each other or with sums in double precision. */
#include "test.h"

#include "base/alloc.h"
#include "host/array/apply.h"
#include "host/array/fold.h"
#include "host/array/ops.h"

#include <complex.h>
#include <math.h>
#include <string.h>

enum { COUNT = 5, KINDS = KIND_COMPLEX + 1, MOST = 64 };
typedef enum class { SAME, TRUTH, FLOAT, PART } class;
#define CLASS_OF(NAME, name, inputs, kind, ...) [CLV_OP_##NAME] = kind,
static const class class_of[CLV_OPS] = { CLV_OPS_DO(CLASS_OF) };
static const double numbers[CLV_OP_INPUTS][COUNT] = {
    { 0, 1, 2, 3, 7 },
    { 2, 1, 3, 1, 2 },
    { 5, 4, 3, 2, 1 },
};

/* `count` numbers of a kind, as the blocks of operations hold them. */
static void fill(clv_number_kind kind, const double *from, size_t count, void *to)
{
    clv_apply_load(CLV_F64, kind, from, 1, count, to);
}

/* Results of an operation, as numbers in double precision, or the bits of whole ones; false: it has no meaning. */
static bool results_of(clv_op op, clv_number_kind kind, double values[COUNT], uint64_t bits[COUNT])
{
    double complex in[CLV_OP_INPUTS][COUNT], out[COUNT];
    if (!clv_op_text(op, clv_kind_type(kind))) return false;
    for (size_t i = 0; i < CLV_OP_INPUTS; ++i)
        fill(kind, numbers[i], COUNT, in[i]);
    memset(bits, 0, COUNT * sizeof *bits);
    clv_apply_block(op, kind, in[0], in[1], in[2], 3, COUNT, out);
    if (class_of[op] == TRUTH) kind = KIND_UINT;
    if (class_of[op] == PART && kind == KIND_COMPLEX) kind = KIND_DOUBLE;
    if (kind <= KIND_UINT) memcpy(bits, out, COUNT * sizeof *bits);
    clv_apply_store(kind, CLV_F64, out, COUNT, values, 1);
    return true;
}

static void operations_agree_in_all_types(void **state)
{
    (void)state;
    size_t compared = 0;
    for (int op = 0; op < CLV_OPS; ++op) {
        double values[KINDS][COUNT];
        uint64_t bits[KINDS][COUNT];
        bool known[KINDS];
        for (int kind = 0; kind < KINDS; ++kind)
            known[kind] = results_of((clv_op)op, (clv_number_kind)kind, values[kind], bits[kind]);
        assert_int_equal(known[KIND_INT], known[KIND_UINT]);
        assert_int_equal(known[KIND_FLOAT], known[KIND_DOUBLE]);
        if (known[KIND_INT])
            assert_memory_equal(bits[KIND_INT], bits[KIND_UINT], sizeof bits[KIND_INT]);
        for (int kind = 0; kind < KINDS; ++kind)
            for (size_t i = 0; known[kind] && known[KIND_DOUBLE] && i < COUNT; ++i) {
                const double want = values[KIND_DOUBLE][i];
                const bool wraps = kind == KIND_UINT && want < 0;
                if (!isfinite(want) || wraps) continue; /* complex numbers have other domains */
                ++compared;
                if (!(fabs(values[kind][i] - want) <= 1e-6 * fabs(want) + 1e-12))
                    fail_msg("operation %d, kind %d, %g: %g, in double %g", op, kind, numbers[0][i],
                             values[kind][i], want);
            }
    }
    assert_true(compared > 800);
}

static void conversions_keep_numbers(void **state)
{
    (void)state;
    static const ptrdiff_t strides[] = { 1, 2, -1 };
    static const double wanted[COUNT] = { 0, 1, 0, 1, 1 };
    for (int type = 0; type < CLV_DTYPES; ++type)
        for (int kind = 0; kind < KINDS; ++kind)
            for (size_t s = 0; s < CLV_LEN(strides); ++s) {
                double complex held[COUNT], memory[2 * COUNT], back[COUNT];
                double got[COUNT];
                const size_t size = clv_dtype_bytes((clv_dtype)type);
                char *first = (char *)memory + (strides[s] < 0 ? (COUNT - 1) * size : 0);
                fill((clv_number_kind)kind, type == CLV_BOOL ? wanted : numbers[0], COUNT, held);
                clv_apply_store((clv_number_kind)kind, (clv_dtype)type, held, COUNT, first,
                                strides[s]);
                clv_apply_load((clv_dtype)type, (clv_number_kind)kind, first, strides[s], COUNT,
                               back);
                clv_apply_store((clv_number_kind)kind, CLV_F64, back, COUNT, got, 1);
                for (size_t i = 0; i < COUNT; ++i)
                    if (got[i] != (type == CLV_BOOL ? wanted : numbers[0])[i])
                        fail_msg("type %d, kind %d, stride %d: %g", (int)type, (int)kind,
                                 (int)strides[s], got[i]);
            }
}

static double join(clv_fold what, double x, double y)
{
    switch (what) {
    case CLV_FOLD_SUM:
        return x + y;
    case CLV_FOLD_PROD:
        return x * y;
    case CLV_FOLD_MIN:
        return fmin(x, y);
    case CLV_FOLD_MAX:
        return fmax(x, y);
    case CLV_FOLD_ANY:
        return x != 0 || y != 0;
    default:
        return x != 0 && y != 0;
    }
}

static double element(size_t i)
{
    return i * 7 % 4 == 3 ? 0 : 1 + (double)(i % 3 == 0);
}

static void read_back(clv_dtype type, const void *from, size_t count, double *to)
{
    double complex held[MOST];
    clv_apply_load(type, KIND_COMPLEX, from, 1, count, held);
    clv_apply_store(KIND_COMPLEX, CLV_F64, held, count, to, 1);
}

/* Rows [2, 7, inner], whose last block is not full. */
static void check_rows(clv_dtype type, size_t inner)
{
    const clv_fold_shape shape = { .outer = 2, .len = 7, .inner = inner };
    const size_t row = 7 * inner, count = 2 * row, chunks = 3, width = chunks * inner;
    double x[MOST], got[MOST];
    double complex in[MOST], out[MOST], held[MOST];
    const bool complex_type = type == CLV_C64 || type == CLV_C128;
    for (size_t i = 0; i < count; ++i)
        x[i] = type == CLV_BOOL ? element(i) != 0 : element(i);
    fill(KIND_COMPLEX, x, count, held);
    clv_apply_store(KIND_COMPLEX, type, held, count, in, 1);
    for (int what = 0; what < CLV_FOLDS; ++what) {
        if (type == CLV_BOOL && what < CLV_FOLD_MIN) continue;
        if (complex_type && (what == CLV_FOLD_MIN || what == CLV_FOLD_MAX)) continue;
        clv_fold_level((clv_fold)what, type, shape, chunks, in, out);
        read_back(type, out, 2 * width, got);
        for (size_t i = 0; i < 2 * width; ++i) {
            double want = x[i / width * row + i % width];
            for (size_t k = i % width + width; k < row; k += width)
                want = join((clv_fold)what, want, x[i / width * row + k]);
            if (got[i] != want)
                fail_msg("%s, type %d, inner %zu, %zu: %g, expected %g",
                         clv_fold_name((clv_fold)what), (int)type, inner, i, got[i], want);
        }
    }
    for (int products = 0; products < 2 && type != CLV_BOOL; ++products) {
        clv_scan_rows(products != 0, type, shape, in, out);
        read_back(type, out, count, got);
        for (size_t i = 0; i < count; ++i) {
            const double before = i % row < inner ? products : got[i - inner];
            if (got[i] != (products ? before * x[i] : before + x[i]))
                fail_msg("running %s, type %d, inner %zu, %zu: %g", products ? "product" : "sum",
                         (int)type, inner, i, got[i]);
        }
    }
}

static void reductions_and_running_sums_are_right_in_all_types(void **state)
{
    (void)state;
    for (int type = 0; type < CLV_DTYPES; ++type)
        for (size_t inner = 1; inner <= 4 && type != CLV_F16; inner += 3)
            check_rows((clv_dtype)type, inner); /* float16 is computed as float32 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_agree_in_all_types),
        cmocka_unit_test(conversions_keep_numbers),
        cmocka_unit_test(reductions_and_running_sums_are_right_in_all_types),
    };
    return cmocka_run_group_tests_name("array_types", tests, NULL, NULL);
}
