/* SPDX-License-Identifier: Apache-2.0 */
/* Measures fine-tuning steps of a model of MiniLM's size (6 layers of 384): prints the best and the median, and with
 * --trace=FILE writes what ran when, for chrome://tracing.
 *
 * usage: bench_train [STEPS [TEXTS [TOKENS]]] [--trace=FILE] [--blocks=TOKENS]    default: 10 steps of 16 texts of 128
 * --blocks: cuts every other batch into blocks, and times both kinds of steps */
#include "base/alloc.h"
#include "base/clock.h"
#include "host/model/minilm.h"

#include <cleave/train.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void require(clv_status status)
{
    if (!status) return;
    fprintf(stderr, "bench_train: %s\n", clv_error_message());
    exit(1);
}

int main(int argc, char **argv)
{
    enum { CLASSES = 4, MOST_STEPS = 1000 };
    static double seconds[2][MOST_STEPS];
    size_t sizes[] = { 10, 16, 128 };
    size_t blocks = 0;
    const char *trace = NULL;
    for (int i = 1, at = 0; i < argc; ++i)
        if (strncmp(argv[i], "--trace=", 8) == 0)
            trace = argv[i] + 8;
        else if (strncmp(argv[i], "--blocks=", 9) == 0)
            blocks = (size_t)strtoul(argv[i] + 9, NULL, 10);
        else if (at < 3)
            sizes[at++] = (size_t)strtoul(argv[i], NULL, 10);
    const size_t steps = CLV_MIN(sizes[0], (size_t)MOST_STEPS), texts = sizes[1], length = sizes[2];
    int32_t *ids = clv_alloc(texts * length + 1, sizeof *ids);
    int32_t *labels = clv_alloc(texts + 1, sizeof *labels);
    size_t *offsets = clv_alloc(texts + 1, sizeof *offsets);
    clv_context *context;
    clv_model *model;
    clv_trainer *trainers[2] = { NULL }; /* the second one cuts batches into blocks */
    const clv_context_options rules = { .size = sizeof rules,
                                        .trace = trace != NULL,
                                        .bind_threads = true };
    clv_trainer_options options = { .size = sizeof options,
                                    .classes = CLASSES,
                                    .decay = 0.01,
                                    .check_every_given = true, /* no checks by plain C */
                                    .block_tokens = blocks ? SIZE_MAX : 0 };
    if (!ids || !labels || !offsets || !steps || !texts) return 1;
    for (size_t i = 0; i < texts * length; ++i)
        ids[i] = (int32_t)(i * 7919 % clv_minilm_config.vocabulary);
    for (size_t i = 0; i <= texts; ++i) {
        offsets[i] = i * length;
        labels[i] = (int32_t)(i % CLASSES);
    }
    require(clv_context_create(&rules, &context));
    require(clv_model_create_random(&clv_minilm_config, 1, &model));
    clv_train_result r[2];
    for (size_t k = 0; k < 1 + (blocks > 0); ++k) {
        require(clv_trainer_open(context, model, &options, &trainers[k]));
        require(
            clv_trainer_step(trainers[k], ids, offsets, texts, labels, 1e-5, &r[k])); /* compiles */
        options.block_tokens = blocks;
    }
    for (size_t s = 0; s < steps; ++s)
        for (size_t k = 0; k < 2 && trainers[k]; ++k) { /* in turn */
            const double started = clv_now();
            require(clv_trainer_step(trainers[k], ids, offsets, texts, labels, 1e-5, &r[k]));
            seconds[k][s] = clv_now() - started;
        }
    for (size_t k = 0; k < 2 && trainers[k]; ++k) {
        qsort(seconds[k], steps, sizeof *seconds[k], by_value);
        printf("%s: a step of %zu texts of %zu%s: best %.1f ms, median %.1f ms, %.0f tokens/s, "
               "loss %.4f\n",
               clv_trainer_device(trainers[k]), texts, length, k ? " in blocks" : "",
               seconds[k][0] * 1e3, seconds[k][steps / 2] * 1e3,
               (double)(texts * length) / seconds[k][0], r[k].loss);
    }
    if (trace) require(clv_context_write_trace(context, trace));
    for (size_t k = 0; k < 2; ++k)
        clv_trainer_close(trainers[k]);
    clv_model_close(model);
    clv_context_free(context);
    clv_free(ids), clv_free(labels), clv_free(offsets);
    return 0;
}
