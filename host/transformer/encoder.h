/* SPDX-License-Identifier: Apache-2.0 */
/* Declares an encoder, and the functions of the job that encodes texts: unit u of the job is text u. */
#ifndef CLEAVE_HOST_TRANSFORMER_ENCODER_H
#define CLEAVE_HOST_TRANSFORMER_ENCODER_H

#include "base/thread.h"
#include "host/transformer/blocks.h"
#include "runtime/device/tensor_cache.h"

/* The offsets, in elements, at which the weights of a layer begin. */
typedef struct clv_layer_place {
    size_t qkv, out, up, down;                     /* in the layer's tensor */
    size_t qkv_bias, out_bias, up_bias, down_bias; /* in `parameters` */
    size_t norm1_weight, norm1_bias, norm2_weight, norm2_bias;
} clv_layer_place;

/* A model on one device. The device's tensor cache holds the matrices, one tensor per layer, and the word table, unless
 * the device reads this table in the host's memory. */
typedef struct clv_encoder_device {
    clv_device *device;
    clv_gemm_form form;
    clv_buffer *word, *parameters; /* word: in the host's memory; NULL: in the tensor cache */
    size_t layer_elements;
    bool half;                                     /* matrices are stored as halves */
    bool rehearsed;                                /* made by a rehearsal, without weights */
    size_t position, type, norm_weight, norm_bias; /* offsets in `parameters` */
    size_t project_bias, relative;                 /* offsets there, if the model has these */
    clv_layer_place *layers;
} clv_encoder_device;

struct clv_encoder {
    clv_context *context;
    clv_model_config config;
    clv_model_weights weights;
    size_t batch_tokens;
    bool hidden, half;  /* hidden: one vector per token; half: matrices are stored as halves */
    bool half_products; /* and rows are rounded to halves where a device multiplies those faster */
    float **turned; /* [config.step_count]: matrices [in, out] of dense steps; NULL: other step */
    clv_mutex lock; /* guards `devices` */
    clv_encoder_device *devices[CLV_MAX_WORKERS];
    size_t device_count;
    size_t skipped;         /* number of tokens at the start of a text that poolings leave out */
    clv_progress *progress; /* called by later calls of clv_encode */
    void *progress_user;
};

/* Returns the model on the queue's device; the first call for a device uploads it. */
clv_status clv_encoder_on_device(clv_encoder *encoder, clv_queue *queue, clv_encoder_device **out);
void clv_encoder_device_free(const clv_encoder *encoder, clv_encoder_device *device);

/* The first function returns a layer's packed matrices, the second the word table (NULL if the device reads this table
 * in the host's memory). Both are pinned in the tensor cache. */
clv_status clv_encoder_layer(const clv_encoder *encoder, const clv_encoder_device *device,
                             clv_queue *queue, size_t layer, clv_kept_tensor **out);
clv_status clv_encoder_word(const clv_encoder *encoder, const clv_encoder_device *device,
                            clv_queue *queue, clv_kept_tensor **out);
/* Returns the matrix that converts rows of the tables to the layers' width, pinned in the tensor cache; NULL if the
 * model has no such matrix. */
clv_status clv_encoder_project(const clv_encoder *encoder, const clv_encoder_device *device,
                               clv_queue *queue, clv_kept_tensor **out);

enum { CLV_ENCODER_SIDES = 2 }; /* sizes of attention blocks: 16 and 64 queries */

/* One call of clv_encode. */
typedef struct clv_encode_plan {
    clv_encoder *encoder;
    const int32_t *ids;
    const size_t *offsets;
    size_t texts;
    float *out;
    int32_t *tokens; /* [tokens][2]: id, position */
    int32_t *rows;   /* [texts][2]: first token to pool, number of tokens to pool */
    double *squares; /* [texts + 1]: sum of squared lengths before text i */
    struct {
        clv_attention_block *blocks;
        size_t *first; /* [texts + 1]: first block of each text */
    } sides[CLV_ENCODER_SIDES];
} clv_encode_plan;

clv_cost clv_encode_cost(size_t first, size_t count, void *plan);
clv_status clv_encode_setup(clv_worker *worker, void *plan);
clv_status clv_encode_enqueue(clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_encode_commit(const clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_encode_reference(clv_slot *slot, size_t first, size_t count, void *plan);

enum { CLV_ENCODE_OUT = 0 }; /* key of the result memory: the chunk's part of `out` */

/* Checks that offsets never decrease, that every text fits the model's positions and that every id is in its
 * vocabulary; the error message begins with `what`. */
clv_status clv_texts_check(const char *what, const clv_model_config *config, const int32_t *ids,
                           const size_t *offsets, size_t texts);

/* Returns the number of floats of `out` before the vectors of text number `text`. */
size_t clv_encode_out(const clv_encode_plan *plan, size_t text);

/* Returns the number of floats of a chunk's result. For each pooling in turn, the result holds one vector per text;
 * with `hidden`, it holds one vector per token. */
size_t clv_encode_result(const clv_encode_plan *plan, size_t first, size_t count);

/* ---- families: family.c ---------------------------------------------------------------------------- */

/* Returns the width of a row of the word, position and type tables. */
size_t clv_table_width(const clv_model_config *config);
/* Returns the row of the table of relative positions for a key `ahead` tokens after its query (negative: before). */
size_t clv_relative_bucket(ptrdiff_t ahead, size_t buckets);
/* clv_relative_fill writes a table [heads][2 * reach], where clv_relative_reach returns `reach`: the bias of a head for
 * query i and key j is element [head][reach + i - j]. */
size_t clv_relative_reach(const clv_model_config *config);
void clv_relative_fill(const clv_model_config *config, const float *relative, float *table);
/* Sets the row of the position table for every token of a text: tokens[2 t] is the id of token t, and the function
 * writes the row to tokens[2 t + 1]. */
void clv_positions_fill(const clv_model_config *config, int32_t *tokens, size_t count);

/* ---- processing of pooled vectors on the host: tail.c ---------------------------------------------- */

/* Returns whether the host must process pooled vectors. If so, devices do not normalise them. */
bool clv_encode_has_tail(const clv_model_config *config);
/* clv_encode_tail_make prepares the processing steps of an encoder; the second function frees their memory. */
clv_status clv_encode_tail_make(clv_encoder *encoder);
void clv_encode_tail_free(clv_encoder *encoder);
/* Converts a chunk's result to the encoder's vectors [count, output]. */
clv_status clv_encode_tail(const clv_encode_plan *plan, size_t first, size_t count,
                           const float *result, float *out);

#endif
