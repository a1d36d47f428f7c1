/* SPDX-License-Identifier: Apache-2.0 */
/* Declares a part of a language model: the layers that one device holds, and the memory of a step through these
 * layers. */
#ifndef CLEAVE_HOST_TRANSFORMER_GENERATE_PART_H
#define CLEAVE_HOST_TRANSFORMER_GENERATE_PART_H

#include "cl/generate/shared.clh"
#include "host/transformer/generate/layout.h"
#include "runtime/blas/gemm.h"
#include "runtime/device/tensor_cache.h"

#include <cleave/generate.h>

/* A matrix W on the device, whose product W x goes to elements [at, at + rows) of y. Its groups of 16 rows begin at
 * byte `offset` of the layer's buffer. */
typedef struct clv_lm_linear {
    clv_quant type;
    size_t rows, columns; /* rows: a multiple of 16; columns: not padded */
    size_t blocks;        /* blocks per row */
    uint64_t offset;      /* bytes */
    size_t at;            /* where its results begin */
    bool biased;
    size_t bias; /* in floats, from the start of the buffer */
} clv_lm_linear;

typedef struct clv_lm_layer {
    clv_buffer *weights; /* set during a step only */
    uint64_t bytes;
    clv_lm_linear qkv[3]; /* neighbours of the same type are joined into one */
    size_t qkv_count;
    clv_lm_linear out, gate, up, down;
    bool paired; /* gate and up have the same type: they are one matrix, up after gate */
    size_t attn_norm, ffn_norm, q_norm, k_norm; /* offsets in floats from the start of the buffer */
} clv_lm_layer;

/* The most tokens of a step whose results have, for each token, the same bits as those of a step with this token
 * alone. */
enum { CLV_LM_FEW = 8 };

/* The two families of kernels of a language model. */
typedef enum clv_lm_family {
    CLV_LM_CORES, /* for CPUs: vectors, one work-item per work-group */
    CLV_LM_ITEMS, /* for GPUs: work-groups with local memory */
} clv_lm_family;

/* The numbers of a part's tensors in the device's tensor cache (runtime/device/tensor_cache.h), which holds them while
 * there is room. */
typedef enum clv_lm_kept {
    CLV_LM_KEPT_WORDS, /* the word table, in the first part; if tied, it may also make the scores */
    CLV_LM_KEPT_SCORES, /* the matrix that makes the scores, in the last part */
    CLV_LM_KEPT_LAYERS, /* the part's first layer; the other layers have the next numbers */
} clv_lm_kept;

typedef struct clv_lm_part {
    const clv_lm_model *model;
    clv_queue *queue;
    clv_lm_family family;
    bool half;            /* keys and values are stored as halves */
    bool int8;            /* CORES: a token's activations are rounded to 8 bits */
    size_t first, count;  /* the part holds layers [first, first + count) of the model */
    clv_lm_layer *layers; /* [count] */
    clv_lm_linear word_rows, scores;
    bool scored; /* true for the last part, which makes the scores */
    clv_lm_kept scores_in;
    clv_buffer *out_norm; /* in the last part */
    uint64_t weight_bytes;

    clv_gemm_form form; /* for products of many rows */
    size_t units;       /* the device's cores */
    size_t workers;     /* CORES: how many of them this process may use at once */
    size_t items;       /* most work-items of a product for one row of x */
    size_t rows_room;   /* tokens that the buffers below have room for */
    size_t angle_room;  /* positions that `angles` covers */
    clv_buffer *ids, *x, *h, *qkv, *seen, *inner, *gated, *parts, *scratch, *angles, *out;
    clv_buffer *turns;                  /* CORES: the layers' counters, 0 before a token */
    clv_buffer *row_parts;              /* CORES: number of parts of the keys, per token */
    uint32_t parts_of_rows[CLV_LM_FEW]; /* host copy of row_parts, read by a transfer in the step */
    clv_buffer *wide;                   /* ITEMS: weights as floats, for products of many rows */
} clv_lm_part;

/* The widths of a device's rows in floats, each rounded up to a multiple of 16. */
typedef struct clv_lm_widths {
    size_t x, q, kv, qkv, seen, ffn, vocabulary;
} clv_lm_widths;
clv_lm_widths clv_lm_widths_of(const clv_lm_config *config);

/* The keys and values of one sequence for each layer of a part. */
typedef struct clv_lm_cache {
    clv_buffer **keys, **values; /* [part->count] */
    size_t *rooms; /* [part->count] tokens; multiples of 32, which differ after a failed growth */
    size_t room;   /* the least of them */
} clv_lm_cache;

/* The first function returns the bytes of a layer's weights; the second returns the bytes of the word table or of the
 * matrix that makes the scores (which is the word table if tied). */
uint64_t clv_lm_layer_bytes(const clv_lm_model *model, size_t layer);
uint64_t clv_lm_table_bytes(const clv_lm_model *model, clv_lm_role role);
/* Returns the bytes of one token's keys and values in one layer. */
uint64_t clv_lm_cache_bytes(const clv_lm_config *config, bool half);
/* Returns the bytes of a step's scratch memory for `rows` tokens at once. */
uint64_t clv_lm_work_bytes(const clv_lm_config *config, size_t rows);

/* Uploads the weights of layers [first, first + count) to the queue's device. The part takes ownership of the queue,
 * even after a failure. `context` is the queue's context. */
clv_status clv_lm_part_open(clv_context *context, const clv_lm_model *model, clv_queue *queue,
                            size_t first, size_t count, bool half, bool int8, clv_lm_part *part);
void clv_lm_part_close(clv_lm_part *part);
/* Returns in *out one of the part's tensors, pinned until clv_tensor_put; uploads the tensor again if the cache has
 * evicted it. */
clv_status clv_lm_part_hold(const clv_lm_part *part, size_t which, clv_kept_tensor **out);

clv_status clv_lm_cache_grow(clv_lm_part *part, clv_lm_cache *cache, size_t used, size_t room);
void clv_lm_cache_free(const clv_lm_part *part, clv_lm_cache *cache);

/* Makes room for steps of `rows` tokens at positions below `positions`. */
clv_status clv_lm_part_fit(clv_lm_part *part, size_t rows, size_t positions);

/* A token of a step: the cache of its text's keys and values, and its position in this text. */
typedef struct clv_lm_row {
    const clv_lm_cache *cache;
    size_t position;
} clv_lm_row;

/* The first stage of a step: writes the embeddings of the tokens to part->x. The part's layers then change part->x,
 * which is the input of the next part. */
clv_status clv_lm_part_words(clv_lm_part *part, const int32_t *ids, size_t rows);
/* Runs `rows` tokens of one text, from position `first` on, through the part's layers. */
clv_status clv_lm_part_layers(clv_lm_part *part, const clv_lm_cache *cache, size_t first,
                              size_t rows);
/* Runs up to CLV_LM_FEW tokens through the layers: tokens of several texts, or consecutive tokens of one text. The
 * results of each token have the same bits as those of a step with this token alone. */
clv_status clv_lm_part_few(clv_lm_part *part, const clv_lm_row *rows, size_t count);
/* Writes the scores of row `row` of part->x to part->out. */
clv_status clv_lm_part_scores(clv_lm_part *part, size_t row);
/* Writes the scores of the first `count` rows of part->x to part->out, one after the other, with the same bits as
 * clv_lm_part_scores. */
clv_status clv_lm_part_scores_few(clv_lm_part *part, size_t count);

/* ---- kernels of the two families ------------------------------------------------------------------ */

/* A product W x for `rows` tokens; row t of x begins at x_offset + t * x_stride. */
typedef struct clv_lm_product {
    const clv_buffer *weights; /* the buffer that holds the matrix */
    const clv_lm_linear *w;
    clv_buffer *x;
    size_t x_offset, x_stride, rows;
    unsigned kind;
    const clv_buffer *norms; /* NORM: the buffer of the norm's weights */
    size_t norm, splits; /* norm, for NORM: offset in `norms`; splits, for PARTS: parts of keys */
    /* CORES: results have the bits of each token alone, and PARTS reads the numbers of parts in part->row_parts */
    bool few;
    const clv_buffer *biases;
    clv_buffer *y;
    size_t y_offset, y_stride;
    unsigned finish;
    uint64_t second; /* GATES: bytes from gate to up */
} clv_lm_product;

typedef struct clv_lm_attend {
    const clv_lm_layer *layer;
    clv_buffer *keys, *values;
    size_t room, first, rows, splits;
    size_t row; /* first row of the tokens in part->qkv, seen and parts */
} clv_lm_attend;
/* Returns the number of floats in part->parts for one token. */
size_t clv_lm_parts_floats(const clv_lm_config *config);

clv_status clv_lm_cores_embed(clv_lm_part *part, clv_buffer *words, size_t rows);
clv_status clv_lm_cores_product(clv_lm_part *part, const clv_lm_product *product);
clv_status clv_lm_cores_attend(clv_lm_part *part, const clv_lm_attend *attend);
/* clv_lm_cores_joined returns whether one token can pass this layer in a single launch; clv_lm_cores_layer enqueues
 * this launch. The layer's CLV_LM_TURNS counters in part->turns must be 0 before the launch. */
enum { CLV_LM_TURNS = 2 * CLV_LM_PHASES * CLV_LM_LINE };
bool clv_lm_cores_joined(const clv_lm_part *part, const clv_lm_layer *layer);
clv_status clv_lm_cores_layer(clv_lm_part *part, const clv_lm_attend *attend, size_t index);
enum { CLV_LM_SPLITS_MOST = 64 }; /* most parts of the keys */
size_t clv_lm_cores_splits(const clv_lm_part *part, size_t keys, size_t rows);
/* Returns the floats of scratch for the products of up to `rows` tokens. */
size_t clv_lm_cores_scratch(const clv_lm_part *part, size_t rows);

/* The corresponding functions for GPUs. On GPUs, a product's kind is never NORM or PARTS, and gate and up are two
 * products. */
clv_status clv_lm_items_choose(clv_context *context, clv_lm_part *part); /* sets part->form */
clv_status clv_lm_items_embed(clv_lm_part *part, clv_buffer *words, size_t rows);
clv_status clv_lm_items_product(clv_lm_part *part, const clv_lm_product *product);
clv_status clv_lm_items_attend(clv_lm_part *part, const clv_lm_attend *attend);
size_t clv_lm_items_splits(const clv_lm_part *part, size_t keys, size_t rows);
void clv_lm_items_scratch(const clv_lm_part *part, size_t rows, size_t *scratch, size_t *wide);

#endif
