/* SPDX-License-Identifier: Apache-2.0 */
/* Tests encoders on every device: against plain C on random weights, for the same bits whatever the other texts are,
 * and with the sentences of MiniLM if the model is installed. */
#include "data.h"
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/tokenizer.h>
#include <cleave/transformer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t lengths[] = { 1, 17, 0, 40, 5, 16, 33, 2 };
enum { TEXTS = 8 };

static const clv_model_config small = { .size = sizeof(clv_model_config),
                                        .width = 48,
                                        .heads = 3,
                                        .layers = 2,
                                        .ffn = 80,
                                        .vocabulary = 60,
                                        .positions = 40,
                                        .types = 2,
                                        .eps = 1e-12f,
                                        .act = CLV_ACTIVATION_GELU,
                                        .pooling = CLV_MODEL_MEAN,
                                        .normalize = true,
                                        .max_length = 40 };

static void make_texts(int32_t *ids, size_t offsets[TEXTS + 1])
{
    uint64_t seed = 5;
    offsets[0] = 0;
    for (size_t i = 0; i < TEXTS; ++i)
        offsets[i + 1] = offsets[i] + lengths[i];
    for (size_t t = 0; t < offsets[TEXTS]; ++t)
        ids[t] = (int32_t)(test_random(&seed) % small.vocabulary);
}

static void encode(clv_context *context, const clv_model *model, clv_encoder_options options,
                   const int32_t *ids, const size_t *offsets, size_t texts, float *out)
{
    clv_encoder *encoder;
    options.size = sizeof options;
    EXPECT_OK(clv_encoder_open(context, clv_model_get_config(model), clv_model_get_weights(model),
                               &options, &encoder));
    EXPECT_OK(clv_encode(encoder, ids, offsets, texts, out, NULL));
    EXPECT_OK(clv_encode(encoder, ids, offsets, texts, out, NULL)); /* weights are there now */
    clv_encoder_close(encoder);
}

static void expect_near(const float *want, const float *got, size_t count, double allowed)
{
    for (size_t i = 0; i < count; ++i)
        if (!(fabs((double)want[i] - (double)got[i]) <= allowed))
            fail_msg("element %zu: %.9g, expected %.9g", i, (double)got[i], (double)want[i]);
}

static float plain[2][160 * 48];
static int32_t ids[160];
static size_t offsets[TEXTS + 1];

/* The least cosine between rows of two encodings. */
static double least_cosine(const float *a, const float *b, size_t rows, size_t width)
{
    double least = 1;
    for (size_t i = 0; i < rows; ++i, a += width, b += width) {
        double ab = 0, aa = 0, bb = 0;
        for (size_t c = 0; c < width; ++c) {
            ab += (double)a[c] * (double)b[c];
            aa += (double)a[c] * (double)a[c];
            bb += (double)b[c] * (double)b[c];
        }
        if (aa == 0 && bb == 0) continue;
        const double cosine = ab / sqrt(aa * bb);
        if (isnan(cosine)) return cosine;
        least = fmin(least, cosine);
    }
    return least;
}

/* Texts from the middle of a list: their rows come first, and nothing behind them is written. */
static void check_slice(test_device *device, const clv_model *model)
{
    static float got[160 * 48];
    const size_t first = 3, texts = 2, tokens = offsets[first + texts] - offsets[first];
    const size_t rows[2] = { texts, tokens }, from[2] = { first, offsets[first] };
    for (int hidden = 0; hidden < 2; ++hidden) {
        for (size_t i = 0; i < CLV_LEN(got); ++i)
            got[i] = -77;
        encode(device->context, model,
               (clv_encoder_options){ .size = sizeof(clv_encoder_options), .hidden = hidden }, ids,
               offsets + first, texts, got);
        expect_near(plain[hidden] + from[hidden] * small.width, got, rows[hidden] * small.width,
                    hidden ? 2e-5 : 2e-6);
        for (size_t i = rows[hidden] * small.width; i < CLV_LEN(got); ++i)
            assert_true(got[i] == -77.0f);
    }
}

/* Texts without tokens, alone in their batches: the device is done with them, nobody helps. */
static void check_empty(test_device *device, const clv_model *model)
{
    static float got[160 * 48];
    const size_t none[] = { 0, 0, 0 };
    clv_encoder *encoder;
    clv_report *report;
    for (int hidden = 0; hidden < 2; ++hidden) {
        const clv_encoder_options o = { .size = sizeof o, .batch_tokens = 1, .hidden = hidden };
        EXPECT_OK(clv_report_create(&report));
        EXPECT_OK(clv_encoder_open(device->context, clv_model_get_config(model),
                                   clv_model_get_weights(model), &o, &encoder));
        EXPECT_OK(clv_encode(encoder, ids, offsets, TEXTS, got, report));
        expect_near(plain[hidden], got, (hidden ? offsets[TEXTS] : TEXTS) * small.width, 2e-5);
        got[0] = -77;
        EXPECT_OK(clv_encode(encoder, NULL, none, 2, got, report));
        assert_true(got[0] == (hidden ? -77.0f : 0.0f));
        for (size_t i = 0; i < clv_report_share_count(report); ++i)
            assert_null(strstr(clv_report_share(report, i).device, "host"));
        clv_report_free(report);
        clv_encoder_close(encoder);
    }
}

/* Matrices kept as halves: near, and not the same. */
static void check_halves(test_device *device, const clv_model *model)
{
    static float got[160 * 48];
    encode(device->context, model,
           (clv_encoder_options){ .size = sizeof(clv_encoder_options), .half = true }, ids, offsets,
           TEXTS, got);
    const double cosine = least_cosine(plain[0], got, TEXTS, small.width);
    if (!(cosine >= 0.9999)) fail_msg("cosine %.7f with matrices in fp16", cosine);
    assert_memory_not_equal(plain[0], got, TEXTS * small.width * sizeof *got);
}

/* No device here has a form of products of halves: such an encoder computes as one with matrices of halves does, and
 * says so. */
static void check_half_products(test_device *device, const clv_model *model)
{
    static float want[160 * 48], got[160 * 48];
    clv_encoder_options o = { .size = sizeof o, .half = true };
    clv_encoder *encoder;
    clv_report *report;
    encode(device->context, model, o, ids, offsets, TEXTS, want);
    o.half_products = true;
    EXPECT_OK(clv_report_create(&report));
    EXPECT_OK(clv_encoder_open(device->context, clv_model_get_config(model),
                               clv_model_get_weights(model), &o, &encoder));
    EXPECT_OK(clv_encode(encoder, ids, offsets, TEXTS, got, report));
    assert_memory_equal(want, got, TEXTS * small.width * sizeof *got);
    char *text = clv_report_json(report);
    assert_non_null(strstr(text, "\"products\""));
    assert_non_null(strstr(text, ": fp32 x fp16 ("));
    free(text);
    clv_report_free(report);
    clv_encoder_close(encoder);
}

/* Pools column c of tokens [first, last), rows of plain C, as sentence-transformers pools what follows a prompt of
 * `first` tokens: weights count from the beginning of the text. */
static double pooled(clv_model_pooling kind, const float *rows, size_t first, size_t last, size_t c)
{
    double sum = 0, weights = 0, high = first < last ? -INFINITY : 0;
    for (size_t t = first; t < last; ++t) {
        const double value = (double)rows[t * small.width + c];
        const double weight = kind == CLV_MODEL_WEIGHTED ? (double)(t + 1) : 1;
        if (kind == CLV_MODEL_CLS && t == first) return value;
        if (kind == CLV_MODEL_LAST && t + 1 == last) return value;
        sum += weight * value, weights += weight;
        high = fmax(high, value);
    }
    if (kind == CLV_MODEL_MAX) return high;
    return weights > 0 ? sum / (kind == CLV_MODEL_MEAN_SQRT ? sqrt(weights) : weights) : 0;
}

/* The poolings leave out the first tokens of every text, also of texts that have no others. */
static void check_skip(clv_context *context, const clv_model *model)
{
    enum { SKIPPED = 5, MODES = 3 };
    static const clv_model_pooling modes[2][MODES] = {
        { CLV_MODEL_MEAN, CLV_MODEL_CLS, CLV_MODEL_MAX },
        { CLV_MODEL_MEAN_SQRT, CLV_MODEL_WEIGHTED, CLV_MODEL_LAST }
    };
    static float got[TEXTS * MODES * 48];
    clv_encoder *encoder;
    for (size_t k = 0; k < 2; ++k) {
        clv_model_config config = small;
        memcpy(config.joined, modes[k], sizeof modes[k]);
        config.joined_count = MODES, config.output = MODES * small.width, config.normalize = false;
        EXPECT_OK(clv_encoder_open(context, &config, clv_model_get_weights(model), NULL, &encoder));
        clv_encoder_skip(encoder, SKIPPED);
        EXPECT_OK(clv_encode(encoder, ids, offsets, TEXTS, got, NULL));
        clv_encoder_close(encoder);
        for (size_t i = 0; i < TEXTS * config.output; ++i) {
            const size_t text = i / config.output, at = i % config.output;
            const clv_model_pooling kind = modes[k][at / small.width];
            const double want = pooled(kind, plain[1] + offsets[text] * small.width, SKIPPED,
                                       lengths[text], at % small.width);
            if (!(fabs((double)got[i] - want) <= 5e-5))
                fail_msg("pooling %d of text %zu without %d tokens: %.9g, expected %.9g", (int)kind,
                         text, SKIPPED, (double)got[i], want);
        }
    }
}

static void check_random(test_device *device)
{
    static float got[160 * 48], alone[48];
    clv_model *model;
    EXPECT_OK(clv_model_create_random(&small, 3, &model));
    encode(device->context, model, (clv_encoder_options){ .size = sizeof(clv_encoder_options) },
           ids, offsets, TEXTS, got);
    expect_near(plain[0], got, TEXTS * small.width, 2e-6);
    for (size_t i = 0; i < TEXTS; i += 3) { /* by itself */
        const size_t own[] = { 0, lengths[i] };
        encode(device->context, model, (clv_encoder_options){ .size = sizeof(clv_encoder_options) },
               ids + offsets[i], own, 1, alone);
        if (memcmp(alone, got + i * small.width, sizeof alone) != 0)
            fail_msg("text %zu has other bits by itself", i);
    }
    encode(device->context, model,
           (clv_encoder_options){
               .size = sizeof(clv_encoder_options), .batch_tokens = 20, .hidden = true },
           ids, offsets, TEXTS, got);
    expect_near(plain[1], got, offsets[TEXTS] * small.width, 2e-5);
    check_empty(device, model);
    check_slice(device, model);
    check_halves(device, model);
    check_half_products(device, model);
    check_skip(device->context, model);
    clv_model_close(model);
}

static void matches_plain_c(void **state)
{
    (void)state;
    clv_model *model;
    test_isolate();
    make_texts(ids, offsets);
    EXPECT_OK(clv_model_create_random(&small, 3, &model));
    clv_context *context = test_plain_context();
    encode(context, model, (clv_encoder_options){ .size = sizeof(clv_encoder_options) }, ids,
           offsets, TEXTS, plain[0]);
    encode(context, model,
           (clv_encoder_options){ .size = sizeof(clv_encoder_options), .hidden = true }, ids,
           offsets, TEXTS, plain[1]);
    check_skip(context, model);
    clv_context_free(context);
    clv_model_close(model);
    test_each_device(check_random);
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_random);
}

static void check_bad(test_device *device)
{
    clv_model *model;
    clv_encoder *encoder;
    float out[48];
    const int32_t wrong[] = { 1, 60 };
    const size_t two[] = { 0, 2 }, falls[] = { 2, 0 }, many[] = { 0, 41 };
    int32_t zeros[41] = { 0 };
    EXPECT_OK(clv_model_create_random(&small, 3, &model));
    const clv_model_config *config = clv_model_get_config(model);
    const clv_model_weights *weights = clv_model_get_weights(model);
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL",
                clv_encoder_open(device->context, NULL, weights, NULL, &encoder));
    clv_model_config odd = *config;
    odd.act = (clv_activation)6;
    EXPECT_FAIL(CLV_E_ARGUMENT, "act is 6, but it must be an enumerator from 0 to 5",
                clv_encoder_open(device->context, &odd, weights, NULL, &encoder));
    odd = *config, odd.pooling = (clv_model_pooling)9;
    EXPECT_FAIL(CLV_E_ARGUMENT, "pooling is 9, but it must be an enumerator from 0 to 5",
                clv_encoder_open(device->context, &odd, weights, NULL, &encoder));
    EXPECT_OK(clv_encoder_open(device->context, config, weights, NULL, &encoder));
    EXPECT_FAIL(CLV_E_ARGUMENT, "vocabulary has 60", clv_encode(encoder, wrong, two, 1, out, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "before its first token 2",
                clv_encode(encoder, wrong, falls, 1, out, NULL));
    EXPECT_FAIL(CLV_E_SHAPE, "41 tokens", clv_encode(encoder, zeros, many, 1, out, NULL));
    EXPECT_OK(clv_encode(encoder, NULL, NULL, 0, NULL, NULL));
    clv_encoder_close(encoder);
    clv_model_close(model);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    test_each_device(check_bad);
}

/* ---- MiniLM ---------------------------------------------------------------------------------------- */

enum { SENTENCES = 32, WIDTH = 384 };
static float want[SENTENCES * WIDTH];
static clv_token_rows rows;
static clv_model *minilm;

static void check_minilm(test_device *device)
{
    static float got[SENTENCES * WIDTH];
    if (test_left_out(device, device->slow || device->tiny, "MiniLM: minutes")) return;
    for (int half = 0; half < 2; ++half) {
        encode(device->context, minilm,
               (clv_encoder_options){ .size = sizeof(clv_encoder_options), .half = half }, rows.ids,
               rows.offsets, rows.rows, got);
        const double cosine = least_cosine(want, got, SENTENCES, WIDTH);
        printf("%s: cosine of MiniLM's sentences with matrices in fp%d at least 1 - %.2g\n",
               device->name, half ? 16 : 32, 1 - cosine);
        assert_true(cosine >= (half ? 0.9999 : 0.999999));
    }
}

static void minilm_gives_its_embeddings(void **state)
{
    (void)state;
    const char *folder = test_data("minilm/");
    char *lines[SENTENCES];
    size_t length;
    clv_tokenizer *tokenizer;
    char *text = test_data_read("transformer/sentences.txt", &length);
    char *at = text;
    for (size_t i = 0; i < SENTENCES; ++i) {
        lines[i] = at;
        at = strchr(at, '\n');
        assert_non_null(at);
        *at++ = '\0';
    }
    FILE *file = fopen(test_data("transformer/embeddings.npy"), "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, -(long)sizeof want, SEEK_END), 0);
    assert_int_equal(fread(want, 1, sizeof want, file), sizeof want);
    fclose(file);
    EXPECT_OK(clv_tokenizer_open(folder, NULL, &tokenizer));
    EXPECT_OK(clv_tokenize(tokenizer, (const char *const *)lines, NULL, SENTENCES, NULL, &rows));
    clv_tokenizer_close(tokenizer);
    EXPECT_OK(clv_model_open(folder, &minilm));
    test_each_device(check_minilm);
    clv_model_close(minilm);
    clv_token_rows_clear(&rows);
    clv_free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_plain_c),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(minilm_gives_its_embeddings),
    };
    test_share_compiled();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("encoder", tests, NULL, NULL);
}
