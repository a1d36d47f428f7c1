/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of transformers on every device against golden cases. */
#include "device.h"
#include "golden.h"
#include "test.h"

#include "base/alloc.h"
#include "host/transformer/blocks.h"
#include "host/transformer/decoder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static test_array upload(test_device *device, golden_array a)
{
    return test_array_from(device, a.f32 ? (const void *)a.f32 : (const void *)a.i32,
                           a.count * sizeof(float));
}

/* The device's first form; an interpreter's compiler takes the last one only. */
static clv_gemm_form plain_form(test_device *device)
{
    return clv_gemm_form_of(device->device,
                            device->tiny ? clv_gemm_form_count(device->device) - 1 : 0);
}

static const float *floats(test_array *array)
{
    test_array_read(array);
    return (const float *)(void *)array->host;
}

static void check_norm(test_device *device, const char *name, bool rms)
{
    const golden_array x = golden_get(name, "x");
    const size_t width = x.shape[1];
    float *both = clv_zalloc(2 * width, sizeof *both);
    assert_non_null(both);
    memcpy(both, golden_get(name, "w").f32, width * sizeof *both);
    if (!rms) memcpy(both + width, golden_get(name, "b").f32, width * sizeof *both);
    test_array dx = upload(device, x), dy = test_array_new(device, x.count * sizeof(float));
    test_array p = test_array_from(device, both, 2 * width * sizeof *both);
    const clv_norm n = { .x = { dx.buffer, 0, width },
                         .y = { dy.buffer, 0, width },
                         .parameters = p.buffer,
                         .bias = width,
                         .rows = x.shape[0],
                         .width = width,
                         .eps = (float)golden_number(name, "eps", 0),
                         .rms = rms };
    EXPECT_OK(clv_norm_enqueue(device->queue, &n));
    golden_expect(name, "out.y", floats(&dy));
    test_array_free(&dx), test_array_free(&dy), test_array_free(&p);
    clv_free(both);
}

static void check_norms(test_device *device)
{
    char name[32];
    for (int i = 0; i < 5; ++i) {
        snprintf(name, sizeof name, "layernorm%d", i);
        check_norm(device, name, false);
        snprintf(name, sizeof name, "rmsnorm%d", i);
        check_norm(device, name, true);
    }
}

static void norms_match(void **state)
{
    (void)state;
    test_each_device(check_norms);
}

/* The goldens of products, on the device whatever their size. */
static void check_products(test_device *device)
{
    const clv_gemm_form form = plain_form(device);
    char name[32];
    for (int i = 0; i < 6 * 4; ++i) {
        const bool ta = i & 2, tb = i & 1;
        snprintf(name, sizeof name, "gemm%d_%d%d", i / 4, ta, tb);
        if (!golden_has(name, "a") || test_left_out(device, device->tiny && i >= 8, "%s", name))
            continue;
        const size_t m = (size_t)golden_number(name, "m", 0),
                     n = (size_t)golden_number(name, "n", 0);
        const size_t k = (size_t)golden_number(name, "k", 0);
        test_array a = upload(device, golden_get(name, "a")),
                   b = upload(device, golden_get(name, "b"));
        test_array c = upload(device, golden_get(name, "c"));
        const clv_gemm g = { .m = m,
                             .n = n,
                             .k = k,
                             .a = { a.buffer, 0, ta ? 1 : k, ta ? m : 1, 0 },
                             .b = { b.buffer, 0, tb ? 1 : n, tb ? k : 1, 0 },
                             .c = { c.buffer, 0, n, 1, 0 },
                             .alpha = (float)golden_number(name, "alpha", 1),
                             .beta = (float)golden_number(name, "beta", 0) };
        test_array scratch = test_array_new(device, clv_gemm_scratch(&form, &g) * sizeof(float));
        EXPECT_OK(clv_gemm_enqueue(device->queue, &form, &g, scratch.buffer, NULL));
        golden_expect(name, "out.c", floats(&c));
        test_array_free(&a), test_array_free(&b), test_array_free(&c), test_array_free(&scratch);
    }
}

static void products_match(void **state)
{
    (void)state;
    test_each_device(check_products);
}

static double exact(double x, clv_activation kind)
{
    if (kind == CLV_ACTIVATION_GELU) return 0.5 * x * erfc(-x * sqrt(0.5));
    if (kind == CLV_ACTIVATION_SILU) return x / (1 + exp(-x));
    if (kind == CLV_ACTIVATION_TANH) return tanh(x);
    if (kind == CLV_ACTIVATION_RELU) return fmax(x, 0);
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

/* Each is applied to a product with the matrix [1]. The goldens' tolerance is that of their largest number, 1e4. The
 * hyperbolic tangent and ReLU, which have no goldens, take the numbers of SiLU. */
static void check_activations(test_device *device)
{
    static const char *const names[] = { "", "gelu_erf", "gelu_tanh", "silu", "silu", "silu" };
    const clv_gemm_form form = plain_form(device);
    for (clv_activation act = CLV_ACTIVATION_GELU; act <= CLV_ACTIVATION_RELU; ++act) {
        const golden_array x = golden_get(names[act], "x");
        const float one = 1;
        test_array dx = upload(device, x), dy = test_array_new(device, x.count * sizeof(float));
        test_array dw = test_array_from(device, &one, sizeof one);
        const clv_gemm g = { .m = 1,
                             .n = x.count,
                             .k = 1,
                             .a = { dw.buffer, 0, 1, 1, 0 },
                             .b = { dx.buffer, 0, x.count, 1, 0 },
                             .c = { dy.buffer, 0, x.count, 1, 0 },
                             .alpha = 1,
                             .activation = act };
        test_array scratch = test_array_new(device, clv_gemm_scratch(&form, &g) * sizeof(float));
        EXPECT_OK(clv_gemm_enqueue(device->queue, &form, &g, scratch.buffer, NULL));
        const float *y = floats(&dy); /* reads the results back */
        if (act <= CLV_ACTIVATION_SILU) golden_expect(names[act], "out.y", y);
        for (size_t i = 0; i < x.count; ++i) {
            const double at = (double)x.f32[i], want = exact(at, act);
            const double got = (double)y[i];
            if (!(fabs(got - want) <= 3e-7 * fmax(1, fabs(at))))
                fail_msg("activation %d of %g is %.9g, expected %.9g", (int)act, at, got, want);
        }
        test_array_free(&dx), test_array_free(&dy), test_array_free(&dw);
        test_array_free(&scratch);
    }
}

static void activations_match(void **state)
{
    (void)state;
    test_each_device(check_activations);
}

static void check_attentions(test_device *device)
{
    char name[32];
    for (int i = 0; i < 8; ++i) {
        snprintf(name, sizeof name, "attention%d", i);
        if (!golden_has(name, "q") ||
            test_left_out(device, device->tiny && i >= 2 && i <= 5, "%s: large", name))
            continue;
        const golden_array q = golden_get(name, "q"), k = golden_get(name, "k");
        const clv_attention_shape s = { .size = sizeof(clv_attention_shape),
                                        .batch = q.shape[0],
                                        .heads = q.shape[1],
                                        .kv_heads = k.shape[1],
                                        .queries = q.shape[2],
                                        .keys = k.shape[2],
                                        .width = q.shape[3],
                                        .causal = golden_number(name, "causal", 0) != 0 };
        if (test_brief() && s.width != 64)
            continue; /* each width is a program that drivers compile */
        float *o = clv_alloc(q.count, sizeof *o);
        assert_non_null(o);
        EXPECT_OK(clv_attention_f32(device->context, &s, q.f32, k.f32, golden_get(name, "v").f32,
                                    golden_has(name, "mask") ? golden_get(name, "mask").i32 : NULL,
                                    o));
        golden_expect(name, "out.o", o);
        clv_free(o);
    }
}

static void attention_matches(void **state)
{
    (void)state;
    test_each_device(check_attentions);
}

static void check_ffns(test_device *device)
{
    char name[32];
    for (int i = 0; i < 3; ++i) {
        snprintf(name, sizeof name, "ffn_gelu%d", i);
        if (!golden_has(name, "x") || test_left_out(device, device->tiny && i, "%s", name))
            continue;
        const golden_array x = golden_get(name, "x"), w1 = golden_get(name, "w1");
        float *y = clv_alloc(x.count, sizeof *y);
        assert_non_null(y);
        EXPECT_OK(clv_ffn_f32(device->context, x.shape[0], x.shape[1], w1.shape[0],
                              CLV_ACTIVATION_GELU, x.f32, w1.f32, golden_get(name, "b1").f32,
                              golden_get(name, "w2").f32, golden_get(name, "b2").f32, y));
        golden_expect(name, "out.y", y);
        clv_free(y);
    }
}

static void feed_forward_matches(void **state)
{
    (void)state;
    test_each_device(check_ffns);
}

/* Compares the weighted mean and the last row of each sequence with what they are defined as. */
static void expect_pooled(clv_model_pooling kind, golden_array x, const int32_t *rows,
                          const float *got)
{
    const size_t width = x.shape[2];
    for (size_t i = 0; i < 4 * width; ++i) {
        const size_t first = (size_t)rows[2 * (i / width)],
                     count = (size_t)rows[2 * (i / width) + 1];
        double sum = 0, weights = 0;
        for (size_t t = kind == CLV_MODEL_LAST ? count - 1 : 0; t < count; ++t) {
            sum += (double)(t + 1) * (double)x.f32[(first + t) * width + i % width];
            weights += (double)(t + 1);
        }
        if (!(fabs(sum / weights - (double)got[i]) <= 2e-6))
            fail_msg("pooling %d: element %zu is %.8g, expected %.8g", (int)kind, i, (double)got[i],
                     sum / weights);
    }
}

static void check_pool(test_device *device)
{
    const golden_array x = golden_get("meanpool", "x"), n = golden_get("l2norm", "x");
    int32_t rows[16];
    for (int32_t i = 0; i < 4; ++i)
        rows[2 * i] = i * (int32_t)x.shape[1], rows[2 * i + 1] = (int32_t)x.shape[1];
    for (int32_t i = 0; i < 4; ++i)
        rows[8 + 2 * i] = i, rows[8 + 2 * i + 1] = 1;
    test_array dx = upload(device, x), dn = upload(device, n);
    test_array weight = upload(device, golden_get("meanpool", "mask"));
    test_array where = test_array_from(device, rows, sizeof rows);
    test_array y = test_array_new(device, golden_get("meanpool", "out.y").count * sizeof(float));
    test_array z = test_array_new(device, n.count * sizeof(float));
    const clv_pool_call mean = { .x = dx.buffer,
                                 .rows = where.buffer,
                                 .weight = weight.buffer,
                                 .out = y.buffer,
                                 .sequences = 4,
                                 .width = x.shape[2],
                                 .kind = CLV_MODEL_MEAN };
    const clv_pool_call length = { .x = dn.buffer,
                                   .rows = where.buffer,
                                   .first_row = 4,
                                   .out = z.buffer,
                                   .sequences = 4,
                                   .width = n.shape[1],
                                   .kind = CLV_MODEL_CLS,
                                   .divide = true };
    EXPECT_OK(clv_pool_enqueue(device->queue, &mean));
    EXPECT_OK(clv_pool_enqueue(device->queue, &length));
    golden_expect("meanpool", "out.y", floats(&y));
    golden_expect("l2norm", "out.y", floats(&z));
    clv_pool_call other = mean;
    other.weight = NULL;
    for (other.kind = CLV_MODEL_WEIGHTED; other.kind <= CLV_MODEL_LAST; ++other.kind) {
        EXPECT_OK(clv_pool_enqueue(device->queue, &other));
        expect_pooled(other.kind, x, rows, floats(&y));
    }
    test_array *all[] = { &dx, &dn, &weight, &where, &y, &z };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        test_array_free(all[i]);
}

static void pooling_matches(void **state)
{
    (void)state;
    test_each_device(check_pool);
}

/* Gate and up as one matrix: the two of the golden side by side. */
static void check_gate(test_device *device)
{
    const golden_array x = golden_get("ffn_swiglu", "x"), wg = golden_get("ffn_swiglu", "wg");
    const size_t rows = x.shape[0], width = x.shape[1], inner = wg.shape[0];
    float *both = clv_alloc(rows * 2 * inner, sizeof *both);
    float *y = clv_alloc(rows * width, sizeof *y);
    assert_true(both && y);
    const clv_matmul_options turned = {
        .size = sizeof turned, .b_row = 1, .b_col = width, .c_row = 2 * inner, .c_col = 1
    };
    const clv_matmul_options back = { .size = sizeof back, .b_row = 1, .b_col = inner };
    EXPECT_OK(clv_matmul(device->context, rows, inner, width, x.f32, wg.f32, &turned, both));
    EXPECT_OK(clv_matmul(device->context, rows, inner, width, x.f32,
                         golden_get("ffn_swiglu", "wu").f32, &turned, both + inner));
    test_array in = test_array_from(device, both, rows * 2 * inner * sizeof *both);
    test_array out = test_array_new(device, rows * inner * sizeof *both);
    EXPECT_OK(
        clv_gate_enqueue(device->queue, in.buffer, rows, inner, CLV_ACTIVATION_SILU, out.buffer));
    EXPECT_OK(clv_matmul(device->context, rows, width, inner, floats(&out),
                         golden_get("ffn_swiglu", "wd").f32, &back, y));
    golden_expect("ffn_swiglu", "out.y", y);
    test_array_free(&in), test_array_free(&out);
    clv_free(both), clv_free(y);
}

static void gates_match(void **state)
{
    (void)state;
    test_each_device(check_gate);
}

/* Rows of a table: position and type are zeros. */
static void check_embedding(test_device *device)
{
    const golden_array w = golden_get("embedding", "w"), ids = golden_get("embedding", "ids");
    const float zeros[8] = { 0 };
    int32_t tokens[2 * 64];
    const size_t width = w.shape[1];
    assert_true(ids.count <= 64 && width <= 8);
    for (size_t i = 0; i < ids.count; ++i)
        tokens[2 * i] = ids.i32[i], tokens[2 * i + 1] = 0;
    test_array dt = test_array_from(device, tokens, 2 * ids.count * sizeof *tokens);
    test_array dw = upload(device, w), dz = test_array_from(device, zeros, sizeof zeros);
    test_array y = test_array_new(device, ids.count * width * sizeof(float));
    const clv_embed_rows e = { .tokens = dt.buffer,
                               .word = dw.buffer,
                               .parameters = dz.buffer,
                               .y = y.buffer,
                               .rows = ids.count,
                               .width = width };
    EXPECT_OK(clv_embed_rows_enqueue(device->queue, &e));
    golden_expect("embedding", "out.y", floats(&y));
    test_array_free(&dt), test_array_free(&dw), test_array_free(&dz), test_array_free(&y);
}

static void embeddings_match(void **state)
{
    (void)state;
    test_each_device(check_embedding);
}

static void check_loss(test_device *device)
{
    const golden_array x = golden_get("cross_entropy", "x");
    const size_t rows = x.shape[0], classes = x.shape[1];
    test_array dx = upload(device, x),
               labels = upload(device, golden_get("cross_entropy", "labels"));
    test_array loss = test_array_new(device, rows * sizeof(float));
    test_array gradient = test_array_new(device, x.count * sizeof(float));
    const float counted = 5; /* one of the six labels is ignored */
    EXPECT_OK(clv_cross_entropy_enqueue(device->queue, dx.buffer, labels.buffer, rows, classes,
                                        1 / counted, loss.buffer, gradient.buffer));
    const float *each = floats(&loss);
    double sum = 0;
    for (size_t i = 0; i < rows; ++i)
        sum += (double)each[i];
    const float mean = (float)(sum / (double)counted);
    golden_expect("cross_entropy", "out.loss", &mean);
    if (golden_has("cross_entropy", "grad.x"))
        golden_expect("cross_entropy", "grad.x", floats(&gradient));
    test_array *all[] = { &dx, &labels, &loss, &gradient };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        test_array_free(all[i]);
}

static void losses_match(void **state)
{
    (void)state;
    test_each_device(check_loss);
}

/* ---- the decoder block: all tokens at once, and one after the other through the cache ------------- */

enum { D = 32, HQ = 4, HK = 2, HEAD = 8, KV = 16, FFN = 88, TOKENS = 12 };

typedef struct decoder {
    test_device *device;
    clv_decoder_layer layer;
    clv_decoder_room room;
    test_array weights, turns, keys, values, h, q, seen, inner, gated, scratch;
} decoder;

static size_t append(float *all, size_t *used, const char *role)
{
    const golden_array a = golden_get("llama_block", role);
    memcpy(all + *used, a.f32, a.count * sizeof *all);
    *used += a.count;
    return *used - a.count;
}

static void decoder_open(test_device *device, const clv_gemm_form *form, decoder *d)
{
    static float all[16384], turns[TOKENS * HEAD];
    size_t n = 0;
    *d = (decoder){
        .device = device,
        .layer = { .width = D, .heads = HQ, .kv_heads = HK, .ffn = FFN, .eps = 1e-5f, .form = form }
    };
    clv_decoder_layer *l = &d->layer;
    l->norm1 = append(all, &n, "n1"), l->q = append(all, &n, "wq");
    l->k = append(all, &n, "wk"), l->v = append(all, &n, "wv");
    l->out = append(all, &n, "wo"), l->norm2 = append(all, &n, "n2");
    l->gate_up = append(all, &n, "wg"), (void)append(all, &n, "wu");
    l->down = append(all, &n, "wd");
    clv_rope_turns(TOKENS, HEAD / 2, 1e4, turns);
    d->weights = test_array_from(device, all, n * sizeof *all);
    d->turns = test_array_from(device, turns, sizeof turns);
    d->keys = test_array_new(device, TOKENS * KV * sizeof(float));
    d->values = test_array_new(device, TOKENS * KV * sizeof(float));
    d->h = test_array_new(device, TOKENS * D * sizeof(float));
    d->q = test_array_new(device, TOKENS * D * sizeof(float));
    d->seen = test_array_new(device, TOKENS * D * sizeof(float));
    d->inner = test_array_new(device, TOKENS * 2 * FFN * sizeof(float));
    d->gated = test_array_new(device, TOKENS * FFN * sizeof(float));
    d->scratch = test_array_new(device, clv_decoder_scratch(l, TOKENS) * sizeof(float));
    l->weights = d->weights.buffer, l->turns = d->turns.buffer;
    l->keys = d->keys.buffer, l->values = d->values.buffer;
    d->room = (clv_decoder_room){ d->h.buffer,     d->q.buffer,     d->seen.buffer,
                                  d->inner.buffer, d->gated.buffer, d->scratch.buffer };
}

static void decoder_close(decoder *d)
{
    test_array *all[] = { &d->weights, &d->turns, &d->keys,  &d->values, &d->h,
                          &d->q,       &d->seen,  &d->inner, &d->gated,  &d->scratch };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        test_array_free(all[i]);
}

/* Rows [first, first + rows) of a sequence. */
static void decode(decoder *d, const float *x, size_t first, size_t rows, float *y)
{
    const clv_block_form form = clv_block_form_of(d->device->device);
    clv_attention_block blocks[TOKENS];
    clv_attention_fill(
        &form, (clv_attention_block){ .queries = (int32_t)rows, .keys = (int32_t)(first + rows) },
        blocks);
    test_array db =
        test_array_from(d->device, blocks, sizeof *blocks * clv_attention_block_count(&form, rows));
    test_array dx = test_array_from(d->device, x + first * D, rows * D * sizeof *x);
    EXPECT_OK(clv_decoder_layer_enqueue(d->device->queue, &d->layer, &d->room, db.buffer, first,
                                        rows, dx.buffer));
    memcpy(y + first * D, floats(&dx), rows * D * sizeof *y);
    test_array_free(&db), test_array_free(&dx);
}

static void check_decoder(test_device *device)
{
    static float whole[2 * TOKENS * D], stepped[2 * TOKENS * D];
    const golden_array x = golden_get("llama_block", "x");
    const clv_gemm_form form = plain_form(device);
    decoder d;
    assert_int_equal(x.count, 2 * TOKENS * D);
    decoder_open(device, &form, &d);
    for (size_t b = 0; b < 2; ++b) {
        decode(&d, x.f32 + b * TOKENS * D, 0, TOKENS, whole + b * TOKENS * D);
        for (size_t t = 0; t < TOKENS; ++t)
            decode(&d, x.f32 + b * TOKENS * D, t, 1, stepped + b * TOKENS * D);
    }
    golden_expect("llama_block", "out.y", whole);
    golden_expect("llama_block", "out.y", stepped);
    decoder_close(&d);
}

static void decoder_matches_whole_and_stepped(void **state)
{
    (void)state;
    test_each_device(check_decoder);
}

/* What cards do, whose work-items lie side by side, on whatever is here. */
static void forms_of_cards_match(void **state)
{
    void (*const claims[])(test_device *) = { check_norms,  check_attentions, check_pool,
                                              check_gate,   check_embedding,  check_loss,
                                              check_decoder };
    (void)state;
    for (size_t i = 0; i < CLV_LEN(claims); ++i) /* the decoder has no kernel of its own */
        if (!test_brief() || claims[i] != check_decoder)
            test_each_device_as(CLV_CLASS_DISCRETE_GPU, claims[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_match),       cmocka_unit_test(embeddings_match),
        cmocka_unit_test(norms_match),          cmocka_unit_test(activations_match),
        cmocka_unit_test(attention_matches),    cmocka_unit_test(feed_forward_matches),
        cmocka_unit_test(pooling_matches),      cmocka_unit_test(gates_match),
        cmocka_unit_test(losses_match),         cmocka_unit_test(decoder_matches_whole_and_stepped),
        cmocka_unit_test(forms_of_cards_match),
    };
    test_share_compiled();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("transformer", tests, golden_setup, golden_teardown);
}
