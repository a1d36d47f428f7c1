/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the tokens per second of an encoder of MiniLM's size (random weights) on every OpenCL CPU device,
 * by length of the texts and for a mix of lengths.
 *
 * usage: bench_encode [ROUNDS [BATCH_TOKENS]]   prints the best of the rounds */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/model/minilm.h"
#include "host/transformer/encoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 16384, MOST_TEXTS = TOKENS };

static void must(clv_status status)
{
    if (!status) return;
    printf("%s\n", clv_error_message());
    exit(1);
}

/* Makes texts of `length` tokens; 0: with lengths of a log-normal distribution of mean 27. */
static size_t make_texts(size_t length, size_t *offsets)
{
    size_t texts = 0, at = 0;
    uint32_t state = 1;
    while (at < TOKENS) {
        double normal = -6;
        for (int i = 0; i < 12; ++i) {
            state = state * 1664525u + 1013904223u;
            normal += (double)(state >> 8) * 0x1p-24;
        }
        const size_t own = length ? length : (size_t)fmin(fmax(exp(3.05 + 0.7 * normal), 3), 256);
        offsets[texts++] = at;
        at += CLV_MIN(own, TOKENS - at);
    }
    offsets[texts] = at;
    return texts;
}

static void measure(clv_context *context, const clv_model *model, int rounds, size_t batch,
                    const int32_t *ids, size_t *offsets, float *out)
{
    static const size_t lengths[] = { 16, 64, 128, 256, 0 };
    clv_encoder *encoder;
    const clv_encoder_options settings = { .size = sizeof settings, .batch_tokens = batch };
    must(clv_encoder_open(context, clv_model_get_config(model), clv_model_get_weights(model),
                          &settings, &encoder));
    printf("%s\n", clv_device_label(clv_context_device(context, 0)));
    for (size_t i = 0; i < CLV_LEN(lengths); ++i) {
        const size_t texts = make_texts(lengths[i], offsets);
        double best = 0;
        for (int round = -1; round < rounds; ++round) {
            const double started = clv_now();
            must(clv_encode(encoder, ids, offsets, texts, out, NULL));
            const double seconds = clv_now() - started;
            if (round >= 0 && (!best || seconds < best)) best = seconds;
        }
        clv_encode_plan plan = { .encoder = encoder, .offsets = offsets };
        plan.squares = clv_zalloc(texts + 1, sizeof *plan.squares);
        for (size_t t = 0; t < texts; ++t)
            plan.squares[t + 1] = plan.squares[t] + (double)(offsets[t + 1] - offsets[t]) *
                                                        (double)(offsets[t + 1] - offsets[t]);
        const double flops = clv_encode_cost(0, texts, &plan).flops;
        clv_free(plan.squares);
        printf("  %zu texts of %zu tokens%s: %.0f tokens/s, %.0f GFLOP/s\n", texts,
               lengths[i] ? lengths[i] : offsets[texts] / texts, lengths[i] ? "" : " in the mean",
               (double)TOKENS / best, flops / best * 1e-9);
        fflush(stdout);
    }
    clv_encoder_close(encoder);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? CLV_MAX(atoi(argv[1]), 1) : 5;
    const size_t batch = argc > 2 ? (size_t)atoi(argv[2]) : 0;
    clv_probe_report *report;
    clv_model *model;
    int32_t *ids = clv_alloc(TOKENS, sizeof *ids);
    size_t *offsets = clv_alloc(MOST_TEXTS + 1, sizeof *offsets);
    float *out = clv_alloc((size_t)MOST_TEXTS * clv_minilm_config.width, sizeof *out);
    must(clv_probe_run(NULL, &report));
    must(clv_model_create_random(&clv_minilm_config, 1, &model));
    for (size_t t = 0; t < TOKENS; ++t)
        ids[t] = (int32_t)(t * 7919 % clv_minilm_config.vocabulary);
    for (size_t i = 0; i < report->device_count; ++i) {
        char selection[24];
        const clv_context_options options = { .size = sizeof options,
                                              .devices = selection,
                                              .bind_threads = true };
        clv_context *context;
        if (report->devices[i].device_class != CLV_CLASS_CPU || !report->devices[i].usable)
            continue;
        snprintf(selection, sizeof selection, "%zu", i);
        must(clv_context_create(&options, &context));
        measure(context, model, rounds, batch, ids, offsets, out);
        clv_context_free(context);
    }
    clv_model_close(model);
    clv_probe_free(report);
    clv_free(ids), clv_free(offsets), clv_free(out);
    return 0;
}
