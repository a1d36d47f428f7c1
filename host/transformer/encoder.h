/* SPDX-License-Identifier: Apache-2.0 */
/* An encoder as a job: unit u is text u. */
#ifndef CLEAVE_HOST_TRANSFORMER_ENCODER_H
#define CLEAVE_HOST_TRANSFORMER_ENCODER_H

#include "base/thread.h"
#include "host/transformer/blocks.h"
#include "runtime/device/tensor_cache.h"

/* Where the parts of a layer begin, in floats. */
typedef struct clv_layer_place {
    size_t qkv, out, up, down;                     /* in the layer's tensor */
    size_t qkv_bias, out_bias, up_bias, down_bias; /* in `parameters` */
    size_t norm1_weight, norm1_bias, norm2_weight, norm2_bias;
} clv_layer_place;

/* A model on one device. The matrices live in the device's tensor cache, one tensor per layer; so does the
 * word table, unless the device reads it in place. */
typedef struct clv_encoder_device {
    clv_device *device;
    clv_gemm_form form;
    clv_buffer *word, *parameters; /* word: used in place; NULL: in the tensor cache */
    size_t layer_elements;
    bool half;                                     /* matrices are stored as halves */
    bool rehearsed;                                /* made by a rehearsal, without weights */
    size_t position, type, norm_weight, norm_bias; /* in `parameters` */
    size_t project_bias, relative;                 /* likewise, where the model has them */
    clv_layer_place *layers;
} clv_encoder_device;

struct clv_encoder {
    clv_context *context;
    clv_model_config config;
    clv_model_weights weights;
    size_t batch_tokens;
    bool hidden, half; /* half: matrices are kept as halves */
    float **turned;    /* [config.step_count]: matrices of dense steps [in, out]; NULL elsewhere */
    clv_mutex lock;    /* guards the table below */
    clv_encoder_device *devices[CLV_MAX_WORKERS];
    size_t device_count;
    size_t skipped;         /* first tokens of every text that poolings leave out */
    clv_progress *progress; /* told by the calls from now on */
    void *progress_user;
};

/* Returns the model on the queue's device; the first call for a device uploads it. */
clv_status clv_encoder_on_device(clv_encoder *encoder, clv_queue *queue, clv_encoder_device **out);
void clv_encoder_device_free(const clv_encoder *encoder, clv_encoder_device *device);

/* Return a layer's packed matrices and the word table (NULL where it is used in place), pinned in the tensor
 * cache. */
clv_status clv_encoder_layer(const clv_encoder *encoder, const clv_encoder_device *device,
                             clv_queue *queue, size_t layer, clv_kept_tensor **out);
clv_status clv_encoder_word(const clv_encoder *encoder, const clv_encoder_device *device,
                            clv_queue *queue, clv_kept_tensor **out);
/* Returns the matrix that converts rows of the tables to the layers' width, pinned; NULL if there is none. */
clv_status clv_encoder_project(const clv_encoder *encoder, const clv_encoder_device *device,
                               clv_queue *queue, clv_kept_tensor **out);

enum { CLV_ENCODER_SIDES = 2 }; /* attention blocks of 16 and of 64 queries */

/* One call of clv_encode. */
typedef struct clv_encode_plan {
    clv_encoder *encoder;
    const int32_t *ids;
    const size_t *offsets;
    size_t texts;
    float *out;
    int32_t *tokens; /* [tokens][2]: id, position */
    int32_t *rows;   /* [texts][2]: first token to pool, number */
    double *squares; /* [texts + 1]: sum of squared lengths before text i */
    struct {
        clv_attention_block *blocks;
        size_t *first; /* [texts + 1] */
    } sides[CLV_ENCODER_SIDES];
} clv_encode_plan;

clv_cost clv_encode_cost(size_t first, size_t count, void *plan);
clv_status clv_encode_setup(clv_worker *worker, void *plan);
clv_status clv_encode_enqueue(clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_encode_commit(const clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_encode_reference(clv_slot *slot, size_t first, size_t count, void *plan);

enum { CLV_ENCODE_OUT = 0 }; /* result memory: the chunk's part of `out` */

/* Checks that offsets never decrease, that every text fits the model's positions and that every id is in its
 * vocabulary; the error message begins with `what`. */
clv_status clv_texts_check(const char *what, const clv_model_config *config, const int32_t *ids,
                           const size_t *offsets, size_t texts);

/* Returns how many floats of `out` come before text `text`. */
size_t clv_encode_out(const clv_encode_plan *plan, size_t text);

/* Returns how many floats a chunk's result has. The vectors of each pooling follow each other, one per text; with
 * `hidden`, one per token. */
size_t clv_encode_result(const clv_encode_plan *plan, size_t first, size_t count);

/* ---- families: family.c ---------------------------------------------------------------------------- */

/* Returns the width of the tables. */
size_t clv_table_width(const clv_model_config *config);
/* Returns the row of the table of relative positions for a key `ahead` tokens after its query (negative: before). */
size_t clv_relative_bucket(ptrdiff_t ahead, size_t buckets);
/* The bias of a head for query i and key j is element [head][clv_relative_reach + i - j] of a table
 * [heads][2 * clv_relative_reach], which clv_relative_fill writes. */
size_t clv_relative_reach(const clv_model_config *config);
void clv_relative_fill(const clv_model_config *config, const float *relative, float *table);
/* Sets the position row of every token of a text: tokens[2 t] is its id, tokens[2 t + 1] the row. */
void clv_positions_fill(const clv_model_config *config, int32_t *tokens, size_t count);

/* ---- processing of pooled vectors on the host: tail.c ---------------------------------------------- */

/* Returns whether vectors need it at all. If so, devices do not normalise them. */
bool clv_encode_has_tail(const clv_model_config *config);
/* Prepare the steps of an encoder, and free this memory. */
clv_status clv_encode_tail_make(clv_encoder *encoder);
void clv_encode_tail_free(clv_encoder *encoder);
/* Converts a chunk's result to vectors [count, output]. */
clv_status clv_encode_tail(const clv_encode_plan *plan, size_t first, size_t count,
                           const float *result, float *out);

#endif
