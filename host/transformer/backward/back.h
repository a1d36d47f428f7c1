/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass through the blocks of a transformer, as launches on a queue: from dL/d(output) of a block to
 * dL/d(input) and dL/d(parameters), where L is the loss. Without atomics, every run gives the same bits. */
#ifndef CLEAVE_HOST_TRANSFORMER_BACKWARD_BACK_H
#define CLEAVE_HOST_TRANSFORMER_BACKWARD_BACK_H

#include "host/transformer/blocks.h"

/* A matrix or list in a buffer, from number `at` on. */
typedef struct clv_range {
    clv_buffer *buffer;
    size_t at;
} clv_range;

/* Computes dx of LayerNorm or RMSNorm from g = dL/dy, plus `add` if it has a buffer (the gradient that bypasses
 * the norm); dx may be g or add. */
typedef struct clv_norm_back {
    clv_rows g, x, dx, add;
    const clv_buffer *moments; /* written by clv_norm_enqueue */
    clv_range weight;
    size_t rows, width;
    bool rms;
} clv_norm_back;
clv_status clv_norm_back_enqueue(clv_queue *queue, const clv_norm_back *back);

/* Sums over rows: `sum` [width] is the sum of g (the gradient of a bias), `along` [width] the sum of g t with the
 * normalised x as t (the gradient of a norm's weight). Either buffer may be NULL; `along` needs x and moments. */
typedef struct clv_column_sums {
    clv_rows g, x;
    const clv_buffer *moments;
    clv_range sum, along;
    size_t rows, width;
    clv_buffer *scratch; /* clv_column_scratch floats */
} clv_column_sums;
size_t clv_column_scratch(size_t rows, size_t width);
clv_status clv_column_sums_enqueue(clv_queue *queue, const clv_column_sums *sums);
/* Computes out[c] = sum over b of parts[b * stride + c], in rising order of b. */
clv_status clv_sum_blocks_enqueue(clv_queue *queue, clv_range parts, size_t stride, size_t blocks,
                                  clv_range out, size_t width);

/* A table's row that was looked up: its tokens are the `count` entries of the list from `first` on. */
typedef struct clv_segment {
    int32_t first, count, row, unused;
} clv_segment;
/* Sets rows of `out` [., width] to sums of rows of g [tokens, width], or to 0 if g is NULL; rows without a segment
 * stay. */
clv_status clv_segment_sums_enqueue(clv_queue *queue, const clv_buffer *g, const clv_buffer *list,
                                    const clv_buffer *segments, size_t first, size_t count,
                                    clv_range out, size_t width);

/* Computes y = act(x), or with g: y = g act'(x), for `count` numbers; y may be g. */
clv_status clv_activation_enqueue(clv_queue *queue, const clv_buffer *x, const clv_buffer *g,
                                  clv_buffer *y, size_t count, clv_activation activation);
/* The way back of clv_gate_enqueue: g [rows, width], x and dx [rows, 2 width]. */
clv_status clv_gate_back_enqueue(clv_queue *queue, const clv_buffer *x, const clv_buffer *g,
                                 clv_buffer *dx, size_t rows, size_t width, clv_activation act);
/* The way back of clv_rope_enqueue, in place. */
clv_status clv_rope_back_enqueue(clv_queue *queue, const clv_rows *x, const clv_buffer *turns,
                                 size_t first, size_t rows, size_t heads, size_t half);
/* Adds `count` numbers of x to those of y. */
clv_status clv_add_enqueue(clv_queue *queue, clv_range x, clv_range y, size_t count);

/* The way back of clv_pool_enqueue without `divide`: g [sequences, width], dx [tokens, width]; `x` is read for max
 * pooling only. */
typedef struct clv_pool_back {
    const clv_buffer *g, *x, *rows, *weight; /* weight NULL: every row counts */
    clv_buffer *dx;
    size_t sequences, width;
    clv_model_pooling kind;
} clv_pool_back;
clv_status clv_pool_back_enqueue(clv_queue *queue, const clv_pool_back *back);
/* Computes y = x / max(|x|, 1e-12) row by row, or with g its way back; y may be g. */
clv_status clv_unit_rows_enqueue(clv_queue *queue, const clv_buffer *x, const clv_buffer *g,
                                 clv_buffer *y, size_t rows, size_t width);

/* The way back of clv_attention_enqueue. `there` is the forward call, whose `tops` were kept and whose base is 0. */
typedef struct clv_attention_back {
    clv_attention_call there;
    clv_heads g, dq, dk, dv;
    const clv_buffer *key_blocks; /* of clv_attention_fill_keys */
    size_t key_block_count;
    clv_buffer *delta; /* [heads, top_head] floats */
} clv_attention_back;
/* Fills in the blocks of keys of one sequence, as clv_attention_fill does for queries. */
void clv_attention_fill_keys(const clv_block_form *form, clv_attention_block sequence,
                             clv_attention_block *blocks);
clv_status clv_attention_back_enqueue(clv_queue *queue, const clv_attention_back *back);

/* ---- steps: `count` numbers from `at` on of all buffers ------------------------------------------ */

typedef struct clv_step_range {
    clv_buffer *weights, *gradient, *first, *second; /* moments; SGD: `second` unused */
    clv_buffer *bits; /* CLV_BIT_SLOTS times CLV_BIT_SUMS integers, to which the step adds */
    size_t at, count;
    float scale; /* of the gradient */
    double rate, decay;
    uint64_t step; /* from 1 */
} clv_step_range;

/* Momentum 0: `first` is not touched and may be NULL. */
clv_status clv_sgd_enqueue(clv_queue *queue, const clv_step_range *range, double momentum);
clv_status clv_adamw_enqueue(clv_queue *queue, const clv_step_range *range, double beta1,
                             double beta2, double eps);
/* clv_squares_enqueue writes partial sums of squares to `parts` from number parts_at on; clv_squares_items
 * returns how many. */
size_t clv_squares_items(const clv_device *device, size_t count);
clv_status clv_squares_enqueue(clv_queue *queue, const clv_buffer *gradient, size_t at,
                               size_t count, clv_buffer *parts, size_t parts_at);

#endif
