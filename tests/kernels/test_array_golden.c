/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on arrays against float64 results of NumPy and SciPy, on every device and the host. */
#include "device.h"
#include "golden.h"
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "host/array/philox.h"

#include <cleave/array.h>
#include <cleave/array_math.h>
#include <cleave/blas.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_small(const test_device *device)
{
    return device && device->tiny;
}

static clv_array *wrap(clv_context *context, const float *host, size_t rank, const size_t *shape)
{
    clv_array *array;
    EXPECT_OK(clv_array_wrap(context, (float *)(uintptr_t)host, rank, shape, &array));
    return array;
}

static clv_array *wrap_golden(clv_context *context, const char *name, const char *role)
{
    const golden_array g = golden_get(name, role);
    return wrap(context, g.f32, g.rank, g.shape);
}

/* `claim` with every device forced, and on the host, where `device` is NULL. */
static void everywhere(void (*claim)(clv_context *context, const test_device *device))
{
    const size_t count = test_device_count();
    for (size_t i = 0; i < count; ++i) {
        test_device device;
        test_device_open(i, NULL, &device);
        clv_offload_force(CLV_SIDE_DEVICE);
        claim(device.context, &device);
        clv_offload_force(CLV_SIDE_AUTO);
        test_device_close(&device);
    }
    clv_context *context = test_plain_context();
    claim(context, NULL);
    clv_context_free(context);
}

/* ---- products -------------------------------------------------------------------------------- */

static void product_once(clv_context *context, const char *name)
{
    const golden_array a = golden_get(name, "a"), b = golden_get(name, "b"),
                       c = golden_get(name, "c");
    const bool ta = golden_number(name, "transA", 0) != 0;
    const bool tb = golden_number(name, "transB", 0) != 0;
    const size_t m = c.shape[0], n = c.shape[1], k = a.shape[ta ? 0 : 1];
    float *out = clv_alloc(c.count, sizeof *out);
    assert_non_null(out);
    memcpy(out, c.f32, c.count * sizeof *out);
    const clv_matmul_options o = { .size = sizeof(clv_matmul_options),
                                   .a_row = ta ? 1 : k,
                                   .a_col = ta ? m : 1,
                                   .b_row = tb ? 1 : n,
                                   .b_col = tb ? k : 1,
                                   .scale_given = true,
                                   .alpha = (float)golden_number(name, "alpha", 1),
                                   .beta = (float)golden_number(name, "beta", 0) };
    EXPECT_OK(clv_matmul(context, m, n, k, a.f32, b.f32, &o, out));
    golden_expect(name, "out.c", out);
    if (o.alpha == 1 && o.beta == 0) {
        clv_array *aa = wrap_golden(context, name, "a"), *ab = wrap_golden(context, name, "b");
        memset(out, 0xFF, c.count * sizeof *out);
        clv_array *ac = wrap(context, out, 2, c.shape);
        const clv_product_options p = { .size = sizeof(clv_product_options),
                                        .a_transposed = ta,
                                        .b_transposed = tb };
        EXPECT_OK(clv_product(context, aa, ab, &p, ac));
        golden_expect(name, "out.c", out);
        clv_array_free(aa), clv_array_free(ab), clv_array_free(ac);
    }
    clv_free(out);
}

static void products(clv_context *context, const test_device *device)
{
    for (int i = 0; i < 6; ++i)
        for (int t = 0; t < 4; ++t) {
            char name[48];
            snprintf(name, sizeof name, "gemm%d_%d%d", i, t / 2, t % 2);
            if (!golden_has(name, "a") ||
                test_left_out(device, is_small(device) && i > 3, "%s", name))
                continue;
            product_once(context, name);
        }
    /* a stack times one matrix, transposed */
    float a[2 * 3 * 4], b[5 * 4], c[2 * 3 * 5];
    for (int i = 0; i < 24; ++i)
        a[i] = (float)i, b[i % 20] = (float)(i % 20) - 7;
    const size_t sa[] = { 2, 3, 4 }, sb[] = { 5, 4 }, sc[] = { 2, 3, 5 };
    clv_array *aa = wrap(context, a, 3, sa), *ab = wrap(context, b, 2, sb),
              *ac = wrap(context, c, 3, sc);
    const clv_product_options o = { .size = sizeof(clv_product_options), .b_transposed = true };
    EXPECT_OK(clv_product(context, aa, ab, &o, ac));
    for (int i = 0; i < 30; ++i) {
        float want = 0;
        for (int k = 0; k < 4; ++k)
            want += a[i / 5 * 4 + k] * b[i % 5 * 4 + k];
        assert_true(c[i] == want);
    }
    EXPECT_FAIL(CLV_E_SHAPE, "2 matrices [3,4] times 1 matrices [5,4] into 2 matrices [3,5]",
                clv_product(context, aa, ab, NULL, ac));
    EXPECT_FAIL(CLV_E_ARGUMENT, "are the same array", clv_product(context, aa, aa, NULL, aa));
    clv_array_free(aa), clv_array_free(ab), clv_array_free(ac);
}

static void products_match(void **state)
{
    (void)state;
    everywhere(products);
}

/* ---- statistics, learning ------------------------------------------------------------------------- */

static void normalise(clv_context *context, const test_device *device)
{
    (void)device;
    const golden_array z = golden_get("normalise", "out.z"),
                       g = golden_get("normalise", "out.gram");
    float *out = clv_alloc(z.count + g.count, sizeof *out), mean[64], std[64];
    assert_true(out && z.shape[1] <= 64);
    clv_array *x = wrap_golden(context, "normalise", "x"), *az = wrap(context, out, 2, z.shape);
    clv_array *ag = wrap(context, out + z.count, 2, g.shape);
    clv_array *am = wrap(context, mean, 1, &z.shape[1]), *as = wrap(context, std, 1, &z.shape[1]);
    EXPECT_OK(clv_normalize(context, x, az, ag, am, as));
    golden_expect("normalise", "out.z", out);
    golden_expect("normalise", "out.gram", out + z.count);
    const golden_array in = golden_get("normalise", "x");
    for (size_t c = 0; c < z.shape[1]; ++c) { /* z, mean and std tell x */
        const float back = fmaf(out[c], std[c], mean[c]);
        assert_true(fabsf(back - in.f32[c]) < 1e-3f);
    }
    EXPECT_FAIL(CLV_E_SHAPE, "gram must be [50,50]",
                clv_normalize(context, x, az, az == x ? ag : am, NULL, NULL));
    clv_array_free(x), clv_array_free(az), clv_array_free(ag), clv_array_free(am),
        clv_array_free(as);
    clv_free(out);
}

static void normalisation_matches(void **state)
{
    (void)state;
    everywhere(normalise);
}

static void regress(clv_context *context, const test_device *device)
{
    (void)device;
    const golden_array w = golden_get("linreg", "w"), gx = golden_get("linreg", "x");
    float loss = 0, *gradient = clv_alloc(3 * w.count, sizeof *gradient), losses[40];
    assert_non_null(gradient);
    float *weights = gradient + w.count, *plain = weights + w.count;
    memcpy(weights, w.f32, w.count * sizeof *weights);
    memcpy(plain, w.f32, w.count * sizeof *plain);
    clv_array *x = wrap_golden(context, "linreg", "x"), *y = wrap_golden(context, "linreg", "y");
    clv_array *aw = wrap(context, weights, 1, w.shape), *al = wrap(context, &loss, 0, NULL);
    clv_array *ag = wrap(context, gradient, 1, w.shape);
    EXPECT_OK(clv_linear_step(context, x, y, aw, al, ag));
    golden_expect("linreg", "out.loss", &loss);
    golden_expect("linreg", "out.grad", gradient);
    assert_memory_equal(weights, w.f32, w.count * sizeof *weights); /* a step moves nothing */
    const size_t steps = CLV_LEN(losses);
    clv_array *as = wrap(context, losses, 1, &steps);
    EXPECT_OK(clv_linear_train(context, x, y, aw, 0.05f, steps, as));
    assert_true(losses[0] == loss);
    clv_array *ap = wrap(context, plain, 1, w.shape);
    for (size_t i = 0; i < steps; ++i) { /* one by one: the same */
        EXPECT_OK(clv_linear_step(context, x, y, ap, al, ag));
        assert_true(loss == losses[i] && (i == 0 || losses[i] < losses[i - 1]));
        for (size_t j = 0; j < w.count; ++j)
            plain[j] = fmaf(-0.05f, gradient[j], plain[j]);
    }
    assert_memory_equal(plain, weights, w.count * sizeof *plain);
    EXPECT_FAIL(CLV_E_SHAPE, "x must be [n,d]", clv_linear_step(context, x, aw, y, al, ag));
    EXPECT_FAIL(CLV_E_ARGUMENT, "the rate is 0", clv_linear_train(context, x, y, aw, 0, 3, NULL));
    assert_true(gx.rank == 2);
    clv_array *all[] = { x, y, aw, al, ag, as, ap };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        clv_array_free(all[i]);
    clv_free(gradient);
}

static void regression_matches(void **state)
{
    (void)state;
    everywhere(regress);
}

/* Wide rows and many blocks: the device's bits are the host's. */
static void regress_wide(test_device *device)
{
    const size_t rows = device->tiny ? 5 : 700, width = device->tiny ? 18 : 93;
    (void)test_left_out(device, device->tiny, "700 rows of 93");
    const size_t shape[2] = { rows, width };
    uint64_t seed = 9;
    float *x = clv_alloc(rows * width + rows, sizeof *x), w[93], out[2][94];
    assert_non_null(x);
    for (size_t i = 0; i < rows * width + rows; ++i)
        x[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t i = 0; i < width; ++i)
        w[i] = (float)test_uniform(&seed, -1, 1);
    for (int side = 0; side < 2; ++side) {
        clv_context *c = device->context;
        clv_array *ax = wrap(c, x, 2, shape), *ay = wrap(c, x + rows * width, 1, &rows);
        clv_array *aw = wrap(c, w, 1, &width), *al = wrap(c, out[side], 0, NULL);
        clv_array *ag = wrap(c, out[side] + 1, 1, &width);
        clv_offload_force(side ? CLV_SIDE_DEVICE : CLV_SIDE_HOST);
        EXPECT_OK(clv_linear_step(c, ax, ay, aw, al, ag));
        clv_array_free(ax), clv_array_free(ay), clv_array_free(aw), clv_array_free(al);
        clv_array_free(ag);
    }
    clv_offload_force(CLV_SIDE_AUTO);
    assert_memory_equal(out[0], out[1], (width + 1) * sizeof(float));
    clv_free(x);
}

static void regression_has_one_order(void **state)
{
    (void)state;
    test_each_device(regress_wide);
}

/* ---- eigenvalues, filters, points ------------------------------------------------------------------ */

static void others(clv_context *context, const test_device *device)
{
    const golden_array a = golden_get("eigvalsh", "a");
    float *out = clv_alloc(a.count, sizeof *out);
    assert_non_null(out);
    EXPECT_OK(clv_eigvalsh(context, a.f32, a.shape[0], a.shape[1], NULL, out, NULL));
    golden_expect("eigvalsh", "out.w", out);
    clv_free(out);
    if (golden_has("imfilter", "image")) {
        const golden_array image = golden_get("imfilter", "image"),
                           kernel = golden_get("imfilter", "kernel");
        float *filtered = clv_alloc(image.count, sizeof *filtered);
        assert_non_null(filtered);
        for (int edge = 0; edge < 5; ++edge) {
            const clv_convolve_options o = { .size = sizeof(clv_convolve_options),
                                             .edge = (clv_edge)edge };
            if (test_left_out(device, is_small(device) && edge, "%s: a program to compile",
                              clv_edge_name(o.edge)))
                continue;
            char role[32];
            snprintf(role, sizeof role, "out.%s", clv_edge_name(o.edge));
            EXPECT_OK(clv_convolve_2d(context, image.f32, image.shape[0], image.shape[1],
                                      kernel.f32, kernel.shape[0], kernel.shape[1], &o, filtered,
                                      NULL));
            golden_expect("imfilter", role, filtered);
        }
        clv_free(filtered);
    }
}

static void eigenvalues_and_filters_match(void **state)
{
    (void)state;
    everywhere(others);
}

static int stop_soon(const char *job, size_t done, size_t total, void *user)
{
    (void)job, (void)total, (void)user;
    return done >= 1;
}

typedef struct looks {
    clv_context *context;
    size_t calls, done;
} looks;

static int look(const char *job, size_t done, size_t total, void *user)
{
    looks *l = user;
    const float turn[4] = { 0, 1, -1, 0 };
    float re[2] = { 5, 5 }, im[2];
    assert_true(strcmp(job, "eigenvalues") == 0 && done <= total && done >= l->done);
    ++l->calls, l->done = done;
    EXPECT_OK(clv_eigvals(l->context, turn, 1, 2, NULL, re, im, NULL)); /* waits for nobody */
    assert_true(fabsf(re[0]) < 1e-6f);
    return 0;
}

static void many_matrices_are_told_of_now_and_then(clv_context *context)
{
    enum { MANY = 5000 };
    looks l = { .context = context };
    const clv_eigen_options o = { .size = sizeof o, .progress = look, .progress_user = &l };
    float *many = clv_zalloc(MANY * 8, sizeof *many), *re = many + MANY * 4;
    const double started = clv_now();
    EXPECT_OK(clv_eigvals(context, many, MANY, 2, &o, re, re + 2 * MANY, NULL));
    assert_true((double)l.calls <= 3 + 10 * (clv_now() - started));
    assert_int_equal(l.done, MANY); /* the end is told, whoever came to it */
    clv_free(many);
}

static void general_eigenvalues_match(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    const golden_array a = golden_get("eigvals", "a");
    float re[64], im[64];
    assert_true(a.shape[0] * a.shape[1] <= 64);
    const clv_status status =
        clv_eigvals(context, a.f32, a.shape[0], a.shape[1], NULL, re, im, NULL);
    if (!clv_eigvals_provider()) {
        EXPECT_FAIL(CLV_E_UNSUPPORTED, "need LAPACK", status);
    } else {
        EXPECT_OK(status);
        golden_expect("eigvals", "out.re", re);
        golden_expect("eigvals", "out.im", im);
        const clv_eigen_options stops = { .size = sizeof(clv_eigen_options),
                                          .progress = stop_soon };
        float many[20 * 4], values[40], others[40];
        for (int i = 0; i < 80; ++i)
            many[i] = i % 4 == 1 ? -1.0f : i % 4 == 2 ? 1.0f : 0.0f; /* turns: +-i */
        many[4] = NAN;
        EXPECT_OK(clv_eigvals(context, many, 20, 2, NULL, values, others, NULL));
        for (int i = 0; i < 20; ++i)
            if (i == 1)
                assert_true(isnan(values[2]) && isnan(others[3]));
            else
                assert_true(fabsf(values[2 * i]) < 1e-6f && others[2 * i] < -0.999f &&
                            others[2 * i + 1] > 0.999f);
        EXPECT_FAIL(
            CLV_E_CANCELLED, "cancelled",
            clv_eigvals(context, many, 1, 2, &stops, values, others, NULL)); /* one thread */
        many_matrices_are_told_of_now_and_then(context);
    }
    EXPECT_FAIL(CLV_E_SHAPE, "1 to 32767", clv_eigvals(context, re, 1, 0, NULL, re, im, NULL));
    clv_context_free(context);
}

static void philox_matches(void **state)
{
    (void)state;
    const golden_array words = golden_get("philox", "out.first");
    const uint32_t key[2] = { 20240, 7 };
    for (uint32_t i = 0; i < words.shape[0]; ++i) {
        const clv_philox p = clv_philox_make((clv_philox){ { i, 0, 0, 0 } }, key);
        assert_memory_equal(p.word, words.i32 + 4 * i, sizeof p.word);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_matches),
        cmocka_unit_test(general_eigenvalues_match),
        cmocka_unit_test(products_match),
        cmocka_unit_test(normalisation_matches),
        cmocka_unit_test(regression_matches),
        cmocka_unit_test(regression_has_one_order),
        cmocka_unit_test(eigenvalues_and_filters_match),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, golden_setup, golden_teardown);
}
