/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders: the next tokens of a text, by models built like Llama. */
#ifndef CLEAVE_GENERATE_H
#define CLEAVE_GENERATE_H

#include <cleave/runtime.h>

CLV_BEGIN_DECLS

/** Sizes and rules of a decoder. */
typedef struct clv_decoder_config {
    size_t width;    /**< D, hidden_size */
    size_t heads;    /**< H, divides D; D / H is even, at most 256 */
    size_t kv_heads; /**< num_key_value_heads, divides H */
    size_t layers;
    size_t ffn;        /**< intermediate_size */
    size_t vocabulary; /**< V */
    size_t positions;  /**< most tokens of a text, prompt included */
    float eps;         /**< rms_norm_eps */
    double rope_base;  /**< rope_theta */
    bool tied;         /**< scores by the word table */
} clv_decoder_config;

/** An open decoder: weights on a device, packed once, and room for the keys and values of a text. */
typedef struct clv_decoder clv_decoder;

typedef struct clv_generate_options {
    size_t size;        /**< sizeof(clv_generate_options), or 0 for version 1 */
    size_t tokens;      /**< most that are made */
    double temperature; /**< 0: always the token of the highest score; else drawn from
                             softmax(scores / temperature) */
    size_t top_k;       /**< drawn from so many of the highest scores; 0: from all */
    uint64_t seed;      /**< of the drawing: Philox4x32-10, a counter a position */
    bool stops;         /**< at `stop`, which is the last one then */
    int32_t stop;
} clv_generate_options;

/**
 * Reads a folder: config.json (model_type "llama", silu, no scaled rotary positions, no biases) and
 * model.safetensors (model.embed_tokens.weight, model.layers.N..., model.norm.weight, lm_head.weight
 * unless tied; F32, F16, BF16 or F64). The context's first device that works is used. Weights are kept
 * there while there is room and read again from the file, which stays open, when they had to go.
 *
 * @param positions  room for so many tokens; 0: max_position_embeddings of config.json.
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT names the member or the tensor, what was found and what was
 *         expected; CLV_E_ARGUMENT; CLV_E_NO_DEVICE; CLV_E_DEVICE_MEMORY; CLV_E_MEMORY.
 */
CLV_API clv_status clv_decoder_open(clv_context *context, const char *folder, size_t positions,
                                    clv_decoder **decoder);
CLV_API void clv_decoder_close(clv_decoder *decoder); /**< before its context; accepts NULL */
CLV_API const clv_decoder_config *clv_decoder_get_config(const clv_decoder *decoder);

/**
 * Scores of what follows: of the last of `count` tokens, all of them new (first 0) or behind the
 * `first` tokens that the last calls were given, whose keys and values are kept.
 *
 * @param scores  out, [V] float32: before any softmax.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, no token, an id outside the vocabulary, `first` beyond what
 *         is kept); CLV_E_SHAPE (more than `positions` tokens); CLV_E_DEVICE.
 * Accuracy: that of float32 sums. Threads: one call at a time for a decoder.
 */
CLV_API clv_status clv_decoder_feed(clv_decoder *decoder, size_t first, const int32_t *ids,
                                    size_t count, float *scores);

/**
 * Goes on from a prompt, token by token.
 *
 * @param made   out, [options->tokens]: the new tokens.
 * @param count  out: how many; fewer than asked for at `stop` and where `positions` end.
 * @return as clv_decoder_feed; CLV_E_ARGUMENT (a temperature below 0).
 * The same prompt, seed and device give the same tokens.
 */
CLV_API clv_status clv_generate(clv_decoder *decoder, const int32_t *prompt, size_t prompt_count,
                                const clv_generate_options *options, int32_t *made, size_t *count);

CLV_END_DECLS

#endif
