/* SPDX-License-Identifier: Apache-2.0 */
/* Shares a batch among devices. A rule that does not depend on the devices cuts a large batch into blocks of texts.
 * Each block passes through the layers separately, and the gradients of the blocks are added in the order of the
 * blocks. The sum therefore has the same bits however the blocks are distributed. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_SHARE_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_SHARE_H

#include "host/transformer/train/trainer.h"

/* Cuts the batch that clv_batch_fill has uploaded to the trainer's device. `ids` and `offsets` are borrowed until the
 * end of the step. */
clv_status clv_share_cut(clv_trainer *trainer, const int32_t *ids, const size_t *offsets,
                         size_t texts);
/* Returns whether the batch has more than one block. If not, the two functions below must not be called. */
bool clv_share_is_cut(const clv_trainer *trainer);
/* Both functions do for all blocks what clv_net_forward and clv_net_backward do. If a helper fails, the trainer's
 * device computes its blocks, and no later step uses this helper. */
clv_status clv_share_forward(clv_trainer *trainer, clv_mem *rows);
clv_status clv_share_backward(clv_trainer *trainer, clv_mem g);
/* Returns the number of helpers, the devices that compute blocks beside the trainer's device. */
size_t clv_share_helpers(const clv_trainer *trainer);
void clv_share_free(clv_trainer *trainer);

#endif
