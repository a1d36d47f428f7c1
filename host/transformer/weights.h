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

/* Returns how many elements a piece takes on a device, packed if the form packs matrices, and rounded up so
 * that the next piece begins where packed halves may begin. */
size_t clv_weight_room(const clv_gemm_form *form, size_t n, size_t k);

/* Writes a piece to the elements [at, ...) of `to`, as floats or rounded to the nearest halves (`half`,
 * matrices only). Waits for the transfer, so the caller may free the host's memory afterwards. */
clv_status clv_weight_bring(clv_queue *queue, const clv_gemm_form *form, bool half,
                            const clv_weight_piece *piece, clv_buffer *to, size_t at);

/* Gets the pieces, one after the other, as one tensor of the device's cache (clv_tensor_get); piece i begins
 * at element at[i]. */
clv_status clv_weights_get(clv_queue *queue, const clv_gemm_form *form, const void *owner,
                           size_t part, const clv_weight_piece *pieces, size_t count, size_t *at,
                           clv_kept_tensor **out);

#endif
