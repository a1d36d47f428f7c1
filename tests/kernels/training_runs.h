/* SPDX-License-Identifier: Apache-2.0 */
/* Short training runs of a random model with two layers, for tests of trainers. */
#ifndef CLEAVE_TESTS_KERNELS_TRAINING_RUNS_H
#define CLEAVE_TESTS_KERNELS_TRAINING_RUNS_H

#include "host/transformer/train/trainer.h"

enum {
    RUN_V = 50,
    RUN_D = 32,
    RUN_F = 64,
    RUN_HEADS = 4,
    RUN_CLASSES = 3,
    RUN_TEXTS = 8,
    RUN_LENGTH = 10
};

extern const clv_model_config runs_config;
extern const int32_t run_ids[31], run_labels[RUN_TEXTS];
extern const size_t run_offsets[RUN_TEXTS + 1];

typedef struct training_run {
    double loss[6];
    float weights[64 * 1024]; /* those that learn */
    size_t count;
} training_run;

clv_trainer *runs_open(clv_context *context, const clv_model *model, clv_train_task task,
                       size_t frozen);
/* Steps [first, last) of a run, and the weights behind it. */
void runs_take(clv_trainer *t, int first, int last, training_run *out);
/* A context without devices. */
clv_context *runs_on_host(void);

#endif
