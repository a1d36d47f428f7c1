/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices and vectors of a model on their way to a device, for encoders, decoders and trainers. */
#ifndef CLEAVE_HOST_TRANSFORMER_WEIGHTS_H
#define CLEAVE_HOST_TRANSFORMER_WEIGHTS_H

#include "runtime/blas/gemm.h"
#include "runtime/device/tensor_cache.h"

/* A vector [n] (k 0), or a matrix [n,k] that stands for W in x W^T. */
typedef struct clv_weight_piece {
    const float *host;
    size_t n, k;
} clv_weight_piece;

/* Elements that it takes on a device, where matrices are packed if the form packs: such that the next
 * one begins as packed halves have to. */
size_t clv_weight_room(const clv_gemm_form *form, size_t n, size_t k);

/* To the elements [at, ...) of `to`: floats, or the nearest halves (`half`, matrices only). Waits: the
 * host's memory is free when it returns. */
clv_status clv_weight_bring(clv_queue *queue, const clv_gemm_form *form, bool half,
                            const clv_weight_piece *piece, clv_buffer *to, size_t at);

/* Pieces behind each other as a tensor of the device's cache (clv_tensor_get); the i-th begins at
 * at[i]. */
clv_status clv_weights_get(clv_queue *queue, const clv_gemm_form *form, const void *owner,
                           size_t part, const clv_weight_piece *pieces, size_t count, size_t *at,
                           clv_kept_tensor **out);

#endif
