/* SPDX-License-Identifier: Apache-2.0 */
/* A model folder as sentence-transformers and transformers write it: configuration and weights of a
 * BERT encoder, checked, in host memory. */
#ifndef CLEAVE_MODEL_H
#define CLEAVE_MODEL_H

#include <cleave/blas.h>
#include <cleave/export.h>
#include <cleave/status.h>
#include <cleave/tensors.h>

#include <stdbool.h>
#include <stddef.h>

CLV_BEGIN_DECLS

/** How the vectors of a text's tokens become one. */
typedef enum clv_model_pooling {
    CLV_MODEL_MEAN = 0, /**< their mean */
    CLV_MODEL_CLS = 1,  /**< the first */
    CLV_MODEL_MAX = 2,  /**< the largest of each component */
} clv_model_pooling;

/** Sizes and rules. */
typedef struct clv_model_config {
    size_t size;        /**< sizeof(clv_model_config) */
    size_t width;       /**< D, hidden_size */
    size_t heads;       /**< H, divides D */
    size_t layers;      /**< encoder layers */
    size_t ffn;         /**< F, intermediate_size */
    size_t vocabulary;  /**< V, rows of the word table */
    size_t positions;   /**< rows of the position table */
    size_t types;       /**< rows of the token type table */
    float eps;          /**< of every layer norm */
    clv_activation act; /**< between the two linear layers of a feed-forward part */
    clv_model_pooling pooling;
    bool normalize;    /**< pooled vectors are divided by their length */
    size_t max_length; /**< most tokens of a text, at most `positions` */
    /** The pooling leaves a prompt's tokens out (include_prompt: false), which is not supported here: such a model is
     *  for texts without prompts. */
    bool skips_prompt;
} clv_model_config;

/** Weights of one encoder layer, float32, row-major; linear layers are [out, in], y = x W^T + b.
 *  The three of q, k and v lie one after the other: q_weight is also [3 D, D], q_bias [3 D]. Frozen. */
typedef struct clv_model_layer {
    const float *q_weight, *k_weight, *v_weight; /**< [D, D] each */
    const float *q_bias, *k_bias, *v_bias;       /**< [D] each */
    const float *out_weight, *out_bias;          /**< [D, D], [D] */
    const float *norm1_weight, *norm1_bias;      /**< [D]: behind attention */
    const float *up_weight, *up_bias;            /**< [F, D], [F] */
    const float *down_weight, *down_bias;        /**< [D, F], [D] */
    const float *norm2_weight, *norm2_bias;      /**< [D]: behind the feed-forward part */
} clv_model_layer;

/** All weights; the memory belongs to the model. */
typedef struct clv_model_weights {
    size_t size;                              /**< sizeof(clv_model_weights) */
    const float *word;                        /**< [V, D] */
    const float *position;                    /**< [positions, D] */
    const float *type;                        /**< [types, D]; row 0 is what embeddings use */
    const float *norm_weight, *norm_bias;     /**< [D]: behind the embeddings */
    const clv_model_layer *layer;             /**< [layers] */
    const float *pooler_weight, *pooler_bias; /**< [D, D], [D]; NULL: the file has none */
} clv_model_weights;

/** An open model; never changes: any number of threads may use one. */
typedef struct clv_model clv_model;

/**
 * Reads a model folder.
 *
 * config.json: model_type "bert", absolute positions, an activation from the list above; anything
 * else is refused by name. model.safetensors: every weight with its shape, F32, F16, BF16 or F64
 * (the narrow ones widen exactly); names may begin with "bert." or "0.auto_model.", layer norms may
 * be called gamma and beta; tensors that are not needed are ignored. Of sentence-transformers'
 * files: modules.json (Transformer, Pooling, Normalize), the pooling's config.json,
 * sentence_bert_config.json, config_sentence_transformers.json (prompts). Without modules.json: the mean, not
 * normalised, as sentence-transformers does.
 *
 * A weight that is not finite is warned about by name.
 *
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT names file and member, or the tensor, what was found and
 *         what was expected; CLV_E_MEMORY. *out is NULL then.
 */
CLV_API clv_status clv_model_open(const char *folder, clv_model **out);
CLV_API void clv_model_close(clv_model *model); /**< accepts NULL */

/**
 * A prompt of the model: what sentence-transformers puts before every text. clv_tokenize takes texts as they are; put
 * the prompt in front of them yourself.
 * @param name    of a prompt in config_sentence_transformers.json; NULL: the default prompt.
 * @param prompt  out: borrowed from the model; "" where name is NULL and the model has no default prompt; NULL where it
 *                has no prompt of that name.
 * @return CLV_OK; CLV_E_ARGUMENT (a NULL); CLV_E_UNSUPPORTED (there is one, and `skips_prompt`).
 */
CLV_API clv_status clv_model_prompt(const clv_model *model, const char *name, const char **prompt);

CLV_API const clv_model_config *clv_model_get_config(const clv_model *model);
CLV_API const clv_model_weights *clv_model_get_weights(const clv_model *model);
/** Numbers in all weights, and where the first lies: one block of memory, aligned to 4096. */
CLV_API size_t clv_model_parameters(const clv_model *model, const float **first);

/**
 * A model of random weights with these sizes (normal, deviation 0.02; norms 1 and 0), for
 * measurements and tests: the same for the same seed everywhere.
 * @return CLV_OK; CLV_E_ARGUMENT (sizes that do not fit together); CLV_E_MEMORY.
 */
CLV_API clv_status clv_model_create_random(const clv_model_config *config, unsigned seed,
                                           clv_model **out);

/**
 * Writes the weights as PyTorch's BertModel names them; `weights` replaces the model's own where it
 * is not NULL (fine-tuning). The file is complete or absent.
 * @param metadata  as in clv_tensors_write; may be NULL.
 */
CLV_API clv_status clv_model_write(const clv_model *model, const clv_model_weights *weights,
                                   const char *path, const char *const *metadata);

/** The same with more tensors beside the model's own (a head that was learnt). */
CLV_API clv_status clv_model_write_with(const clv_model *model, const clv_model_weights *weights,
                                        const clv_tensor_source *more, size_t more_count,
                                        const char *path, const char *const *metadata);

CLV_END_DECLS

#endif
