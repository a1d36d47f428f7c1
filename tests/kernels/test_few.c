/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what GPUs compute when a decoder takes one token at a time with float64: products of a few rows, and
 * attention of few queries whose keys are shared among work-groups. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/half.h"
#include "host/transformer/blocks.h"
#include "runtime/blas/gemm.h"

#include <math.h>
#include <string.h>

static float *numbers(size_t count, uint64_t seed)
{
    float *out = clv_alloc(count, sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < count; ++i)
        out[i] = (float)test_uniform(&seed, -1, 1);
    return out;
}

/* ---- products -------------------------------------------------------------------------------- */

static const struct {
    size_t m, n, k, units; /* units: more of them share a sum */
    bool turned, half, bias, add;
} products[] = {
    { 1, 70, 65, 1, true, false, true, false },   { 3, 5, 600, 40, true, false, false, true },
    { 8, 9, 300, 1, true, true, false, false },   { 1, 130, 513, 40, false, false, true, true },
    { 5, 33, 17, 1, false, false, false, false }, { 8, 64, 1100, 40, false, true, true, false },
    { 2, 1, 1, 1, false, false, false, false },
};

static clv_gemm gemm_of(size_t i, clv_buffer *a, clv_buffer *b, clv_buffer *c, clv_buffer *bias)
{
    const size_t n = products[i].n, k = products[i].k;
    return (clv_gemm){ .m = products[i].m,
                       .n = n,
                       .k = k,
                       .a = { a, 3, k + 2, 1, 0 },
                       .b = { b, 5, products[i].turned ? 1 : n, products[i].turned ? k : 1, 0 },
                       .c = { c, 1, n + 3, 1, 0 },
                       .b_half = products[i].half,
                       .any_order = true,
                       .alpha = 0.75f,
                       .beta = products[i].add ? -1.5f : 0,
                       .bias = products[i].bias ? bias : NULL,
                       .activation = products[i].bias ? CLV_ACTIVATION_SILU : CLV_ACTIVATION_NONE };
}

/* The product in float64 into `want`, and what it may be off by. */
static void expect_product(const clv_gemm *g, const float *a, const float *b, const float *bias,
                           const float *was, double *want, double *allowed)
{
    for (size_t r = 0; r < g->m; ++r)
        for (size_t c = 0; c < g->n; ++c) {
            double sum = 0, size = 0;
            for (size_t q = 0; q < g->k; ++q) {
                const double x = (double)a[g->a.offset + r * g->a.row + q] *
                                 (double)b[g->b.offset + q * g->b.row + c * g->b.col];
                sum += x, size += fabs(x);
            }
            sum = sum * (double)g->alpha + (g->bias ? (double)bias[c] : 0);
            const size_t at = g->c.offset + r * g->c.row + c;
            want[at] = clv_activate(sum, g->activation) + (double)g->beta * (double)was[at];
            allowed[at] = 2e-6 * size + 3e-6;
        }
}

static void check_product(test_device *device, size_t i)
{
    const size_t m = products[i].m, n = products[i].n, k = products[i].k;
    const size_t as = 3 + m * (k + 2), bs = 5 + n * k, cs = 1 + m * (n + 3);
    float *a = numbers(as, 1), *b = numbers(bs, 2), *c = numbers(cs, 3), *bias = numbers(n, 4);
    double *want = clv_alloc(cs, sizeof *want), *allowed = clv_alloc(cs, sizeof *allowed);
    uint16_t *halves = clv_alloc(bs, sizeof *halves);
    for (size_t e = 0; e < bs; ++e) {
        if (products[i].half) b[e] = roundf(b[e] * 1024) / 1024; /* a half as it is */
        halves[e] = clv_half_of(b[e]);
    }
    for (size_t e = 0; e < cs; ++e)
        want[e] = (double)c[e], allowed[e] = 1e-30; /* between rows nothing changes */
    test_array da = test_array_from(device, a, as * sizeof *a);
    test_array db = products[i].half ? test_array_from(device, halves, bs * sizeof *halves)
                                     : test_array_from(device, b, bs * sizeof *b);
    test_array dc = test_array_from(device, c, cs * sizeof *c);
    test_array dbias = test_array_from(device, bias, n * sizeof *bias);
    clv_gemm_form form = clv_gemm_form_of(device->device, 0);
    form.units = products[i].units;
    clv_gemm g = gemm_of(i, da.buffer, db.buffer, dc.buffer, dbias.buffer);
    assert_true(clv_gemm_is_few(&form, &g));
    expect_product(&g, a, b, bias, c, want, allowed);
    test_array scratch = test_array_new(device, clv_gemm_scratch(&form, &g) * sizeof(float));
    EXPECT_OK(clv_gemm_enqueue(device->queue, &form, &g, scratch.buffer, NULL));
    test_array_read(&dc);
    test_array_read(&scratch);
    const float *got = (const float *)(void *)dc.host;
    test_expect_within("product of few rows", want, got, allowed, cs);

    /* the last row alone has the bits that it had among others */
    float *row = clv_alloc(n, sizeof *row);
    memcpy(row, got + g.c.offset + (m - 1) * g.c.row, n * sizeof *row);
    test_array_write(&dc, c);
    g.m = 1, g.a.offset += (m - 1) * g.a.row, g.c.offset += (m - 1) * g.c.row;
    EXPECT_OK(clv_gemm_enqueue(device->queue, &form, &g, scratch.buffer, NULL));
    test_array_read(&dc);
    assert_memory_equal(row, (const float *)(void *)dc.host + g.c.offset, n * sizeof *row);
    test_array *all[] = { &da, &db, &dc, &dbias, &scratch };
    for (size_t e = 0; e < CLV_LEN(all); ++e)
        test_array_free(all[e]);
    clv_free(a), clv_free(b), clv_free(c), clv_free(bias), clv_free(want), clv_free(allowed);
    clv_free(halves), clv_free(row);
}

static void check_products(test_device *device)
{
    for (size_t i = 0; i < CLV_LEN(products); i += test_brief() ? 3 : 1) /* of each kernel */
        check_product(device, i);
}

static void products_of_few_rows_match(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_products);
}

/* ---- attention ------------------------------------------------------------------------------- */

static const struct {
    size_t heads, kv_heads, queries, keys, width;
    bool causal, masked;
} attentions[] = {
    { 4, 2, 1, 200, 64, true, false },  { 2, 2, 3, 131, 20, true, true },
    { 8, 1, 2, 128, 128, false, true }, { 3, 3, 1, 300, 96, false, false },
    { 12, 1, 1, 190, 7, true, true },   { 2, 1, 2, 150, 30, true, true },
};

/* Row (query, head) in float64. */
static void expect_row(size_t i, const float *q, const float *k, const float *v, const int *mask,
                       size_t query, size_t head, double *out)
{
    const size_t keys = attentions[i].keys, width = attentions[i].width;
    const size_t heads = attentions[i].heads, kv_heads = attentions[i].kv_heads;
    const size_t hk = head / (heads / kv_heads);
    double *p = clv_alloc(keys, sizeof *p), top = -INFINITY, sum = 0;
    for (size_t j = 0; j < keys; ++j) {
        p[j] = 0;
        for (size_t d = 0; d < width; ++d)
            p[j] += (double)q[(query * heads + head) * width + d] *
                    (double)k[(j * kv_heads + hk) * width + d];
        const bool seen = (!attentions[i].masked || mask[j]) &&
                          (!attentions[i].causal || j <= query + keys - attentions[i].queries);
        p[j] = seen ? p[j] * 3 : -INFINITY;
        top = fmax(top, p[j]);
    }
    for (size_t j = 0; j < keys; ++j)
        sum += p[j] = isinf(top) ? 0 : exp(p[j] - top);
    for (size_t d = 0; d < width; ++d) {
        out[d] = 0;
        for (size_t j = 0; j < keys; ++j)
            out[d] += sum > 0 ? p[j] / sum * (double)v[(j * kv_heads + hk) * width + d] : 0;
    }
    clv_free(p);
}

/* Two sequences; of the second nothing is seen where there is a mask. */
static void check_attention(test_device *device, size_t i)
{
    const size_t heads = attentions[i].heads, kv_heads = attentions[i].kv_heads;
    const size_t queries = attentions[i].queries, keys = attentions[i].keys;
    const size_t width = attentions[i].width, both = 2 * queries * heads * width;
    float *q = numbers(both, 1), *k = numbers(2 * keys * kv_heads * width, 2);
    float *v = numbers(2 * keys * kv_heads * width, 3);
    int32_t *mask = clv_zalloc(2 * keys, sizeof *mask);
    for (size_t j = 0; j < keys; ++j)
        mask[j] = j % 3 != 1;
    const clv_block_form form = clv_block_form_of(device->device);
    clv_attention_block blocks[2];
    for (int b = 0; b < 2; ++b)
        clv_attention_fill(&form,
                           (clv_attention_block){ .query = (int32_t)queries * b,
                                                  .queries = (int32_t)queries,
                                                  .key = (int32_t)keys * b,
                                                  .keys = (int32_t)keys,
                                                  .mask = (int32_t)keys * b },
                           blocks + b);
    test_array dq = test_array_from(device, q, both * sizeof *q);
    test_array dk = test_array_from(device, k, 2 * keys * kv_heads * width * sizeof *k);
    test_array dv = test_array_from(device, v, 2 * keys * kv_heads * width * sizeof *v);
    test_array dm = test_array_from(device, mask, 2 * keys * sizeof *mask);
    test_array db = test_array_from(device, blocks, sizeof blocks);
    test_array dout = test_array_new(device, both * sizeof *q);
    clv_attention_call a = { .q = { dq.buffer, 0, heads * width, width },
                             .k = { dk.buffer, 0, kv_heads * width, width },
                             .v = { dv.buffer, 0, kv_heads * width, width },
                             .o = { dout.buffer, 0, heads * width, width },
                             .blocks = db.buffer,
                             .block_count = 2,
                             .mask = attentions[i].masked ? dm.buffer : NULL,
                             .causal = attentions[i].causal,
                             .heads = heads,
                             .kv_heads = kv_heads,
                             .width = width,
                             .scale = 3,
                             .longest = keys,
                             .few = queries };
    const size_t floats = clv_attention_parts(device->device, &a);
    assert_true(floats > 0);
    test_array parts = test_array_new(device, floats * sizeof(float));
    a.parts = parts.buffer;
    EXPECT_OK(clv_attention_enqueue(device->queue, &a));
    test_array_read(&dout);
    test_array_read(&parts);
    double *want = clv_alloc(both, sizeof *want), *allowed = clv_alloc(both, sizeof *allowed);
    for (size_t b = 0; b < 2; ++b)
        for (size_t r = 0; r < queries * heads; ++r)
            expect_row(i, q + b * queries * heads * width, k + b * keys * kv_heads * width,
                       v + b * keys * kv_heads * width, mask + b * keys, r / heads, r % heads,
                       want + (b * queries * heads + r) * width);
    for (size_t e = 0; e < both; ++e)
        allowed[e] = 1e-5; /* scores of up to 30 */
    test_expect_within("attention of few queries", want, (const float *)(void *)dout.host, allowed,
                       both);
    /* The same by tiles, whose last elements of a head are written one by one. oclgrind's watch on reads crashes on
     * their vectors: oclgrind/attention_back runs them without it. */
    if (!device->tiny) {
        test_array_write(&dout, q);
        a.parts = NULL;
        EXPECT_OK(clv_attention_enqueue(device->queue, &a));
        test_array_read(&dout);
        test_expect_within("attention by tiles", want, (const float *)(void *)dout.host, allowed,
                           both);
    }
    test_array *all[] = { &dq, &dk, &dv, &dm, &db, &dout, &parts };
    for (size_t e = 0; e < CLV_LEN(all); ++e)
        test_array_free(all[e]);
    clv_free(q), clv_free(k), clv_free(v), clv_free(mask), clv_free(want), clv_free(allowed);
}

static void check_attentions(test_device *device)
{
    for (size_t i = 0; i < (test_brief() ? 1 : device->tiny ? 2 : CLV_LEN(attentions)); ++i)
        check_attention(device, i);
}

static void attention_of_few_queries_matches(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_attentions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_few_rows_match),
        cmocka_unit_test(attention_of_few_queries_matches),
    };
    test_share_compiled();
    return cmocka_run_group_tests_name("few", tests, NULL, NULL);
}
