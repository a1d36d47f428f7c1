/* SPDX-License-Identifier: Apache-2.0 */
/* Tests operations on arrays on every device: against golden results, and both sides against each other. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/array/expression.h"

#include <cleave/array_math.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static float *numbers(size_t count, uint64_t seed, double low, double high)
{
    float *out = clv_alloc(CLV_MAX(count, (size_t)1), sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < count; ++i)
        out[i] = (float)test_uniform(&seed, low, high);
    return out;
}

static clv_array *wrap(clv_context *context, float *host, size_t a, size_t b)
{
    const size_t shape[2] = { a, b };
    clv_array *array;
    EXPECT_OK(clv_array_wrap(context, host, b ? 2 : a != 0, shape, &array));
    return array;
}

static clv_context *no_devices(void)
{
    clv_context *context = test_plain_context();
    return context;
}

/* ---- expressions ----------------------------------------------------------------------------- */

enum { N = 1003 };

/* Device against host: exact where arithmetic is exact, else within OpenCL's bounds. */
static void map_once(clv_context *context, const char *text, double ulps)
{
    float *x = numbers(N, 3, -3, 3), *y = numbers(N, 4, 0.1, 4), out[2][N];
    x[5] = NAN, x[6] = INFINITY, x[7] = -0.0f, y[8] = x[8];
    clv_array *ax = wrap(context, x, N, 0), *ay = wrap(context, y, N, 0);
    const clv_map_input in[] = { { "x", ax, 0 }, { "y", ay, 0 }, { "k", NULL, 1.5f } };
    for (int side = 0; side < 2; ++side) {
        clv_array *to = wrap(context, out[side], N, 0);
        clv_offload_force(side ? CLV_SIDE_DEVICE : CLV_SIDE_HOST);
        EXPECT_OK(clv_map(context, text, in, 3, to));
        clv_array_free(to);
    }
    clv_offload_force(CLV_SIDE_AUTO);
    for (int i = 0; i < N; ++i) {
        const double a = (double)out[0][i], b = (double)out[1][i];
        const bool both = isnan(a) && isnan(b);
        if (!both && a != b && !(fabs(a - b) <= ulps * 0x1p-23 * CLV_MAX(fabs(a), 4.0)))
            fail_msg("%s at %d (x %g, y %g): %.9g on the device, %.9g on the host", text, i,
                     (double)x[i], (double)y[i], b, a);
    }
    clv_array_free(ax), clv_array_free(ay);
    clv_free(x), clv_free(y);
}

static void map_everything(test_device *device)
{
    map_once(device->context,
             "where(x > y || isnan(x), k*x + y, -x**2 - y) + (x%1.25 <= .5 ? clamp(x, -1, y) : "
             "min(x, 2) * max(y, !(x >= 0 && y != k))) + fma(x, y, floor(x) - ceil(y) + sign(x)) "
             "+ isfinite(x) + 2*isinf(x) + 4*(x == x) + round(y) + abs(x) + trunc(x) + y**3 + y**4",
             0);
    map_once(device->context, "isnan(x) + 2*isinf(x)", 0);
    if (test_left_out(device, device->tiny, "functions: its own are not its host's")) return;
    map_once(device->context,
             "exp(y) + sin(x)*cos(y) - log(y) + sqrt(y)/x + tanh(x) + atan2(x, y) + pow(y, 1.7)",
             64);
}

static void both_sides_map_alike(void **state)
{
    (void)state;
    test_each_device(map_everything);
}

/* Do two expressions make one kernel? */
static bool one_kernel(const char *a, const char *b)
{
    static const char *const names[] = { "x", "y" };
    const char *const texts[2] = { a, b };
    clv_text made[2] = { { 0 }, { 0 } };
    uint64_t hash[2];
    clv_expression *e = clv_alloc(1, sizeof *e);
    assert_non_null(e);
    for (int i = 0; i < 2; ++i) {
        EXPECT_OK(clv_expression_parse(texts[i], names, 2, e, NULL));
        const clv_numbers numbers = clv_expression_numbers(e);
        clv_expression_write(e, &numbers, &made[i]);
        hash[i] = clv_expression_hash(e, &numbers);
    }
    const bool same = strcmp(clv_text_get(&made[0]), clv_text_get(&made[1])) == 0;
    assert_int_equal(same, hash[0] == hash[1]);
    for (int i = 0; i < 2; ++i)
        clv_text_clear(&made[i]);
    clv_free(e);
    return same;
}

static void numbers_make_no_new_kernel(void **state)
{
    (void)state;
    assert_true(one_kernel("1.5*x + 2", "7 * x+0.25"));
    assert_true(one_kernel("x/3 + max(y, 0)", "x/10 + max(y, 2)"));
    assert_true(one_kernel("where(x > 1, x % 3, y**2)", "where(x > 5, x % 4, y**2)"));
    assert_false(one_kernel("1.5*x + 2", "1.5*y + 2"));
    assert_false(one_kernel("x + 2", "x - 2"));
    assert_false(one_kernel("y**2", "y**3"));
    assert_false(one_kernel("sin(x)", "cos(x)"));
    /* what a compiler makes something of */
    assert_false(one_kernel("x/2", "x/4"));
    assert_false(one_kernel("x/2", "x/3"));
    assert_false(one_kernel("y**0.5", "y**1.5"));
    assert_false(one_kernel("x*sqrt(2)", "x*sqrt(3)"));
    assert_false(one_kernel("1", "2"));
    /* more numbers than arguments: the last ones are in the text */
    char many[2][160] = { "x", "x" };
    for (int i = 0; i < 18; ++i)
        for (int k = 0; k < 2; ++k)
            snprintf(many[k] + strlen(many[k]), 12, " + %d", i < 16 ? i + 20 * k : i);
    assert_true(one_kernel(many[0], many[1]));
    strcat(many[1], "9");
    assert_false(one_kernel(many[0], many[1]));
}

/* Each number goes where it belongs, also beside strides. */
static void place_numbers(test_device *device)
{
    float x[3][5], y[3], out[3][5];
    for (int i = 0; i < 15; ++i)
        x[i / 5][i % 5] = (float)(i - 7), y[i % 3] = (float)(i % 3);
    clv_array *ax = wrap(device->context, x[0], 3, 5), *ay = wrap(device->context, y, 3, 1),
              *to = wrap(device->context, out[0], 3, 5);
    const clv_map_input in[] = { { "x", ax, 0 }, { "y", ay, 0 }, { "k", NULL, 100 } };
    clv_offload_force(CLV_SIDE_DEVICE);
    for (int turn = 0; turn < 3; ++turn) {
        char text[100];
        snprintf(text, sizeof text, "(%d*x - %d) * k + (y < 1 ? %d : y + 0.5) / 4", turn + 2,
                 turn + 5, turn);
        EXPECT_OK(clv_map(device->context, text, in, 3, to));
        for (int i = 0; i < 15; ++i) {
            const float here = y[i / 5], tail = here < 1 ? (float)turn : here + 0.5f;
            assert_true(out[i / 5][i % 5] ==
                        ((float)(turn + 2) * x[i / 5][i % 5] - (float)(turn + 5)) * 100 + tail / 4);
        }
    }
    clv_offload_force(CLV_SIDE_AUTO);
    clv_array_free(ax), clv_array_free(ay), clv_array_free(to);
}

static void numbers_have_their_places(void **state)
{
    (void)state;
    test_each_device(place_numbers);
}

/* The values of numpy.broadcast_to, by indices. */
static void broadcast(clv_context *context)
{
    float a[3], b[5], c[15], d[2 * 3 * 5], out[2 * 3 * 5];
    for (int i = 0; i < 30; ++i)
        d[i] = (float)i, c[i % 15] = 100.0f * (float)(i % 15), b[i % 5] = 0.5f * (float)(i % 5),
        a[i % 3] = (float)(i % 3) * 1e4f;
    const size_t whole[] = { 2, 3, 5 }, column[] = { 3, 1 }, outer[] = { 2, 1, 5 };
    clv_array *in[4], *to;
    EXPECT_OK(clv_array_wrap(context, a, 2, column, &in[0]));
    EXPECT_OK(clv_array_wrap(context, b, 1, &whole[2], &in[1]));
    EXPECT_OK(clv_array_wrap(context, c, 3, outer, &in[2])); /* of its 15 numbers, 10 */
    EXPECT_OK(clv_array_wrap(context, d, 3, whole, &in[3]));
    EXPECT_OK(clv_array_wrap(context, out, 3, whole, &to));
    const clv_map_input inputs[] = {
        { "a", in[0], 0 }, { "b", in[1], 0 }, { "c", in[2], 0 }, { "d", in[3], 0 }
    };
    EXPECT_OK(clv_map(context, "a + b + c + d", inputs, 4, to));
    for (int i = 0; i < 30; ++i)
        assert_true(out[i] == a[i / 5 % 3] + b[i % 5] + c[i / 15 * 5 + i % 5] + d[i]);
    EXPECT_OK(clv_map(context, "d * 2 + 1", inputs, 4, in[3])); /* in place */
    assert_true(d[7] == 15 && d[29] == 59);
    const clv_map_input wrong[] = { { "b", in[0], 0 } };
    EXPECT_FAIL(CLV_E_SHAPE, "\"b\" has 3 elements along its axis 0",
                clv_map(context, "b", wrong, 1, in[2]));
    for (int i = 0; i < 4; ++i)
        clv_array_free(in[i]);
    clv_array_free(to);
}

static void broadcast_on(test_device *device)
{
    clv_offload_force(CLV_SIDE_DEVICE);
    broadcast(device->context);
    clv_offload_force(CLV_SIDE_AUTO);
}

static void shapes_broadcast_as_numpys(void **state)
{
    (void)state;
    clv_context *context = no_devices();
    broadcast(context);
    clv_context_free(context);
    test_each_device(broadcast_on);
}

static void faults_are_placed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
        size_t position;
    } bad[] = {
        { "x + * y", "found \"* y\", but a number, a name or \"(\" is expected", 4 },
        { "x + z", "found \"z\", but the name of an input or of a function is expected", 4 },
        { "sin(x", "found the end, but sin takes 1 argument, so \")\" is expected", 5 },
        { "clamp(x, y)", "clamp takes 3 arguments, so \",\" is expected", 10 },
        { "x ? y", "found the end, but \":\" is expected", 5 },
        { "3x", "a number is expected", 0 },
        { "1.2.3 + x", "a number is expected", 0 },
        { "(x + y", "\")\" is expected", 6 },
        { "x y", "found \"y\", but an operator or the end is expected", 2 },
        { "x; y", "found \"; y\", but an operator or the end is expected", 1 },
        { "get_global_id(0)", "the name of an input or of a function is expected", 0 },
        { "x[0]", "an operator or the end is expected", 1 },
        { "\"x\"", "a number, a name or", 0 },
        { "sin", "\"(\" is expected after the name of a function", 3 },
        { "0x10", "a number is expected", 0 },
        { "x \xc3\x97 2",
          "found a character that is not printable ASCII, but an operator or the end", 2 },
        { "\x01", "found a character that is not printable ASCII", 0 },
        { "", "found the end, but a number, a name or \"(\" is expected", 0 },
    };
    const char *const names[] = { "x", "y" }, *const twice[] = { "x", "x" };
    const char *const taken[] = { "sin" }, *const odd[] = { "a b" };
    for (size_t i = 0; i < CLV_LEN(bad); ++i) {
        size_t position = 99;
        EXPECT_FAIL(CLV_E_FORMAT, bad[i].said, clv_map_check(bad[i].text, names, 2, &position));
        assert_int_equal(position, bad[i].position);
    }
    EXPECT_OK(clv_map_check(" -x**-2**y % 3 ", names, 2, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "two inputs", clv_map_check("x", twice, 2, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "a function", clv_map_check("1", taken, 1, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "letters, digits", clv_map_check("1", odd, 1, NULL));
    char deep[600];
    memset(deep, '(', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    EXPECT_FAIL(CLV_E_FORMAT, "nested at most 100 levels", clv_map_check(deep, names, 2, NULL));
    memset(deep, '-', sizeof deep - 1);
    EXPECT_FAIL(CLV_E_FORMAT, "nested at most 100 levels", clv_map_check(deep, names, 2, NULL));
}

static void operators_bind_as_in_python(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        float value;
    } known[] = {
        { "-3**2", -9 },
        { "2**3**2", 512 },
        { "2**-1", 0.5f },
        { "7 % 3", 1 },
        { "-7 % 3", 2 },
        { "7 % -3", -2 },
        { "1 - 2 - 3", -4 },
        { "8/4/2", 1 },
        { "1 + 2 * 3", 7 },
        { "1 < 2 == 1", 1 },
        { "1 || 0 && 0", 1 },
        { "!0 + 1", 2 },
        { "0 ? 1 : 2 ? 3 : 4", 3 },
        { "e > 2.7 && e < 2.8", 1 },
        { "1e2 + .5e+1", 105 },
        { "2**1", 2 },
        { "6 % 3", 0 },
    };
    clv_context *context = no_devices();
    float out = 0;
    clv_array *to = wrap(context, &out, 0, 0);
    for (size_t i = 0; i < CLV_LEN(known); ++i) {
        EXPECT_OK(clv_map(context, known[i].text, NULL, 0, to));
        if (out != known[i].value)
            fail_msg("%s is %g, expected %g", known[i].text, (double)out, (double)known[i].value);
    }
    clv_array_free(to);
    clv_context_free(context);
}

/* ---- reductions ------------------------------------------------------------------------------ */

typedef struct reduce_case {
    size_t shape[3];
    int axis;
} reduce_case;

static void reduce_once(clv_context *context, const reduce_case *c, clv_reduction what,
                        float special)
{
    const size_t count = c->shape[0] * c->shape[1] * c->shape[2];
    const size_t len = c->axis < 0 ? count : c->shape[c->axis], outputs = count / len;
    float *x = numbers(count, 11 + count, -1, 3), *out = numbers(2 * outputs, 1, 0, 1);
    if (special != 0) /* also two of one row: the first counts, in whatever lane it is */
        x[count / 2] = x[count / 3] = x[17] = x[2] = special;
    size_t shape[3] = { c->shape[0], c->shape[1], c->shape[2] };
    if (c->axis >= 0) shape[c->axis] = 1;
    clv_array *in, *to[2];
    EXPECT_OK(clv_array_wrap(context, x, 3, c->shape, &in));
    for (int side = 0; side < 2; ++side) {
        EXPECT_OK(clv_array_wrap(context, out + (size_t)side * outputs, c->axis < 0 ? 0 : 3, shape,
                                 &to[side]));
        clv_offload_force(side ? CLV_SIDE_DEVICE : CLV_SIDE_HOST);
        EXPECT_OK(clv_reduce(context, what, in, c->axis, to[side]));
        clv_array_free(to[side]);
    }
    clv_offload_force(CLV_SIDE_AUTO);
    float *shortly = numbers(outputs, 1, 0, 1);
    to[0] = clv_array_reduce(what, in, c->axis);
    assert_non_null(to[0]);
    assert_int_equal(clv_array_rank(to[0]), c->axis < 0 ? 0 : 2);
    EXPECT_OK(clv_array_get(to[0], shortly));
    clv_array_free(to[0]);
    for (size_t i = 0; i < outputs; ++i)
        assert_true(test_ulps(out[i], shortly[i]) <= (what == CLV_REDUCE_STD));
    clv_free(shortly);
    assert_null(clv_array_reduce(what, in, 3));
    assert_null(clv_array_reduce(what, NULL, -1));
    for (size_t i = 0; i < outputs; ++i) /* the same bits; a root may differ by one */
        if (test_ulps(out[i], out[outputs + i]) > (what == CLV_REDUCE_STD))
            fail_msg("%s of [%zu,%zu,%zu] axis %d at %zu: %.9g on the host, %.9g on the device",
                     clv_reduction_name(what), c->shape[0], c->shape[1], c->shape[2], c->axis, i,
                     (double)out[i], (double)out[outputs + i]);
    for (size_t i = 0; i < outputs && special == 0; ++i) { /* and right */
        size_t inner = 1;
        for (int k = c->axis + 1; c->axis >= 0 && k < 3; ++k)
            inner *= c->shape[k];
        const float *first = x + i / inner * inner * len + i % inner;
        double sum = 0, square = 0, least = INFINITY, most = -INFINITY;
        size_t at_least = 0, at_most = 0;
        for (size_t j = 0; j < len; ++j) {
            const double v = (double)first[j * inner];
            sum += v;
            if (v < least) least = v, at_least = j;
            if (v > most) most = v, at_most = j;
        }
        const double mean = sum / (double)len;
        for (size_t j = 0; j < len; ++j)
            square += pow((double)first[j * inner] - mean, 2);
        const double var = square / (double)len;
        const double want[] = {
            sum, mean, var, sqrt(var), least, most, (double)at_least, (double)at_most
        };
        assert_true(fabs((double)out[i] - want[what]) <= 4e-7 * (1e-3 + fabs(want[what])));
    }
    clv_array_free(in);
    clv_free(x), clv_free(out);
}

static void reduce_everything(test_device *device)
{
    static const reduce_case cases[] = {
        { { 1, 1, 1 }, -1 },   { { 3, 7, 11 }, -1 },  { { 4, 37, 3 }, 1 },
        { { 300, 1, 21 }, 0 }, { { 5, 3, 4111 }, 2 }, { { 3, 41, 90 }, -1 },
    };
    const size_t count = device->tiny ? 3 : CLV_LEN(cases);
    (void)test_left_out(device, count < CLV_LEN(cases), "reductions after case %zu", count - 1);
    for (int what = CLV_REDUCE_SUM; what <= CLV_REDUCE_ARGMAX; ++what)
        for (size_t i = 0; i < count; ++i) {
            reduce_once(device->context, &cases[i], (clv_reduction)what, 0);
            if (i == 2 || i == 4) {
                reduce_once(device->context, &cases[i], (clv_reduction)what, NAN);
                reduce_once(device->context, &cases[i], (clv_reduction)what, INFINITY);
            }
        }
}

static void reductions_have_one_order(void **state)
{
    (void)state;
    test_each_device(reduce_everything);
}

static void a_sum_is_compensated(void **state)
{
    (void)state;
    enum { MANY = 200000 };
    clv_context *context = no_devices();
    float *x = numbers(MANY, 5, -1e-3, 1e-3), out = 0;
    double want = 0;
    x[0] = 1e6f, x[MANY - 1] = -1e6f;
    for (size_t i = 0; i < MANY; ++i)
        want += (double)x[i];
    clv_array *in = wrap(context, x, MANY, 0), *to = wrap(context, &out, 0, 0);
    EXPECT_OK(clv_reduce(context, CLV_REDUCE_SUM, in, -1, to));
    assert_true(fabs((double)out - want) <= 1e-6 * fabs(want) + 2e6 * 0x1p-40);
    EXPECT_FAIL(CLV_E_SHAPE, "axis 1 is out of range",
                clv_reduce(context, CLV_REDUCE_SUM, in, 1, to));
    EXPECT_FAIL(CLV_E_SHAPE, "without axis", clv_reduce(context, CLV_REDUCE_SUM, to, -1, in));
    clv_reduction what;
    EXPECT_OK(clv_reduction_parse("argmin", &what));
    assert_int_equal(what, CLV_REDUCE_ARGMIN);
    EXPECT_FAIL(CLV_E_ARGUMENT, "expected sum, mean", clv_reduction_parse("median", &what));
    clv_array_free(in), clv_array_free(to);
    clv_free(x);
    clv_context_free(context);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_placed),          cmocka_unit_test(operators_bind_as_in_python),
        cmocka_unit_test(numbers_make_no_new_kernel), cmocka_unit_test(numbers_have_their_places),
        cmocka_unit_test(both_sides_map_alike),       cmocka_unit_test(shapes_broadcast_as_numpys),
        cmocka_unit_test(a_sum_is_compensated),       cmocka_unit_test(reductions_have_one_order),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
