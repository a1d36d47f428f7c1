/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the kernels of cl/array by themselves, in each form (for cores and for work-groups) on every device. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "cl/array/shared.clh"
#include "cl_embedded.h"
#include "host/array/philox.h"
#include "runtime/device/pool.h"

#include <CL/cl.h>
#include <math.h>
#include <string.h>

/* ---- philox.cl ------------------------------------------------------------------------------- */

static void count_with(test_device *device, size_t lanes)
{
    enum { ITEMS = 3, COUNTERS = 64 };
    const uint32_t key[2] = { 17, 4000000000u };
    const uint64_t first = ((uint64_t)1 << 32) - COUNTERS; /* across the word's end, by items */
    const clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_array_philox,
        .kernel = "clv_array_pi",
        .defines = { { "LANES", (long)lanes }, { "TURNS", (long)(COUNTERS / lanes) } },
        .global = { ITEMS + 1 }, /* groups are filled up with items that must do nothing */
        .local = { 1 },
    };
    test_array counts = test_array_new(device, ITEMS * sizeof(uint32_t));
    const clv_arg args[] = { clv_arg_buffer(counts.buffer), clv_arg_u64(first), clv_arg_u32(key[0]),
                             clv_arg_u32(key[1]), clv_arg_u32(ITEMS) };
    EXPECT_OK(clv_launch_enqueue(device->queue, &launch, args, CLV_LEN(args), NULL));
    EXPECT_OK(clv_queue_wait(device->queue));
    test_array_read(&counts);
    for (uint64_t i = 0; i < ITEMS; ++i)
        assert_int_equal(((const uint32_t *)counts.host)[i],
                         clv_philox_count(2 * (first + i * COUNTERS), 2 * COUNTERS, key));
    test_array_free(&counts);
}

static void count_points(test_device *device)
{
    count_with(device, 1);
    count_with(device, 8);
}

static void philox_counts_points(void **state)
{
    (void)state;
    test_each_device(count_points);
}

/* ---- convolve.cl ----------------------------------------------------------------------------- */

/* Memory in which NaN lies before and behind some numbers: what is read beyond them shows in the
 * results, whatever a driver puts there. */
typedef struct fenced {
    test_array whole;
    clv_buffer part;
} fenced;

static void fence(test_device *device, const float *data, size_t count, fenced *f)
{
    enum { ORIGIN = 1024 }; /* as aligned as any device asks */
    float wide[3 * ORIGIN];
    cl_int code;
    assert_true(count <= ORIGIN);
    for (size_t i = 0; i < CLV_LEN(wide); ++i)
        wide[i] = NAN;
    memcpy(wide + ORIGIN, data, count * sizeof *data);
    f->whole = test_array_from(device, wide, sizeof wide);
    const cl_buffer_region region = { ORIGIN * sizeof *wide, ORIGIN * sizeof *wide };
    f->part = (clv_buffer){ .device = device->device, .bytes = region.size };
    f->part.mem = clCreateSubBuffer(f->whole.buffer->mem, CL_MEM_READ_ONLY,
                                    CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    assert_int_equal(code, CL_SUCCESS);
}

static void unfence(fenced *f)
{
    clv_buffer_unused(&f->part);
    clReleaseMemObject(f->part.mem);
    test_array_free(&f->whole);
}

typedef struct band {
    size_t rows, width, kernel_height, kernel_width;
    size_t row_items; /* rows of work-items: too few, or some that must do nothing */
} band;

static void convolve_with(test_device *device, size_t lanes, const band *b)
{
    const size_t kh = b->kernel_height, kw = b->kernel_width;
    const size_t pitch = clv_round_up(b->width, 2 * lanes) + kw - 1, lines = b->rows + kh - 1;
    const size_t offset = 5; /* the band begins somewhere in its buffer */
    uint64_t seed = b->width;
    float in[4000], weights[64];
    assert_true(offset + lines * pitch <= CLV_LEN(in) && kh * kw <= CLV_LEN(weights));
    for (size_t i = 0; i < offset + lines * pitch; ++i)
        in[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t i = 0; i < kh * kw; ++i)
        weights[i] = (float)test_uniform(&seed, -1, 1);
    test_array image = test_array_from(device, in, (offset + lines * pitch) * sizeof *in);
    fenced taps;
    fence(device, weights, kh * kw, &taps);
    test_array out = test_array_new(device, b->rows * b->width * sizeof *in);
    const clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_array_convolve,
        .kernel = "clv_array_convolve",
        .defines = { { "LANES", (long)lanes }, { "KH", (long)kh }, { "KW", (long)kw } },
        .global = { lanes == 1 ? clv_round_up(b->width, 8) : 1,
                    lanes == 1 ? b->row_items : (b->rows + 3) / 4 },
        .local = { 1, 1 },
    };
    const clv_arg args[] = {
        clv_arg_buffer(image.buffer),   clv_arg_u64(offset),        clv_arg_u64(pitch),
        clv_arg_buffer(&taps.part),     clv_arg_buffer(out.buffer), clv_arg_u32((uint32_t)b->rows),
        clv_arg_u32((uint32_t)b->width)
    };
    EXPECT_OK(clv_launch_enqueue(device->queue, &launch, args, CLV_LEN(args), NULL));
    EXPECT_OK(clv_queue_wait(device->queue));
    test_array_read(&out);
    const float *got = (const float *)out.host;
    for (size_t y = 0; y < b->rows; ++y)
        for (size_t x = 0; x < b->width; ++x) {
            float want = 0;
            for (size_t i = 0; i < kh; ++i)
                for (size_t j = 0; j < kw; ++j)
                    want = fmaf(weights[i * kw + j], in[offset + (y + i) * pitch + x + j], want);
            assert_true(got[y * b->width + x] == want);
        }
    test_array_free(&image), unfence(&taps), test_array_free(&out);
}

static void convolve(test_device *device)
{
    static const band bands[] = { { 6, 37, 3, 5, 4 }, { 7, 5, 7, 2, 8 } };
    for (size_t i = 0; i < CLV_LEN(bands); ++i) {
        convolve_with(device, 1, &bands[i]);
        if (!test_left_out(device, device->slow, "filters by 16 lanes: compile for minutes"))
            convolve_with(device, 16, &bands[i]);
    }
}

static void convolve_sums_in_order(void **state)
{
    (void)state;
    test_each_device(convolve);
}

/* ---- jacobi.cl ------------------------------------------------------------------------------- */

/* Eigenvalues keep the trace and the sum of squares; so many sweeps make all others 0. */
static void diagonalise_with(test_device *device, size_t lanes)
{
    enum { N = 5, COUNT = 19, OFFSET = 3, ELEMENTS = N * (N + 1) / 2 + 2 };
    const size_t items = lanes == 1 ? 32 : (COUNT + lanes - 1) / lanes;
    uint64_t seed = lanes;
    float in[OFFSET + COUNT * N * N];
    for (size_t i = 0; i < CLV_LEN(in); ++i)
        in[i] = (float)test_uniform(&seed, -1, 1);
    test_array matrices = test_array_from(device, in, sizeof in);
    test_array scratch = test_array_new(device, items * lanes * ELEMENTS * sizeof *in);
    test_array out = test_array_new(device, COUNT * N * sizeof *in);
    clv_launch launch = { .size = sizeof(clv_launch),
                          .source = &clv_cl_array_jacobi,
                          .defines = { { "LANES", (long)lanes }, { "N", N } },
                          .global = { items },
                          .local = { lanes == 1 ? 8 : 1 } };
    const clv_arg pitch = clv_arg_u64(items), count = clv_arg_u32(COUNT);
    const clv_arg load[] = { clv_arg_buffer(matrices.buffer), clv_arg_u64(OFFSET),
                             clv_arg_buffer(scratch.buffer), pitch, count };
    const clv_arg sweep[] = { clv_arg_buffer(scratch.buffer), pitch, count, clv_arg_u32(0),
                              clv_arg_u32(N - 1) };
    const clv_arg store[] = { clv_arg_buffer(scratch.buffer), pitch, count,
                              clv_arg_buffer(out.buffer) };
    launch.kernel = "clv_array_jacobi_load";
    EXPECT_OK(clv_launch_enqueue(device->queue, &launch, load, CLV_LEN(load), NULL));
    launch.kernel = "clv_array_jacobi_sweep";
    for (int i = 0; i < 7; ++i)
        EXPECT_OK(clv_launch_enqueue(device->queue, &launch, sweep, CLV_LEN(sweep), NULL));
    launch.kernel = "clv_array_jacobi_store";
    EXPECT_OK(clv_launch_enqueue(device->queue, &launch, store, CLV_LEN(store), NULL));
    EXPECT_OK(clv_queue_wait(device->queue));
    test_array_read(&out), test_array_read(&scratch);
    for (size_t m = 0; m < COUNT; ++m) {
        double trace = 0, squares = 0, sum = 0, sum2 = 0;
        const float *a = in + OFFSET + m * N * N, *w = (const float *)out.host + m * N;
        for (size_t i = 0; i < N; ++i) {
            trace += (double)a[i * N + i];
            sum += (double)w[i], sum2 += (double)w[i] * (double)w[i];
            for (size_t j = 0; j <= i; ++j)
                squares += (i == j ? 1 : 2) * (double)a[i * N + j] * (double)a[i * N + j];
        }
        assert_true(fabs(sum - trace) < 1e-5 && fabs(sum2 - squares) < 1e-5 * squares);
    }
    test_array_free(&matrices), test_array_free(&scratch), test_array_free(&out);
}

static void diagonalise(test_device *device)
{
    diagonalise_with(device, 1);
    if (!test_left_out(device, device->slow, "eigenvalues by 16 lanes: compile for minutes"))
        diagonalise_with(device, 16);
}

static void jacobi_keeps_trace_and_norm(void **state)
{
    (void)state;
    test_each_device(diagonalise);
}

/* ---- reduce.cl, linear.cl ---------------------------------------------------------------------- */

/* Work-items that fill the groups up, and several rows per work-item. The sums are of small whole numbers. */
static void sum_blocks(test_device *device)
{
    enum { OUTER = 3, LEN = 5, INNER = 3, BLOCK = 2, BLOCKS = 3, EACH = 2 };
    float in[OUTER * LEN * INNER];
    for (size_t i = 0; i < CLV_LEN(in); ++i)
        in[i] = (float)(i * i % 37);
    const clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_array_reduce,
        .kernel = "clv_reduce_blocks",
        .defines = { { "LANES", 1 }, { "OP", CLV_REDUCE_OP_SUM }, { "DENSE", 0 } },
        .global = { INNER + 1, BLOCKS + 1, (OUTER + EACH - 1) / EACH + 1 },
        .local = { 1, 1, 1 },
    };
    test_array from = test_array_from(device, in, sizeof in);
    test_array p = test_array_new(device, OUTER * BLOCKS * INNER * sizeof *in);
    test_array q = test_array_new(device, OUTER * BLOCKS * INNER * sizeof *in);
    const clv_arg args[] = { clv_arg_buffer(from.buffer), clv_arg_buffer(from.buffer),
                             clv_arg_buffer(p.buffer),    clv_arg_buffer(q.buffer),
                             clv_arg_u32(OUTER),          clv_arg_u32(LEN),
                             clv_arg_u32(INNER),          clv_arg_u32(BLOCK),
                             clv_arg_u32(BLOCKS),         clv_arg_u32(EACH) };
    EXPECT_OK(clv_launch_enqueue(device->queue, &launch, args, CLV_LEN(args), NULL));
    EXPECT_OK(clv_queue_wait(device->queue));
    test_array_read(&p), test_array_read(&q);
    for (size_t o = 0; o < OUTER; ++o)
        for (size_t b = 0; b < BLOCKS; ++b)
            for (size_t x = 0; x < INNER; ++x) {
                float want = 0;
                for (size_t j = b * BLOCK; j < CLV_MIN((b + 1) * BLOCK, (size_t)LEN); ++j)
                    want += in[(o * LEN + j) * INNER + x];
                assert_true(((const float *)p.host)[(o * BLOCKS + b) * INNER + x] == want);
                assert_true(((const float *)q.host)[(o * BLOCKS + b) * INNER + x] == 0);
            }
    test_array_free(&from), test_array_free(&p), test_array_free(&q);
}

static void add_gradients(test_device *device)
{
    enum { ROWS = 5, WIDTH = 3, EACH = 2, BLOCKS = 3 };
    float in[ROWS * WIDTH], residuals[ROWS];
    for (size_t i = 0; i < CLV_LEN(in); ++i)
        in[i] = (float)(i * i % 11);
    for (size_t i = 0; i < ROWS; ++i)
        residuals[i] = (float)(i + 1);
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = &clv_cl_array_linear,
                                .kernel = "clv_linear_gradient",
                                .defines = { { "LANES", 1 } },
                                .global = { WIDTH + 1, BLOCKS + 1 },
                                .local = { 1, 1 } };
    test_array x = test_array_from(device, in, sizeof in);
    test_array r = test_array_from(device, residuals, sizeof residuals);
    test_array parts = test_array_new(device, BLOCKS * WIDTH * sizeof *in);
    test_array losses = test_array_new(device, BLOCKS * sizeof *in);
    const clv_arg args[] = { clv_arg_buffer(x.buffer),
                             clv_arg_buffer(r.buffer),
                             clv_arg_buffer(parts.buffer),
                             clv_arg_buffer(losses.buffer),
                             clv_arg_u32(ROWS),
                             clv_arg_u32(WIDTH),
                             clv_arg_u32(EACH) };
    EXPECT_OK(clv_launch_enqueue(device->queue, &launch, args, CLV_LEN(args), NULL));
    EXPECT_OK(clv_queue_wait(device->queue));
    test_array_read(&parts), test_array_read(&losses);
    for (size_t b = 0; b < BLOCKS; ++b) {
        float loss = 0, sums[WIDTH] = { 0 };
        for (size_t i = b * EACH; i < CLV_MIN((b + 1) * EACH, (size_t)ROWS); ++i) {
            loss += residuals[i] * residuals[i];
            for (size_t j = 0; j < WIDTH; ++j)
                sums[j] += in[i * WIDTH + j] * residuals[i];
        }
        assert_true(((const float *)losses.host)[b] == loss);
        for (size_t j = 0; j < WIDTH; ++j)
            assert_true(((const float *)parts.host)[b * WIDTH + j] == sums[j]);
    }
    test_array_free(&x), test_array_free(&r), test_array_free(&parts), test_array_free(&losses);
}

static void reductions_stay_in_bounds(void **state)
{
    (void)state;
    test_each_device(sum_blocks);
    test_each_device(add_gradients);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_counts_points),
        cmocka_unit_test(convolve_sums_in_order),
        cmocka_unit_test(reductions_stay_in_bounds),
        cmocka_unit_test(jacobi_keeps_trace_and_norm),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
