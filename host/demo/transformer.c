/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: converts texts to vectors; each text's nearest neighbour is the one with the same meaning. With the
 * model of $CLEAVE_MINILM_DIR the texts are sentences, else synthetic tokens with random weights. */
#include "host/demo/demo.h"
#include "host/synthetic/worse.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/error.h"

#include <cleave/tokenizer.h>
#include <cleave/transformer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Synthetic texts: the second of a pair is the first with one token changed. */
enum { PAIRS = 128, LENGTH = 24, CHECKED = 12 };

static const clv_model_config small = { .size = sizeof(clv_model_config),
                                        .width = 128,
                                        .heads = 4,
                                        .layers = 2,
                                        .ffn = 512,
                                        .vocabulary = 2000,
                                        .positions = LENGTH,
                                        .types = 1,
                                        .eps = 1e-12f,
                                        .act = CLV_ACTIVATION_GELU,
                                        .pooling = CLV_MODEL_MEAN,
                                        .normalize = true,
                                        .max_length = LENGTH };

/* Neighbouring sentences have the same meaning. */
static const char *const sentences[] = {
    "A planet orbits the young star.",
    "A young star has a planet around it.",
    "The cat sleeps on the sofa.",
    "A cat is taking a nap on the couch.",
    "How do I bake bread at home?",
    "What is the way to make bread in my own kitchen?",
    "The train to the city was late this morning.",
    "This morning our train arrived in town with a delay.",
    "Cells divide under the microscope.",
    "Through the microscope we watched the cells splitting.",
    "The committee rejected the budget.",
    "The budget was turned down by the committee.",
    "He plays the violin in an orchestra.",
    "He is an orchestra's violinist.",
    "Heavy rain flooded the valley.",
    "The valley was under water after the downpour.",
};

typedef struct texts {
    clv_model *model;
    clv_token_rows tokens;
    size_t count;
    float *vectors;
} texts;

static clv_status read_sentences(const char *folder, texts *t)
{
    clv_tokenizer *tokenizer;
    t->count = CLV_LEN(sentences);
    CLV_TRY(clv_tokenizer_open(folder, NULL, &tokenizer));
    const clv_status status = clv_tokenize(tokenizer, sentences, NULL, t->count, NULL, &t->tokens);
    clv_tokenizer_close(tokenizer);
    return status ? status : clv_model_open(folder, &t->model);
}

static clv_status make_up(texts *t)
{
    static int32_t ids[2 * PAIRS * LENGTH];
    static size_t offsets[2 * PAIRS + 1];
    uint32_t state = 5;
    t->count = 2 * PAIRS;
    for (size_t i = 0; i < t->count; ++i) {
        int32_t *own = ids + i * LENGTH;
        offsets[i + 1] = (i + 1) * LENGTH;
        for (size_t k = 0; k < LENGTH; ++k) {
            state = state * 1664525u + 1013904223u;
            own[k] = i % 2 && k != i % LENGTH ? own[(int)k - LENGTH]
                                              : (int32_t)((state >> 8) % small.vocabulary);
        }
    }
    t->tokens = (clv_token_rows){
        .ids = ids, .offsets = offsets, .rows = t->count, .tokens = t->count * LENGTH
    };
    return clv_model_create_random(&small, 1, &t->model);
}

/* Encodes the first texts in plain C: estimates how long all would take, and finds the smallest cosine between
 * vectors. */
static clv_status check(const texts *t, demo_row *row)
{
    clv_context *context;
    clv_encoder *encoder = NULL;
    const clv_context_options options = { .size = sizeof(clv_context_options),
                                          .mode = CLV_MODE_REFERENCE,
                                          .cache_dir = "" };
    const size_t width = clv_model_get_config(t->model)->output;
    float *want = clv_alloc(CHECKED * width, sizeof *want);
    if (!want) return clv_fail(CLV_E_MEMORY, "not enough memory for vectors");
    clv_status status = clv_context_create(&options, &context);
    if (!status)
        status = clv_encoder_open(context, clv_model_get_config(t->model),
                                  clv_model_get_weights(t->model), NULL, &encoder);
    const double started = clv_now();
    if (!status)
        status = clv_encode(encoder, t->tokens.ids, t->tokens.offsets, CHECKED, want, NULL);
    row->reference_s =
        (clv_now() - started) * (double)t->tokens.tokens / (double)t->tokens.offsets[CHECKED];
    double worst = 0; /* 1 - cosine */
    for (size_t i = 0; i < CHECKED && !status; ++i) {
        double cosine = 0;
        for (size_t c = 0; c < width; ++c)
            cosine += (double)want[i * width + c] * (double)t->vectors[i * width + c];
        worst = cli_worse(worst, 1 - cosine);
    }
    const bool good = worst <= 1e-6;
    if (!status)
        clv_text_add(&row->notes,
                     "%s plain C: cosine of %d vectors at least 1 - %.1g (limit "
                     "1e-06)\n",
                     good ? "agrees with" : "DIFFERS FROM", CHECKED, worst);
    row->ok = row->ok && good;
    clv_encoder_close(encoder);
    clv_context_free(context);
    clv_free(want);
    return status;
}

/* Counts the texts whose partner's vector is the nearest. */
static size_t found_pairs(const texts *t)
{
    const size_t width = clv_model_get_config(t->model)->output;
    size_t found = 0;
    for (size_t i = 0; i < t->count; ++i) {
        size_t best = i;
        double most = -2;
        for (size_t k = 0; k < t->count; ++k) {
            double cosine = 0;
            for (size_t c = 0; c < width; ++c)
                cosine += (double)t->vectors[i * width + c] * (double)t->vectors[k * width + c];
            if (k != i && cosine > most) most = cosine, best = k;
        }
        found += best == (i ^ 1);
    }
    return found;
}

static clv_status compute(const demo_stage *stage, texts *t, demo_row *row)
{
    clv_encoder *encoder;
    clv_status status = CLV_OK;
    const size_t width = clv_model_get_config(t->model)->output;
    t->vectors = clv_alloc(t->count * width, sizeof *t->vectors);
    if (!t->vectors) return clv_fail(CLV_E_MEMORY, "not enough memory for vectors");
    CLV_TRY(clv_encoder_open(stage->context, clv_model_get_config(t->model),
                             clv_model_get_weights(t->model), NULL, &encoder));
    if (stage->preparing)
        status = demo_prepared(
            clv_encode(encoder, t->tokens.ids, t->tokens.offsets, t->count, t->vectors, NULL));
    for (demo_runs r = { 0 }; !status && !stage->preparing && demo_next_run(&r, row);)
        status = clv_encode(encoder, t->tokens.ids, t->tokens.offsets, t->count, t->vectors,
                            r.last ? stage->report : NULL);
    clv_encoder_close(encoder);
    return status;
}

clv_status demo_transformer(const demo_stage *stage, demo_row *row)
{
    const char *minilm = clv_environment("CLEAVE_MINILM_DIR");
    const bool real = minilm && *minilm;
    texts t = { 0 };
    clv_status status = real ? read_sentences(minilm, &t) : make_up(&t);
    if (!status) status = compute(stage, &t, row);
    snprintf(row->input, sizeof row->input, "%zu %s, %zu tokens", t.count,
             real ? "sentences" : "texts", t.tokens.tokens);
    if (!status && !stage->preparing) {
        const size_t found = found_pairs(&t);
        snprintf(row->found, sizeof row->found, "%zu of %zu neighbours", found, t.count);
        row->ok = found == t.count;
        status = check(&t, row);
    }
    clv_free(t.vectors);
    clv_model_close(t.model);
    if (real) clv_token_rows_clear(&t.tokens);
    return status;
}
