/* SPDX-License-Identifier: Apache-2.0 */
/* Tests products of matrices, the blocks of transformers and an encoder on the device under test. */
#include "host/selftest/selftest.h"
#include "host/synthetic/worse.h"

#include "base/alloc.h"
#include "base/environment.h"
#include "base/error.h"

#include <cleave/offload.h>
#include <cleave/transformer.h>

#include <math.h>
#include <stdlib.h>

enum { ROWS = 96, INNER = 320, WIDTH = 130, HEADS = 4, HEAD = 32, TOKENS = 40, TEXTS = 5 };

const clv_model_config selftest_encoder = { .size = sizeof(clv_model_config),
                                            .width = 64,
                                            .heads = 2,
                                            .layers = 2,
                                            .ffn = 128,
                                            .vocabulary = 32,
                                            .positions = TOKENS,
                                            .types = 1,
                                            .eps = 1e-12f,
                                            .act = CLV_ACTIVATION_GELU,
                                            .pooling = CLV_MODEL_MEAN,
                                            .normalize = true,
                                            .max_length = TOKENS };

static float number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

static float *numbers(size_t count, uint32_t seed)
{
    float *out = clv_alloc(count, sizeof *out);
    for (size_t i = 0; out && i < count; ++i)
        out[i] = number(&seed);
    return out;
}

static double difference(const float *a, const float *b, size_t count)
{
    double worst = 0;
    for (size_t i = 0; i < count; ++i)
        worst = cli_worse(worst, fabs((double)a[i] - (double)b[i]));
    return worst;
}

/* The results of the product, the attention and the block in a context. */
typedef struct results {
    float product[ROWS * WIDTH], seen[HEADS * TOKENS * HEAD], block[ROWS * WIDTH];
} results;

static clv_status multiply(clv_context *context, const float *x, const float *w, results *r)
{
    return clv_matmul_f32(context, ROWS, WIDTH, INNER, x, w, r->product);
}

static clv_status attend(clv_context *context, const float *x, const float *w, results *r)
{
    const clv_attention_shape shape = { .size = sizeof(clv_attention_shape),
                                        .batch = 1,
                                        .heads = HEADS,
                                        .queries = TOKENS,
                                        .keys = TOKENS,
                                        .width = HEAD,
                                        .causal = true };
    return clv_attention_f32(context, &shape, x, w, x + TOKENS, NULL, r->seen);
}

static clv_status feed(clv_context *context, const float *x, const float *w, results *r)
{
    return clv_ffn_f32(context, ROWS, WIDTH, INNER, CLV_ACTIVATION_GELU, x, w, x, w, NULL,
                       r->block);
}

static void run_flat(selftest *test, clv_context *plain, const float *x, const float *w,
                     results *want, results *got)
{
    selftest_begin(test, "matmul %dx%dx%d", ROWS, WIDTH, INNER);
    clv_status status = multiply(plain, x, w, want);
    const clv_side before = clv_offload_force(CLV_SIDE_DEVICE);
    if (!status) status = multiply(test->context, x, w, got);
    clv_offload_force(before);
    selftest_end(test, status, difference(want->product, got->product, ROWS * WIDTH), 1e-4);
    selftest_begin(test, "attention, causal");
    status = attend(plain, x, w, want);
    if (!status) status = attend(test->context, x, w, got);
    selftest_end(test, status, difference(want->seen, got->seen, HEADS * TOKENS * HEAD), 1e-5);
    selftest_begin(test, "feed forward, GELU");
    status = feed(plain, x, w, want);
    if (!status) status = feed(test->context, x, w, got);
    selftest_end(test, status, difference(want->block, got->block, ROWS * WIDTH), 1e-3);
}

/* Encodes tokens that are within the smallest vocabulary. */
static clv_status encode(clv_context *context, const clv_model *model, float *out)
{
    static const int32_t ids[TOKENS] = { 1, 5, 7, 9, 3, 2, 4, 6, 8, 11, 15, 30, 21 };
    static const size_t offsets[TEXTS + 1] = { 0, 1, 13, 13, 30, TOKENS };
    clv_encoder *encoder;
    CLV_TRY(clv_encoder_open(context, clv_model_get_config(model), clv_model_get_weights(model),
                             NULL, &encoder));
    const clv_status status = clv_encode(encoder, ids, offsets, TEXTS, out, NULL);
    clv_encoder_close(encoder);
    return status;
}

static void run_encoder(selftest *test, clv_context *plain)
{
    float want[TEXTS * 64], got[TEXTS * 64];
    clv_model *model = NULL;
    selftest_begin(test, "encoder of 2 layers");
    clv_status status = clv_model_create_random(&selftest_encoder, 1, &model);
    if (!status) status = encode(plain, model, want);
    if (!status) status = encode(test->context, model, got);
    clv_model_close(model);
    selftest_end(test, status, status ? 0 : difference(want, got, TEXTS * 64), 2e-6);
}

/* Runs a model that the user has, if $CLEAVE_MINILM_DIR names one. */
static void run_minilm(selftest *test, clv_context *plain)
{
    const char *folder = clv_environment("CLEAVE_MINILM_DIR");
    if (!folder || !*folder) return;
    clv_model *model = NULL;
    float *want = NULL, *got = NULL;
    size_t count = 0;
    selftest_begin(test, "encoder with MiniLM's weights");
    clv_status status = clv_model_open(folder, &model);
    if (!status) {
        count = TEXTS * clv_model_get_config(model)->output;
        want = clv_zalloc(count, sizeof *want), got = clv_zalloc(count, sizeof *got);
        if (!want || !got) status = clv_fail(CLV_E_MEMORY, "not enough memory for vectors");
    }
    if (!status) status = encode(plain, model, want);
    if (!status) status = encode(test->context, model, got);
    selftest_end(test, status, status ? 0 : difference(want, got, count), 2e-6);
    clv_model_close(model);
    clv_free(want), clv_free(got);
}

void selftest_transformer(selftest *test)
{
    clv_context *plain = NULL;
    const clv_context_options reference = { .size = sizeof(clv_context_options),
                                            .mode = CLV_MODE_REFERENCE,
                                            .cache_dir = "" };
    float *x = numbers(ROWS * INNER, 1), *w = numbers(INNER * WIDTH, 2);
    results *want = clv_zalloc(1, sizeof *want), *got = clv_zalloc(1, sizeof *got);
    const bool room = x && w && want && got;
    if (!room || clv_context_create(&reference, &plain)) {
        selftest_begin(test, "transformer");
        selftest_end(test, room ? CLV_E_INTERNAL : clv_fail(CLV_E_MEMORY, "out of memory"), 0, 0);
    } else {
        run_flat(test, plain, x, w, want, got);
        run_encoder(test, plain);
        run_minilm(test, plain);
    }
    clv_context_free(plain);
    clv_free(x), clv_free(w), clv_free(want), clv_free(got);
}
