/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the tokens per second of an encoder of MiniLM's size (random weights) on every OpenCL CPU device,
 * by length of the texts and for a mix of lengths, and what part of the device's FMA peak that is. The peak is measured
 * in every round as well.
 *
 * usage: bench_encode [ROUNDS [BATCH_TOKENS]] [--length=TOKENS] [--device=N] [--trace=FILE]
 * prints the best of the rounds; --trace writes what ran when, for chrome://tracing */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/model/minilm.h"
#include "host/transformer/encoder.h"
#include "probe/measure/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

typedef struct plan {
    int rounds;
    size_t batch;
    long length; /* of the texts; -1: all lengths */
    const clv_probe_device *device;
} plan;

static double peak_gflops(const clv_probe_device *device)
{
    clv_bench_result result;
    clv_bench_device(device, CLV_BENCH_QUICK, &result);
    return result.rates.fp32_gflops;
}

static void measure(clv_context *context, const clv_model *model, const plan *p, const int32_t *ids,
                    size_t *offsets, float *out)
{
    static const size_t lengths[] = { 16, 64, 128, 256, 0 };
    clv_encoder *encoder;
    const clv_encoder_options settings = { .size = sizeof settings, .batch_tokens = p->batch };
    must(clv_encoder_open(context, clv_model_get_config(model), clv_model_get_weights(model),
                          &settings, &encoder));
    printf("%s\n", clv_device_label(clv_context_device(context, 0)));
    for (size_t i = 0; i < CLV_LEN(lengths); ++i) {
        const size_t texts = make_texts(lengths[i], offsets);
        double best = 0, peak = 0;
        if (p->length >= 0 && (size_t)p->length != lengths[i]) continue;
        for (int round = -1; round < p->rounds; ++round) {
            peak = CLV_MAX(peak, peak_gflops(p->device));
            const double started = clv_now();
            must(clv_encode(encoder, ids, offsets, texts, out, NULL));
            const double seconds = clv_now() - started;
            if (round >= 0 && (!best || seconds < best)) best = seconds;
        }
        clv_encode_plan cost = { .encoder = encoder, .offsets = offsets };
        cost.squares = clv_zalloc(texts + 1, sizeof *cost.squares);
        for (size_t t = 0; t < texts; ++t)
            cost.squares[t + 1] = cost.squares[t] + (double)(offsets[t + 1] - offsets[t]) *
                                                        (double)(offsets[t + 1] - offsets[t]);
        const double gflops = clv_encode_cost(0, texts, &cost).flops / best * 1e-9;
        clv_free(cost.squares);
        printf("  %zu texts of %zu tokens%s: %.0f tokens/s, %.0f GFLOP/s, %.0f %% of the peak of "
               "%.0f\n",
               texts, lengths[i] ? lengths[i] : offsets[texts] / texts,
               lengths[i] ? "" : " in the mean", (double)TOKENS / best, gflops, 100 * gflops / peak,
               peak);
        fflush(stdout);
    }
    clv_encoder_close(encoder);
}

int main(int argc, char **argv)
{
    plan p = { .rounds = 5, .length = -1 };
    const char *trace = NULL;
    long only = -1;
    for (int i = 1, at = 0; i < argc; ++i)
        if (strncmp(argv[i], "--trace=", 8) == 0)
            trace = argv[i] + 8;
        else if (strncmp(argv[i], "--length=", 9) == 0)
            p.length = strtol(argv[i] + 9, NULL, 10);
        else if (strncmp(argv[i], "--device=", 9) == 0)
            only = strtol(argv[i] + 9, NULL, 10);
        else if (at++ == 0)
            p.rounds = CLV_MAX(atoi(argv[i]), 1);
        else
            p.batch = (size_t)strtoul(argv[i], NULL, 10);
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
                                              .trace = trace != NULL,
                                              .bind_threads = true };
        clv_context *context;
        p.device = &report->devices[i];
        if (p.device->device_class != CLV_CLASS_CPU || !p.device->usable ||
            (only >= 0 && (size_t)only != i))
            continue;
        snprintf(selection, sizeof selection, "%zu", i);
        must(clv_context_create(&options, &context));
        measure(context, model, &p, ids, offsets, out);
        if (trace) must(clv_context_write_trace(context, trace));
        clv_context_free(context);
    }
    clv_model_close(model);
    clv_probe_free(report);
    clv_free(ids), clv_free(offsets), clv_free(out);
    return 0;
}
