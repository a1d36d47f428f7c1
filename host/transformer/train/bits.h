/* SPDX-License-Identifier: Apache-2.0 */
/* Finds bits that flip in a device's memory between two steps. A step adds the bits of all weights and moments that it
 * reads and writes, as integers modulo 2^32, while it has them at hand: what one step reads must be what the step
 * before wrote. One flipped bit always changes the sum. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_BITS_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_BITS_H

#include "cl/transformer/shared.clh"
#include "host/transformer/train/trainer.h"

enum { CLV_BITS_ROOM = CLV_BIT_SUMS * CLV_BIT_SLOTS };

/* Clears the sums before an update. */
clv_status clv_bits_begin(clv_trainer *trainer);
/* Call it after an update: compares what it read with what the last one wrote. */
clv_status clv_bits_compare(clv_trainer *trainer, bool *same);

/* Sums the weights that no step changes, from the values that were brought to the device. */
void clv_bits_note_rest(clv_trainer *trainer, const float *values);
/* Adds values of block `which` (0: weights, 1 and 2: moments) that were read from the device. */
void clv_bits_add(size_t which, const float *values, size_t count, clv_bits *sums);
/* Returns whether the last step can have written these sums; true where nothing is known. */
bool clv_bits_fit(const clv_trainer *trainer, const clv_bits *sums);
/* Sets the error for a bit that flipped after the step of this number: CLV_E_DEVICE. `then` says what becomes of the
 * weights. */
clv_status clv_bits_fail(const clv_trainer *trainer, uint64_t step, const char *then);

#endif
