/* SPDX-License-Identifier: Apache-2.0 */
/* Tests arrays of every type, views that share memory, and operations that work element by element. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/half.h"

#include <cleave/array_math.h>
#include <cleave/array_typed.h>
#include <cleave/offload.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 300 };

/* ---- numbers in every type ----------------------------------------------------------------------- */

static void put(clv_dtype type, void *to, size_t i, double value)
{
    switch (type) {
    case CLV_F32:
        ((float *)to)[i] = (float)value;
        break;
    case CLV_F64:
        ((double *)to)[i] = value;
        break;
    case CLV_F16:
        ((uint16_t *)to)[i] = clv_half_of((float)value);
        break;
    case CLV_C64:
        ((float *)to)[2 * i] = (float)value, ((float *)to)[2 * i + 1] = 0;
        break;
    case CLV_C128:
        ((double *)to)[2 * i] = value, ((double *)to)[2 * i + 1] = 0;
        break;
    case CLV_BOOL:
        ((uint8_t *)to)[i] = value != 0;
        break;
    default: { /* two's complement, low bytes first */
        const int64_t whole = (int64_t)value;
        const size_t bytes = clv_dtype_bytes(type);
        memcpy((char *)to + i * bytes, &whole, bytes);
    }
    }
}

static double take(clv_dtype type, const void *from, size_t i)
{
    const bool is_signed = type >= CLV_I8 && type <= CLV_I64;
    const size_t bytes = clv_dtype_bytes(type);
    int64_t whole = 0;
    switch (type) {
    case CLV_F32:
        return (double)((const float *)from)[i];
    case CLV_F64:
        return ((const double *)from)[i];
    case CLV_F16:
        return (double)clv_half_to_float(((const uint16_t *)from)[i]);
    case CLV_C64:
        return (double)((const float *)from)[2 * i];
    case CLV_C128:
        return ((const double *)from)[2 * i];
    default:
        memcpy(&whole, (const char *)from + i * bytes, bytes);
        if (is_signed && bytes < 8 && whole >> (8 * bytes - 1)) whole -= (int64_t)1 << 8 * bytes;
        return (double)whole;
    }
}

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

/* Numbers from 1 to 7: exact in every type, and so are their sums, differences, products and shifts. */
static double number(size_t i, size_t seed)
{
    return (double)(1 + (i * 37 + seed * 11) % 7);
}

/* ---- every operation on every type --------------------------------------------------------------- */

static double in_double(clv_op op, double x, double y)
{
    switch (op) {
    case CLV_OP_ADD:
        return x + y;
    case CLV_OP_SUBTRACT:
        return x - y;
    case CLV_OP_MULTIPLY:
        return x * y;
    case CLV_OP_DIVIDE:
        return x / y;
    case CLV_OP_FLOOR_DIVIDE:
        return floor(x / y);
    case CLV_OP_REMAINDER:
        return x - y * floor(x / y);
    case CLV_OP_POW:
        return pow(x, y);
    case CLV_OP_LESS:
        return x < y;
    case CLV_OP_NOT_EQUAL:
        return x != y;
    case CLV_OP_LOGICAL_XOR:
        return !x != !y;
    case CLV_OP_BIT_AND:
        return (double)((int64_t)x & (int64_t)y);
    case CLV_OP_SHIFT_LEFT:
        return ldexp(x, (int)y);
    case CLV_OP_SHIFT_RIGHT:
        return floor(ldexp(x, (int)-y));
    case CLV_OP_MAXIMUM:
        return fmax(x, y);
    case CLV_OP_HYPOT:
        return hypot(x, y);
    case CLV_OP_SQRT:
        return sqrt(x);
    case CLV_OP_EXP:
        return exp(x);
    case CLV_OP_SIGN:
        return x > 0;
    case CLV_OP_ABS:
        return fabs(x);
    case CLV_OP_ISNAN:
        return 0;
    default:
        return x;
    }
}

static const clv_op some_ops[] = {
    CLV_OP_ADD,         CLV_OP_SUBTRACT, CLV_OP_MULTIPLY,  CLV_OP_DIVIDE,      CLV_OP_FLOOR_DIVIDE,
    CLV_OP_REMAINDER,   CLV_OP_LESS,     CLV_OP_NOT_EQUAL, CLV_OP_LOGICAL_XOR, CLV_OP_BIT_AND,
    CLV_OP_SHIFT_RIGHT, CLV_OP_MAXIMUM,  CLV_OP_HYPOT,     CLV_OP_SQRT,        CLV_OP_SIGN,
    CLV_OP_ABS,         CLV_OP_ISNAN,
};

static double tolerance(clv_dtype type)
{
    return type == CLV_F16                       ? 1e-3
           : type == CLV_F32 || type == CLV_C64  ? 1e-6
           : type == CLV_F64 || type == CLV_C128 ? 1e-14
                                                 : 0;
}

static void one_operation(clv_context *context, clv_op op, clv_dtype type, size_t count)
{
    static _Alignas(16) char x[MANY * 16], y[MANY * 16], got[MANY * 16];
    const size_t inputs = clv_op_inputs(op);
    const clv_dtype types[] = { type, type };
    clv_dtype compute, result;
    if (clv_op_types(op, types, inputs, &compute, &result)) return; /* it has no meaning */
    for (size_t i = 0; i < count; ++i)
        put(type, x, i, number(i, 1)), put(type, y, i, number(i, 2));
    clv_array *a = make(context, type, x, 1, &count), *b = make(context, type, y, 1, &count);
    clv_array *out = make(context, result, NULL, 1, &count);
    const clv_operand operands[] = { { .array = a }, { .array = b } };
    EXPECT_OK(clv_array_apply(context, op, operands, inputs, out));
    EXPECT_OK(clv_array_copy_to(out, got));
    for (size_t i = 0; i < count; ++i) {
        double want = in_double(op, take(type, x, i), take(type, y, i));
        _Alignas(16) char held[16];
        if (tolerance(result) == 0) { /* what the type holds of it: differences wrap */
            put(result, held, 0, want);
            want = take(result, held, 0);
        }
        const double is = take(result, got, i);
        if (!(fabs(is - want) <= tolerance(result) * fabs(want)))
            fail_msg("%s of %s: element %zu is %.17g, %.17g expected", clv_op_name(op),
                     clv_dtype_name(type), i, is, want);
    }
    clv_array_free(a), clv_array_free(b), clv_array_free(out);
}

static void every_type(test_device *device)
{
    /* compilers take up to a second per kernel; the device computes every operation in several types */
    const size_t apart = getenv("CLEAVE_TEST_EVERY_TYPE") ? 1 : device->slow ? 7 : 4;
    for (clv_dtype type = CLV_F32; type <= CLV_C128; ++type)
        for (size_t i = 0; i < CLV_LEN(some_ops); ++i) {
            clv_offload_force(CLV_SIDE_HOST);
            one_operation(device->context, some_ops[i], type, MANY);
            if ((i + (size_t)type) % apart) continue;
            clv_offload_force(CLV_SIDE_DEVICE);
            one_operation(device->context, some_ops[i], type, i % 2 ? 1 : 131);
        }
    clv_offload_force(CLV_SIDE_AUTO);
}

static void types_agree_with_exact_numbers(void **state)
{
    (void)state;
    test_each_device(every_type);
}

/* ---- what float32 could not hold ------------------------------------------------------------------ */

static void digits(test_device *device)
{
    clv_context *c = device->context;
    const size_t one = 1;
    const double near[] = { 1 + 1e-9 };
    const int64_t large[] = { 16777217 };
    double d;
    int64_t n;
    for (int side = CLV_SIDE_HOST; side <= CLV_SIDE_DEVICE; ++side) {
        clv_offload_force((clv_side)side);
        clv_array *x = make(c, CLV_F64, near, 1, &one), *y = make(c, CLV_I64, large, 1, &one);
        const clv_operand minus[] = { { .array = x }, { .type = CLV_F64, .real = 1 } };
        EXPECT_OK(clv_array_apply(c, CLV_OP_SUBTRACT, minus, 2, x));
        EXPECT_OK(clv_array_copy_to(x, &d));
        assert_true(d == near[0] - 1);
        const clv_operand square[] = { { .array = y } };
        EXPECT_OK(clv_array_apply(c, CLV_OP_SQUARE, square, 1, y));
        EXPECT_OK(clv_array_copy_to(y, &n));
        assert_true(n == large[0] * large[0]);
        clv_array_free(x), clv_array_free(y);
    }
    clv_offload_force(CLV_SIDE_AUTO);
}

static void no_digit_is_lost(void **state)
{
    (void)state;
    test_each_device(digits);
}

/* ---- views ---------------------------------------------------------------------------------------- */

static void fill_numbers(int32_t *to, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        to[i] = (int32_t)i * 3 + 1;
}

/* x[1:, ::-2] of [3,5], its transpose, sums with a row that repeats, and writes through a view. */
static void views_of(clv_context *c)
{
    int32_t x[15], got[15];
    fill_numbers(x, 15);
    const size_t shape[] = { 3, 5 }, turned[] = { 3, 2 }, row_shape[] = { 2 };
    const ptrdiff_t stride[] = { -2, 5 };
    clv_array *a = make(c, CLV_I32, x, 2, shape), *view, *out = make(c, CLV_I32, NULL, 2, turned);
    EXPECT_OK(clv_array_view(a, 5 + 4, 2, turned, stride, &view));
    assert_int_equal(clv_array_offset(view), 9);
    assert_true(clv_array_strides(view)[0] == -2 && clv_array_strides(view)[1] == 5);
    const int32_t row[] = { 1000, 2000 };
    clv_array *r = make(c, CLV_I32, row, 1, row_shape);
    const clv_operand sum[] = { { .array = view }, { .array = r } };
    EXPECT_OK(clv_array_apply(c, CLV_OP_ADD, sum, 2, out));
    EXPECT_OK(clv_array_copy_to(out, got));
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 2; ++k)
            assert_int_equal(got[2 * i + k], x[9 - 2 * i + 5 * k] + row[k]);
    EXPECT_OK(clv_array_copy_to(view, got)); /* by way of a dense copy */
    assert_int_equal(got[3], x[12]);
    clv_array_free(out);

    const clv_operand number_42 = { .type = CLV_I64, .whole = 42 };
    EXPECT_OK(clv_array_apply(c, CLV_OP_COPY, &number_42, 1, view));
    EXPECT_OK(clv_array_copy_to(a, got));
    for (int i = 0; i < 15; ++i)
        assert_int_equal(got[i], i >= 5 && i % 5 % 2 == 0 ? 42 : x[i]);

    clv_array *left, *right; /* columns move by one: the copy has other strides than the view */
    const size_t four[] = { 3, 4 };
    const ptrdiff_t rows[] = { 5, 1 };
    EXPECT_OK(clv_array_fill_from(a, x));
    EXPECT_OK(clv_array_view(a, 0, 2, four, rows, &left));
    EXPECT_OK(clv_array_view(a, 1, 2, four, rows, &right));
    const clv_operand columns = { .array = left };
    EXPECT_OK(clv_array_apply(c, CLV_OP_COPY, &columns, 1, right));
    EXPECT_OK(clv_array_copy_to(a, got));
    for (int i = 0; i < 15; ++i)
        assert_int_equal(got[i], x[i % 5 ? i - 1 : i]);
    clv_array_free(left), clv_array_free(right);

    clv_array *from, *to; /* elements move by one place, as if they had been copied first */
    const size_t fourteen = 14;
    const ptrdiff_t next = 1;
    EXPECT_OK(clv_array_fill_from(a, x));
    EXPECT_OK(clv_array_view(a, 0, 1, &fourteen, &next, &from));
    EXPECT_OK(clv_array_view(a, 1, 1, &fourteen, &next, &to));
    clv_array_free(a); /* its views keep the storage */
    const clv_operand moved = { .array = from };
    EXPECT_OK(clv_array_apply(c, CLV_OP_COPY, &moved, 1, to));
    EXPECT_OK(clv_array_copy_to(to, got));
    assert_memory_equal(got, x, 14 * sizeof *x);
    clv_array_free(from), clv_array_free(to), clv_array_free(view), clv_array_free(r);
}

static void views_on(test_device *device)
{
    test_device_watches_arrays(device);
    for (int side = CLV_SIDE_HOST; side <= CLV_SIDE_DEVICE; ++side) {
        clv_offload_force((clv_side)side);
        views_of(device->context);
    }
    clv_offload_force(CLV_SIDE_AUTO);
}

static void views_share_memory(void **state)
{
    (void)state;
    test_each_device(views_on);
}

/* Seven axes, none of which can be merged with the next one. */
static void seven_axes(test_device *device)
{
    clv_context *c = device->context;
    const size_t shape[] = { 2, 3, 2, 1, 2, 3, 2 }, turned[] = { 2, 3, 2, 1, 2, 3, 2 };
    const ptrdiff_t stride[] = { 1, 2, 6, 0, 12, 24, 72 };
    int16_t x[144], got[144];
    for (int i = 0; i < 144; ++i)
        x[i] = (int16_t)(i * 7);
    clv_array *a = make(c, CLV_I16, x, 7, shape), *view;
    EXPECT_OK(clv_array_view(a, 0, 7, turned, stride, &view));
    for (int side = CLV_SIDE_HOST; side <= CLV_SIDE_DEVICE; ++side) {
        clv_offload_force((clv_side)side);
        clv_array *out = make(c, CLV_I16, NULL, 7, turned);
        const clv_operand in = { .array = view };
        EXPECT_OK(clv_array_apply(c, CLV_OP_COPY, &in, 1, out));
        EXPECT_OK(clv_array_copy_to(out, got));
        size_t at = 0;
        for (int p = 0; p < 2; ++p)
            for (int q = 0; q < 3; ++q)
                for (int r = 0; r < 2; ++r)
                    for (int s = 0; s < 2; ++s)
                        for (int t = 0; t < 3; ++t)
                            for (int u = 0; u < 2; ++u)
                                assert_int_equal(got[at++],
                                                 x[p + 2 * q + 6 * r + 12 * s + 24 * t + 72 * u]);
        clv_array_free(out);
    }
    clv_offload_force(CLV_SIDE_AUTO);
    clv_array_free(view), clv_array_free(a);
}

static void axes_need_not_merge(void **state)
{
    (void)state;
    test_each_device(seven_axes);
}

/* ---- edges ---------------------------------------------------------------------------------------- */

static void promotion_is_the_standards(void **state)
{
    (void)state;
    assert_int_equal(clv_dtype_promote(CLV_I8, CLV_U8), CLV_I16);
    assert_int_equal(clv_dtype_promote(CLV_U32, CLV_I64), CLV_I64);
    assert_int_equal(clv_dtype_promote(CLV_I8, CLV_U64), CLV_F64);
    assert_int_equal(clv_dtype_promote(CLV_F32, CLV_F64), CLV_F64);
    assert_int_equal(clv_dtype_promote(CLV_F64, CLV_C64), CLV_C128);
    assert_int_equal(clv_dtype_promote(CLV_F32, CLV_C64), CLV_C64);
    assert_int_equal(clv_dtype_promote(CLV_BOOL, CLV_U16), CLV_U16);
    assert_int_equal(clv_dtype_promote(CLV_I32, CLV_F32), CLV_F64);
    for (int a = 0; a < CLV_DTYPES; ++a)
        for (int b = 0; b < CLV_DTYPES; ++b)
            assert_int_equal(clv_dtype_promote((clv_dtype)a, (clv_dtype)b),
                             clv_dtype_promote((clv_dtype)b, (clv_dtype)a));
}

static void rejects_what_makes_no_sense(void **state)
{
    (void)state;
    clv_context *c = test_plain_context();
    const size_t shape[] = { 3, 4 }, none[] = { 0, 4 }, nine[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const ptrdiff_t stride[] = { 4, 1 }, repeated[] = { 0, 1 };
    float memory[12] = { 0 };
    clv_array *a = make(c, CLV_F32, memory, 2, shape), *view, *out, *empty;
    EXPECT_FAIL(CLV_E_SHAPE, "9 axes, but at most 8", clv_array_make(c, CLV_I8, 9, nine, &out));
    EXPECT_FAIL(CLV_E_ARGUMENT, "not one of clv_dtype",
                clv_array_make(c, (clv_dtype)99, 2, shape, &out));
    EXPECT_FAIL(CLV_E_SHAPE, "outside the storage of 12",
                clv_array_view(a, 1, 2, shape, stride, &view));
    EXPECT_FAIL(CLV_E_SHAPE, "outside the storage", clv_array_view(a, -1, 2, shape, stride, &view));
    EXPECT_OK(clv_array_view(a, 0, 2, shape, repeated, &view));
    const clv_operand in = { .array = a };
    EXPECT_FAIL(CLV_E_ARGUMENT, "share memory", clv_array_apply(c, CLV_OP_COPY, &in, 1, view));
    EXPECT_FAIL(CLV_E_ARGUMENT, "expected a whole array of float32, but got a view",
                clv_reduce(c, CLV_REDUCE_SUM, view, 0, a));
    EXPECT_FAIL(CLV_E_ARGUMENT, "expected 2", clv_array_apply(c, CLV_OP_ADD, &in, 1, a));
    EXPECT_FAIL(CLV_E_UNSUPPORTED, "bit_and is not defined for the type float32",
                clv_array_apply(c, CLV_OP_BIT_AND, (clv_operand[]){ in, in }, 2, a));
    out = make(c, CLV_F32, NULL, 1, shape);
    EXPECT_FAIL(CLV_E_SHAPE, "along its axis", clv_array_apply(c, CLV_OP_COPY, &in, 1, out));
    EXPECT_OK(clv_array_make(c, CLV_F64, 2, none, &empty)); /* without elements all is well */
    assert_int_equal(clv_array_elements(empty), 0);
    const clv_operand zero = { .array = empty };
    EXPECT_OK(clv_array_apply(c, CLV_OP_EXP, &zero, 1, empty));
    const size_t two_by_none[] = { 2, 0 };
    clv_array *nothing;
    EXPECT_OK(clv_array_make(c, CLV_F64, 2, two_by_none, &nothing));
    EXPECT_OK(clv_array_apply(c, CLV_OP_COPY, &(clv_operand){ .type = CLV_F64 }, 1, nothing));
    clv_array_free(nothing);
    EXPECT_OK(clv_array_copy_to(empty, NULL));
    clv_array_free(a), clv_array_free(view), clv_array_free(out), clv_array_free(empty);
    clv_context_free(c);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_agree_with_exact_numbers),
        cmocka_unit_test(no_digit_is_lost),
        cmocka_unit_test(views_share_memory),
        cmocka_unit_test(axes_need_not_merge),
        cmocka_unit_test(promotion_is_the_standards),
        cmocka_unit_test(rejects_what_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
