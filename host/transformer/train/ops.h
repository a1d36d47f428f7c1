/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the operations ("ops") of a training step, forward and backward, which run on a device or in plain C. The
 * step itself (net.c, head.c) is written once for both. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_OPS_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_OPS_H

#include "host/transformer/backward/back.h"
#include "host/transformer/weights.h"

#include <cleave/train.h>

/* An array of 4-byte numbers that begins at number `at` of `memory`, which the ops own; memory NULL: absent. */
typedef struct clv_mem {
    void *memory;
    size_t at;
} clv_mem;

/* A batch of texts without padding, in the ops' memory. */
typedef struct clv_train_batch {
    size_t tokens, texts, longest; /* longest: most tokens of a text */
    void *ids;                     /* [tokens][2]: id, position */
    void *rows;                    /* [texts][2]: first token, number of tokens */
    void *blocks;                  /* [block_count]: blocks of queries, used for keys as well */
    void *mask;     /* int32 [tokens]: 0: neither a key nor pooled; NULL: all count */
    void *list;     /* tokens sorted by id, then tokens sorted by position */
    void *segments; /* of `list`: word_segments, then position_segments */
    size_t block_count, word_segments, position_segments;
} clv_train_batch;

/* Computes y = alpha x W^T + b + add, where W is [n,k]. Its backward pass computes dx = alpha g W + dx_add, dw = alpha
 * g^T x, and db = sum of the rows of g, except results whose memory is NULL. */
typedef struct clv_train_linear {
    size_t rows, n, k;
    float alpha;
    bool held; /* w is memory that `hold` returned; forward only */
    clv_mem x, w, b, add, y;
    clv_mem g, dx, dx_add, dw, db;
} clv_train_linear;

/* Frozen weights in the ops' memory, held while commands that read them are enqueued. */
typedef struct clv_train_held {
    void *memory;
    void *pin; /* for the ops only */
} clv_train_held;

/* LayerNorm or RMSNorm (which has no bias) of rows [rows, width]. The forward pass writes `moments` [rows][2], which
 * the backward pass reads. In the backward pass, dx is the gradient through the norm plus dx_add (memory NULL: 0). */
typedef struct clv_train_norm {
    size_t rows, width;
    float eps;
    bool rms;
    clv_mem x, weight, bias, y, moments;
    clv_mem g, dx, dx_add, dweight, dbias; /* dx may be g or dx_add; dweight NULL: not computed */
} clv_train_norm;

/* Self-attention within every text. A row of [tokens, width + 2 kv] holds q, k and v one after the other, where
 * kv is the width of kv_heads heads; gradients have the same layout. `tops` is [heads][tokens][2], `delta`
 * [heads][tokens]. */
typedef struct clv_train_attention {
    const clv_train_batch *batch;
    size_t heads, width; /* width: of all heads */
    size_t kv_heads;     /* divides heads; 0: heads */
    bool causal;         /* a token sees itself and the tokens before it */
    clv_mem qkv, o, tops;
    clv_mem g, dqkv, delta;
} clv_train_attention;

/* Rotary positions, applied in place: rows [rows, heads * 2 half] are `stride` apart; row r takes the angles of
 * position first + r from `turns`, which clv_rope_turns writes. */
typedef struct clv_train_rope {
    clv_mem x, turns;
    size_t stride, first, rows, heads, half;
    bool back;
} clv_train_rope;

/* Computes y = word[id] + position[p] + type. The backward pass writes only those rows of the tables' gradients that
 * the batch looks up; with g.memory NULL it clears these rows, so that no step has to clear whole tables. */
typedef struct clv_train_embed {
    const clv_train_batch *batch;
    size_t width;
    clv_mem word, position, type, y;
    clv_mem g, dword, dposition, dtype; /* dtype NULL: not computed */
} clv_train_embed;

typedef struct clv_train_pool {
    const clv_train_batch *batch;
    size_t width;
    clv_model_pooling kind;
    clv_mem x, y;
    clv_mem g, dx;
} clv_train_pool;

/* Computes the losses of rows of scores x [rows, classes], and g = dL/dx times `scale`; g may be x. */
typedef struct clv_train_loss {
    size_t rows, classes;
    clv_mem x, labels, loss, g;
    float scale;
} clv_train_loss;

typedef struct clv_train_rule {
    clv_optimizer kind;
    double beta1, beta2, eps, momentum;
} clv_train_rule;

/* The update of parameters [at, at + count), whose weights, gradient and two moments have these same numbers in their
 * four blocks. */
typedef struct clv_train_update {
    void *weights, *gradient, *first, *second;
    /* CLV_TRAIN_BITS integers, to which a device adds the bits that it reads and writes; see bits.h */
    void *bits;
    size_t at, count;
    float scale;
    double rate, decay;
    uint64_t step; /* number of the step, from 1 */
} clv_train_update;

typedef struct clv_train_ops clv_train_ops;
struct clv_train_ops {
    clv_block_form form; /* decides the blocks of attention */
    clv_status (*take)(clv_train_ops *ops, size_t count, void **memory);
    void (*drop)(clv_train_ops *ops, void *memory);
    clv_status (*put)(clv_train_ops *ops, clv_mem to, const void *from, size_t count);
    clv_status (*get)(clv_train_ops *ops, clv_mem from, void *to, size_t count);
    clv_status (*clear)(clv_train_ops *ops, clv_mem what, size_t count);
    /* For batches on several devices (share.h), NULL in plain C: `copy` sets to = from, `add` sets to += from, and
     * `flush` submits all commands. */
    clv_status (*copy)(clv_train_ops *ops, clv_mem from, clv_mem to, size_t count);
    clv_status (*add)(clv_train_ops *ops, clv_mem from, clv_mem to, size_t count);
    void (*flush)(clv_train_ops *ops);
    /* Holds pieces of one block of the caller's memory, which follow each other in this block and must outlive the ops.
     * A device receives the pieces once, with packed matrices, and stores them in its tensor cache under the number
     * `part`. Piece i begins at at[i] of the held memory. */
    clv_status (*hold)(clv_train_ops *ops, size_t part, const clv_weight_piece *pieces,
                       size_t count, size_t *at, clv_train_held *held);
    void (*let_go)(clv_train_ops *ops, const clv_train_held *held);
    clv_status (*linear)(clv_train_ops *ops, const clv_train_linear *call);
    clv_status (*linear_back)(clv_train_ops *ops, const clv_train_linear *call);
    clv_status (*norm)(clv_train_ops *ops, const clv_train_norm *call);
    clv_status (*norm_back)(clv_train_ops *ops, const clv_train_norm *call);
    clv_status (*attend)(clv_train_ops *ops, const clv_train_attention *call);
    clv_status (*attend_back)(clv_train_ops *ops, const clv_train_attention *call);
    /* computes y = act(x), or y = g act'(x) if g has memory; y may be g */
    clv_status (*activate)(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t count,
                           clv_activation kind);
    /* computes y [rows, width] = act(a) b, where x [rows, 2 width] holds a and b side by side; or, if g [rows, width]
     * has memory, y = dL/dx [rows, 2 width] */
    clv_status (*gate)(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t rows,
                       size_t width, clv_activation kind);
    clv_status (*rope)(clv_train_ops *ops, const clv_train_rope *call);
    clv_status (*embed)(clv_train_ops *ops, const clv_train_embed *call);
    clv_status (*embed_back)(clv_train_ops *ops, const clv_train_embed *call);
    clv_status (*pool)(clv_train_ops *ops, const clv_train_pool *call);
    clv_status (*pool_back)(clv_train_ops *ops, const clv_train_pool *call);
    /* computes y = x / max(|x|, 1e-12) row by row, or the backward pass of this if g has memory; y may be g */
    clv_status (*unit)(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t rows,
                       size_t width);
    clv_status (*loss)(clv_train_ops *ops, const clv_train_loss *call);
    clv_status (*squares)(clv_train_ops *ops, clv_mem x, size_t count, double *sum);
    clv_status (*update)(clv_train_ops *ops, const clv_train_rule *rule,
                         const clv_train_update *update);
    /* Waits for all commands of the queue after a failure, so that none disturbs the next call; returns `status`. */
    clv_status (*fail)(clv_train_ops *ops, clv_status status);
    void (*close)(clv_train_ops *ops);
};

/* Opens the ops on the first working device of the context, or in plain C ("host") if no device works. Writes the
 * device's label or "host" to `label`. */
clv_status clv_train_ops_open(clv_context *context, char *label, size_t room, clv_train_ops **ops);
/* Opens the ops on a queue. With `owns`, the ops take ownership of the queue, but not if this function fails. */
clv_status clv_train_ops_on(clv_queue *queue, bool owns, const clv_gemm_form *form,
                            clv_train_ops **ops);
/* Returns the queue of ops on a device, and sets *form to the form of their products. Not for ops in plain C. */
clv_queue *clv_train_ops_queue(const clv_train_ops *ops, clv_gemm_form *form);
clv_status clv_train_ops_plain(clv_train_ops **ops);
/* Opens the ops on device `index` of the context if it computes the same bits as the device of `like` and does not use
 * the same cores; *ops is NULL if not. */
clv_status clv_train_ops_alike(clv_context *context, size_t index, const clv_train_ops *like,
                               clv_train_ops **ops);

/* Memory of the ops that clv_room_fit enlarges on demand; its content is lost when it grows. */
typedef struct clv_room {
    void *memory;
    size_t count;
} clv_room;
clv_status clv_room_fit(clv_train_ops *ops, clv_room *room, size_t count);
void clv_room_free(clv_train_ops *ops, clv_room *room);

#endif
