/* SPDX-License-Identifier: Apache-2.0 */
/* Tests steps of fine-tuning on the device under test: the losses must agree with plain C. */
#include "host/selftest/selftest.h"
#include "host/synthetic/worse.h"

#include "base/error.h"

#include <cleave/train.h>

#include <math.h>

enum { TEXTS = 6, TOKENS = 26, STEPS = 3 };

/* Computes the losses of some consecutive steps. */
static clv_status learn(clv_context *context, const clv_model *model, clv_train_task task,
                        double losses[STEPS])
{
    static const int32_t ids[TOKENS] = { 1, 5, 7, 9,  3, 2, 4, 6, 8,  11, 15, 30, 21,
                                         1, 1, 3, 31, 5, 2, 9, 9, 12, 14, 3,  8,  2 };
    static const size_t offsets[TEXTS + 1] = { 0, 3, 4, 13, 15, 20, TOKENS };
    static const int32_t labels[TEXTS] = { 0, 1, 2, 1, -100, 0 };
    const clv_trainer_options options = {
        .size = sizeof options, .task = task, .classes = 3, .clip = 1, .head = CLV_TRAIN_HEAD_POOLER
    };
    clv_trainer *trainer;
    clv_status status = clv_trainer_open(context, model, &options, &trainer);
    for (int s = 0; s < STEPS && !status; ++s) {
        clv_train_result r;
        status = clv_trainer_step(trainer, ids, offsets, TEXTS,
                                  task == CLV_TRAIN_PAIRS ? NULL : labels, 1e-3, &r);
        losses[s] = r.loss;
    }
    clv_trainer_close(trainer);
    return status;
}

void selftest_training(selftest *test)
{
    static const char *const names[] = { "fine-tuning, classes", "fine-tuning, pairs" };
    const clv_context_options reference = { .size = sizeof(clv_context_options),
                                            .mode = CLV_MODE_REFERENCE,
                                            .cache_dir = "" };
    clv_context *plain = NULL;
    clv_model *model = NULL;
    clv_status status = clv_context_create(&reference, &plain);
    if (!status) status = clv_model_create_random(&selftest_encoder, 1, &model);
    for (clv_train_task task = CLV_TRAIN_CLASSES; task <= CLV_TRAIN_PAIRS; ++task) {
        double want[STEPS], got[STEPS], worst = 0;
        selftest_begin(test, "%s", names[task]);
        if (!status) status = learn(plain, model, task, want);
        if (!status) status = learn(test->context, model, task, got);
        for (int s = 0; s < STEPS && !status; ++s)
            worst = cli_worse(worst, fabs(want[s] - got[s]));
        selftest_end(test, status, worst, 2e-5);
    }
    clv_model_close(model);
    clv_context_free(plain);
}
