/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on arrays: on every device, and in plain C. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/array/philox.h"

#include <cleave/array.h>
#include <cleave/offload.h>

#include <math.h>
#include <string.h>

/* `claim` on every device, and with plain C. */
static void everywhere(void (*claim)(clv_context *context, const test_device *device))
{
    test_isolate();
    const size_t count = test_device_count();
    for (size_t i = 0; i < count; ++i) {
        test_device device;
        test_device_open(i, NULL, &device);
        clv_offload_force(CLV_SIDE_DEVICE); /* these are small: the host would do them */
        claim(device.context, &device);
        clv_offload_force(CLV_SIDE_HOST);
        claim(device.context, NULL);
        clv_offload_force(CLV_SIDE_AUTO);
        test_device_close(&device);
    }
    clv_context *context = test_plain_context();
    claim(context, NULL);
    clv_context_free(context);
}

/* ---- Monte Carlo ----------------------------------------------------------------------------- */

/* The known answers that come with the paper's library. */
static void philox_gives_the_known_answers(void **state)
{
    (void)state;
    const uint32_t zero[2] = { 0 }, ones[2] = { UINT32_MAX, UINT32_MAX };
    const clv_philox a = clv_philox_make((clv_philox){ { 0 } }, zero);
    const clv_philox b =
        clv_philox_make((clv_philox){ { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX } }, ones);
    const uint32_t want_a[] = { 0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8 };
    const uint32_t want_b[] = { 0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD };
    assert_memory_equal(a.word, want_a, sizeof want_a);
    assert_memory_equal(b.word, want_b, sizeof want_b);
}

static void count_is_exact(clv_context *context, const test_device *device)
{
    const clv_monte_carlo_options o = { .size = sizeof(clv_monte_carlo_options),
                                        .key = { 20240, 7 } };
    uint64_t inside;
    EXPECT_OK(clv_monte_carlo_pi(context, 1 << 20, &o, &inside, NULL));
    assert_int_equal(inside, 823178);
    if (test_left_out(device, device && device->tiny, "a second count")) return;
    /* a number of samples that is no multiple of anything */
    EXPECT_OK(clv_monte_carlo_pi(context, 300001, &o, &inside, NULL));
    assert_int_equal(inside, clv_philox_count(0, 300001, o.key));
}

static void the_count_is_exact_everywhere(void **state)
{
    (void)state;
    everywhere(count_is_exact);
    uint64_t inside;
    EXPECT_FAIL(CLV_E_ARGUMENT, "context or result is NULL",
                clv_monte_carlo_pi(NULL, 1, NULL, &inside, NULL));
}

/* Counters beyond 2^32 take the second word. */
static void counters_go_on_beyond_32_bits(void **state)
{
    (void)state;
    const uint32_t key[2] = { 1, 2 };
    const clv_philox low = clv_philox_make((clv_philox){ { 5, 0, 0, 0 } }, key);
    const clv_philox high = clv_philox_make((clv_philox){ { 5, 1, 0, 0 } }, key);
    assert_memory_not_equal(low.word, high.word, sizeof low.word);
    const uint64_t first = (uint64_t)10 << 32;
    assert_int_equal(clv_philox_count(first, 1000, key) + clv_philox_count(first + 1000, 501, key),
                     clv_philox_count(first, 1501, key));
}

/* ---- convolution ----------------------------------------------------------------------------- */

/* Rows as scipy's documentation draws them; a kernel of one 1 moves the image by `shift`. */
static void edges_are_those_of_scipy(void **state)
{
    (void)state;
    static const char *const rows[] = { "dcbaabcddcba", "kkkkabcdkkkk", "aaaaabcddddd",
                                        "?dcbabcdcba?", "abcdabcdabcd" };
    clv_context *context = test_plain_context();
    const float in[] = { 'a', 'b', 'c', 'd' };
    for (int edge = 0; edge < 5; ++edge)
        for (int shift = -4; shift <= 4; ++shift)
            for (int down = 0; down < 2; ++down) {
                const clv_convolve_options o = { .size = sizeof(clv_convolve_options),
                                                 .edge = (clv_edge)edge,
                                                 .constant = 'k' };
                float kernel[9] = { 0 }, out[4];
                kernel[4 - shift] = 1; /* out[c] = in[c + shift] */
                EXPECT_OK(clv_convolve_2d(context, in, down ? 4 : 1, down ? 1 : 4, kernel,
                                          down ? 9 : 1, down ? 1 : 9, &o, out, NULL));
                for (int c = 0; c < 4; ++c) {
                    const char want = rows[edge][4 + c + shift];
                    if (want != '?') assert_int_equal((int)out[c], want);
                }
            }
    clv_context_free(context);
    clv_edge edge;
    EXPECT_OK(clv_edge_parse("mirror", &edge));
    assert_int_equal(edge, CLV_EDGE_MIRROR);
    assert_string_equal(clv_edge_name(CLV_EDGE_WRAP), "wrap");
    EXPECT_FAIL(CLV_E_ARGUMENT, "edge is \"same\"; expected reflect",
                clv_edge_parse("same", &edge));
}

typedef struct filter_case {
    size_t height, width, kernel_height, kernel_width, in_stride, out_stride;
} filter_case;

/* In float64, by the definition; inside the image only, so without any edge. */
static void expect_filtered(const filter_case *c, const float *in, const float *k, const float *out)
{
    const size_t up = c->kernel_height / 2, left = c->kernel_width / 2;
    for (size_t y = 0; y < c->height; ++y)
        for (size_t x = 0; x < c->width; ++x) {
            double sum = 0, size = 0;
            bool inside = true;
            for (size_t i = 0; i < c->kernel_height; ++i)
                for (size_t j = 0; j < c->kernel_width; ++j) {
                    const size_t r = y + up - i, s = x + left - j;
                    inside = inside && r < c->height && s < c->width;
                    if (!inside) continue;
                    const double term =
                        (double)k[i * c->kernel_width + j] * (double)in[r * c->in_stride + s];
                    sum += term, size += fabs(term);
                }
            const double got = (double)out[y * c->out_stride + x];
            const double n = (double)(c->kernel_height * c->kernel_width);
            if (inside) assert_true(fabs(got - sum) <= n * 0x1p-24 * size);
        }
}

static void filter_once(clv_context *context, const filter_case *c)
{
    uint64_t seed = c->width * 131 + c->kernel_width;
    const size_t pixels = c->height * c->in_stride, taps = c->kernel_height * c->kernel_width;
    float *in = clv_alloc(pixels, sizeof *in), *k = clv_alloc(taps, sizeof *k);
    float *out = clv_alloc(c->height * c->out_stride, sizeof *out);
    float *plain = clv_alloc(c->height * c->out_stride, sizeof *out);
    assert_true(in && k && out && plain);
    for (size_t i = 0; i < pixels; ++i)
        in[i] = i % c->in_stride < c->width ? (float)test_uniform(&seed, -2, 2) : NAN;
    for (size_t i = 0; i < taps; ++i)
        k[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t i = 0; i < c->height * c->out_stride; ++i)
        out[i] = plain[i] = -77;
    const clv_convolve_options o = { .size = sizeof(clv_convolve_options),
                                     .edge = CLV_EDGE_WRAP,
                                     .input_stride = c->in_stride,
                                     .output_stride = c->out_stride };
    clv_context *reference = test_plain_context();
    EXPECT_OK(clv_convolve_2d(context, in, c->height, c->width, k, c->kernel_height,
                              c->kernel_width, &o, out, NULL));
    const clv_side side = clv_offload_force(CLV_SIDE_HOST);
    EXPECT_OK(clv_convolve_2d(reference, in, c->height, c->width, k, c->kernel_height,
                              c->kernel_width, &o, plain, NULL));
    clv_offload_force(side);
    clv_context_free(reference);
    expect_filtered(c, in, k, out);
    assert_memory_equal(out, plain, c->height * c->out_stride * sizeof *out); /* padding too */
    clv_free(in), clv_free(k), clv_free(out), clv_free(plain);
}

static void filter_sizes(clv_context *context, const test_device *device)
{
    static const filter_case cases[] = {
        { 37, 71, 3, 3, 71, 71 }, { 9, 33, 4, 7, 40, 35 },     { 130, 64, 9, 9, 64, 64 },
        { 5, 1, 2, 3, 1, 1 },     { 1, 100, 1, 31, 100, 128 },
    };
    const bool small = device && device->tiny;
    for (size_t i = 0; i < CLV_LEN(cases); ++i)
        if (!test_left_out(device, small && i > 1, "filter %zu: a program to compile", i))
            filter_once(context, &cases[i]);
}

static void a_convolution_is_the_sum_that_defines_it(void **state)
{
    (void)state;
    everywhere(filter_sizes);
}

/* A NaN spreads as far as the kernel reaches and no farther, where rows share an input row too. */
static void spread(clv_context *context, const test_device *device)
{
    enum { SIDE = 24, AT = 11 };
    (void)device;
    float in[SIDE * SIDE] = { 0 }, kernel[9], out[SIDE * SIDE];
    for (int i = 0; i < 9; ++i)
        kernel[i] = 1;
    in[AT * SIDE + AT] = NAN;
    EXPECT_OK(clv_convolve_2d(context, in, SIDE, SIDE, kernel, 3, 3, NULL, out, NULL));
    for (int y = 0; y < SIDE; ++y)
        for (int x = 0; x < SIDE; ++x)
            assert_int_equal(isnan(out[y * SIDE + x]) != 0,
                             y >= AT - 1 && y <= AT + 1 && x >= AT - 1 && x <= AT + 1);
}

static void nan_spreads_as_far_as_the_kernel(void **state)
{
    (void)state;
    everywhere(spread);
}

static void bad_filters_are_refused(void **state)
{
    (void)state;
    const clv_convolve_options narrow = { .size = sizeof(clv_convolve_options), .input_stride = 3 },
                               unknown = { .size = sizeof(clv_convolve_options),
                                           .edge = (clv_edge)9 },
                               far = { .size = sizeof(clv_convolve_options),
                                       .output_stride = SIZE_MAX };
    float in[16] = { 0 }, out[16];
    clv_context *context = test_plain_context();
    EXPECT_FAIL(CLV_E_SHAPE, "every extent must be at least 1",
                clv_convolve_2d(context, in, 0, 4, in, 1, 1, NULL, out, NULL));
    EXPECT_FAIL(CLV_E_SHAPE, "at least 4",
                clv_convolve_2d(context, in, 4, 4, in, 1, 1, &narrow, out, NULL));
    EXPECT_FAIL(CLV_E_SHAPE, "more memory than can be addressed",
                clv_convolve_2d(context, in, 4, 4, in, 1, 1, &far, out, NULL));
    EXPECT_FAIL(CLV_E_SHAPE, "larger than twice the image",
                clv_convolve_2d(context, in, 1, 16, in, 4, 1, NULL, out, NULL));
    EXPECT_FAIL(CLV_E_SHAPE, "at most 4096 elements",
                clv_convolve_2d(context, in, 4, 4, in, 65, 64, NULL, out, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "edge mode 9",
                clv_convolve_2d(context, in, 4, 4, in, 1, 1, &unknown, out, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL",
                clv_convolve_2d(context, NULL, 4, 4, in, 1, 1, NULL, out, NULL));
    clv_context_free(context);
}

static void a_gaussian_sums_to_one(void **state)
{
    (void)state;
    float kernel[25];
    double sum = 0;
    EXPECT_OK(clv_gaussian_2d(1.2, 2, kernel));
    for (int i = 0; i < 25; ++i)
        sum += (double)kernel[i];
    assert_true(fabs(sum - 1) < 1e-6);
    assert_true(fabs((double)kernel[12] / (double)kernel[11] - exp(1 / (2 * 1.2 * 1.2))) < 1e-6);
    assert_true(kernel[0] == kernel[24] && kernel[1] == kernel[5]);
    EXPECT_FAIL(CLV_E_ARGUMENT, "a positive number", clv_gaussian_2d(0, 2, kernel));
    EXPECT_FAIL(CLV_E_ARGUMENT, "kernel is NULL", clv_gaussian_2d(1, 2, NULL));
    EXPECT_OK(clv_gaussian_2d(1e-300, 1, kernel)); /* one point: sigma squared is 0 */
    assert_true(kernel[4] == 1 && kernel[3] == 0 && kernel[0] == 0);
    EXPECT_FAIL(CLV_E_SHAPE, "at most 31", clv_gaussian_2d(1, 32, kernel));
}

/* ---- eigenvalues ----------------------------------------------------------------------------- */

/* Q diag(w) Q^T of known values, Q made of reflections; the upper triangle is poisoned. */
static void make_symmetric(uint64_t *seed, size_t n, const double *w, float *out)
{
    double a[64 * 64] = { 0 }, v[64];
    assert_true(n <= 64);
    for (size_t i = 0; i < n; ++i)
        a[i * n + i] = w[i];
    for (int turn = 0; turn < 3; ++turn) {
        double square = 0;
        for (size_t i = 0; i < n; ++i)
            v[i] = test_uniform(seed, -1, 1), square += v[i] * v[i];
        for (int side = 0; side < 2; ++side)
            for (size_t r = 0; r < n; ++r) {
                double dot = 0;
                for (size_t k = 0; k < n; ++k)
                    dot += v[k] * (side ? a[r * n + k] : a[k * n + r]);
                for (size_t k = 0; k < n; ++k)
                    *(side ? &a[r * n + k] : &a[k * n + r]) -= 2 / square * dot * v[k];
            }
    }
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
            out[i * n + j] = j <= i ? (float)a[i * n + j] : NAN;
}

static void find_values(clv_context *context, size_t count, size_t n)
{
    uint64_t seed = n;
    float *in = clv_alloc(count * n * n, sizeof *in), *got = clv_alloc(count * n, sizeof *got);
    double *want = clv_alloc(count * n, sizeof *want);
    float *one = clv_alloc(n, sizeof *one);
    assert_true(in && got && want && one);
    for (size_t m = 0; m < count; ++m) {
        double *w = want + m * n;
        for (size_t i = 0; i < n; ++i) /* some equal, some 0, both signs, 64 decades */
            w[i] = m % 3 == 1 && i % 2
                       ? 0
                       : ((double)i - (double)n / 3) *
                             pow(10, (double)(m % 5) - 2 + 30 * ((double)(m / 5 % 3) - 1));
        if (m % 3 == 1)
            for (size_t i = 1; i < n; ++i) /* insertion, for the zeros */
                for (size_t k = i; k && w[k] < w[k - 1]; --k) {
                    const double t = w[k];
                    w[k] = w[k - 1], w[k - 1] = t;
                }
        make_symmetric(&seed, n, w, in + m * n * n);
    }
    EXPECT_OK(clv_eigvalsh(context, in, count, n, NULL, got, NULL));
    for (size_t m = 0; m < count; ++m) {
        double norm = 0;
        for (size_t i = 0; i < n; ++i)
            norm += want[m * n + i] * want[m * n + i];
        for (size_t i = 0; i < n; ++i)
            assert_true(fabs((double)got[m * n + i] - want[m * n + i]) <=
                        4 * (double)n * 0x1p-24 * sqrt(norm));
    }
    EXPECT_OK(clv_eigvalsh(context, in + (count - 1) * n * n, 1, n, NULL, one, NULL)); /* alone */
    assert_memory_equal(one, got + (count - 1) * n, n * sizeof *one);
    clv_free(in), clv_free(got), clv_free(want), clv_free(one);
}

static void values_of_sizes(clv_context *context, const test_device *device)
{
    find_values(context, 37, 5);
    if (test_left_out(device, device && device->tiny, "eigenvalues of two more sizes")) return;
    find_values(context, 3, 1);
    if (!test_left_out(device, device && device->slow,
                       "eigenvalues of 33x33: compiles for minutes"))
        find_values(context, 19, 33);
}

/* Beside the diagonal too, where rotations may not see it; the neighbours are as they would be. */
static void values_of_no_numbers(clv_context *context, const test_device *device)
{
    enum { COUNT = 4, N = 3 };
    float in[COUNT * N * N], got[COUNT * N], alone[N];
    (void)device;
    for (size_t m = 0; m < COUNT; ++m)
        for (size_t i = 0; i < N * N; ++i)
            in[m * N * N + i] = i % (N + 1) ? 0.5f : (float)(i + m);
    EXPECT_OK(clv_eigvalsh(context, in + 3 * N * N, 1, N, NULL, alone, NULL));
    in[3] = NAN;               /* [1,0] of the first */
    in[N * N + 6] = INFINITY;  /* [2,0] of the second */
    in[2 * N * N + 2] = NAN;   /* above the diagonal of the third: not read */
    in[2 * N * N + 4] = 3e38f; /* large is not infinite */
    EXPECT_OK(clv_eigvalsh(context, in, COUNT, N, NULL, got, NULL));
    for (size_t i = 0; i < 2 * N; ++i)
        assert_true(isnan(got[i]));
    for (size_t i = 2 * N; i < 3 * N; ++i)
        assert_true(isfinite(got[i]));
    assert_memory_equal(got + 3 * N, alone, sizeof alone);
}

static void what_is_no_number_has_no_eigenvalues(void **state)
{
    (void)state;
    everywhere(values_of_no_numbers);
}

static void eigenvalues_are_found_in_order(void **state)
{
    (void)state;
    everywhere(values_of_sizes);
    clv_context *context = test_plain_context();
    float value = 1;
    EXPECT_FAIL(CLV_E_SHAPE, "1 to 128 rows",
                clv_eigvalsh(context, &value, 1, 0, NULL, &value, NULL));
    EXPECT_FAIL(CLV_E_SHAPE, "matrices are [129,129]",
                clv_eigvalsh(context, &value, 1, 129, NULL, &value, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_eigvalsh(context, NULL, 1, 4, NULL, &value, NULL));
    clv_context_free(context);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(the_count_is_exact_everywhere),
        cmocka_unit_test(counters_go_on_beyond_32_bits),
        cmocka_unit_test(edges_are_those_of_scipy),
        cmocka_unit_test(a_convolution_is_the_sum_that_defines_it),
        cmocka_unit_test(nan_spreads_as_far_as_the_kernel),
        cmocka_unit_test(bad_filters_are_refused),
        cmocka_unit_test(a_gaussian_sums_to_one),
        cmocka_unit_test(eigenvalues_are_found_in_order),
        cmocka_unit_test(what_is_no_number_has_no_eigenvalues),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
