/* SPDX-License-Identifier: Apache-2.0 */
/* Finds bits that flip in a device's memory between two steps. While a step reads and writes weights and moments, it
 * sums their bits as integers modulo 2^32. The sums of what a step reads must equal the sums of what the step before
 * wrote. One flipped bit always changes a sum. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_BITS_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_BITS_H

#include "cl/transformer/shared.clh"
#include "host/transformer/train/trainer.h"

enum { CLV_BITS_ROOM = CLV_BIT_SUMS * CLV_BIT_SLOTS };

/* Clears the device's sums before an update. */
clv_status clv_bits_begin(clv_trainer *trainer);
/* Call it after an update: sets *same to whether the update read the sums that the update before wrote. */
clv_status clv_bits_compare(clv_trainer *trainer, bool *same);

/* Sums the weights that no step changes, from `values`, the weights that were written to the device. */
void clv_bits_note_rest(clv_trainer *trainer, const float *values);
/* Adds values of block `which` (0: weights, 1 and 2: moments), which were read from the device, to `sums`. */
void clv_bits_add(size_t which, const float *values, size_t count, clv_bits *sums);
/* Returns whether the last step can have written values with these sums; true if its sums are unknown. */
bool clv_bits_fit(const clv_trainer *trainer, const clv_bits *sums);
/* Sets the error for a bit that flipped after step number `step`, and returns CLV_E_DEVICE. `then` is the part of the
 * message that says what happens to the weights. */
clv_status clv_bits_fail(const clv_trainer *trainer, uint64_t step, const char *then);

#endif
