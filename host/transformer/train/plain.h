/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the ops in plain C that work on whole texts: attention and pooling, forward and backward. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_PLAIN_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_PLAIN_H

#include "host/transformer/train/ops.h"

clv_status clv_plain_attend(clv_train_ops *ops, const clv_train_attention *call);
clv_status clv_plain_attend_back(clv_train_ops *ops, const clv_train_attention *call);
clv_status clv_plain_pool(clv_train_ops *ops, const clv_train_pool *call);
clv_status clv_plain_pool_back(clv_train_ops *ops, const clv_train_pool *call);

#endif
