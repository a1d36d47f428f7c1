/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a step on a device with the same step of a trainer in plain C (the "twin"), from the same weights. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_CHECK_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_CHECK_H

#include "host/transformer/train/trainer.h"

bool clv_check_due(const clv_trainer *trainer);
/* Copies the device's weights and moments to the twin. Sets *due to false if there is no memory for the twin. */
clv_status clv_check_begin(clv_trainer *trainer, bool *due);
/* Compares the device's gradient with the gradient that the twin has computed; if they agree, copies the device's
 * gradient to the twin. */
clv_status clv_check_gradient(clv_trainer *trainer, const clv_train_result *found,
                              const clv_train_result *expected, bool *same);
/* Compares the device's new weights and moments with those that the twin computes. Call it after the device's update,
 * while the twin still has the old weights and moments. */
clv_status clv_check_update(clv_trainer *trainer, double rate, bool *same);
/* Restores the weights, the moments and the number of steps that the trainer had at clv_check_begin. */
clv_status clv_check_undo(clv_trainer *trainer);
/* Sets and returns the error for a bit that flipped after step number `step`. Restores the weights of the last check,
 * if there was a check. */
clv_status clv_check_flipped(clv_trainer *trainer, uint64_t step);
/* Closes the twin after a failure, since the twin's state may be wrong. */
void clv_check_end(clv_trainer *trainer);

#endif
