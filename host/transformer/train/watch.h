/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the steps between two checks: which of them are odd, and whether weights changed by more than steps can. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_WATCH_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_WATCH_H

#include "host/transformer/train/trainer.h"

/* Returns whether a step has to be checked although none is due: its loss or gradient is no number, its loss is 10
 * times the largest before it, or its gradient 100 times as long as the longest. Needs the gradient's length. */
bool clv_watch_odd(clv_trainer *trainer, const clv_train_result *found);
/* Notes a step that was taken. */
void clv_watch_result(clv_trainer *trainer, const clv_train_result *found);
/* Notes how far the step that has just been counted may move weights. */
void clv_watch_move(clv_trainer *trainer, double rate);
/* Weights and moments are those of the twin. */
void clv_watch_restart(clv_trainer *trainer);

/* Returns whether values of block `which` (0: weights, 1 and 2: moments) may have come from the twin's at the same
 * place by the steps since clv_watch_restart. True where nothing is known: without a twin, for SGD, and after a loss
 * that was no number. */
bool clv_watch_fits(const clv_trainer *trainer, size_t which, size_t at, const float *values,
                    size_t count);
/* Sets the error for values that do not fit: CLV_E_DEVICE. `then` says what becomes of the weights. */
clv_status clv_watch_fail(const clv_trainer *trainer, const char *then);

#endif
