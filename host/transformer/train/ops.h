/* SPDX-License-Identifier: Apache-2.0 */
/* What a training step is made of, there and back, on a device or in plain C: the step itself
 * (encoder.c, heads.c) is written once for both. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_OPS_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_OPS_H

#include "host/transformer/backward/back.h"
#include "host/transformer/weights.h"

#include <cleave/train.h>

/* Numbers of 4 bytes in the ops' memory, from number `at` on; memory NULL: not there. */
typedef struct clv_mem {
    void *memory;
    size_t at;
} clv_mem;

/* Texts without padding, in the ops' memory. */
typedef struct clv_train_batch {
    size_t tokens, texts, longest; /* longest: tokens of a text */
    void *ids;                     /* [tokens][2]: id, position */
    void *rows;                    /* [texts][2]: first token, number */
    void *blocks;                  /* [block_count]: of queries, and so of keys */
    void *mask;                    /* int32 [tokens]: is it a key, does it count; NULL: all */
    void *list;                    /* tokens in the order of their ids, then of their positions */
    void *segments;                /* of the list: word_segments, then position_segments */
    size_t block_count, word_segments, position_segments;
} clv_train_batch;

/* y = alpha x W^T + b + add, W [n,k]. Back: dx = alpha g W + dx_add, dw = alpha g^T x, db = sum of
 * the rows of g; those whose memory is NULL are not made. */
typedef struct clv_train_linear {
    size_t rows, n, k;
    float alpha;
    bool held; /* w lies as `hold` has brought it; there only */
    clv_mem x, w, b, add, y;
    clv_mem g, dx, dx_add, dw, db;
} clv_train_linear;

/* Weights that stay, while commands that read them are enqueued. */
typedef struct clv_train_held {
    void *memory;
    void *pin; /* the ops' own */
} clv_train_held;

/* LayerNorm or RMSNorm (no bias), rows [rows, width]; `moments` [rows][2] is written there and read on
 * the way back. Back: dx is what flows through plus dx_add (memory NULL: 0). */
typedef struct clv_train_norm {
    size_t rows, width;
    float eps;
    bool rms;
    clv_mem x, weight, bias, y, moments;
    clv_mem g, dx, dx_add, dweight, dbias; /* dx may be g or dx_add; dweight NULL: not wanted */
} clv_train_norm;

/* Self-attention of every text; q, k, v lie in rows [tokens, width + 2 kv] behind each other, kv the
 * width of kv_heads heads, gradients as well. `tops` [heads][tokens][2], `delta` [heads][tokens]. */
typedef struct clv_train_attention {
    const clv_train_batch *batch;
    size_t heads, width; /* width: of all heads */
    size_t kv_heads;     /* divides heads; 0: heads */
    bool causal;         /* a token sees itself and those before it */
    clv_mem qkv, o, tops;
    clv_mem g, dqkv, delta;
} clv_train_attention;

/* Rotary positions in place: rows [rows, heads * 2 half] `stride` apart, row r is at position first +
 * r of `turns` (clv_rope_turns). */
typedef struct clv_train_rope {
    clv_mem x, turns;
    size_t stride, first, rows, heads, half;
    bool back;
} clv_train_rope;

/* y = word[id] + position[p] + type. Back: rows of the tables' gradients that were looked up; with
 * g.memory NULL they become 0 again, so that tables are cleared once and not at every step. */
typedef struct clv_train_embed {
    const clv_train_batch *batch;
    size_t width;
    clv_mem word, position, type, y;
    clv_mem g, dword, dposition, dtype; /* dtype NULL: not wanted */
} clv_train_embed;

typedef struct clv_train_pool {
    const clv_train_batch *batch;
    size_t width;
    clv_model_pooling kind;
    clv_mem x, y;
    clv_mem g, dx;
} clv_train_pool;

/* Rows of scores x [rows, classes]: losses, and g = dL/dx times `scale`; g may be x. */
typedef struct clv_train_loss {
    size_t rows, classes;
    clv_mem x, labels, loss, g;
    float scale;
} clv_train_loss;

typedef struct clv_train_rule {
    clv_optimizer kind;
    double beta1, beta2, eps, momentum;
} clv_train_rule;

/* One part of the parameters: weights, gradient and moments lie at the same place of four blocks. */
typedef struct clv_train_update {
    void *weights, *gradient, *first, *second;
    size_t at, count;
    float scale;
    double rate, decay;
    uint64_t step; /* from 1 */
} clv_train_update;

typedef struct clv_train_ops clv_train_ops;
struct clv_train_ops {
    clv_block_form form; /* of attention's blocks */
    clv_status (*take)(clv_train_ops *ops, size_t count, void **memory);
    void (*drop)(clv_train_ops *ops, void *memory);
    clv_status (*put)(clv_train_ops *ops, clv_mem to, const void *from, size_t count);
    clv_status (*get)(clv_train_ops *ops, clv_mem from, void *to, size_t count);
    clv_status (*clear)(clv_train_ops *ops, clv_mem what, size_t count);
    /* Pieces of one block of the caller's, which lie there in this order and stay as long as the ops:
     * on a device they are brought once, matrices packed, and kept in its tensor cache under the
     * number `part`. Piece i begins at at[i] of the memory. */
    clv_status (*hold)(clv_train_ops *ops, size_t part, const clv_weight_piece *pieces,
                       size_t count, size_t *at, clv_train_held *held);
    void (*let_go)(clv_train_ops *ops, const clv_train_held *held);
    clv_status (*linear)(clv_train_ops *ops, const clv_train_linear *call);
    clv_status (*linear_back)(clv_train_ops *ops, const clv_train_linear *call);
    clv_status (*norm)(clv_train_ops *ops, const clv_train_norm *call);
    clv_status (*norm_back)(clv_train_ops *ops, const clv_train_norm *call);
    clv_status (*attend)(clv_train_ops *ops, const clv_train_attention *call);
    clv_status (*attend_back)(clv_train_ops *ops, const clv_train_attention *call);
    /* y = act(x); with g: y = g act'(x), y may be g */
    clv_status (*activate)(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t count,
                           clv_activation kind);
    /* y [rows, width] = act(a) b, x = [a, b] [rows, 2 width]; with g [rows, width]: y = dL/dx */
    clv_status (*gate)(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t rows,
                       size_t width, clv_activation kind);
    clv_status (*rope)(clv_train_ops *ops, const clv_train_rope *call);
    clv_status (*embed)(clv_train_ops *ops, const clv_train_embed *call);
    clv_status (*embed_back)(clv_train_ops *ops, const clv_train_embed *call);
    clv_status (*pool)(clv_train_ops *ops, const clv_train_pool *call);
    clv_status (*pool_back)(clv_train_ops *ops, const clv_train_pool *call);
    /* y = x / max(|x|, 1e-12) by rows; with g: the way back, y may be g */
    clv_status (*unit)(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t rows,
                       size_t width);
    clv_status (*loss)(clv_train_ops *ops, const clv_train_loss *call);
    clv_status (*squares)(clv_train_ops *ops, clv_mem x, size_t count, double *sum);
    clv_status (*update)(clv_train_ops *ops, const clv_train_rule *rule,
                         const clv_train_update *update);
    /* Waits after a failure, which it passes on: the next call meets nothing of it. */
    clv_status (*fail)(clv_train_ops *ops, clv_status status);
    void (*close)(clv_train_ops *ops);
};

/* On the first device of the context that works, whose label goes to `label`; in plain C ("host")
 * where there is none. */
clv_status clv_train_ops_open(clv_context *context, char *label, size_t room, clv_train_ops **ops);
/* On a queue that stays the caller's. */
clv_status clv_train_ops_on(clv_queue *queue, const clv_gemm_form *form, clv_train_ops **ops);
clv_status clv_train_ops_plain(clv_train_ops **ops);

/* Memory that grows and keeps nothing when it does. */
typedef struct clv_room {
    void *memory;
    size_t count;
} clv_room;
clv_status clv_room_fit(clv_train_ops *ops, clv_room *room, size_t count);
void clv_room_free(clv_train_ops *ops, clv_room *room);

#endif
