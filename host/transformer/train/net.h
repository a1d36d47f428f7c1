/* SPDX-License-Identifier: Apache-2.0 */
/* Declares an encoder with a backward pass: the trainable parameters lie in one block, the ops hold the frozen ones,
 * and the forward pass stores intermediate results of a batch for the backward pass. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_NET_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_NET_H

#include "host/transformer/train/ops.h"

/* The offsets at which the weights of a layer begin in its memory. The gradients and moments of trainable weights have
 * the same offsets in their own blocks. */
typedef struct clv_net_layer {
    size_t qkv, qkv_bias, out, out_bias, norm1, norm1_bias, up, up_bias, down, down_bias, norm2,
        norm2_bias;
    void *held; /* frozen: the layer's memory, held by the ops; NULL: trainable, in net->weights */
} clv_net_layer;

/* The intermediate results of a batch that a layer stores for the backward pass. `x` is the layer's input. */
typedef struct clv_net_trace {
    clv_room x, qkv, tops, seen, sum1, moments1, x1, up, inner, sum2, moments2;
} clv_net_trace;

typedef struct clv_net {
    clv_train_ops *ops;
    clv_model_config config;
    size_t frozen;     /* number of frozen layers, from the first on */
    bool frozen_embed; /* the embeddings are frozen too */
    bool bare_embed;   /* word + position alone: no type, no norm (a test's model) */
    const clv_model *model;
    size_t base;                                  /* number of the first trainable parameter */
    size_t word, position, type, norm, norm_bias; /* counted from the model's first parameter */
    clv_net_layer *layers;                        /* the trainable layers */
    void *weights, *gradient;           /* [count - base], followed by the caller's head, if any */
    size_t weights_from, gradient_from; /* number of the first parameter in the memory above */
    clv_net_trace *traces;              /* [layers - frozen + 1], and one for all frozen layers */
    clv_room embedded, embed_moments;
    clv_room g2, wide,
        delta; /* intermediate gradients: [tokens, D], [tokens, 3 D or F], [H, tokens] */
} clv_net;

/* Lays out the trainable weights in the order of clv_model_parameters, and uploads the frozen weights to the device.
 * The model must outlive the net. Frozen layers imply `frozen_embed`. */
clv_status clv_net_open(clv_train_ops *ops, const clv_model *model, size_t frozen,
                        bool frozen_embed, clv_net *net);
void clv_net_close(clv_net *net);
void clv_net_trace_free(clv_train_ops *ops, clv_net_trace *trace);

/* Runs a batch through the net; *rows is the last layer's output [tokens, D]. */
clv_status clv_net_forward(clv_net *net, const clv_train_batch *batch, clv_mem *rows);
/* Runs the backward pass and writes the gradients of all trainable parameters. `g` [tokens, D] is dL/d(rows); the
 * function overwrites it. */
clv_status clv_net_backward(clv_net *net, const clv_train_batch *batch, clv_mem g);

/* These functions run the parts of both passes. The embeddings alone lead from the texts to the input of the first
 * layer in clv_net_rows(net, 0); the layers alone lead from there to the output in clv_net_rows(net, layers). */
clv_status clv_net_embed(clv_net *net, const clv_train_batch *batch);
clv_status clv_net_embed_back(clv_net *net, const clv_train_batch *batch, clv_mem g);
clv_status clv_net_layers(clv_net *net, const clv_train_batch *batch);
clv_status clv_net_layers_back(clv_net *net, const clv_train_batch *batch, clv_mem g);
/* Returns the memory of the input rows of layer number `layer`. */
clv_room *clv_net_rows(const clv_net *net, size_t layer);
/* Returns the number of the first weight of the trainable layers; the last one precedes the head. */
size_t clv_net_layers_at(const clv_net *net);

/* Clears the rows that the batch has written in the gradients of the tables. Call it after each step, because the next
 * step expects zeros in these rows. */
clv_status clv_net_forget(clv_net *net, const clv_train_batch *batch);

/* The first function runs one layer from the trace's `x` to `y`, which may be `x` if no backward pass follows. The
 * second runs the backward pass of this layer: g becomes dL/dx. */
clv_status clv_net_layer_forward(clv_net *net, const clv_net_layer *layer, clv_net_trace *trace,
                                 const clv_train_batch *batch, clv_mem y);
clv_status clv_net_layer_backward(clv_net *net, const clv_net_layer *layer, clv_net_trace *trace,
                                  const clv_train_batch *batch, clv_mem g, bool last);

/* ---- a batch ---------------------------------------------------------------------------------------- */

typedef struct clv_batch_rooms {
    clv_train_batch batch;
    clv_room ids, rows, blocks, mask, list, segments;
} clv_batch_rooms;

/* Uploads texts, which have the form that clv_encode takes, and the tables that are made from them. `mask` is [tokens]
 * or NULL. */
clv_status clv_batch_fill(clv_train_ops *ops, clv_batch_rooms *rooms, const int32_t *ids,
                          const size_t *offsets, size_t texts, const int32_t *mask);
void clv_batch_free(clv_train_ops *ops, clv_batch_rooms *rooms);

#endif
