/* SPDX-License-Identifier: Apache-2.0 */
/* Tests matrix products in every form on every device: they must have the bits of the host's chain of fma (of products
 * and sums on a device without fma). Compares clv_matmul with float64. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/half.h"
#include "host/transformer/blocks.h"
#include "runtime/device/queue.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static float *numbers(size_t count, uint64_t seed)
{
    float *out = clv_alloc(CLV_MAX(count, (size_t)1), sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < count; ++i)
        out[i] = (float)test_uniform(&seed, -1, 1);
    return out;
}

static const struct {
    size_t m, n, k, batch;
    bool ta, tb, packed, shared_b;
    float alpha, beta;
    bool bias, residual, half;
} cases[] = {
    { 1, 1, 1, 1, false, false, false, false, 1, 0, false, false },
    { 7, 7, 64, 1, false, true, true, false, 1, 0, true, false },
    { 13, 33, 65, 3, false, false, false, true, 1, 0, false, false },
    { 65, 50, 31, 2, true, true, false, false, 0.75f, -1.5f, false, false },
    { 25, 70, 17, 1, true, false, true, false, 1, 1, true, true },
    { 30, 40, 800, 1, false, false, false, false, 1, 0.5f, true, false }, /* sums in three blocks */
    { 14, 97, 5, 1, false, true, true, false, 2, 0, false, false },
    { 5, 3, 0, 1, false, false, false, false, 1, 0.5f, true, false }, /* no terms */
    { 26, 37, 70, 2, false, true, true, false, 1, 0, true, false, true },
    { 14, 33, 900, 1, false, false, true, false, 1, 0, false, false, true }, /* three blocks */
    { 17, 17, 40, 1, false, false, false, false, 1, 0.5f, true, true }, /* B ends amid a vector */
    { 300, 20, 33, 2, true, false, false, false, 0.75f, -1.5f, true, true },
};

/* B as halves, for forms that do not pack it. */
static test_array halves_from(test_device *device, const float *values, size_t count)
{
    uint16_t *halves = clv_alloc(count, sizeof *halves);
    assert_non_null(halves);
    for (size_t i = 0; i < count; ++i)
        halves[i] = clv_half_of(values[i]);
    test_array array = test_array_from(device, halves, count * sizeof *halves);
    clv_free(halves);
    return array;
}

/* What kernels compute where a device has no fma: each product is rounded before it is added. */
static void multiply_rounding(const clv_host_gemm *g)
{
    for (size_t r = 0; r < g->m; ++r)
        for (size_t s = 0; s < g->n; ++s) {
            float sum = 0, *to = g->c + r * g->c_row + s * g->c_col;
            for (size_t q = 0; q < g->k; ++q) {
                const volatile float product =
                    g->a[r * g->a_row + q * g->a_col] * g->b[q * g->b_row + s * g->b_col];
                sum += product;
            }
            volatile float scaled = sum * g->alpha;
            if (g->bias) scaled += g->bias[s];
            const volatile float kept = g->beta != 0 ? g->beta * *to : 0;
            *to = scaled + kept;
        }
}

static void check_case(test_device *device, const clv_gemm_form *form, size_t i)
{
    const size_t m = cases[i].m, n = cases[i].n, k = cases[i].k, batch = cases[i].batch;
    const size_t c_row = n + 3, off = 5, b_count = cases[i].shared_b ? 1 : batch;
    float *a = numbers(off + batch * m * k, 1), *b = numbers(off + b_count * k * n, 2);
    float *c = numbers(off + batch * m * c_row, 3), *bias = numbers(n + off, 4);
    float *add = numbers(batch * m * n, 5);
    const size_t b_floats = off + b_count * k * n, packed_b = clv_gemm_packed_b(form, n, k);
    for (size_t e = 0; cases[i].half && e < b_floats; ++e)
        b[e] = roundf(b[e] * 1024) / 1024; /* a half as it is */
    test_array da = test_array_from(device, a, (off + batch * m * k) * sizeof *a);
    test_array db = cases[i].half && !packed_b ? halves_from(device, b, b_floats)
                                               : test_array_from(device, b, b_floats * sizeof *b);
    test_array dc = test_array_from(device, c, (off + batch * m * c_row) * sizeof *c);
    test_array dbias = test_array_from(device, bias, (n + off) * sizeof *bias);
    test_array dadd = test_array_from(device, add, batch * m * n * sizeof *add);
    clv_gemm g = { .m = m,
                   .n = n,
                   .k = k,
                   .batch = batch,
                   .a = { da.buffer, off, cases[i].ta ? 1 : k, cases[i].ta ? m : 1, m * k },
                   .b = { db.buffer, off, cases[i].tb ? 1 : n, cases[i].tb ? k : 1,
                          cases[i].shared_b ? 0 : k * n },
                   .c = { dc.buffer, off, c_row, 1, m * c_row },
                   .alpha = cases[i].alpha,
                   .beta = cases[i].beta,
                   .bias = cases[i].bias ? dbias.buffer : NULL,
                   .bias_offset = off };
    for (size_t t = 0; t < batch; ++t) { /* the host's answer, in c */
        if (cases[i].residual)
            for (size_t e = 0; e < m * n; ++e)
                c[off + t * m * c_row + e / n * c_row + e % n] = add[t * m * n + e];
        const clv_host_gemm h = { .m = m,
                                  .n = n,
                                  .k = k,
                                  .a = a + off + t * m * k,
                                  .a_row = g.a.row,
                                  .a_col = g.a.col,
                                  .b = b + off + (cases[i].shared_b ? 0 : t * k * n),
                                  .b_row = g.b.row,
                                  .b_col = g.b.col,
                                  .c = c + off + t * m * c_row,
                                  .c_row = c_row,
                                  .c_col = 1,
                                  .alpha = g.alpha,
                                  .beta = g.beta,
                                  .bias = g.bias ? bias + off : NULL };
        (device->device->slow_fma ? multiply_rounding : clv_gemm_host)(&h);
    }
    if (cases[i].residual) g.add = (clv_matrix){ dadd.buffer, 0, n, 1, m * n };
    test_array pb = test_array_new(device, (packed_b * b_count + 16) * sizeof(float));
    g.b_half = cases[i].half;
    const size_t at = g.b_half ? 16 : 7;
    if (cases[i].packed && packed_b) {
        EXPECT_OK((g.b_half ? clv_gemm_pack_b_half_enqueue : clv_gemm_pack_b_enqueue)(
            device->queue, form, n, k, b_count, &g.b, pb.buffer, at));
        g.b = (clv_matrix){ pb.buffer, at, 0, 0, cases[i].shared_b ? 0 : packed_b };
        g.b_packed = true;
    }
    test_array pa =
        test_array_new(device, (batch * clv_gemm_packed_a(form, m, k) + 1) * sizeof(float));
    if (g.b_packed && batch == 1) {
        EXPECT_OK(clv_gemm_pack_a_enqueue(device->queue, form, m, k, batch, &g.a, pa.buffer));
        g.a = (clv_matrix){ pa.buffer, 0, k, 1, 0 };
        g.a_packed = true;
    }
    test_array scratch = test_array_new(device, clv_gemm_scratch(form, &g) * sizeof(float));
    EXPECT_OK(clv_gemm_enqueue(device->queue, form, &g, scratch.buffer, NULL));
    test_array_read(&dc);
    test_array_read(&scratch);
    test_array_read(&pb);
    const float *got = (const float *)(void *)dc.host;
    for (size_t e = 0; e < off + batch * m * c_row; ++e)
        if (form->provider == CLV_GEMM_CLBLAST ? !(fabsf(got[e] - c[e]) <= 2e-6f * (float)(k + 1))
                                               : memcmp(&got[e], &c[e], sizeof *c) != 0)
            fail_msg("%s, case %zu, element %zu: %.9g, expected %.9g", form->name, i, e,
                     (double)got[e], (double)c[e]);
    test_array *all[] = { &da, &db, &dc, &dbias, &dadd, &pa, &pb, &scratch };
    for (size_t e = 0; e < CLV_LEN(all); ++e)
        test_array_free(all[e]);
    clv_free(a), clv_free(b), clv_free(c), clv_free(bias), clv_free(add);
}

static bool too_large(const test_device *device, size_t i)
{
    return test_left_out(device, device->tiny && cases[i].m * cases[i].n * cases[i].k >= 10000,
                         "case %zu: %zux%zux%zu", i, cases[i].m, cases[i].n, cases[i].k);
}

/* Drivers of CPUs fuse whatever they report; half the speed would be lost. */
static void check_fuses(const test_device *device)
{
#ifdef __x86_64__
    if (clv_device_facts(device->device)->device_class == CLV_CLASS_CPU &&
        __builtin_cpu_supports("fma"))
        assert_false(device->device->slow_fma);
#endif
    if (device->slow) assert_true(device->device->slow_fma);
}

static void check_forms(test_device *device)
{
    check_fuses(device);
    for (size_t f = 0; f < clv_gemm_form_count(device->device); ++f) {
        const clv_gemm_form form = clv_gemm_form_of(device->device, f);
        if (test_left_out(device, device->tiny && form.fetch, "form %zu: its compiler cannot", f))
            continue;
        for (size_t i = 0; i < CLV_LEN(cases); ++i)
            if (!too_large(device, i) && !(cases[i].half && form.provider == CLV_GEMM_DIRECT))
                check_case(device, &form, i);
    }
}

/* To the nearest, ties to even, denormals, ends. */
static void halves_are_the_nearest(void **state)
{
    static const struct {
        float x;
        uint16_t half;
    } pairs[] = { { 0, 0 },
                  { -0.0f, 0x8000 },
                  { 1, 0x3c00 },
                  { -1.5f, 0xbe00 },
                  { 1 + 0x1p-11f, 0x3c00 },
                  { 1 + 0x3p-11f, 0x3c02 },
                  { 65504, 0x7bff },
                  { 65519.996f, 0x7bff },
                  { 65520, 0x7c00 },
                  { -INFINITY, 0xfc00 },
                  { NAN, 0x7e00 },
                  { 0x1p-14f, 0x0400 },
                  { 0x1.ff8p-15f, 0x03ff },
                  { 0x1.ffcp-15f, 0x0400 },
                  { 0x1p-24f, 1 },
                  { 0x1p-25f, 0 },
                  { 0x1.8p-24f, 2 } };
    (void)state;
    for (size_t i = 0; i < CLV_LEN(pairs); ++i)
        if (clv_half_of(pairs[i].x) != pairs[i].half)
            fail_msg("%a: %04x, expected %04x", (double)pairs[i].x, clv_half_of(pairs[i].x),
                     pairs[i].half);
}

static void every_form_gives_the_hosts_bits(void **state)
{
    (void)state;
    test_each_device(check_forms);
}

/* The tiles of GPUs, on whatever is here; one of the sizes, since each is a program to compile. The first
 * device that compiles quickly has the others as well. */
static void check_tile(test_device *device)
{
    static bool seen;
    test_device_disguise(device, CLV_CLASS_DISCRETE_GPU);
    if (test_left_out(device, device->slow, "tiles of cards: work-groups are too large")) return;
    const size_t count = clv_gemm_form_count(device->device);
    for (size_t f = 0; f < count && !(f && (seen || device->tiny)); ++f)
        for (int few = 0; few < (f ? 2 : 1); ++few) {
            device->disguise.flags.few_registers = few;
            const clv_gemm_form form = clv_gemm_form_of(device->device, f);
            if (form.provider != CLV_GEMM_TILE) continue;
            for (size_t i = 0; i < CLV_LEN(cases); ++i)
                if (!too_large(device, i)) check_case(device, &form, i);
        }
    seen |= !device->tiny;
}

/* Those of single work-items, as software rasterisers take them. */
static void check_items(test_device *device)
{
    test_device_disguise(device, CLV_CLASS_SOFTWARE);
    const clv_gemm_form form = clv_gemm_form_of(device->device, 0);
    for (size_t i = 0; i < CLV_LEN(cases); ++i)
        if (!too_large(device, i)) check_case(device, &form, i);
}

/* CLBlast and what follows it, on the first device that takes it: its kernels are long to compile.
 * What it cannot express goes to our tiles. */
static void check_clblast(test_device *device)
{
    static bool seen;
    if (seen) return;
    test_device_disguise(device, CLV_CLASS_DISCRETE_GPU);
    const clv_gemm_form form =
        clv_gemm_form_of(device->device, clv_gemm_form_count(device->device) - 1);
    if (test_left_out(device, form.provider != CLV_GEMM_CLBLAST, "CLBlast: not a form of it") ||
        test_left_out(device, device->slow || device->tiny, "CLBlast: compiles for minutes"))
        return;
    seen = true;
    check_case(device, &form, 1);
    check_case(device, &form, 2);
    check_case(device, &form, 4);
}

/* What follows CLBlast's products, by itself: CLBlast's own kernels take half a minute to compile. */
static void check_finish(test_device *device)
{
    enum { M = 3, N = 70, ROW = N + 3, OFF = 5, BATCH = 2 };
    if (test_left_out(device, device->slow, "what follows CLBlast: work-groups are too large"))
        return;
    float *c = numbers(OFF + BATCH * M * ROW, 1), *bias = numbers(N + OFF, 2);
    float *add = numbers(BATCH * M * N, 3);
    test_array dc = test_array_from(device, c, (OFF + BATCH * M * ROW) * sizeof *c);
    test_array dbias = test_array_from(device, bias, (N + OFF) * sizeof *bias);
    test_array dadd = test_array_from(device, add, BATCH * M * N * sizeof *add);
    const clv_gemm g = { .m = M,
                         .n = N,
                         .batch = BATCH,
                         .c = { dc.buffer, OFF, ROW, 1, M * ROW },
                         .add = { dadd.buffer, 0, N, 1, M * N },
                         .bias = dbias.buffer,
                         .bias_offset = OFF };
    EXPECT_OK(clv_gemm_finish_enqueue(device->queue, &g, 0.75f, NULL));
    test_array_read(&dc);
    const float *got = (const float *)(void *)dc.host;
    for (size_t e = 0; e < OFF + BATCH * M * ROW; ++e) {
        const size_t at = e - OFF, row = at / ROW, column = at % ROW;
        const bool inside = e >= OFF && column < N;
        const float want =
            inside ? c[e] + bias[OFF + column] + 0.75f * add[row * N + column] : c[e];
        if (inside ? !(fabsf(got[e] - want) <= 1e-6f) : got[e] != want)
            fail_msg("element %zu is %.9g, expected %.9g", e, (double)got[e], (double)want);
    }
    test_array_free(&dc), test_array_free(&dbias), test_array_free(&dadd);
    clv_free(c), clv_free(bias), clv_free(add);
}

static void what_follows_a_product_is_near(void **state)
{
    (void)state;
    test_each_device(check_finish);
}

static void clblast_is_near(void **state)
{
    (void)state;
    test_each_device(check_clblast);
}

static void tiles_of_others_give_the_hosts_bits(void **state)
{
    (void)state;
    test_each_device(check_tile);
    test_each_device(check_items);
}

/* A launch that may take few terms waits with its sums. */
static void check_cut_sums(test_device *device)
{
    if (!device->slow) test_device_disguise(device, CLV_CLASS_DISCRETE_GPU);
    /* an interpreter has the smallest tile and matrix, which are the least work */
    size_t f = device->tiny ? clv_gemm_form_count(device->device) - 1 : 0;
    while (f && clv_gemm_form_of(device->device, f).provider != CLV_GEMM_TILE)
        --f;
    clv_gemm_form form = clv_gemm_form_of(device->device, f);
    form.most_terms = form.kt;
    check_case(device, &form, 2);
    check_case(device, &form, device->tiny ? 4 : 3);
    printf("%s: sums cut in %s\n", device->name, form.name);
}

/* Where launches must be short, each computes a block of rows: here 128, 128 and 44. */
static void check_blocks_of_rows(test_device *device)
{
    const size_t large = CLV_LEN(cases) - 1;
    if (!device->slow) test_device_disguise(device, CLV_CLASS_DISCRETE_GPU);
    size_t f = 0;
    assert_true(isinf(clv_gemm_form_of(device->device, f).most_work));
    if (device->slow || too_large(device, large)) return;
    while (clv_gemm_form_of(device->device, f).provider != CLV_GEMM_TILE)
        ++f;
    device->disguise.flags.short_launches = true;
    clv_gemm_form form = clv_gemm_form_of(device->device, f);
    assert_true(form.most_work > 1e8 && form.most_work < 1e14);
    form.most_work = 1;
    const uint64_t before = device->queue->stats.launches;
    check_case(device, &form, large);
    assert_true(device->queue->stats.launches == before + 3);
    printf("%s: blocks of rows in %s\n", device->name, form.name);
}

static void blocks_of_rows_change_no_bit(void **state)
{
    (void)state;
    test_each_device(check_blocks_of_rows);
}

static void cut_sums_change_no_bit(void **state)
{
    (void)state;
    test_each_device(check_cut_sums);
}

static const struct {
    size_t m, n, k, batch;
    bool ta, tb, tc;
    float alpha, beta;
} calls[] = {
    { 7, 7, 64, 1, false, false, false, 1, 0 },
    { 33, 17, 100, 2, true, true, false, 1, 0 },
    { 130, 200, 100, 1, false, true, false, 0.75f, -1.5f },
    { 130, 200, 100, 2, true, false, true, 1, 0.5f },
    { 4, 5, 0, 1, false, false, false, 1, 0.5f },
};

static void check_matmul(test_device *device)
{
    for (size_t i = 0; i < CLV_LEN(calls); ++i) {
        const size_t m = calls[i].m, n = calls[i].n, k = calls[i].k, batch = calls[i].batch;
        if (test_left_out(device, device->tiny && m * n * k > 100000, "%zux%zux%zu", m, n, k))
            continue;
        float *a = numbers(batch * m * k, 6), *b = numbers(batch * k * n, 7);
        float *c = numbers(batch * m * n, 8), *was = numbers(batch * m * n, 8);
        const clv_matmul_options options = { .size = sizeof options,
                                             .a_row = calls[i].ta ? 1 : k,
                                             .a_col = calls[i].ta ? m : 1,
                                             .a_batch = m * k,
                                             .b_row = calls[i].tb ? 1 : n,
                                             .b_col = calls[i].tb ? k : 1,
                                             .b_batch = k * n,
                                             .c_row = calls[i].tc ? 1 : n,
                                             .c_col = calls[i].tc ? m : 1,
                                             .batch = batch,
                                             .scale_given = true,
                                             .alpha = calls[i].alpha,
                                             .beta = calls[i].beta };
        EXPECT_OK(clv_matmul(device->context, m, n, k, a, b, &options, c));
        for (size_t e = 0; e < batch * m * n; ++e) {
            const size_t t = e / (m * n), r = e / n % m, s = e % n;
            const size_t at = t * m * n + r * options.c_row + s * options.c_col;
            double sum = 0;
            for (size_t q = 0; q < k; ++q)
                sum += (double)a[t * m * k + r * options.a_row + q * options.a_col] *
                       (double)b[t * k * n + q * options.b_row + s * options.b_col];
            sum = (double)options.alpha * sum + (double)options.beta * (double)was[at];
            if (!(fabs(sum - (double)c[at]) <= 1e-6 * (double)(k + 1)))
                fail_msg("call %zu: [%zu,%zu,%zu] is %g, expected %g", i, t, r, s, (double)c[at],
                         sum);
        }
        clv_free(a), clv_free(b), clv_free(c), clv_free(was);
    }
    EXPECT_OK(clv_sync(device->context));
}

static void matmul_is_right(void **state)
{
    (void)state;
    test_each_device(check_matmul);
}

static void check_bad_calls(test_device *device)
{
    float x[4] = { 0 }, y[40] = { 0 };
    const clv_matmul_options far = { .size = sizeof far, .a_row = SIZE_MAX, .a_col = 1 };
    const clv_matmul_options near = {
        .size = sizeof near, .batch = 2, .c_row = 4, .c_col = 1, .c_batch = 3
    };
    const clv_matmul_options turns = {
        .size = sizeof turns, .batch = 2, .c_row = 4, .c_col = 1, .c_batch = 2
    };
    const clv_matmul_options holes = { .size = sizeof holes, .c_row = 3, .c_col = 2 };
    const clv_matmul_options shared = { .size = sizeof shared, .c_row = 1, .c_col = 1 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_matmul(device->context, 1, 1, 1, NULL, x, NULL, x));
    EXPECT_FAIL(CLV_E_SHAPE, "one of them must be 1",
                clv_matmul(device->context, 2, 2, 1, x, x, &holes, x));
    EXPECT_FAIL(CLV_E_SHAPE, "apart", clv_matmul(device->context, 2, 2, 1, x, x, &shared, x));
    EXPECT_FAIL(CLV_E_SHAPE, "beyond what can be addressed",
                clv_matmul(device->context, 2, 2, 2, x, x, &far, y));
    EXPECT_FAIL(CLV_E_SHAPE, "matrices of C are 3 elements apart",
                clv_matmul(device->context, 2, 2, 2, x, x, &near, y));
    EXPECT_OK(clv_matmul(device->context, 2, 2, 2, x, x, &turns, y)); /* rows in turns */
    EXPECT_FAIL(CLV_E_ARGUMENT, "C shares memory with A or B",
                clv_matmul(device->context, 2, 2, 2, y, x, NULL, y + 3));
    EXPECT_FAIL(CLV_E_ARGUMENT, "C shares memory with A or B",
                clv_matmul(device->context, 2, 2, 2, x, y + 3, NULL, y));
    EXPECT_OK(clv_matmul(device->context, 2, 2, 2, y, y + 4, NULL, y + 8));
    EXPECT_OK(clv_matmul(device->context, 0, 3, 2, NULL, NULL, NULL, NULL));
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    test_each_device(check_bad_calls);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_are_the_nearest),
        cmocka_unit_test(every_form_gives_the_hosts_bits),
        cmocka_unit_test(tiles_of_others_give_the_hosts_bits),
        cmocka_unit_test(clblast_is_near),
        cmocka_unit_test(what_follows_a_product_is_near),
        cmocka_unit_test(cut_sums_change_no_bit),
        cmocka_unit_test(blocks_of_rows_change_no_bit),
        cmocka_unit_test(matmul_is_right),
        cmocka_unit_test(refuses_what_does_not_fit),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("gemm", tests, NULL, NULL);
}
