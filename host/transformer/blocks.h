/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a transformer as launches on a queue; matrix products come from runtime/blas. */
#ifndef CLEAVE_HOST_TRANSFORMER_BLOCKS_H
#define CLEAVE_HOST_TRANSFORMER_BLOCKS_H

#include "runtime/blas/gemm.h"

#include <cleave/transformer.h>

/* The form of the kernels that suits a device: vectors of 16 lanes for CPU cores, work-items side by side for
 * other devices. */
typedef struct clv_block_form {
    size_t lanes, local;
    size_t tile;    /* keys at a time */
    size_t each;    /* rows of a norm for one work-item */
    size_t queries; /* in an attention block */
    bool groups;    /* work-groups have local memory and fast barriers: GPUs */
} clv_block_form;

clv_block_form clv_block_form_of(const clv_device *device);

/* Returns act(x), computed on the host in double precision. */
double clv_activate(double x, clv_activation kind);

/* Rows [rows, width] in a buffer: row r begins at offset + r * stride. */
typedef struct clv_rows {
    clv_buffer *buffer;
    size_t offset, stride;
} clv_rows;

typedef struct clv_norm {
    clv_rows x, y; /* y may be x */
    const clv_buffer *parameters;
    size_t weight, bias; /* where they begin in `parameters` */
    clv_buffer *moments; /* mean and 1 / deviation of each row; NULL: not kept */
    size_t rows, width;
    float eps;
    bool rms;
} clv_norm;
clv_status clv_norm_enqueue(clv_queue *queue, const clv_norm *norm);

/* y = word[id] + position[p] + type, followed by LayerNorm if `norm` is set. Tokens are pairs of id and p. */
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

/* Queries of one sequence that are processed together: two int4 of cl/transformer/attention.cl. */
typedef struct clv_attention_block {
    int32_t query, queries, key, keys, first, mask, unused[2];
} clv_attention_block;

/* Return how many blocks one sequence needs, and fill those blocks in. */
size_t clv_attention_block_count(const clv_block_form *form, size_t queries);
void clv_attention_fill(const clv_block_form *form, clv_attention_block sequence,
                        clv_attention_block *blocks);

/* Heads in a buffer: element i of head h of token t lies at offset + t * row + h * head + i. */
typedef struct clv_heads {
    clv_buffer *buffer;
    size_t offset, row, head;
} clv_heads;

typedef struct clv_attention_call {
    clv_heads q, k, v, o;
    const clv_buffer *blocks;
    size_t first_block, block_count;
    size_t base;            /* subtracted from the token numbers of the blocks */
    const clv_buffer *mask; /* int32; NULL: none */
    bool causal;
    size_t heads, kv_heads, width; /* width: of a head */
    float scale;
    size_t longest;    /* most queries or keys of a sequence; 0: unknown, and no tiles are used */
    size_t few;        /* most queries of a sequence, if they are few; 0: unknown */
    clv_buffer *parts; /* clv_attention_parts floats; NULL: work-groups share no keys */
    const clv_buffer
        *bias; /* added to scores; NULL: none. That of query i and key j of head h is at
                               bias_at + h * bias_head + i - j; tables reach 64 elements beyond both ends.
                               Not with `parts`. */
    size_t bias_at, bias_head;
    clv_buffer *tops; /* [heads, top_head]: maximum and 1 / sum of each row; NULL: not kept */
    size_t top_head;
} clv_attention_call;
clv_status clv_attention_enqueue(clv_queue *queue, const clv_attention_call *call);

/* Returns the floats that a call with `few` queries per sequence needs to split its keys among work-groups; 0
 * if the device, the width or the numbers of queries and keys do not allow it. The results differ from those
 * of the other kernels in the order of sums, by at most 3e-6 of the largest |v|. */
size_t clv_attention_parts(const clv_device *device, const clv_attention_call *call);

/* The tiles of queries and keys that a device works on: see cl/transformer/tiles.clh. */
typedef struct clv_attention_tile {
    bool fits; /* within the device's limits and 32-bit offsets */
    size_t rows, tx, local, local_floats;
} clv_attention_tile;
/* Returns the tiles for a call; with `back` those for its gradients. */
clv_attention_tile clv_attention_tile_of(const clv_device *device, const clv_attention_call *call,
                                         bool back);

/* Returns CLV_E_DEVICE if the device ends loops too early for queries to see `keys` keys with heads of this
 * width: it would stop without reporting an error. */
clv_status clv_attention_check(const clv_device *device, size_t keys, size_t width);
/* The same check for the way back through as many queries, where `group` heads share one head of keys. */
clv_status clv_attention_back_check(const clv_device *device, size_t keys, size_t width,
                                    size_t group);

typedef struct clv_pool_call {
    const clv_buffer *x;    /* [tokens, width] */
    const clv_buffer *rows; /* pairs: first token, number of tokens */
    size_t first_row, base;
    size_t before; /* tokens of each text before its first row: the weighted mean counts them */
    const clv_buffer *weight; /* int32 per token: 0 if it does not count; NULL: all count */
    clv_buffer *out;
    size_t out_offset, sequences, width;
    clv_model_pooling kind;
    bool divide; /* each row by its Euclidean length */
} clv_pool_call;
clv_status clv_pool_enqueue(clv_queue *queue, const clv_pool_call *call);

/* Computes y [rows, width] = act(x[:, :width]) * x[:, width:2 width]. */
clv_status clv_gate_enqueue(clv_queue *queue, const clv_buffer *x, size_t rows, size_t width,
                            clv_activation activation, clv_buffer *y);

/* Applies rotary positions to heads in place; row r of x has position first + r. `turns` holds the
 * [positions][half] pairs of cosine and sine that clv_rope_turns writes. */
void clv_rope_turns(size_t positions, size_t half, double base, float *turns);
clv_status clv_rope_enqueue(clv_queue *queue, const clv_rows *x, const clv_buffer *turns,
                            size_t first, size_t rows, size_t heads, size_t half);

/* Computes the losses of rows of logits, and their gradients times `scale` (gradient NULL: not wanted). */
enum { CLV_LABEL_IGNORED = -100 };
clv_status clv_cross_entropy_enqueue(clv_queue *queue, const clv_buffer *x,
                                     const clv_buffer *labels, size_t rows, size_t classes,
                                     float scale, clv_buffer *loss, clv_buffer *gradient);

#endif
