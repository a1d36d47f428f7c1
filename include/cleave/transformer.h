/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the parts of transformers, attention and feed-forward blocks, on plain memory, and encodes texts as
 * vectors. */
#ifndef CLEAVE_TRANSFORMER_H
#define CLEAVE_TRANSFORMER_H

#include <cleave/blas.h>
#include <cleave/job.h>
#include <cleave/model.h>

CLV_BEGIN_DECLS

/** Sizes of clv_attention_f32; zero-initialise. */
typedef struct clv_attention_shape {
    size_t size; /**< sizeof(clv_attention_shape) */
    size_t batch, heads;
    size_t kv_heads;      /**< must divide `heads`; 0: as many as `heads` */
    size_t queries, keys; /**< number of queries and of keys of one sequence */
    size_t width;         /**< width of one head */
    bool causal;          /**< query i sees keys j <= i + keys - queries */
    float scale;          /**< factor of the scores; 0: 1 / sqrt(width) */
} clv_attention_shape;

/**
 * Computes attention in float32: o = softmax(q k^T * scale + mask) v for every sequence and head.
 *
 * The call runs on the context's first device that works. It runs on the host, slowly and in double precision, if there
 * is no such device, if the thread forces the host (clv_offload_force) or, with a warning, if the device fails. A
 * thread that forces the device gets the device's error instead, or CLV_E_NO_DEVICE.
 *
 * @param q     [batch, heads, queries, width].
 * @param k, v  [batch, kv_heads, keys, width]; head h uses k and v of h / (heads / kv_heads).
 * @param mask  [batch, keys]: keys whose mask is 0 are left out; NULL: all keys are used.
 * @param o     out, same shape as q. A query that sees no key gives 0.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_SHAPE (kv_heads does not divide heads, width 0 or above 256, 2^31
 *         elements or more); CLV_E_MEMORY.
 * Accuracy: 3e-6 of the largest |v| for scores of ordinary size. Threads: any.
 */
CLV_API clv_status clv_attention_f32(clv_context *context, const clv_attention_shape *shape,
                                     const float *q, const float *k, const float *v,
                                     const int32_t *mask, float *o);

/**
 * Computes a feed-forward block: y = act(x W1^T + b1) W2^T + b2, x [rows, width], W1 [inner, width],
 * W2 [width, inner], row major; b1 and b2 may be NULL. The call runs on the side on which clv_attention_f32 would run.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, an activation that does not exist); CLV_E_SHAPE (extents above 2^32, or too
 *         large to be addressed); CLV_E_MEMORY.
 */
CLV_API clv_status clv_ffn_f32(clv_context *context, size_t rows, size_t width, size_t inner,
                               clv_activation activation, const float *x, const float *w1,
                               const float *b1, const float *w2, const float *b2, float *y);

/** An encoder: a model's weights on the devices of a context, packed once per device. */
typedef struct clv_encoder clv_encoder;

typedef struct clv_encoder_options {
    size_t size;         /**< sizeof(clv_encoder_options) */
    size_t batch_tokens; /**< tokens that are computed together, or one longer text; 0: 1536 */
    bool hidden;         /**< clv_encode gives a row for each token, not one vector per text */
    bool half; /**< matrices in fp16, sums in fp32; cosine to the vectors of fp32 is 0.9999 */
    /** With `half`: devices that have fp16 or matrix units also round the rows that they multiply with the matrices to
     *  fp16. Sums are still fp32, and the cosine is 0.9999. Numbers beyond 65504 become infinite. Other devices compute
     *  as without this field. The report says in `products` what each device did. */
    bool half_products;
} clv_encoder_options;

/**
 * Opens an encoder. Devices are first used by the first clv_encode.
 *
 * @param config, weights  borrowed until clv_encoder_close; for instance those of a clv_model.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, a family, activation or pooling that does not exist); CLV_E_SHAPE (heads do not
 *         divide the width); CLV_E_MEMORY.
 */
CLV_API clv_status clv_encoder_open(clv_context *context, const clv_model_config *config,
                                    const clv_model_weights *weights,
                                    const clv_encoder_options *options, clv_encoder **encoder);
/** Closes an encoder. Call it before you free its context. Accepts NULL. */
CLV_API void clv_encoder_close(clv_encoder *encoder);

/** Sets the progress function of clv_encode, from the next call on: it receives the number of texts done and may cancel
 *  the call (see clv_job.progress). NULL: none. Do not call this while clv_encode runs. */
CLV_API void clv_encoder_watch(clv_encoder *encoder, clv_progress *progress, void *user);

/** Sets how many tokens at the beginning of every text the poolings leave out, from the next clv_encode on. Use it to
 *  leave out the tokens of a prompt (clv_tokenizer_prompt_length counts them) for a model whose config says
 *  skips_prompt. 0: leave none out. The layers still compute with these tokens, and `hidden` still gives their rows. A
 *  text without further tokens gives 0. Do not call this while clv_encode runs. */
CLV_API void clv_encoder_skip(clv_encoder *encoder, size_t tokens);

/**
 * Computes the vectors of texts: embeddings, layers, pooling. Texts are not padded, so the cost of a text is that of
 * its own tokens.
 *
 * @param ids      token numbers of all texts, one after the other.
 * @param offsets  [texts + 1]: text i has ids[offsets[i]] up to ids[offsets[i + 1] - 1]. To encode texts from the
 *                 middle of a longer list, pass offsets + i.
 * @param out      [texts, output width], where the output width is config->output, or config->width if that is 0. A
 *                 text without tokens gives 0. With `hidden`: [tokens of these texts, config->width].
 * @param report   NULL, or the report to which the run is added.
 * @return CLV_OK; CLV_E_ARGUMENT (an id outside the vocabulary, offsets that decrease); CLV_E_SHAPE (a text longer than
 *         the model's positions; the message names it); what clv_job_run returns (after CLV_E_CANCELLED some rows of
 *         `out` are filled).
 *
 * On one device, the bits of a text's vector depend neither on the other texts nor on how the work is split.
 * Threads: one call at a time per encoder.
 */
CLV_API clv_status clv_encode(clv_encoder *encoder, const int32_t *ids, const size_t *offsets,
                              size_t texts, float *out, clv_report *report);

CLV_END_DECLS

#endif
