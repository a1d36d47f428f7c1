/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a language model that one device has, and what a step through them needs there. */
#ifndef CLEAVE_HOST_TRANSFORMER_GENERATE_PART_H
#define CLEAVE_HOST_TRANSFORMER_GENERATE_PART_H

#include "cl/generate/shared.clh"
#include "host/transformer/generate/layout.h"
#include "runtime/blas/gemm.h"
#include "runtime/device/tensor_cache.h"

#include <cleave/generate.h>

/* A matrix on the device: y [at, at + rows) = W x. Its groups of 16 rows lie in the layer's buffer. */
typedef struct clv_lm_linear {
    clv_quant type;
    size_t rows, columns; /* rows: whole groups; columns as the model has them */
    size_t blocks;        /* of a row */
    uint64_t offset;      /* bytes */
    size_t at;            /* where its results begin */
    bool biased;
    size_t bias; /* float of the buffer */
} clv_lm_linear;

typedef struct clv_lm_layer {
    clv_buffer *weights; /* during a step */
    uint64_t bytes;
    clv_lm_linear qkv[3]; /* those of one type that lie side by side are one */
    size_t qkv_count;
    clv_lm_linear out, gate, up, down;
    bool paired; /* gate and up are of one type: up lies behind gate */
    size_t attn_norm, ffn_norm, q_norm, k_norm; /* floats of the buffer */
} clv_lm_layer;

enum { CLV_LM_FEW = 8 }; /* tokens that have the bits of one token alone, worked on together */

/* How a device's kernels are made. */
typedef enum clv_lm_family {
    CLV_LM_CORES, /* vectors, work-groups of one */
    CLV_LM_ITEMS, /* work-groups and local memory */
} clv_lm_family;

/* A part's tensors, by number: they stay on the device while there is room (runtime/device/tensor_cache.h). */
typedef enum clv_lm_kept {
    CLV_LM_KEPT_WORDS,  /* the first part's; its scores too where they are tied */
    CLV_LM_KEPT_SCORES, /* the last part's */
    CLV_LM_KEPT_LAYERS, /* then layer by layer */
} clv_lm_kept;

typedef struct clv_lm_part {
    const clv_lm_model *model;
    clv_queue *queue;
    clv_lm_family family;
    bool half;            /* keys and values are halves */
    bool int8;            /* CORES: a token's activations are rounded to 8 bits */
    size_t first, count;  /* its layers */
    clv_lm_layer *layers; /* [count] */
    clv_lm_linear word_rows, scores;
    bool scored; /* the last part, which makes scores */
    clv_lm_kept scores_in;
    clv_buffer *out_norm; /* the last part's */
    uint64_t weight_bytes;

    clv_gemm_form form; /* of products of many rows */
    size_t units;       /* cores */
    size_t workers;     /* CORES: of these, as many as this process may use at once */
    size_t items;       /* work-items of a product of one row */
    size_t rows_room;   /* tokens that the buffers below have room for */
    size_t angle_room;  /* positions that `angles` has */
    clv_buffer *ids, *x, *h, *qkv, *seen, *inner, *gated, *parts, *scratch, *angles, *out;
    clv_buffer *turns;                  /* CORES: counters of the layers, 0 before a token */
    clv_buffer *row_parts;              /* CORES: parts of the keys of each of a few tokens */
    uint32_t parts_of_rows[CLV_LM_FEW]; /* what is on its way there until the step has ended */
    clv_buffer *wide;                   /* ITEMS: weights as floats, for products of many rows */
} clv_lm_part;

/* Widths of rows, in whole groups of 16. */
typedef struct clv_lm_widths {
    size_t x, q, kv, qkv, seen, ffn, vocabulary;
} clv_lm_widths;
clv_lm_widths clv_lm_widths_of(const clv_lm_config *config);

/* Keys and values of one sequence, layer by layer. */
typedef struct clv_lm_cache {
    clv_buffer **keys, **values; /* [count of the part] */
    size_t room;                 /* tokens; a multiple of 32 */
} clv_lm_cache;

/* Bytes of a layer's weights, of the word table and of the matrix that makes scores (the table where tied). */
uint64_t clv_lm_layer_bytes(const clv_lm_model *model, size_t layer);
uint64_t clv_lm_table_bytes(const clv_lm_model *model, clv_lm_role role);
/* Bytes of a token's keys and values in one layer. */
uint64_t clv_lm_cache_bytes(const clv_lm_config *config, bool half);
/* Bytes of a step's own memory for that many tokens at once. */
uint64_t clv_lm_work_bytes(const clv_lm_config *config, size_t rows);

/* Brings the weights of [first, first + count) to the queue's device; the queue is the part's from then
 * on, also after a failure. `context` is the queue's. */
clv_status clv_lm_part_open(clv_context *context, const clv_lm_model *model, clv_queue *queue,
                            size_t first, size_t count, bool half, bool int8, clv_lm_part *part);
void clv_lm_part_close(clv_lm_part *part);
/* One of the part's tensors, brought again where it had to go; pinned until clv_tensor_put. */
clv_status clv_lm_part_hold(const clv_lm_part *part, size_t which, clv_kept_tensor **out);

clv_status clv_lm_cache_grow(clv_lm_part *part, clv_lm_cache *cache, size_t used, size_t room);
void clv_lm_cache_free(const clv_lm_part *part, clv_lm_cache *cache);

/* Room for steps of `rows` tokens at positions below `positions`. */
clv_status clv_lm_part_fit(clv_lm_part *part, size_t rows, size_t positions);

/* A token of a step: where its keys and values go, and which token of its text it is. */
typedef struct clv_lm_row {
    const clv_lm_cache *cache;
    size_t position;
} clv_lm_row;

/* A step through the part's layers: part->x becomes what the next part goes on with. */
clv_status clv_lm_part_words(clv_lm_part *part, const int32_t *ids, size_t rows);
/* `rows` tokens of one text from position `first` on. */
clv_status clv_lm_part_layers(clv_lm_part *part, const clv_lm_cache *cache, size_t first,
                              size_t rows);
/* Up to CLV_LM_FEW tokens, of several texts or of one in their order: each has the bits that it has alone. */
clv_status clv_lm_part_few(clv_lm_part *part, const clv_lm_row *rows, size_t count);
/* Scores of row `row` of part->x, to part->out. */
clv_status clv_lm_part_scores(clv_lm_part *part, size_t row);
/* Scores of the first `count` rows, one behind the other: the bits of clv_lm_part_scores. */
clv_status clv_lm_part_scores_few(clv_lm_part *part, size_t count);

/* ---- kernels of the two families ------------------------------------------------------------------ */

/* One product for `rows` tokens; row t of x begins at x_offset + t * x_stride. */
typedef struct clv_lm_product {
    const clv_buffer *weights; /* of the matrix */
    const clv_lm_linear *w;
    clv_buffer *x;
    size_t x_offset, x_stride, rows;
    unsigned kind;
    const clv_buffer *norms; /* NORM: buffer and float of the norm's weights */
    size_t norm, splits;     /* PARTS: parts of the keys */
    bool few; /* CORES: with the bits of one token each; PARTS: as part->row_parts says */
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
    size_t row; /* of part->qkv, seen and parts, where the tokens begin */
} clv_lm_attend;
/* Floats of part->parts for one token. */
size_t clv_lm_parts_floats(const clv_lm_config *config);

clv_status clv_lm_cores_embed(clv_lm_part *part, clv_buffer *words, size_t rows);
clv_status clv_lm_cores_product(clv_lm_part *part, const clv_lm_product *product);
clv_status clv_lm_cores_attend(clv_lm_part *part, const clv_lm_attend *attend);
/* Whether one token goes through this layer in one launch; then that launch. The layer's CLV_LM_TURNS counters
 * of part->turns are 0 before. */
enum { CLV_LM_TURNS = 2 * CLV_LM_PHASES * CLV_LM_LINE };
bool clv_lm_cores_joined(const clv_lm_part *part, const clv_lm_layer *layer);
clv_status clv_lm_cores_layer(clv_lm_part *part, const clv_lm_attend *attend, size_t index);
enum { CLV_LM_SPLITS_MOST = 64 }; /* parts of the keys */
size_t clv_lm_cores_splits(const clv_lm_part *part, size_t keys, size_t rows);
/* Floats of scratch that products of up to `rows` tokens need. */
size_t clv_lm_cores_scratch(const clv_lm_part *part, size_t rows);

/* The same for GPUs. x of a product is never NORM or PARTS; two matrices make a gated part one by one. */
clv_status clv_lm_items_choose(clv_context *context, clv_lm_part *part); /* part->form */
clv_status clv_lm_items_embed(clv_lm_part *part, clv_buffer *words, size_t rows);
clv_status clv_lm_items_product(clv_lm_part *part, const clv_lm_product *product);
clv_status clv_lm_items_attend(clv_lm_part *part, const clv_lm_attend *attend);
size_t clv_lm_items_splits(const clv_lm_part *part, size_t keys, size_t rows);
void clv_lm_items_scratch(const clv_lm_part *part, size_t rows, size_t *scratch, size_t *wide);

#endif
