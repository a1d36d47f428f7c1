/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the steps between two checks: finds unusual steps, and weights that changed by more than the steps can have
 * changed them. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_WATCH_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_WATCH_H

#include "host/transformer/train/trainer.h"

/* Returns whether a step must be checked although no check is due: its loss or gradient is not finite, its loss is more
 * than 10 times the largest loss before it, or its gradient is more than 100 times as long as the longest before it.
 * `found` must contain the gradient's length. */
bool clv_watch_odd(clv_trainer *trainer, const clv_train_result *found);
/* Records the loss and the gradient's length of a completed step. */
void clv_watch_result(clv_trainer *trainer, const clv_train_result *found);
/* Adds the distance by which the step that was counted last may move a weight. */
void clv_watch_move(clv_trainer *trainer, double rate);
/* Resets the distance: call it when weights and moments equal those of the twin. */
void clv_watch_restart(clv_trainer *trainer);

/* Returns whether the steps since clv_watch_restart can have changed the twin's values of block `which` (0: weights, 1
 * and 2: moments), from number `at` on, to `values`. Returns true if this cannot be decided: without a twin, for SGD,
 * and after a loss that was not finite. */
bool clv_watch_fits(const clv_trainer *trainer, size_t which, size_t at, const float *values,
                    size_t count);
/* Sets the error for values that the steps cannot have produced, and returns CLV_E_DEVICE. `then` is the part of the
 * message that says what happens to the weights. */
clv_status clv_watch_fail(const clv_trainer *trainer, const char *then);

#endif
