/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a model folder as written by sentence-transformers or transformers: checks the configuration and the weights of
 * an encoder like BERT, and keeps them in host memory. */
#ifndef CLEAVE_MODEL_H
#define CLEAVE_MODEL_H

#include <cleave/blas.h>
#include <cleave/export.h>
#include <cleave/status.h>
#include <cleave/tensors.h>

#include <stdbool.h>
#include <stddef.h>

CLV_BEGIN_DECLS

/** How the vectors of a text's tokens are pooled into one. */
typedef enum clv_model_pooling {
    CLV_MODEL_MEAN = 0, /**< the mean of the vectors */
    CLV_MODEL_CLS = 1,  /**< the first token's vector */
    CLV_MODEL_MAX = 2,  /**< the maximum of each component */
    /** The sum of the vectors, divided by the square root of their number. Only for clv_model_config.joined. */
    CLV_MODEL_MEAN_SQRT = 3,
    /** The mean of the vectors with the weights 1, 2, 3, ... in the order of the text. */
    CLV_MODEL_WEIGHTED = 4,
    CLV_MODEL_LAST = 5, /**< the last token's vector */
} clv_model_pooling;

/** Families of encoders. All have the same kind of layers, but differ in the names of their weights, in positions,
 *  embeddings and biases. */
typedef enum clv_model_family {
    CLV_MODEL_BERT = 0,
    CLV_MODEL_DISTILBERT = 1, /**< no token types, no pooler */
    CLV_MODEL_ELECTRA = 2,    /**< embedding tables may be narrower than layers; no pooler */
    CLV_MODEL_ROBERTA = 3,    /**< positions start after the padding token's id; also XLM-RoBERTa */
    CLV_MODEL_MPNET = 4,  /**< positions as in RoBERTa; attention has a bias by relative position */
    CLV_MODEL_ALBERT = 5, /**< narrow embedding tables; layers share their weights in groups */
} clv_model_family;

/** What a step after the pooling does. */
typedef enum clv_model_step_kind {
    CLV_STEP_DENSE = 0,     /**< y = f(W x + b) */
    CLV_STEP_NORM = 1,      /**< y = (x - mean) / sqrt(variance + eps) * weight + bias */
    CLV_STEP_NORMALIZE = 2, /**< y = x / max(|x|, 1e-12) */
} clv_model_step_kind;

/** The function f of a dense step. */
typedef enum clv_step_function {
    CLV_STEP_IDENTITY = 0,
    CLV_STEP_TANH = 1,
    CLV_STEP_RELU = 2,
    CLV_STEP_GELU = 3, /**< exact (erf) */
    CLV_STEP_SIGMOID = 4,
    CLV_STEP_SILU = 5,
} clv_step_function;

/** A module of sentence-transformers that runs after the pooling. Frozen. */
typedef struct clv_model_step {
    clv_model_step_kind kind;
    clv_step_function function; /**< for DENSE only */
    size_t in, out;             /**< width before and after; equal except for DENSE */
    const float *weight;        /**< DENSE: [out, in]; NORM: [out] */
    const float *bias;          /**< [out]; NULL: none */
    float eps;                  /**< NORM: added to the variance */
} clv_model_step;

/** Sizes of an encoder model, and the rules by which it computes. */
typedef struct clv_model_config {
    size_t size;       /**< sizeof(clv_model_config) */
    size_t width;      /**< D, hidden_size */
    size_t heads;      /**< H, divides D */
    size_t layers;     /**< encoder layers */
    size_t ffn;        /**< F, intermediate_size */
    size_t vocabulary; /**< V, rows of the word table */
    /** Largest number of tokens of a text; the position table has first_position rows more. */
    size_t positions;
    size_t types;       /**< rows of the token type table */
    float eps;          /**< added to the variance in every layer norm */
    clv_activation act; /**< activation between the two layers of a feed-forward part */
    clv_model_pooling pooling;
    bool normalize;    /**< pooled vectors are divided by their length */
    size_t max_length; /**< largest number of tokens of a text, at most `positions` */
    /** The model's pooling leaves out the tokens of a prompt (include_prompt: false); see clv_encoder_skip. */
    bool skips_prompt;
    clv_model_family family;
    /** Width of the word, position and type tables, if a linear layer converts their rows to `width`; 0: there is no
     *  such layer, and the tables are `width` wide. */
    size_t embedding;
    /** Row of the position table for a text's first token. If it is not 0, the token with the id first_position - 1 is
     *  the padding token: it uses the row of its own id, and the positions of other tokens do not count it. */
    size_t first_position;
    size_t groups;  /**< groups of layers that share weights (ALBERT); 0: no sharing */
    size_t buckets; /**< rows of the table of relative positions (MPNet); 0: there is none */
    clv_model_pooling joined[4]; /**< poolings to concatenate, in this order */
    size_t joined_count;         /**< number of `joined`; 0: `pooling` alone */
    /** Width of a text's vector; 0: `width`. In an open model it is never 0. */
    size_t output;
    /** Modules that run after the pooling and before `normalize`; borrowed from the model. */
    const clv_model_step *steps;
    size_t step_count;
} clv_model_config;

/** Weights of one encoder layer, float32, row-major; linear layers are [out, in], y = x W^T + b. The weights of q, k
 *  and v follow each other in memory, so q_weight is also [3 D, D] and q_bias [3 D]. Frozen. */
typedef struct clv_model_layer {
    const float *q_weight, *k_weight, *v_weight; /**< [D, D] each */
    const float *q_bias, *k_bias, *v_bias;       /**< [D] each */
    const float *out_weight, *out_bias;          /**< [D, D], [D] */
    const float *norm1_weight, *norm1_bias;      /**< [D]: after attention */
    const float *up_weight, *up_bias;            /**< [F, D], [F] */
    const float *down_weight, *down_bias;        /**< [D, F], [D] */
    const float *norm2_weight, *norm2_bias;      /**< [D]: after the feed-forward part */
} clv_model_layer;

/** All weights; the memory belongs to the model. */
typedef struct clv_model_weights {
    size_t size;           /**< sizeof(clv_model_weights) */
    const float *word;     /**< [V, D] */
    const float *position; /**< [positions + first_position, D] */
    const float *type;     /**< [types, D]; embeddings use row 0; zeros if there are no types */
    const float *norm_weight, *norm_bias; /**< [D]: after the embeddings */
    const clv_model_layer *layer; /**< [layers]; layers that share weights have equal pointers */
    const float *pooler_weight, *pooler_bias; /**< [D, D], [D]; NULL: the file has none */
    /** [D, E], [D]: the layer that converts rows of width E = config.embedding to D; NULL if E is 0. With such a layer,
     *  the tables and the norm after the embeddings have the width E instead of D. */
    const float *project_weight, *project_bias;
    /** [buckets, heads]: added to the attention scores by relative position; NULL without buckets. */
    const float *relative;
} clv_model_weights;

/** An open model. It never changes, so any number of threads may use it at the same time. */
typedef struct clv_model clv_model;

/**
 * Reads a model folder.
 *
 * config.json must have the model_type of a family above ("bert", "distilbert", "electra", "roberta", "xlm-roberta",
 * "mpnet", "albert"), absolute positions and an activation of clv_activation; anything else is refused with a message
 * that names it. The weights are in model.safetensors, or in the files that model.safetensors.index.json names. Every
 * weight must be present with the right shape, as F32, F16, BF16 or F64 (F16 and BF16 are widened exactly). Names may
 * begin with the family's prefix ("bert.") or "0.auto_model.", layer norms may be called gamma and beta, and tensors
 * that are not needed are ignored.
 *
 * Of sentence-transformers' files, the function reads modules.json (Transformer, Pooling, then Dense, LayerNorm,
 * Normalize and Dropout in any order), the modules' own files, sentence_bert_config.json and
 * config_sentence_transformers.json (prompts). Without modules.json the pooling is the mean, not normalised, as in
 * sentence-transformers.
 *
 * The log warns about each weight that is not finite, by name.
 *
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT (the message names file and member, or the tensor, what was found and what was
 *         expected); CLV_E_MEMORY. *out is NULL after a failure.
 */
CLV_API clv_status clv_model_open(const char *folder, clv_model **out);
CLV_API void clv_model_close(clv_model *model); /**< accepts NULL */

/**
 * Gets a prompt of the model, which sentence-transformers puts before every text. clv_tokenize does not add it: put the
 * prompt in front of your texts yourself.
 * @param name    name of a prompt in config_sentence_transformers.json; NULL: the default prompt.
 * @param prompt  out: borrowed from the model; "" if name is NULL and the model has no default prompt; NULL if the
 *                model has no prompt of that name.
 * @return CLV_OK; CLV_E_ARGUMENT (a NULL).
 */
CLV_API clv_status clv_model_prompt(const clv_model *model, const char *name, const char **prompt);

CLV_API const clv_model_config *clv_model_get_config(const clv_model *model);
CLV_API const clv_model_weights *clv_model_get_weights(const clv_model *model);
/** Returns the number of parameters, which are the elements of all weights. *first receives a pointer to the first one.
 *  All parameters are in one block of memory, aligned to 4096 bytes. */
CLV_API size_t clv_model_parameters(const clv_model *model, const float **first);

/**
 * Makes a model of the sizes in `config` with random weights, for measurements and tests. Weights are normally
 * distributed with standard deviation 0.02; layer norms have weights 1 and biases 0. The same seed gives the same
 * weights on every machine.
 * @return CLV_OK; CLV_E_ARGUMENT (sizes that do not fit together or do not fit the family); CLV_E_MEMORY.
 */
CLV_API clv_status clv_model_create_random(const clv_model_config *config, unsigned seed,
                                           clv_model **out);

/**
 * Writes the weights to a safetensors file under the names that the family's model has in transformers (such as
 * BertModel). `weights`, if not NULL, are written instead of the model's own, for example after fine-tuning. After a
 * failure there is no incomplete file.
 * @param metadata  as in clv_tensors_write; may be NULL.
 */
CLV_API clv_status clv_model_write(const clv_model *model, const clv_model_weights *weights,
                                   const char *path, const char *const *metadata);

/** Writes a file as clv_model_write does, with `more_count` further tensors in it, such as a head that was trained. */
CLV_API clv_status clv_model_write_with(const clv_model *model, const clv_model_weights *weights,
                                        const clv_tensor_source *more, size_t more_count,
                                        const char *path, const char *const *metadata);

/** Writes a file as clv_model_write_with does, and puts `prefix` ("bert.", "") before the names of the model's weights,
 *  but not before the names of `more`. Returns CLV_E_ARGUMENT for a prefix of more than 16 bytes. */
CLV_API clv_status clv_model_write_as(const clv_model *model, const clv_model_weights *weights,
                                      const char *prefix, const clv_tensor_source *more,
                                      size_t more_count, const char *path,
                                      const char *const *metadata);

CLV_END_DECLS

#endif
