/* SPDX-License-Identifier: Apache-2.0 */
/* Tests operations on arrays on the device under test. */
#include "host/selftest/selftest.h"
#include "host/synthetic/worse.h"

#include "base/alloc.h"
#include "base/error.h"

#include <cleave/array.h>
#include <cleave/array_math.h>
#include <cleave/blas.h>

#include <math.h>

enum { ROWS = 150, WIDTH = 37, SAMPLES = 500000, ONE = ROWS * (WIDTH + ROWS) + WIDTH };

static float *numbers(size_t count, uint32_t state)
{
    float *out = clv_alloc(count, sizeof *out);
    for (size_t i = 0; out && i < count; ++i) {
        state = state * 1664525u + 1013904223u;
        out[i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
    }
    return out;
}

/* The arrays that one side (device or host) reads and writes. */
typedef struct side {
    clv_context *context;
    float *host; /* x, y, w */
    clv_array *x, *y, *w, *z, *gram, *part, *one;
    float *out; /* z, gram, part, one */
} side;

static clv_status wrap(clv_context *context, float *host, size_t a, size_t b, clv_array **array)
{
    const size_t shape[2] = { a, b };
    return clv_array_wrap(context, host, b ? 2 : a != 0, shape, array);
}

static clv_status open_side(side *s, clv_context *context, float *x)
{
    float *out = s->out;
    s->context = context, s->host = x;
    clv_status status = wrap(context, x, ROWS, WIDTH, &s->x);
    if (!status) status = wrap(context, x + ROWS * WIDTH, ROWS, 0, &s->y);
    if (!status) status = wrap(context, x + ROWS * WIDTH + ROWS, WIDTH, 0, &s->w);
    if (!status) status = wrap(context, out, ROWS, WIDTH, &s->z);
    if (!status) status = wrap(context, out + ROWS * WIDTH, ROWS, ROWS, &s->gram);
    if (!status) status = wrap(context, out + ROWS * (WIDTH + ROWS), WIDTH, 0, &s->part);
    if (!status) status = wrap(context, out + ONE, 0, 0, &s->one);
    return status;
}

static void close_side(side *s)
{
    clv_array *all[] = { s->x, s->y, s->w, s->z, s->gram, s->part, s->one };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        clv_array_free(all[i]);
}

static clv_status map(side *s)
{
    const clv_map_input in[] = { { "x", s->x, 0 }, { "w", s->w, 0 }, { "k", NULL, 2.5f } };
    return clv_map(s->context, "where(x > w, k*x + w*w, sqrt(abs(x)) * exp(-w))", in, 3, s->z);
}

static clv_status reduce(side *s)
{
    CLV_TRY(clv_reduce(s->context, CLV_REDUCE_VAR, s->x, 0, s->part));
    CLV_TRY(clv_reduce(s->context, CLV_REDUCE_ARGMAX, s->x, -1, s->one));
    s->out[0] = s->out[ONE];
    CLV_TRY(clv_reduce(s->context, CLV_REDUCE_MIN, s->x, -1, s->one));
    s->out[1] = s->out[ONE];
    return clv_reduce(s->context, CLV_REDUCE_SUM, s->x, -1, s->one);
}

static clv_status normalize(side *s)
{
    return clv_normalize(s->context, s->x, s->z, s->gram, s->part, NULL);
}

static clv_status multiply(side *s)
{
    const clv_product_options turned = { .size = sizeof turned, .b_transposed = true };
    return clv_product(s->context, s->x, s->x, &turned, s->gram);
}

static clv_status multiply_stack(side *s)
{
    enum { SIDE = 9, STACK = ROWS * WIDTH / (SIDE * SIDE) };
    const clv_matmul_options o = {
        .size = sizeof o, .batch = STACK, .a_batch = SIDE * SIDE, .b_batch = SIDE * SIDE
    };
    return clv_matmul(s->context, SIDE, SIDE, SIDE, s->host, s->host, &o, s->out);
}

/* Computes 2 x^T x - x^T x / 2 in two calls: A transposed, alpha and beta. */
static clv_status multiply_and_add(side *s)
{
    const clv_matmul_options turned = {
        .size = sizeof turned, .a_row = 1, .a_col = WIDTH, .scale_given = true, .alpha = 2
    };
    clv_matmul_options more = turned;
    more.alpha = -0.5f, more.beta = 1;
    CLV_TRY(clv_matmul(s->context, WIDTH, WIDTH, ROWS, s->host, s->host, &turned, s->out));
    return clv_matmul(s->context, WIDTH, WIDTH, ROWS, s->host, s->host, &more, s->out);
}

static clv_status train(side *s)
{
    float w[WIDTH] = { 0 };
    clv_array *copy = NULL;
    clv_status status = wrap(s->context, w, WIDTH, 0, &copy);
    if (!status) status = clv_linear_train(s->context, s->x, s->y, copy, 0.1f, 20, NULL);
    clv_array_free(copy);
    for (size_t i = 0; i < WIDTH && !status; ++i)
        s->out[i] = w[i];
    return status;
}

/* Computes several results from an array that stays on the device. */
static clv_status stay(side *s)
{
    const size_t shape[] = { ROWS, WIDTH };
    clv_array *there = NULL, *root = NULL;
    clv_status status = clv_array_from(s->context, s->host, 2, shape, &there);
    if (!status) status = clv_array_create(s->context, 2, shape, &root);
    const clv_map_input in = { "x", there, 0 };
    if (!status) status = clv_map(s->context, "x * x + 1", &in, 1, root);
    if (!status) status = clv_array_get(root, s->out);
    clv_array_free(root), clv_array_free(there);
    return status;
}

static clv_status regress(side *s)
{
    return clv_linear_step(s->context, s->x, s->y, s->w, s->one, s->part);
}

static double larger(double worst, float want, float got)
{
    return cli_worse(worst, fabs((double)want - (double)got));
}

static void compare(selftest *test, const char *name, clv_status (*run)(side *s), side sides[2],
                    size_t count, double limit)
{
    double worst = 0;
    for (size_t i = 0; i < count; ++i)
        sides[0].out[i] = sides[1].out[i] = 0;
    selftest_begin(test, "%s", name);
    clv_status status = run(&sides[0]);
    const clv_side before = clv_offload_force(CLV_SIDE_DEVICE);
    if (!status) status = run(&sides[1]);
    clv_offload_force(before);
    for (size_t i = 0; i < count && !status; ++i) {
        worst = larger(worst, sides[0].out[i], sides[1].out[i]);
    }
    selftest_end(test, status, worst, limit);
}

static void count_points(selftest *test, clv_context *plain)
{
    uint64_t want = 0, got = 0;
    selftest_begin(test, "Monte Carlo, %d points", SAMPLES);
    clv_status status = clv_monte_carlo_pi(plain, SAMPLES, NULL, &want, NULL);
    const clv_side before = clv_offload_force(CLV_SIDE_DEVICE);
    if (!status) status = clv_monte_carlo_pi(test->context, SAMPLES, NULL, &got, NULL);
    clv_offload_force(before);
    selftest_end(test, status, want > got ? (double)(want - got) : (double)(got - want), 0);
}

static void filter(selftest *test, clv_context *plain, const float *x, float *want, float *got)
{
    double worst = 0;
    clv_status status = CLV_OK;
    selftest_begin(test, "convolution 5x3, five edges");
    for (int edge = CLV_EDGE_REFLECT; edge <= CLV_EDGE_WRAP && !status; ++edge) {
        const clv_convolve_options o = { .size = sizeof(clv_convolve_options),
                                         .edge = (clv_edge)edge,
                                         .constant = 0.5f };
        status = clv_convolve_2d(plain, x, ROWS, WIDTH, x, 5, 3, &o, want, NULL);
        const clv_side before = clv_offload_force(CLV_SIDE_DEVICE);
        if (!status)
            status = clv_convolve_2d(test->context, x, ROWS, WIDTH, x, 5, 3, &o, got, NULL);
        clv_offload_force(before);
        for (size_t i = 0; i < (size_t)ROWS * WIDTH && !status; ++i)
            worst = larger(worst, want[i], got[i]);
    }
    selftest_end(test, status, worst, 1e-5);
}

static void soften(selftest *test, clv_context *plain, const float *x, float *want, float *got)
{
    enum { RADIUS = 4, SIDE = 2 * RADIUS + 1 };
    float kernel[SIDE * SIDE];
    double worst = 0;
    selftest_begin(test, "gaussian %dx%d", ROWS, WIDTH);
    clv_status status = clv_gaussian_2d(1.5, RADIUS, kernel);
    if (!status)
        status = clv_convolve_2d(plain, x, ROWS, WIDTH, kernel, SIDE, SIDE, NULL, want, NULL);
    const clv_side before = clv_offload_force(CLV_SIDE_DEVICE);
    if (!status)
        status =
            clv_convolve_2d(test->context, x, ROWS, WIDTH, kernel, SIDE, SIDE, NULL, got, NULL);
    clv_offload_force(before);
    for (size_t i = 0; i < (size_t)ROWS * WIDTH && !status; ++i)
        worst = larger(worst, want[i], got[i]);
    selftest_end(test, status, worst, 1e-5);
}

static void diagonalise(selftest *test, clv_context *plain, const float *x, float *want, float *got)
{
    enum { COUNT = 20, N = 12 };
    double worst = 0;
    selftest_begin(test, "eigenvalues of %d matrices", COUNT);
    clv_status status = clv_eigvalsh(plain, x, COUNT, N, NULL, want, NULL);
    const clv_side before = clv_offload_force(CLV_SIDE_DEVICE);
    if (!status) status = clv_eigvalsh(test->context, x, COUNT, N, NULL, got, NULL);
    clv_offload_force(before);
    for (size_t i = 0; i < (size_t)COUNT * N && !status; ++i)
        worst = larger(worst, want[i], got[i]);
    selftest_end(test, status, worst, 2e-5);
}

/* Diagonalises matrices that are not symmetric, which always happens on the host. Their eigenvalues are known. */
static void diagonalise_general(selftest *test)
{
    enum { COUNT = 9, N = 10 };
    float matrices[COUNT * N * N] = { 0 }, real[COUNT * N], imaginary[COUNT * N];
    double worst = 0;
    selftest_begin(test, "eigenvalues of %d general matrices", COUNT);
    if (!clv_eigvals_provider()) {
        selftest_skip(test, "no LAPACK on this machine");
        return;
    }
    for (size_t m = 0; m < COUNT; ++m) /* ones along a circle: roots of unity, times m + 1 */
        for (size_t i = 0; i < N; ++i)
            matrices[(m * N + i) * N + (i + 1) % N] = (float)(m + 1);
    const clv_status status =
        clv_eigvals(test->context, matrices, COUNT, N, NULL, real, imaginary, NULL);
    for (size_t i = 0; i < (size_t)COUNT * N && !status; ++i) {
        /* ascending by real, then imaginary part: -1, then pairs that approach 1 */
        const size_t k = i % N, turns = N / 2 - (k + 1) / 2;
        const double angle = 2 * acos(-1) * (double)turns / N, size = (double)(i / N + 1);
        const double sign = k == 0 || k == N - 1 ? 0 : k % 2 ? -1 : 1;
        worst = larger(worst, (float)(size * cos(angle)), real[i]);
        worst = larger(worst, (float)(size * sign * fabs(sin(angle))), imaginary[i]);
    }
    selftest_end(test, status, worst, 2e-5);
}

void selftest_arrays(selftest *test)
{
    enum { OUT = ONE + 1 };
    const clv_context_options options = { .size = sizeof(clv_context_options),
                                          .mode = CLV_MODE_REFERENCE,
                                          .cache_dir = "" };
    clv_context *plain = NULL;
    float *x = numbers(ROWS * WIDTH + ROWS + WIDTH, 3);
    side sides[2] = { { .out = clv_zalloc(OUT, sizeof *x) },
                      { .out = clv_zalloc(OUT, sizeof *x) } };
    clv_status status = clv_context_create(&options, &plain);
    if (!status && (!x || !sides[0].out || !sides[1].out))
        status = clv_fail(CLV_E_MEMORY, "not enough memory for arrays");
    if (!status) status = open_side(&sides[0], plain, x);
    if (!status) status = open_side(&sides[1], test->context, x);
    if (status) {
        selftest_begin(test, "arrays");
        selftest_end(test, status, 0, 0);
    } else {
        compare(test, "expression, broadcast", map, sides, ROWS * WIDTH, 1e-5);
        compare(test, "reductions", reduce, sides, OUT, 0);
        compare(test, "normalisation and products", normalize, sides, OUT, 1e-3);
        compare(test, "product with a transpose", multiply, sides, OUT, 1e-4);
        compare(test, "products, scaled and added", multiply_and_add, sides, WIDTH * WIDTH, 1e-4);
        compare(test, "products of a stack", multiply_stack, sides, OUT, 1e-4);
        compare(test, "linear regression", regress, sides, OUT, 0);
        compare(test, "linear regression, 20 steps", train, sides, WIDTH, 0);
        compare(test, "arrays that stay on the device", stay, sides, ROWS * WIDTH, 0);
        count_points(test, plain);
        filter(test, plain, x, sides[0].out, sides[1].out);
        soften(test, plain, x, sides[0].out, sides[1].out);
        diagonalise(test, plain, x, sides[0].out, sides[1].out);
        diagonalise_general(test);
    }
    close_side(&sides[0]), close_side(&sides[1]);
    clv_free(sides[0].out), clv_free(sides[1].out);
    clv_free(x);
    clv_context_free(plain);
}
