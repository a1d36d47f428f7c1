/* SPDX-License-Identifier: Apache-2.0 */
/* Launches a decoder layer: x += attention(rms(x)) with rotary positions and a cache of keys and values, then
 * x += (silu(h Wg) * (h Wu)) Wd with h = rms(x). */
#ifndef CLEAVE_HOST_TRANSFORMER_DECODER_H
#define CLEAVE_HOST_TRANSFORMER_DECODER_H

#include "host/transformer/blocks.h"

/* One layer of a model, with the cache of one sequence. Each matrix [out, in] begins at the given float of `weights`,
 * stored row by row or packed for `form`; gate and up form one matrix [2 ffn, width]. */
typedef struct clv_decoder_layer {
    size_t width, heads, kv_heads, ffn;
    float eps;
    const clv_gemm_form *form;
    bool packed;
    clv_buffer *weights;
    size_t norm1, q, k, v, out, norm2, gate_up, down;
    const clv_buffer *turns;   /* of clv_rope_turns, for head width / 2 */
    clv_buffer *keys, *values; /* [positions, kv_heads * head]: rows before `first` are filled */
} clv_decoder_layer;

/* Scratch buffers of a call with `rows` tokens. */
typedef struct clv_decoder_room {
    clv_buffer *h, *q, *seen; /* [rows, width] */
    clv_buffer *inner;        /* [rows, 2 ffn] */
    clv_buffer *gated;        /* [rows, ffn] */
    clv_buffer *scratch;      /* clv_decoder_scratch floats */
    clv_buffer *parts;        /* clv_decoder_parts floats; NULL: no split of keys */
} clv_decoder_room;

size_t clv_decoder_scratch(const clv_decoder_layer *layer, size_t rows);
/* Returns the size of `parts` in floats for attention of up to `rows` tokens to `keys` keys; at least 1. */
size_t clv_decoder_parts(const clv_device *device, const clv_decoder_layer *layer, size_t rows,
                         size_t keys);

/* Runs the layer on tokens first .. first + rows - 1 of the sequence: changes x [rows, width] in place, and appends the
 * tokens' keys and values to the cache. `blocks` holds the attention blocks of `rows` queries and first + rows keys. */
clv_status clv_decoder_layer_enqueue(clv_queue *queue, const clv_decoder_layer *layer,
                                     const clv_decoder_room *room, const clv_buffer *blocks,
                                     size_t first, size_t rows, clv_buffer *x);

#endif
