/* SPDX-License-Identifier: Apache-2.0 */
/* A step on a device against the same step in plain C, from the same weights. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_CHECK_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_CHECK_H

#include "host/transformer/train/trainer.h"

bool clv_check_due(const clv_trainer *trainer);
/* The twin gets weights and moments; *due becomes false where there is no memory for it. */
clv_status clv_check_begin(clv_trainer *trainer, bool *due);
/* The twin has made its gradient; where both are the same, it takes over the device's. */
clv_status clv_check_gradient(clv_trainer *trainer, const clv_train_result *found,
                              const clv_train_result *expected, bool *same);
/* Behind the device's update, and before anything of the twin's has changed. */
clv_status clv_check_update(clv_trainer *trainer, double rate, bool *same);
/* Weights, moments and the number of steps are those of clv_check_begin again. */
clv_status clv_check_undo(clv_trainer *trainer);
/* Behind a failure: the twin is not to be trusted any more. */
void clv_check_end(clv_trainer *trainer);

#endif
