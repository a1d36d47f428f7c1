/* SPDX-License-Identifier: Apache-2.0 */
/* The model, its texts, and steps of a trainer. */
#include "training_runs.h"

#include "device.h"
#include "test.h"

#include "base/alloc.h"

const clv_model_config runs_config = { .size = sizeof(clv_model_config),
                                       .width = RUN_D,
                                       .heads = RUN_HEADS,
                                       .layers = 2,
                                       .ffn = RUN_F,
                                       .vocabulary = RUN_V,
                                       .positions = RUN_LENGTH,
                                       .types = 2,
                                       .eps = 1e-5f,
                                       .act = CLV_ACTIVATION_GELU,
                                       .pooling = CLV_MODEL_MEAN,
                                       .max_length = RUN_LENGTH };

const int32_t run_ids[31] = { 1, 5,  7, 2,  1, 9, 9, 9, 30, 2,  1, 2,  1, 14, 3, 2,
                              1, 49, 0, 11, 2, 1, 6, 2, 1,  20, 8, 17, 2, 1,  2 };
const size_t run_offsets[RUN_TEXTS + 1] = { 0, 4, 10, 12, 16, 21, 24, 29, 31 };
const int32_t run_labels[RUN_TEXTS] = { 0, 2, -100, 1, 1, 0, 2, 0 };

void runs_take(clv_trainer *t, int first, int last, training_run *out)
{
    const bool pairs = t->options.task == CLV_TRAIN_PAIRS;
    for (int s = first; s < last; ++s) {
        clv_train_result r;
        const size_t from = s % 2 ? RUN_TEXTS / 2 : 0; /* two batches in turn */
        EXPECT_OK(clv_trainer_step(t, run_ids, run_offsets + from, RUN_TEXTS / 2,
                                   pairs ? NULL : run_labels + from, 1e-3 * (s + 1), &r));
        out->loss[s] = r.loss;
    }
    out->count = t->count;
    assert_true(t->count <= CLV_LEN(out->weights));
    EXPECT_OK(t->ops->get(t->ops, (clv_mem){ t->net.weights, 0 }, out->weights, t->count));
}

clv_trainer *runs_open(clv_context *context, const clv_model *model, clv_train_task task,
                       size_t frozen)
{
    const clv_trainer_options options = { .size = sizeof options,
                                          .task = task,
                                          .classes = RUN_CLASSES,
                                          .decay = 0.01,
                                          .clip = 1,
                                          .frozen_layers = frozen,
                                          .seed = 4 };
    clv_trainer *t;
    EXPECT_OK(clv_trainer_open(context, model, &options, &t));
    return t;
}

clv_context *runs_on_host(void)
{
    clv_context *context = test_plain_context();
    return context;
}
