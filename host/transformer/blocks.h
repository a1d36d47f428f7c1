/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a transformer as launches on a queue; products of matrices are runtime/blas. */
#ifndef CLEAVE_HOST_TRANSFORMER_BLOCKS_H
#define CLEAVE_HOST_TRANSFORMER_BLOCKS_H

#include "runtime/blas/gemm.h"

#include <cleave/transformer.h>

/* How a device likes its blocks: vectors of 16 for cores, work-items side by side for others. */
typedef struct clv_block_form {
    size_t lanes, local;
    size_t tile;    /* keys at a time */
    size_t each;    /* rows of a norm for one work-item */
    size_t queries; /* in a block */
    bool groups;    /* work-groups have local memory and fast barriers: GPUs */
} clv_block_form;

clv_block_form clv_block_form_of(const clv_device *device);

/* On the host, in double precision. */
double clv_activate(double x, clv_activation kind);

/* Rows [rows, width] in a buffer: row r begins at offset + r * stride. */
typedef struct clv_rows {
    clv_buffer *buffer;
    size_t offset, stride;
} clv_rows;

typedef struct clv_norm {
    clv_rows x, y; /* y may be x */
    const clv_buffer *parameters;
    size_t weight, bias; /* where they begin */
    clv_buffer *moments; /* mean and 1 / deviation of each row; NULL: not kept */
    size_t rows, width;
    float eps;
    bool rms;
} clv_norm;
clv_status clv_norm_enqueue(clv_queue *queue, const clv_norm *norm);

/* y = word[id] + position[p] + type, then LayerNorm when `norm`. Tokens are pairs of id and p. */
typedef struct clv_embed_rows {
    const clv_buffer *tokens;
    size_t first;
    const clv_buffer *word, *parameters;
    size_t position, type, weight, bias; /* in `parameters` */
    clv_buffer *y;
    size_t rows, width;
    float eps;
    bool norm;
} clv_embed_rows;
clv_status clv_embed_rows_enqueue(clv_queue *queue, const clv_embed_rows *embed);

/* Queries of one sequence that are worked on together: two int4 of cl/transformer/attention.cl. */
typedef struct clv_attention_block {
    int32_t query, queries, key, keys, first, mask, unused[2];
} clv_attention_block;

/* Blocks that one sequence needs, and the blocks themselves. */
size_t clv_attention_block_count(const clv_block_form *form, size_t queries);
void clv_attention_fill(const clv_block_form *form, clv_attention_block sequence,
                        clv_attention_block *blocks);

/* Element (t, h, i) at offset + t * row + h * head + i. */
typedef struct clv_heads {
    clv_buffer *buffer;
    size_t offset, row, head;
} clv_heads;

typedef struct clv_attention_call {
    clv_heads q, k, v, o;
    const clv_buffer *blocks;
    size_t first_block, block_count;
    size_t base;            /* taken off the tokens of the blocks */
    const clv_buffer *mask; /* int32; NULL: none */
    bool causal;
    size_t heads, kv_heads, width; /* width: of a head */
    float scale;
    size_t longest;    /* most queries or keys of a sequence; 0: unknown, and no tiles are used */
    size_t few;        /* most queries of a sequence, where they are few; 0: unknown */
    clv_buffer *parts; /* clv_attention_parts floats; NULL: work-groups share no keys */
    clv_buffer *tops;  /* [heads, top_head]: maximum and 1 / sum of each row; NULL: not kept */
    size_t top_head;
} clv_attention_call;
clv_status clv_attention_enqueue(clv_queue *queue, const clv_attention_call *call);

/* Floats that a call with `few` queries in a sequence needs to share its keys among work-groups; 0 when the
 * device, the width or the numbers of queries and keys do not allow it. Results differ from those of other
 * kernels by the order of sums: at most 3e-6 of the largest |v|. */
size_t clv_attention_parts(const clv_device *device, const clv_attention_call *call);

/* How a device works on tiles of queries and keys: cl/transformer/tiles.clh. */
typedef struct clv_attention_tile {
    bool fits; /* the device's limits, and offsets of 32 bits */
    size_t rows, tx, local, local_floats;
} clv_attention_tile;
/* `back`: for the gradients. */
clv_attention_tile clv_attention_tile_of(const clv_device *device, const clv_attention_call *call,
                                         bool back);

/* CLV_E_DEVICE where the device ends loops of so many turns that queries cannot see that many keys by
 * heads of that width: it would do so without an error. */
clv_status clv_attention_check(const clv_device *device, size_t keys, size_t width);
/* The same of the way back through as many queries, where `group` heads share one of keys. */
clv_status clv_attention_back_check(const clv_device *device, size_t keys, size_t width,
                                    size_t group);

typedef struct clv_pool_call {
    const clv_buffer *x;    /* [tokens, width] */
    const clv_buffer *rows; /* pairs: first token, number */
    size_t first_row, base;
    const clv_buffer *weight; /* int32 of every token: does it count; NULL: all do */
    clv_buffer *out;
    size_t out_offset, sequences, width;
    clv_model_pooling kind;
    bool divide; /* by the length */
} clv_pool_call;
clv_status clv_pool_enqueue(clv_queue *queue, const clv_pool_call *call);

/* y [rows, width] = act(x[:, :width]) * x[:, width:2 width]. */
clv_status clv_gate_enqueue(clv_queue *queue, const clv_buffer *x, size_t rows, size_t width,
                            clv_activation activation, clv_buffer *y);

/* Rotary positions of heads in place; row r of x has position first + r. `turns` is what
 * clv_rope_turns writes: [positions][half] pairs. */
void clv_rope_turns(size_t positions, size_t half, double base, float *turns);
clv_status clv_rope_enqueue(clv_queue *queue, const clv_rows *x, const clv_buffer *turns,
                            size_t first, size_t rows, size_t heads, size_t half);

/* Losses of rows of logits, and their gradients times `scale` (gradient NULL: not wanted). */
enum { CLV_LABEL_IGNORED = -100 };
clv_status clv_cross_entropy_enqueue(clv_queue *queue, const clv_buffer *x,
                                     const clv_buffer *labels, size_t rows, size_t classes,
                                     float scale, clv_buffer *loss, clv_buffer *gradient);

#endif
