/* SPDX-License-Identifier: Apache-2.0 */
/* Measures fine-tuning steps of a model of MiniLM's size (6 layers of 384): prints the best and the median, and with
 * --trace=FILE writes what ran when, for chrome://tracing.
 *
 * usage: bench_train [STEPS [TEXTS [TOKENS]]] [--trace=FILE]    default: 10 steps of 16 texts of 128 */
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
    static double seconds[MOST_STEPS];
    size_t sizes[] = { 10, 16, 128 };
    const char *trace = NULL;
    for (int i = 1, at = 0; i < argc; ++i)
        if (strncmp(argv[i], "--trace=", 8) == 0)
            trace = argv[i] + 8;
        else if (at < 3)
            sizes[at++] = (size_t)strtoul(argv[i], NULL, 10);
    const size_t steps = CLV_MIN(sizes[0], (size_t)MOST_STEPS), texts = sizes[1], length = sizes[2];
    int32_t *ids = clv_alloc(texts * length + 1, sizeof *ids);
    int32_t *labels = clv_alloc(texts + 1, sizeof *labels);
    size_t *offsets = clv_alloc(texts + 1, sizeof *offsets);
    clv_context *context;
    clv_model *model;
    clv_trainer *trainer;
    const clv_context_options rules = { .size = sizeof rules,
                                        .trace = trace != NULL,
                                        .bind_threads = true };
    const clv_trainer_options options = { .size = sizeof options,
                                          .classes = CLASSES,
                                          .decay = 0.01 };
    if (!ids || !labels || !offsets || !steps || !texts) return 1;
    for (size_t i = 0; i < texts * length; ++i)
        ids[i] = (int32_t)(i * 7919 % clv_minilm_config.vocabulary);
    for (size_t i = 0; i <= texts; ++i) {
        offsets[i] = i * length;
        labels[i] = (int32_t)(i % CLASSES);
    }
    require(clv_context_create(&rules, &context));
    require(clv_model_create_random(&clv_minilm_config, 1, &model));
    require(clv_trainer_open(context, model, &options, &trainer));
    clv_train_result r;
    require(clv_trainer_step(trainer, ids, offsets, texts, labels, 1e-5, &r)); /* compiles */
    for (size_t s = 0; s < steps; ++s) {
        const double started = clv_now();
        require(clv_trainer_step(trainer, ids, offsets, texts, labels, 1e-5, &r));
        seconds[s] = clv_now() - started;
    }
    qsort(seconds, steps, sizeof *seconds, by_value);
    printf(
        "%s: a step of %zu texts of %zu: best %.1f ms, median %.1f ms, %.0f tokens/s, loss %.4f\n",
        clv_trainer_device(trainer), texts, length, seconds[0] * 1e3, seconds[steps / 2] * 1e3,
        (double)(texts * length) / seconds[0], r.loss);
    if (trace) require(clv_context_write_trace(context, trace));
    clv_trainer_close(trainer);
    clv_model_close(model);
    clv_context_free(context);
    clv_free(ids), clv_free(labels), clv_free(offsets);
    return 0;
}
