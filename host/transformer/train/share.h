/* SPDX-License-Identifier: Apache-2.0 */
/* Shares a batch among devices. A large batch is cut into blocks of texts, by a rule that depends on the batch alone.
 * Each block goes through the layers on its own, and the gradients of the blocks are added in the order of the blocks.
 * The sum therefore has the same bits however the blocks are distributed. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_SHARE_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_SHARE_H

#include "host/transformer/train/trainer.h"

/* Cuts the trainer's batch, which clv_batch_fill has brought to it; ids and offsets are borrowed up to the end of the
 * step. */
clv_status clv_share_cut(clv_trainer *trainer, const int32_t *ids, const size_t *offsets,
                         size_t texts);
/* Returns whether the batch has more than one block. If not, the two functions below must not be called. */
bool clv_share_is_cut(const clv_trainer *trainer);
/* Do what clv_net_forward and clv_net_backward do. A helper that fails is left out from then on, and the trainer's
 * device computes its blocks. */
clv_status clv_share_forward(clv_trainer *trainer, clv_mem *rows);
clv_status clv_share_backward(clv_trainer *trainer, clv_mem g);
/* Returns how many devices help at present. */
size_t clv_share_helpers(const clv_trainer *trainer);
void clv_share_free(clv_trainer *trainer);

#endif
