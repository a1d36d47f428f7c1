/* SPDX-License-Identifier: Apache-2.0 */
/* An encoder that can go back: the parameters that learn in one block, those that stay held by the
 * ops, and what a batch leaves behind. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_NET_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_NET_H

#include "host/transformer/train/ops.h"

/* Where the weights of a layer begin in its memory; gradients and moments of the block lie at the same
 * places. */
typedef struct clv_net_layer {
    size_t qkv, qkv_bias, out, out_bias, norm1, norm1_bias, up, up_bias, down, down_bias, norm2,
        norm2_bias;
    void *held; /* its memory, as the ops hold it; NULL: the block of what learns */
} clv_net_layer;

/* What a layer keeps of a batch for the way back. `x` is its input. */
typedef struct clv_net_trace {
    clv_room x, qkv, tops, seen, sum1, moments1, x1, up, inner, sum2, moments2;
} clv_net_trace;

typedef struct clv_net {
    clv_train_ops *ops;
    clv_model_config config;
    size_t frozen;     /* layers that stay */
    bool frozen_embed; /* and the embeddings */
    bool bare_embed;   /* word + position alone: no type, no norm (a test's model) */
    const clv_model *model;
    size_t base;                                  /* the model's parameters before it stay */
    size_t word, position, type, norm, norm_bias; /* from the first parameter of all on */
    clv_net_layer *layers;                        /* of those that learn */
    void *weights, *gradient; /* [count - base], and what the caller has behind them */
    clv_net_trace *traces;    /* [layers - frozen + 1], and one for all that stay */
    clv_room embedded, embed_moments;
    clv_room g2, wide,
        delta; /* gradients on their way: [tokens, D], [tokens, 3 D or F], [H, tokens] */
} clv_net;

/* Places of the weights that learn, in the order of clv_model_parameters; brings those that stay. The
 * model stays as long as the net. `frozen_embed` is implied by layers that stay. */
clv_status clv_net_open(clv_train_ops *ops, const clv_model *model, size_t frozen,
                        bool frozen_embed, clv_net *net);
void clv_net_close(clv_net *net);
void clv_net_trace_free(clv_train_ops *ops, clv_net_trace *trace);

/* The rows behind the last layer [tokens, D]. */
clv_status clv_net_forward(clv_net *net, const clv_train_batch *batch, clv_mem *rows);
/* `g` [tokens, D] is dL/d(rows), and is spoilt; gradients of all that does not stay are written. */
clv_status clv_net_backward(clv_net *net, const clv_train_batch *batch, clv_mem g);

/* The rows of the tables' gradients that the batch has written are 0 again, as they are at first: to
 * be called behind a step. */
clv_status clv_net_forget(clv_net *net, const clv_train_batch *batch);

/* One layer, from `x` to `y` (y may be x where nothing is kept), and back: g becomes dL/dx. */
clv_status clv_net_layer_forward(clv_net *net, const clv_net_layer *layer, clv_net_trace *trace,
                                 const clv_train_batch *batch, clv_mem y);
clv_status clv_net_layer_backward(clv_net *net, const clv_net_layer *layer, clv_net_trace *trace,
                                  const clv_train_batch *batch, clv_mem g, bool last);

/* ---- a batch ---------------------------------------------------------------------------------------- */

typedef struct clv_batch_rooms {
    clv_train_batch batch;
    clv_room ids, rows, blocks, mask, list, segments;
} clv_batch_rooms;

/* Texts as clv_encode takes them, with their tables; `mask` [tokens] or NULL. */
clv_status clv_batch_fill(clv_train_ops *ops, clv_batch_rooms *rooms, const int32_t *ids,
                          const size_t *offsets, size_t texts, const int32_t *mask);
void clv_batch_free(clv_train_ops *ops, clv_batch_rooms *rooms);

#endif
