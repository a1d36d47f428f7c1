/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions along any axes, running sums, sorted orders, and slices by their places, against plain loops. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/array_fold.h>
#include <cleave/array_take.h>
#include <cleave/offload.h>

#include <math.h>
#include <string.h>

static clv_array *make(clv_context *context, clv_dtype type, const void *host, size_t rank,
                       const size_t *shape)
{
    clv_array *array;
    if (host)
        EXPECT_OK(clv_array_make_from(context, type, host, rank, shape, &array));
    else
        EXPECT_OK(clv_array_make(context, type, rank, shape, &array));
    return array;
}

static void on_both_sides(test_device *device, void (*check)(test_device *, bool))
{
    for (int side = CLV_SIDE_HOST; side <= CLV_SIDE_DEVICE; ++side) {
        clv_offload_force((clv_side)side);
        check(device, side == CLV_SIDE_DEVICE);
    }
    clv_offload_force(CLV_SIDE_AUTO);
}

/* ---- reductions ---------------------------------------------------------------------------------- */

enum { A = 3, B = 7, C = 5, LONG = 70001 };

/* All sets of three axes, of a dense array and of its view with the axes in reverse. */
static void every_axis(test_device *device, bool on_device)
{
    int32_t x[A * B * C], got[A * B * C];
    const size_t shape[] = { A, B, C }, turned[] = { C, B, A };
    const ptrdiff_t stride[] = { 1, C, B * C };
    (void)on_device;
    for (int i = 0; i < A * B * C; ++i)
        x[i] = i * 37 % 101 - 50;
    clv_array *dense = make(device->context, CLV_I32, x, 3, shape), *view;
    EXPECT_OK(clv_array_view(dense, 0, 3, turned, stride, &view));
    for (unsigned axes = 0; axes < 8; ++axes)
        for (int reverse = 0; reverse < 2; ++reverse) {
            size_t kept[3];
            int64_t want[A * B * C] = { 0 };
            const size_t *from = reverse ? turned : shape;
            for (size_t k = 0; k < 3; ++k)
                kept[k] = axes >> k & 1 ? 1 : from[k];
            for (size_t p = 0; p < from[0]; ++p)
                for (size_t q = 0; q < from[1]; ++q)
                    for (size_t r = 0; r < from[2]; ++r) {
                        const size_t at[] = { axes & 1 ? 0 : p, axes & 2 ? 0 : q,
                                              axes & 4 ? 0 : r };
                        want[(at[0] * kept[1] + at[1]) * kept[2] + at[2]] +=
                            reverse ? x[(r * B + q) * C + p] : x[(p * B + q) * C + r];
                    }
            clv_array *out = make(device->context, CLV_I32, NULL, 3, kept);
            EXPECT_OK(
                clv_array_fold(device->context, CLV_FOLD_SUM, reverse ? view : dense, axes, out));
            EXPECT_OK(clv_array_copy_to(out, got));
            for (size_t i = 0; i < clv_array_elements(out); ++i)
                assert_int_equal(got[i], want[i]);
            clv_array_free(out);
        }
    clv_array_free(dense), clv_array_free(view);
}

static double fold_of(clv_context *c, clv_fold what, clv_array *in, clv_dtype type)
{
    clv_array *out = make(c, type, NULL, 0, NULL), *number;
    double value;
    EXPECT_OK(clv_array_fold(c, what, in, (1u << clv_array_rank(in)) - 1, out));
    EXPECT_OK(clv_array_cast(out, CLV_F64, &number));
    EXPECT_OK(clv_array_copy_to(number, &value));
    clv_array_free(out), clv_array_free(number);
    return value;
}

/* Three levels of blocks, in types whose sums are exact. */
static void long_rows(test_device *device, bool on_device)
{
    clv_context *c = device->context;
    const size_t count = device->tiny ? 700 : LONG;
    uint8_t *bytes = clv_zalloc(count, 1);
    double *reals = clv_zalloc(count, sizeof *reals), sum = 0;
    assert_non_null(bytes), assert_non_null(reals);
    for (size_t i = 0; i < count; ++i) {
        bytes[i] = (uint8_t)(i % 7);
        reals[i] = (double)(i % 1000) + 0x1p-20;
        sum += reals[i];
    }
    clv_array *small = make(c, CLV_U8, bytes, 1, &count),
              *wide = make(c, CLV_F64, reals, 1, &count);
    double want = 0;
    for (size_t i = 0; i < count; ++i)
        want += bytes[i];
    assert_true(fold_of(c, CLV_FOLD_SUM, small, CLV_I64) == want);
    assert_true(fold_of(c, CLV_FOLD_SUM, small, CLV_U8) == fmod(want, 256)); /* wraps */
    assert_true(fold_of(c, CLV_FOLD_SUM, wide, CLV_F64) == sum);
    assert_true(fold_of(c, CLV_FOLD_MAX, wide, CLV_F64) == (count > 1000 ? 999 : 699) + 0x1p-20);
    assert_true(fold_of(c, CLV_FOLD_MIN, wide, CLV_F64) == 0x1p-20);
    assert_true(fold_of(c, CLV_FOLD_ALL, wide, CLV_BOOL) == 1);
    assert_true(fold_of(c, CLV_FOLD_ALL, small, CLV_BOOL) == 0);
    assert_true(fold_of(c, CLV_FOLD_ANY, small, CLV_BOOL) == 1);
    assert_true(fold_of(c, CLV_FOLD_PROD, wide, CLV_I32) == 0);
    reals[count / 2] = (double)NAN;
    EXPECT_OK(clv_array_fill_from(wide, reals));
    assert_true(isnan(fold_of(c, CLV_FOLD_MAX, wide, CLV_F64)));
    assert_true(isnan(fold_of(c, CLV_FOLD_MIN, wide, CLV_F64)));
    (void)on_device;
    clv_free(bytes), clv_free(reals);
    clv_array_free(small), clv_array_free(wide);
}

static void complex_products(test_device *device, bool on_device)
{
    const float x[] = { 1, 2, 3, -1, 0.5f, 4 };
    const size_t three = 3;
    clv_array *in = make(device->context, CLV_C64, x, 1, &three);
    clv_array *out = make(device->context, CLV_C64, NULL, 0, NULL);
    float got[2];
    EXPECT_OK(clv_array_fold(device->context, CLV_FOLD_PROD, in, 1, out));
    EXPECT_OK(clv_array_copy_to(out, got));
    assert_true(got[0] == -17.5f && got[1] == 22.5f); /* (1+2i) (3-i) = 5+5i; times 0.5+4i */
    (void)on_device;
    clv_array_free(in), clv_array_free(out);
}

static void folds(test_device *device)
{
    on_both_sides(device, every_axis);
    on_both_sides(device, long_rows);
    on_both_sides(device, complex_products);
}

static void folds_are_those_of_plain_loops(void **state)
{
    (void)state;
    test_each_device(folds);
}

/* ---- slices -------------------------------------------------------------------------------------- */

static void one_type(clv_context *c, clv_dtype type)
{
    enum { P = 2, Q = 5, R = 3, TAKEN = 4 };
    unsigned char x[P * Q * R * 16], got[P * Q * R * 16], want[P * Q * R * 16];
    const size_t bytes = clv_dtype_bytes(type), shape[] = { P, Q, R },
                 out_shape[] = { P, TAKEN, R };
    const int32_t places[] = { 4, 0, -1, 2 }, twice[] = { 1, 3, 1, 0 };
    const size_t four = 4;
    for (size_t i = 0; i < sizeof x; ++i)
        x[i] = type == CLV_BOOL ? i % 3 == 0 : (unsigned char)(i * 5 % 121);
    clv_array *in = make(c, type, x, 3, shape), *out = make(c, type, NULL, 3, out_shape);
    clv_array *at = make(c, CLV_I32, places, 1, &four), *again = make(c, CLV_I32, twice, 1, &four);
    EXPECT_OK(clv_array_take(c, in, 1, at, out));
    EXPECT_OK(clv_array_copy_to(out, got));
    for (size_t p = 0; p < P; ++p)
        for (size_t j = 0; j < TAKEN; ++j) {
            const size_t place = (size_t)(places[j] < 0 ? places[j] + Q : places[j]);
            assert_memory_equal(got + (p * TAKEN + j) * R * bytes, x + (p * Q + place) * R * bytes,
                                R * bytes);
        }
    memcpy(want, x,
           sizeof x); /* the slices of `out` go to 1, 3, 1 and 0: the later one to 1 stays */
    for (size_t p = 0; p < P; ++p)
        for (size_t j = 0; j < TAKEN; ++j)
            memcpy(want + (p * Q + (size_t)twice[j]) * R * bytes, got + (p * TAKEN + j) * R * bytes,
                   R * bytes);
    EXPECT_OK(clv_array_put_at(c, in, 1, again, out));
    EXPECT_OK(clv_array_copy_to(in, got));
    assert_memory_equal(got, want, P * Q * R * bytes);
    clv_array_free(in), clv_array_free(out), clv_array_free(at), clv_array_free(again);
}

static void slices(test_device *device, bool on_device)
{
    (void)on_device;
    for (int type = 0; type < CLV_DTYPES; ++type)
        one_type(device->context, (clv_dtype)type);
}

static void slices_on(test_device *device)
{
    on_both_sides(device, slices);
}

static void slices_are_taken_and_put(void **state)
{
    (void)state;
    test_each_device(slices_on);
}

/* ---- what the host does -------------------------------------------------------------------------- */

static void orders_and_running_sums(void **state)
{
    (void)state;
    clv_context *c = test_plain_context();
    const double x[] = { 3, 0, (double)NAN, -0.0, 3, -INFINITY }, asked[] = { 3, -5, 7 };
    const int64_t up[] = { 5, 1, 3, 0, 4, 2 }, down[] = { 2, 0, 4, 1, 3, 5 };
    const size_t six = 6, three = 3, grid[] = { 2, 3 };
    int64_t got[6];
    double sums[6];
    clv_array *in = make(c, CLV_F64, x, 1, &six), *places = make(c, CLV_I64, NULL, 1, &six);
    EXPECT_OK(clv_array_order(c, in, 0, 0, places));
    EXPECT_OK(clv_array_copy_to(places, got));
    assert_memory_equal(got, up, sizeof up);
    clv_array *sorted = make(c, CLV_F64, NULL, 1, &six),
              *values = make(c, CLV_F64, asked, 1, &three);
    EXPECT_OK(clv_array_take(c, in, 0, places, sorted));
    EXPECT_OK(clv_array_order(c, in, 0, CLV_ORDER_DESCENDING, places));
    EXPECT_OK(clv_array_copy_to(places, got));
    assert_memory_equal(got, down, sizeof down);
    clv_array *found = make(c, CLV_I64, NULL, 1, &three);
    EXPECT_OK(clv_array_locate(c, sorted, values, false, found));
    EXPECT_OK(clv_array_copy_to(found, got));
    assert_true(got[0] == 3 && got[1] == 1 && got[2] == 5);
    EXPECT_OK(clv_array_locate(c, sorted, values, true, found));
    EXPECT_OK(clv_array_copy_to(found, got));
    assert_true(got[0] == 5 && got[1] == 1 && got[2] == 5);
    clv_array_free(found);
    EXPECT_OK(clv_array_find(c, in, &found)); /* NaN is not 0, and -0 is */
    EXPECT_OK(clv_array_copy_to(found, got));
    assert_true(clv_array_elements(found) == 4 && got[0] == 0 && got[1] == 2 && got[3] == 5);

    const double table[] = { 1, 2, 3, 4, 5, 6 }, along[] = { 1, 2, 3, 5, 7, 9 },
                 across[] = { 1, 2, 6, 4, 20, 120 };
    clv_array *t = make(c, CLV_F64, table, 2, grid), *out = make(c, CLV_F64, NULL, 2, grid);
    EXPECT_OK(clv_array_scan(c, CLV_FOLD_SUM, t, 0, out));
    EXPECT_OK(clv_array_copy_to(out, sums));
    assert_memory_equal(sums, along, sizeof along);
    EXPECT_OK(clv_array_scan(c, CLV_FOLD_PROD, t, 1, out));
    EXPECT_OK(clv_array_copy_to(out, sums));
    assert_memory_equal(sums, across, sizeof across);
    clv_array_free(in), clv_array_free(places), clv_array_free(sorted), clv_array_free(values);
    clv_array_free(found), clv_array_free(t), clv_array_free(out);
    clv_context_free(c);
}

static void rejects_what_makes_no_sense(void **state)
{
    (void)state;
    clv_context *c = test_plain_context();
    const size_t shape[] = { 2, 3 }, none[] = { 0, 3 }, one = 1, two = 2;
    const int64_t far[] = { 0, 3 };
    const float memory[6] = { 0 };
    clv_array *a = make(c, CLV_F32, memory, 2, shape), *row = make(c, CLV_F32, NULL, 1, &two);
    clv_array *empty = make(c, CLV_F32, NULL, 2, none), *places = make(c, CLV_I64, far, 1, &two);
    clv_array *out = make(c, CLV_F32, NULL, 1, shape + 1),
              *number = make(c, CLV_F32, NULL, 0, &one);
    clv_array *truth = make(c, CLV_BOOL, NULL, 0, &one), *pair = make(c, CLV_C64, NULL, 0, &one);
    clv_array *two_more = make(c, CLV_F32, NULL, 1, &two);
    float got[3] = { 7, 7, 7 };
    EXPECT_OK(clv_array_fill_from(row, memory));
    EXPECT_FAIL(CLV_E_SHAPE, "the axes are 0x4 (one bit per axis), but the array has only 2",
                clv_array_fold(c, CLV_FOLD_SUM, a, 4, row));
    EXPECT_FAIL(CLV_E_SHAPE, "must have the operand's shape",
                clv_array_fold(c, CLV_FOLD_SUM, a, 1, row));
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory", clv_array_fold(c, CLV_FOLD_SUM, a, 0, a));
    EXPECT_FAIL(CLV_E_SHAPE, "max is not defined for an empty array",
                clv_array_fold(c, CLV_FOLD_MAX, empty, 1, out));
    EXPECT_FAIL(CLV_E_UNSUPPORTED, "sum: a result of bool",
                clv_array_fold(c, CLV_FOLD_SUM, a, 3, truth));
    EXPECT_FAIL(CLV_E_UNSUPPORTED, "max is not defined for the type complex64",
                clv_array_fold(c, CLV_FOLD_MAX, pair, 0, number));
    EXPECT_OK(clv_array_fold(c, CLV_FOLD_SUM, empty, 1, out));
    EXPECT_OK(clv_array_copy_to(out, got));
    assert_true(got[0] == 0 && got[1] == 0 && got[2] == 0);
    EXPECT_FAIL(CLV_E_SHAPE, "index 3 (number 1 of the indices) is out of range for an axis of 2",
                clv_array_take(c, row, 0, places, two_more));
    static const uint64_t huge[2] = { 0, UINT64_MAX }; /* as an int64, the last element */
    clv_array *wide;
    EXPECT_OK(clv_array_make_from(c, CLV_U64, huge, 1, &two, &wide));
    EXPECT_FAIL(CLV_E_SHAPE, "index 18446744073709551615 (number 1 of the indices) is out of range",
                clv_array_take(c, row, 0, wide, two_more));
    EXPECT_FAIL(CLV_E_SHAPE, "index 18446744073709551615 (number 1 of the indices) is out of range",
                clv_array_put_at(c, row, 0, wide, two_more));
    clv_array_free(wide);
    EXPECT_FAIL(CLV_E_SHAPE, "got 6 elements, but there are 2 slices",
                clv_array_put_at(c, a, 1, places, a));
    EXPECT_FAIL(CLV_E_ARGUMENT, "indices are of float32", clv_array_put_at(c, row, 0, row, row));
    EXPECT_FAIL(CLV_E_ARGUMENT, "must be int64", clv_array_order(c, row, 0, 0, row));
    EXPECT_FAIL(CLV_E_ARGUMENT, "only sum and prod", clv_array_scan(c, CLV_FOLD_MAX, a, 0, a));
    clv_array_free(a), clv_array_free(row), clv_array_free(empty), clv_array_free(places);
    clv_array_free(out), clv_array_free(number), clv_array_free(truth), clv_array_free(pair),
        clv_array_free(two_more);
    clv_context_free(c);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds_are_those_of_plain_loops),
        cmocka_unit_test(slices_are_taken_and_put),
        cmocka_unit_test(orders_and_running_sums),
        cmocka_unit_test(rejects_what_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
