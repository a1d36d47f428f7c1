/* SPDX-License-Identifier: Apache-2.0 */
/* Tests user-written programs that become one kernel: types, views, results that overwrite operands, and errors that
 * name the position in the text. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/array_fuse.h>

#include <math.h>
#include <string.h>

enum { MANY = 700 };

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

static clv_fused *parse(const char *text, const clv_fuse_name *names, size_t count)
{
    clv_fused *program;
    EXPECT_OK(clv_fuse_parse(text, names, count, &program, NULL));
    return program;
}

static void on_both_sides(test_device *device, void (*check)(clv_context *context))
{
    for (int side = CLV_SIDE_HOST; side <= CLV_SIDE_DEVICE; ++side) {
        clv_offload_force((clv_side)side);
        check(device->context);
    }
    clv_offload_force(CLV_SIDE_AUTO);
}

/* ---- real numbers, views and broadcasting --------------------------------------------------------- */

static float scaled(float x, float row, float k)
{
    const float d = x - row;
    return d > 0 ? k * d * d : sqrtf(-d);
}

/* z = ... of every second column of x [40,35], backwards, and a row that repeats. */
static void views(clv_context *c)
{
    static float x[40 * 35], row[18], got[40 * 18];
    const clv_fuse_name names[] = { { "x", CLV_FUSE_INPUT, CLV_F32 },
                                    { "row", CLV_FUSE_INPUT, CLV_F32 },
                                    { "k", CLV_FUSE_INPUT, CLV_F32 },
                                    { "z", CLV_FUSE_OUTPUT, CLV_F32 },
                                    { "T", CLV_FUSE_TYPE, CLV_F32 } };
    clv_fused *program =
        parse("const T d = x - row; // how far\n z = d > 0 ? k * (d * d) : sqrt(-d);", names, 5);
    const size_t shape[] = { 40, 35 }, half[] = { 40, 18 }, width[] = { 18 };
    const ptrdiff_t stride[] = { 35, -2 };
    for (size_t i = 0; i < CLV_LEN(x); ++i)
        x[i] = (float)((int)(i * 37 % 101) - 50);
    for (size_t i = 0; i < CLV_LEN(row); ++i)
        row[i] = (float)i;
    clv_array *a = make(c, CLV_F32, x, 2, shape), *r = make(c, CLV_F32, row, 1, width), *view;
    clv_array *out = make(c, CLV_F32, NULL, 2, half);
    EXPECT_OK(clv_array_view(a, 34, 2, half, stride, &view));
    const clv_operand in[] = { { .array = view },
                               { .array = r },
                               { .type = CLV_F64, .real = 0.5 } };
    EXPECT_OK(clv_fuse_run(c, program, in, 3, &out, 1));
    EXPECT_OK(clv_array_copy_to(out, got));
    for (size_t i = 0; i < 40; ++i)
        for (size_t k = 0; k < 18; ++k) {
            const float want = scaled(x[35 * i + 34 - 2 * k], row[k], 0.5f);
            assert_true(fabsf(got[18 * i + k] - want) <= 4e-7f * fabsf(want));
        }
    clv_array_free(a), clv_array_free(r), clv_array_free(view), clv_array_free(out);
    clv_fuse_free(program);
}

static void views_on(test_device *device)
{
    test_device_watches_arrays(device);
    on_both_sides(device, views);
}

static void views_and_rows_broadcast(void **state)
{
    (void)state;
    test_each_device(views_on);
}

/* The kernel's text must have points, also if the program has a locale with a decimal comma. */
static void constants(clv_context *c)
{
    float x[MANY], got[MANY];
    const size_t count = MANY;
    const clv_fuse_name names[] = { { "x", CLV_FUSE_INPUT, CLV_F32 },
                                    { "z", CLV_FUSE_OUTPUT, CLV_F32 } };
    for (size_t i = 0; i < MANY; ++i)
        x[i] = (float)i;
    clv_array *a = make(c, CLV_F32, x, 1, &count), *z = make(c, CLV_F32, NULL, 1, &count);
    const clv_operand in = { .array = a };
    clv_fused *program = parse("z = x * 0.75 - 1.5", names, 2);
    EXPECT_OK(clv_fuse_run(c, program, &in, 1, &z, 1));
    EXPECT_OK(clv_array_copy_to(z, got));
    for (size_t i = 0; i < MANY; ++i)
        assert_true(got[i] == x[i] * 0.75f - 1.5f);
    clv_array_free(a), clv_array_free(z);
    clv_fuse_free(program);
}

static void constants_on(test_device *device)
{
    on_both_sides(device, constants);
}

static void constants_are_written_in_every_locale(void **state)
{
    (void)state;
    test_comma();
    test_each_device(constants_on);
    test_point();
}

/* ---- integers ------------------------------------------------------------------------------------- */

/* Sums of int8 wrap at every step; a conversion to int32 keeps what follows. */
static void wraps(clv_context *c)
{
    static int8_t x[MANY];
    static int32_t got[MANY];
    static uint8_t small[MANY];
    const clv_fuse_name names[] = { { "x", CLV_FUSE_INPUT, CLV_I8 },
                                    { "far", CLV_FUSE_OUTPUT, CLV_I32 },
                                    { "low", CLV_FUSE_OUTPUT, CLV_U8 } };
    clv_fused *program = parse("auto t = x + 100; far = t % 7 + (int)x * 1000;\n"
                               "low = (uint8)(t >> 1 & 15) ^ (uint8)floor_divide(x, 3);",
                               names, 3);
    const size_t count = MANY;
    for (size_t i = 0; i < count; ++i)
        x[i] = (int8_t)(i * 5);
    clv_array *a = make(c, CLV_I8, x, 1, &count);
    clv_array *out[] = { make(c, CLV_I32, NULL, 1, &count), make(c, CLV_U8, NULL, 1, &count) };
    const clv_operand in = { .array = a };
    EXPECT_OK(clv_fuse_run(c, program, &in, 1, out, 2));
    EXPECT_OK(clv_array_copy_to(out[0], got));
    EXPECT_OK(clv_array_copy_to(out[1], small));
    for (size_t i = 0; i < count; ++i) {
        const int8_t t = (int8_t)(x[i] + 100);
        const int rest = (t % 7 + 7) % 7;
        assert_int_equal(got[i], rest + x[i] * 1000);
        assert_int_equal(small[i], (uint8_t)(((t >> 1) & 15) ^ (int)floor(x[i] / 3.0)));
    }
    clv_array_free(a), clv_array_free(out[0]), clv_array_free(out[1]);
    clv_fuse_free(program);
}

static void wraps_on(test_device *device)
{
    on_both_sides(device, wraps);
}

static void integers_keep_their_type(void **state)
{
    (void)state;
    test_each_device(wraps_on);
}

/* Real numbers for integer inputs, and numbers of the text that float32 does not hold: the same bits on both sides. */
static void numbers(clv_context *c)
{
    static const double real[] = { 1.5e19, 1e300, -1e300, (double)NAN, -2.5, 1e10 };
    static float x[MANY], far[MANY];
    int64_t low[MANY];
    uint64_t high[MANY];
    const clv_fuse_name names[] = {
        { "x", CLV_FUSE_INPUT, CLV_F32 },     { "i", CLV_FUSE_INPUT, CLV_I64 },
        { "u", CLV_FUSE_INPUT, CLV_U64 },     { "low", CLV_FUSE_OUTPUT, CLV_I64 },
        { "high", CLV_FUSE_OUTPUT, CLV_U64 }, { "far", CLV_FUSE_OUTPUT, CLV_F32 }
    };
    clv_fused *program = parse("low = i; high = u; far = x * 1e39;", names, 6);
    const size_t count = MANY;
    for (size_t i = 0; i < count; ++i)
        x[i] = 1 + (float)i;
    clv_array *a = make(c, CLV_F32, x, 1, &count);
    clv_array *out[] = { make(c, CLV_I64, NULL, 1, &count), make(c, CLV_U64, NULL, 1, &count),
                         make(c, CLV_F32, NULL, 1, &count) };
    for (size_t i = 0; i < CLV_LEN(real); ++i) {
        const clv_operand in[] = { { .array = a },
                                   { .type = CLV_F64, .real = real[i] },
                                   { .type = CLV_F64, .real = real[i] } };
        const double r = real[i];
        const int64_t whole = r != r        ? 0
                              : r >= 0x1p63 ? INT64_MAX
                              : r < -0x1p63 ? INT64_MIN
                                            : (int64_t)r;
        const uint64_t natural = r >= 0x1p64 ? UINT64_MAX : r >= 0 ? (uint64_t)r : (uint64_t)whole;
        EXPECT_OK(clv_fuse_run(c, program, in, 3, out, 3));
        EXPECT_OK(clv_array_copy_to(out[0], low));
        EXPECT_OK(clv_array_copy_to(out[1], high));
        EXPECT_OK(clv_array_copy_to(out[2], far));
        for (size_t k = 0; k < count; ++k)
            assert_true(low[k] == whole && high[k] == natural && isinf(far[k]));
    }
    clv_array_free(a);
    for (size_t i = 0; i < 3; ++i)
        clv_array_free(out[i]);
    clv_fuse_free(program);
}

static void numbers_on(test_device *device)
{
    on_both_sides(device, numbers);
}

static void numbers_beyond_a_type_are_the_same_everywhere(void **state)
{
    (void)state;
    test_each_device(numbers_on);
}

/* ---- several types in one program ----------------------------------------------------------------- */

static void mixed(clv_context *c)
{
    const size_t count = 5;
    const double x[] = { 1 + 1e-9, -2, 0, 3.5, NAN };
    const float z[] = { 1, 2, 3, -4, 0, 1, 5, 0, 2, 2 }; /* complex */
    const uint64_t n[] = { UINT64_MAX, 1, 16777217, 0, 3 };
    const clv_fuse_name names[] = {
        { "x", CLV_FUSE_INPUT, CLV_F64 },   { "z", CLV_FUSE_INPUT, CLV_C64 },
        { "n", CLV_FUSE_INPUT, CLV_U64 },   { "d", CLV_FUSE_OUTPUT, CLV_F64 },
        { "w", CLV_FUSE_OUTPUT, CLV_C64 },  { "m", CLV_FUSE_OUTPUT, CLV_U64 },
        { "b", CLV_FUSE_OUTPUT, CLV_BOOL },
    };
    clv_fused *program = parse("d = x - 1.0; d *= 2 /* twice */;\n"
                               "w = z * conj(z) + (complex64)2;\n"
                               "m = n - 1; b = x != x || abs(z) > 4 && n > 2;",
                               names, 7);
    clv_array *a[] = { make(c, CLV_F64, x, 1, &count), make(c, CLV_C64, z, 1, &count),
                       make(c, CLV_U64, n, 1, &count) };
    clv_array *out[] = { make(c, CLV_F64, NULL, 1, &count), make(c, CLV_C64, NULL, 1, &count),
                         make(c, CLV_U64, NULL, 1, &count), make(c, CLV_BOOL, NULL, 1, &count) };
    const clv_operand in[] = { { .array = a[0] }, { .array = a[1] }, { .array = a[2] } };
    double d[5];
    float w[10];
    uint64_t m[5];
    uint8_t b[5];
    EXPECT_OK(clv_fuse_run(c, program, in, 3, out, 4));
    EXPECT_OK(clv_array_copy_to(out[0], d));
    EXPECT_OK(clv_array_copy_to(out[1], w));
    EXPECT_OK(clv_array_copy_to(out[2], m));
    EXPECT_OK(clv_array_copy_to(out[3], b));
    for (size_t i = 0; i < count; ++i) {
        const float re = z[2 * i], im = z[2 * i + 1];
        assert_true(d[i] == 2 * (x[i] - 1) || (d[i] != d[i] && x[i] != x[i]));
        assert_true(w[2 * i] == re * re + im * im + 2 && w[2 * i + 1] == 0);
        assert_true(m[i] == n[i] - 1);
        assert_int_equal(b[i], x[i] != x[i] || (hypotf(re, im) > 4 && n[i] > 2));
    }
    for (size_t i = 0; i < 3; ++i)
        clv_array_free(a[i]);
    for (size_t i = 0; i < 4; ++i)
        clv_array_free(out[i]);
    clv_fuse_free(program);
}

static void mixed_on(test_device *device)
{
    on_both_sides(device, mixed);
}

static void types_may_differ(void **state)
{
    (void)state;
    test_each_device(mixed_on);
}

/* ---- results that are operands -------------------------------------------------------------------- */

/* Two arrays change places; then every element becomes the sum of itself and its left neighbour as it was. */
static void in_place(clv_context *c)
{
    static float x[MANY], y[MANY], got[MANY];
    const size_t count = MANY, fewer = MANY - 1;
    const ptrdiff_t one = 1;
    const clv_fuse_name names[] = { { "x", CLV_FUSE_INPUT, CLV_F32 },
                                    { "y", CLV_FUSE_INPUT, CLV_F32 },
                                    { "to_x", CLV_FUSE_OUTPUT, CLV_F32 },
                                    { "to_y", CLV_FUSE_OUTPUT, CLV_F32 } };
    clv_fused *swap = parse("to_x = y; to_y = x", names, 4), *sum = parse("to_x = x + y", names, 3);
    for (size_t i = 0; i < count; ++i)
        x[i] = (float)i, y[i] = (float)(2 * i) + 0.5f;
    clv_array *a = make(c, CLV_F32, x, 1, &count), *b = make(c, CLV_F32, y, 1, &count);
    clv_array *both[] = { a, b }, *left, *right;
    const clv_operand in[] = { { .array = a }, { .array = b } };
    EXPECT_OK(clv_fuse_run(c, swap, in, 2, both, 2));
    EXPECT_OK(clv_array_copy_to(a, got));
    assert_memory_equal(got, y, sizeof y);
    EXPECT_OK(clv_array_copy_to(b, got));
    assert_memory_equal(got, x, sizeof x);
    EXPECT_OK(clv_array_view(b, 0, 1, &fewer, &one, &left));
    EXPECT_OK(clv_array_view(b, 1, 1, &fewer, &one, &right));
    const clv_operand pair[] = { { .array = left }, { .array = right } };
    EXPECT_OK(clv_fuse_run(c, sum, pair, 2, &right, 1));
    EXPECT_OK(clv_array_copy_to(b, got));
    assert_true(got[0] == 0);
    for (size_t i = 1; i < count; ++i)
        assert_true(got[i] == x[i] + x[i - 1]);
    clv_array *same[] = { left, right };
    EXPECT_FAIL(CLV_E_ARGUMENT, "outputs 0 and 1 share memory",
                clv_fuse_run(c, swap, in, 2, same, 2));
    clv_array_free(left), clv_array_free(right), clv_array_free(a), clv_array_free(b);
    clv_fuse_free(swap), clv_fuse_free(sum);
}

static void in_place_on(test_device *device)
{
    on_both_sides(device, in_place);
}

static void results_may_be_operands(void **state)
{
    (void)state;
    test_each_device(in_place_on);
}

/* ---- errors ----------------------------------------------------------------------------------------- */

static void errors_have_their_place(void **state)
{
    (void)state;
    static const clv_fuse_name names[] = { { "x", CLV_FUSE_INPUT, CLV_F32 },
                                           { "n", CLV_FUSE_INPUT, CLV_I32 },
                                           { "u", CLV_FUSE_INPUT, CLV_U8 },
                                           { "z", CLV_FUSE_OUTPUT, CLV_F32 } };
    static const struct {
        const char *text, *message;
        clv_status status;
        size_t position;
    } cases[] = {
        { "z = x +", "line 1, column 8: found the end, but a number, a name or \"(\" is expected",
          CLV_E_FORMAT, 7 },
        { "z = x;\n z = y * 2", "line 2, column 6: found \"y * 2\", but the name of an input",
          CLV_E_FORMAT, 12 },
        { "z = x[1]", "indices are not supported", CLV_E_FORMAT, 5 },
        { "if (x > 0) z = 1;", "condition ? a : b", CLV_E_FORMAT, 0 },
        { "z = n / 2", "\"/\" of int32 and a whole number: C truncates", CLV_E_UNSUPPORTED, 6 },
        { "z = x & 3", "line 1, column 7: bit_and is not defined for the type float32",
          CLV_E_UNSUPPORTED, 6 },
        { "z = u + 300", "300 does not fit into uint8", CLV_E_FORMAT, 6 },
        { "z = atan2(x)", "atan2 takes 2 arguments", CLV_E_FORMAT, 11 },
        { "x = 1; z = x", "found \"x = 1", CLV_E_FORMAT, 0 },
        { "float t = x", "assigns nothing to its output \"z\"", CLV_E_FORMAT, 11 },
        { "z += x", "this name has no value yet", CLV_E_FORMAT, 0 },
        { "float half = x; z = half", "this name is that of a type", CLV_E_FORMAT, 6 },
        { "z = x; system(\"rm\")", "an output, a variable or a type", CLV_E_FORMAT, 7 },
        { "z = 1x", "a number is expected", CLV_E_FORMAT, 4 },
    };
    clv_fused *program;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        size_t position = 99;
        EXPECT_FAIL(cases[i].status, cases[i].message,
                    clv_fuse_parse(cases[i].text, names, 4, &program, &position));
        assert_null(program);
        assert_int_equal(position, cases[i].position);
    }
    char deep[1000] = "z = ";
    memset(deep + 4, '(', 900);
    EXPECT_FAIL(CLV_E_FORMAT, "nested at most 100 levels deep",
                clv_fuse_parse(deep, names, 4, &program, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no output", clv_fuse_parse("", names, 3, &program, NULL));
}

static void runs_check_their_operands(void **state)
{
    (void)state;
    clv_context *c = test_plain_context();
    const clv_fuse_name names[] = { { "x", CLV_FUSE_INPUT, CLV_F32 },
                                    { "z", CLV_FUSE_OUTPUT, CLV_F32 } };
    clv_fused *program = parse("z = x", names, 2);
    const size_t four = 4, three = 3, none = 0;
    const int32_t whole[4] = { 0 };
    const float real[4] = { 0 };
    clv_array *n = make(c, CLV_I32, whole, 1, &four), *x = make(c, CLV_F32, real, 1, &four);
    clv_array *z = make(c, CLV_F32, NULL, 1, &three), *empty = make(c, CLV_F32, NULL, 1, &none);
    const clv_operand wrong = { .array = n }, right = { .array = x }, no = { .array = empty };
    EXPECT_FAIL(CLV_E_ARGUMENT, "input 0 is of int32, but it must be of float32",
                clv_fuse_run(c, program, &wrong, 1, &x, 1));
    EXPECT_FAIL(CLV_E_ARGUMENT, "output 0 is of int32, but it must be of float32",
                clv_fuse_run(c, program, &right, 1, &n, 1));
    EXPECT_FAIL(CLV_E_SHAPE, "operand 0 has 4 elements",
                clv_fuse_run(c, program, &right, 1, &z, 1));
    EXPECT_FAIL(CLV_E_ARGUMENT, "expected 1 and 1", clv_fuse_run(c, program, &right, 1, &z, 2));
    EXPECT_OK(clv_fuse_run(c, program, &no, 1, &empty, 1));
    clv_array_free(n), clv_array_free(x), clv_array_free(z), clv_array_free(empty);
    clv_fuse_free(program);
    clv_context_free(c);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_and_rows_broadcast),
        cmocka_unit_test(integers_keep_their_type),
        cmocka_unit_test(numbers_beyond_a_type_are_the_same_everywhere),
        cmocka_unit_test(types_may_differ),
        cmocka_unit_test(results_may_be_operands),
        cmocka_unit_test(errors_have_their_place),
        cmocka_unit_test(runs_check_their_operands),
        cmocka_unit_test(constants_are_written_in_every_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
