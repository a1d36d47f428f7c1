/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a step on a device against the same step in plain C (the "twin"), from the same weights. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_CHECK_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_CHECK_H

#include "host/transformer/train/trainer.h"

bool clv_check_due(const clv_trainer *trainer);
/* Copies weights and moments to the twin; *due becomes false if there is no memory for the twin. */
clv_status clv_check_begin(clv_trainer *trainer, bool *due);
/* Compares the gradients, once the twin has computed its own; if they agree, the twin takes over the device's. */
clv_status clv_check_gradient(clv_trainer *trainer, const clv_train_result *found,
                              const clv_train_result *expected, bool *same);
/* Compares the new weights and moments; call it after the device's update, while the twin still has the old
 * ones. */
clv_status clv_check_update(clv_trainer *trainer, double rate, bool *same);
/* Restores the weights, the moments and the number of steps of clv_check_begin. */
clv_status clv_check_undo(clv_trainer *trainer);
/* Fails because a bit flipped after the step of this number. The weights become those of the last check, if there was
 * one. */
clv_status clv_check_flipped(clv_trainer *trainer, uint64_t step);
/* Closes the twin after a failure, since its state can no longer be trusted. */
void clv_check_end(clv_trainer *trainer);

#endif
