/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the blocks of a transformer on a queue; the matrix products are those of runtime/blas. */
#ifndef CLEAVE_HOST_TRANSFORMER_BLOCKS_H
#define CLEAVE_HOST_TRANSFORMER_BLOCKS_H

#include "runtime/blas/gemm.h"

#include <cleave/transformer.h>

/* The form of the kernels that suits a device: vectors of 16 lanes for CPU cores, adjacent work-items for other
 * devices. */
typedef struct clv_block_form {
    size_t lanes, local;
    size_t tile;    /* keys that attention takes at a time */
    size_t each;    /* rows that a work-item normalises */
    size_t queries; /* queries of an attention block */
    bool groups;    /* GPUs: work-groups have local memory and fast barriers */
} clv_block_form;

clv_block_form clv_block_form_of(const clv_device *device);

/* A kernel that works on rows, and that divides them as cl/transformer/team.clh says. */
typedef struct clv_row_kernel {
    const clv_cl_source *source;
    const char *name;
    size_t rows, width; /* width: columns that can be processed independently of each other */
    size_t each;        /* rows that a work-item takes where it takes whole rows */
    bool sums;          /* the kernel adds up the columns of a row */
} clv_row_kernel;
/* Returns the launch of such a kernel: on GPUs a work-group per row or, without sums, several. The number of
 * work-items that share a row, on which the bits of sums depend, follows from the device and the width alone. */
clv_launch clv_row_launch(const clv_queue *queue, const clv_row_kernel *kernel);

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
    size_t weight, bias; /* where weight and bias begin in `parameters` */
    clv_buffer *moments; /* out: mean and 1 / standard deviation of each row; NULL: not written */
    size_t rows, width;
    float eps;
    bool rms;
} clv_norm;
clv_status clv_norm_enqueue(clv_queue *queue, const clv_norm *norm);

/* Computes y = word[id] + position[p] + type, followed by LayerNorm if `norm` is set. Tokens are pairs of id and p. */
typedef struct clv_embed_rows {
    const clv_buffer *tokens;
    size_t first;
    const clv_buffer *word, *parameters;
    size_t position, type, weight, bias; /* where these begin in `parameters` */
    clv_buffer *y;
    size_t rows, width;
    float eps;
    bool norm;
} clv_embed_rows;
clv_status clv_embed_rows_enqueue(clv_queue *queue, const clv_embed_rows *embed);

/* A block of queries of one sequence that are processed together: two int4 of cl/transformer/attention.cl. */
typedef struct clv_attention_block {
    int32_t query, queries, key, keys, first, mask, unused[2];
} clv_attention_block;

/* clv_attention_block_count returns the number of blocks of a sequence with so many queries; clv_attention_fill fills
 * in the blocks of `sequence`. */
size_t clv_attention_block_count(const clv_block_form *form, size_t queries);
void clv_attention_fill(const clv_block_form *form, clv_attention_block sequence,
                        clv_attention_block *blocks);

/* The layout of heads in a buffer: element i of head h of token t lies at offset + t * row + h * head + i. */
typedef struct clv_heads {
    clv_buffer *buffer;
    size_t offset, row, head;
} clv_heads;

typedef struct clv_attention_call {
    clv_heads q, k, v, o;
    const clv_buffer *blocks;
    size_t first_block, block_count;
    size_t base;            /* subtracted from the token numbers in the blocks */
    const clv_buffer *mask; /* int32 per key: 0 if no query sees it; NULL: no mask */
    bool causal;
    size_t heads, kv_heads, width; /* width: of a head */
    float scale;
    size_t longest;    /* most queries or keys of a sequence; 0: unknown, which rules out tiles */
    size_t few;        /* most queries of a sequence, if they are few; 0: unknown */
    clv_buffer *parts; /* clv_attention_parts floats; NULL: keys are not split among work-groups */
    /* added to scores; NULL: none. The bias of query i and key j of head h is at bias_at + h * bias_head + i - j.
     * Tables reach 64 elements beyond both ends. Not together with `parts`. */
    const clv_buffer *bias;
    size_t bias_at, bias_head;
    clv_buffer *tops; /* out, [heads, top_head]: maximum and 1 / sum per row; NULL: not written */
    size_t top_head;
} clv_attention_call;
clv_status clv_attention_enqueue(clv_queue *queue, const clv_attention_call *call);

/* Returns the floats of `parts` with which a call with `few` queries per sequence splits its keys among work-groups; 0
 * if the device, the width or the numbers of queries and keys rule out such a split. The kernels for split keys add in
 * another order than the other kernels: their results differ by at most 3e-6 of the largest |v|. */
size_t clv_attention_parts(const clv_device *device, const clv_attention_call *call);

/* Returns the lanes of attention's vectors: 8 on processors that have only sixteen registers of 8 floats, where sums in
 * vectors of 16 would go through memory. The result does not depend on it. */
size_t clv_attention_lanes(const clv_block_form *form);

/* The sizes of the tiles of queries and keys for a device: see cl/transformer/tiles.clh. */
typedef struct clv_attention_tile {
    bool fits; /* the tiles respect the device's limits and 32-bit offsets */
    size_t rows, tx, local, local_floats;
} clv_attention_tile;
/* Returns the tiles for a call or, with `back`, for the gradients of the call. */
clv_attention_tile clv_attention_tile_of(const clv_device *device, const clv_attention_call *call,
                                         bool back);

/* Returns CLV_E_DEVICE if the device ends loops after too few turns for attention to `keys` keys with heads of `width`:
 * without this check, its results would be wrong without an error. */
clv_status clv_attention_check(const clv_device *device, size_t keys, size_t width);
/* Makes the same check for the gradients of attention with `keys` queries and keys, where `group` heads of queries
 * share one head of keys. */
clv_status clv_attention_back_check(const clv_device *device, size_t keys, size_t width,
                                    size_t group);

typedef struct clv_pool_call {
    const clv_buffer *x;    /* [tokens, width] */
    const clv_buffer *rows; /* pairs per text: first token, number of tokens */
    size_t first_row, base;
    size_t before; /* tokens of each text before its first row: the weighted mean counts them */
    const clv_buffer *weight; /* int32 per token: 0 to leave it out; NULL: all tokens count */
    clv_buffer *out;
    size_t out_offset, sequences, width;
    clv_model_pooling kind;
    bool divide; /* divide each pooled vector by its Euclidean length */
} clv_pool_call;
clv_status clv_pool_enqueue(clv_queue *queue, const clv_pool_call *call);

/* Computes y [rows, width] = act(x[:, :width]) * x[:, width:2 width]. */
clv_status clv_gate_enqueue(clv_queue *queue, const clv_buffer *x, size_t rows, size_t width,
                            clv_activation activation, clv_buffer *y);

/* clv_rope_turns writes [positions][half] pairs of cosine and sine to `turns`. clv_rope_enqueue applies them to heads
 * in place, as rotary positions: row r of x has position first + r. */
void clv_rope_turns(size_t positions, size_t half, double base, float *turns);
clv_status clv_rope_enqueue(clv_queue *queue, const clv_rows *x, const clv_buffer *turns,
                            size_t first, size_t rows, size_t heads, size_t half);

/* The function below computes the losses of rows of logits and, unless `gradient` is NULL, their gradients times
 * `scale`. Rows with the label CLV_LABEL_IGNORED have loss and gradient 0. */
enum { CLV_LABEL_IGNORED = -100 };
clv_status clv_cross_entropy_enqueue(clv_queue *queue, const clv_buffer *x,
                                     const clv_buffer *labels, size_t rows, size_t classes,
                                     float scale, clv_buffer *loss, clv_buffer *gradient);

#endif
