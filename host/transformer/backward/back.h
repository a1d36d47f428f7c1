/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the backward pass through the blocks of a transformer on a queue: each function computes dL/d(input) and
 * dL/d(parameters) of a block from its dL/d(output), where L is the loss. No kernel here uses atomics for the
 * gradients, so that every run gives the same bits. */
#ifndef CLEAVE_HOST_TRANSFORMER_BACKWARD_BACK_H
#define CLEAVE_HOST_TRANSFORMER_BACKWARD_BACK_H

#include "host/transformer/blocks.h"

/* A matrix or list of 4-byte numbers in a buffer; it begins at number `at`. */
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

/* Computes sums over the rows of a matrix: `sum` [width] is the sum of g (the gradient of a bias), and `along` [width]
 * is the sum of g t (the gradient of a norm's weight), where t is the normalised x. Either buffer may be NULL; `along`
 * is computed from x and moments. */
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

/* A row of a table that a batch has looked up: entries [first, first + count) of the list are the tokens that looked
 * it up. */
typedef struct clv_segment {
    int32_t first, count, row, unused;
} clv_segment;
/* Sets each segment's row of `out` [., width] to the sum of its tokens' rows of g [tokens, width], or to 0 if g is
 * NULL. Rows without a segment do not change. */
clv_status clv_segment_sums_enqueue(clv_queue *queue, const clv_buffer *g, const clv_buffer *list,
                                    const clv_buffer *segments, size_t first, size_t count,
                                    clv_range out, size_t width);

/* Computes y = act(x), or y = g act'(x) if g is not NULL, for `count` numbers; y may be g. */
clv_status clv_activation_enqueue(clv_queue *queue, const clv_buffer *x, const clv_buffer *g,
                                  clv_buffer *y, size_t count, clv_activation activation);
/* Computes the backward pass of clv_gate_enqueue: dx [rows, 2 width] from g [rows, width] and x [rows, 2 width]. */
clv_status clv_gate_back_enqueue(clv_queue *queue, const clv_buffer *x, const clv_buffer *g,
                                 clv_buffer *dx, size_t rows, size_t width, clv_activation act);
/* Computes the backward pass of clv_rope_enqueue in place. */
clv_status clv_rope_back_enqueue(clv_queue *queue, const clv_rows *x, const clv_buffer *turns,
                                 size_t first, size_t rows, size_t heads, size_t half);
/* Adds `count` numbers of x to those of y. */
clv_status clv_add_enqueue(clv_queue *queue, clv_range x, clv_range y, size_t count);

/* The arguments of the backward pass of clv_pool_enqueue without `divide`: g is [sequences, width], dx [tokens, width];
 * `x` is read for max pooling only. */
typedef struct clv_pool_back {
    const clv_buffer *g, *x, *rows, *weight; /* weight NULL: every row counts */
    clv_buffer *dx;
    size_t sequences, width;
    clv_model_pooling kind;
} clv_pool_back;
clv_status clv_pool_back_enqueue(clv_queue *queue, const clv_pool_back *back);
/* Computes y = x / max(|x|, 1e-12) row by row, or the backward pass of this if g is not NULL; y may be g. */
clv_status clv_unit_rows_enqueue(clv_queue *queue, const clv_buffer *x, const clv_buffer *g,
                                 clv_buffer *y, size_t rows, size_t width);

/* The arguments of the backward pass of clv_attention_enqueue. `there` is the forward call, which must have written
 * `tops` and have base 0. */
typedef struct clv_attention_back {
    clv_attention_call there;
    clv_heads g, dq, dk, dv;
    const clv_buffer *key_blocks; /* of clv_attention_fill_keys */
    size_t key_block_count;
    clv_buffer *delta; /* [heads, top_head] floats */
} clv_attention_back;
/* Fills in the blocks of keys of one sequence, as clv_attention_fill does for blocks of queries. */
void clv_attention_fill_keys(const clv_block_form *form, clv_attention_block sequence,
                             clv_attention_block *blocks);
clv_status clv_attention_back_enqueue(clv_queue *queue, const clv_attention_back *back);

/* ---- steps: they change `count` numbers from `at` on in each buffer ------------------------------ */

typedef struct clv_step_range {
    clv_buffer *weights, *gradient, *first, *second; /* first, second: moments; SGD has no second */
    clv_buffer
        *bits; /* CLV_BIT_SLOTS times CLV_BIT_SUMS integers, to which the step adds its sums */
    size_t at, count;
    float scale; /* factor of the gradient */
    double rate, decay;
    uint64_t step; /* number of the step, from 1 */
} clv_step_range;

/* Updates the weights by a step of SGD. With momentum 0, `first` is not used and may be NULL. */
clv_status clv_sgd_enqueue(clv_queue *queue, const clv_step_range *range, double momentum);
clv_status clv_adamw_enqueue(clv_queue *queue, const clv_step_range *range, double beta1,
                             double beta2, double eps);
/* clv_squares_enqueue writes partial sums of squares of the gradient to `parts`, from number parts_at on;
 * clv_squares_items returns the number of partial sums. */
size_t clv_squares_items(const clv_device *device, size_t count);
clv_status clv_squares_enqueue(clv_queue *queue, const clv_buffer *gradient, size_t at,
                               size_t count, clv_buffer *parts, size_t parts_at);

#endif
