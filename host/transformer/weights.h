/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the upload of a model's matrices and vectors to a device, for encoders, decoders and trainers. */
#ifndef CLEAVE_HOST_TRANSFORMER_WEIGHTS_H
#define CLEAVE_HOST_TRANSFORMER_WEIGHTS_H

#include "runtime/blas/gemm.h"
#include "runtime/device/tensor_cache.h"

/* A vector [n] (k is 0), or a matrix [n,k] that is W in the product x W^T. */
typedef struct clv_weight_piece {
    const float *host;
    size_t n, k;
} clv_weight_piece;

/* Returns the number of elements of a piece on a device, packed if the form packs matrices, and rounded up so that the
 * next piece is aligned for packed halves. */
size_t clv_weight_room(const clv_gemm_form *form, size_t n, size_t k);

/* Writes a piece to `to` from element `at` on, as floats or, with `half` (matrices only), rounded to the nearest
 * halves. Waits for the transfer, so that the caller may free the host's memory afterwards. */
clv_status clv_weight_bring(clv_queue *queue, const clv_gemm_form *form, bool half,
                            const clv_weight_piece *piece, clv_buffer *to, size_t at);

/* Returns the pieces as one tensor of the device's cache (clv_tensor_get), and uploads them if the cache does not hold
 * this tensor; piece i begins at element at[i]. */
clv_status clv_weights_get(clv_queue *queue, const clv_gemm_form *form, const void *owner,
                           size_t part, const clv_weight_piece *pieces, size_t count, size_t *at,
                           clv_kept_tensor **out);

#endif
