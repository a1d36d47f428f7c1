/* SPDX-License-Identifier: Apache-2.0 */
/* Opens language models, feeds them the tokens of a text, and draws the tokens that continue the text. */
#ifndef CLEAVE_GENERATE_H
#define CLEAVE_GENERATE_H

#include <cleave/chat.h>
#include <cleave/runtime.h>
#include <cleave/tokenizer.h>

CLV_BEGIN_DECLS

/* ------------------------------------------------------------------------------------ models -- */

/** An open language model: weights on one or several devices, a tokenizer, a chat template. */
typedef struct clv_language clv_language;

typedef enum clv_language_cache {
    CLV_LANGUAGE_CACHE_F32 = 0, /**< keys and values are kept as float32 */
    CLV_LANGUAGE_CACHE_F16 = 1, /**< keys and values are kept as float16, in half the memory */
} clv_language_cache;

typedef enum clv_language_activations {
    CLV_LANGUAGE_F32 = 0, /**< matrices are multiplied with float32 numbers */
    /** Rounds the vectors that are multiplied by matrices: in each block of 32 numbers, every number becomes a multiple
     *  of 1/127 of the largest magnitude. This applies to tokens that are fed one by one or a few at a time; prompts
     *  are computed as with F32. It is faster where PoCL compiles for AVX2, for weights of Q4_0, Q4_1 and Q8_0; scores
     *  change by up to 0.8. GPUs and plain C compute as with F32. */
    CLV_LANGUAGE_INT8 = 1,
} clv_language_activations;

/** Options of clv_language_open. Start with CLV_INIT. */
typedef struct clv_language_options {
    size_t size; /**< sizeof(clv_language_options) */
    /** Largest number of tokens of a text, the prompt included; 0: as many as the model and the free memory allow, at
     *  most 4096. */
    size_t context;
    clv_language_cache cache; /**< how keys and values are kept */
    size_t chunk;             /**< tokens of a prompt that are computed together; 0: 512 */
    /** Number of layers for each of the context's devices, in their order; NULL: chosen by measured speed and free
     *  memory. */
    const size_t *split;
    size_t split_count; /**< length of `split`, which must sum to all layers */
    /** Precision of the vectors that are multiplied by matrices. */
    clv_language_activations activations;
} clv_language_options;

/** Facts about an open model. Texts are borrowed from it. Start with CLV_INIT. */
typedef struct clv_language_info {
    size_t size;              /**< sizeof(clv_language_info) */
    const char *architecture; /**< "llama", "mistral", "qwen2", "qwen3" */
    const char *name;         /**< what the file calls the model; "": it has no name */
    const char *template_;    /**< the chat template; NULL: none */
    size_t layers, width, heads, kv_heads, head_width, ffn;
    size_t vocabulary; /**< number of tokens, each of which gets a score */
    size_t context;    /**< longest text, in tokens, that the model was trained for */
    size_t room;       /**< largest number of tokens of a text with these options and this memory */
    uint64_t parameters; /**< number of weights of the model */
    uint64_t bytes;      /**< size of the model's weights in the files */
    const int32_t *ends; /**< ids of the tokens that end a text */
    size_t end_count;
    size_t device_count; /**< devices that have layers; 0: plain C computes */
    bool tied;           /**< the word table also computes the scores */
    /** Number of tensors of each type: "210 Q4_1, 1 Q8_0, 61 F32"; the type with most bytes comes first. */
    const char *types;
} clv_language_info;

/** A device's share of a model. Start with CLV_INIT. */
typedef struct clv_language_share {
    size_t size;           /**< sizeof(clv_language_share) */
    const char *device;    /**< the device's label; borrowed from the context */
    size_t first, layers;  /**< layers [first, first + layers) */
    uint64_t weight_bytes; /**< size of the weights on this device */
    uint64_t cache_bytes;  /**< size of one token's keys and values on this device */
    double bytes_s; /**< memory bandwidth, bytes per second; 0: not measured, because the context
                         has no other device or you gave the split */
    bool int8;      /**< you asked for CLV_LANGUAGE_INT8, and this device supports it */
} clv_language_share;

/**
 * Opens a model: a GGUF file, or a folder with config.json, safetensors files and tokenizer.json.
 *
 * Architectures: llama, mistral, qwen2, qwen3. Weights: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to
 * Q6_K, IQ4_NL, IQ4_XS. Quantised weights stay quantised on the devices. Other architectures and types are refused with
 * a message that names them.
 *
 * @param context  the devices to use; NULL: plain C computes. Opening is then fast, because all work waits until you
 *                 feed tokens: use NULL to inspect a model.
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT (the message names the key or the tensor, what was found and what was
 *         expected); CLV_E_UNSUPPORTED (an architecture, type or rule that Cleave does not know); CLV_E_ARGUMENT (a
 *         split that does not fit, a context longer than the model's); CLV_E_NO_DEVICE; CLV_E_DEVICE_MEMORY;
 *         CLV_E_MEMORY. *out is NULL after a failure.
 * Accuracy: that of float32 activations and sums. On models of 30 layers, scores differ by less than 1e-4 from a
 * computation in double precision.
 */
CLV_API clv_status clv_language_open(clv_context *context, const char *path,
                                     const clv_language_options *options, clv_language **out);
/** Closes a model. Free its sequences first, and its context afterwards. Accepts NULL. */
CLV_API void clv_language_close(clv_language *language);
CLV_API clv_status clv_language_get_info(const clv_language *language, clv_language_info *info);
/** Gets the share of the device at `index`. Returns CLV_E_ARGUMENT if `index` is not below info.device_count. */
CLV_API clv_status clv_language_get_share(const clv_language *language, size_t index,
                                          clv_language_share *share);
/** Returns the model's tokenizer, borrowed from the model. */
CLV_API const clv_tokenizer *clv_language_tokenizer(const clv_language *language);

/**
 * Makes the tokens of a conversation, up to the place where the model's answer begins. Text in messages never becomes a
 * special token. Bytes that are not UTF-8 become U+FFFD.
 *
 * @param family  NULL or "auto": the model's own template; if Cleave does not understand it, the template of the family
 *                that its special tokens indicate. Otherwise a family of clv_chat_template.
 * @param rows    out: one row.
 * @param note    out, may be NULL: says in words what the library chose for you; "" if nothing. Static.
 * @return the statuses of clv_chat_render; CLV_E_UNSUPPORTED (the model has no template, or one that is not understood
 *         and belongs to no known family).
 */
CLV_API clv_status clv_language_chat(const clv_language *language, const clv_chat_message *messages,
                                     size_t count, const char *family, clv_token_rows *rows,
                                     const char **note);

/* --------------------------------------------------------------------------------- sequences -- */

/** One text: its tokens, and their keys and values on the model's devices. Sequences of one model share its weights.
 *  Several threads may use sequences of one model at the same time; their calls take turns. */
typedef struct clv_sequence clv_sequence;

CLV_API clv_status clv_sequence_create(clv_language *language, clv_sequence **out);
CLV_API void clv_sequence_free(clv_sequence *sequence); /**< accepts NULL */
/** Returns the tokens that were fed so far, borrowed from the sequence; `count` may be NULL. */
CLV_API const int32_t *clv_sequence_tokens(const clv_sequence *sequence, size_t *count);
/** Keeps the first `count` tokens and forgets the tokens after them. Returns CLV_E_ARGUMENT if the text has fewer
 *  tokens. */
CLV_API clv_status clv_sequence_rewind(clv_sequence *sequence, size_t count);

/**
 * Adds tokens to the text.
 *
 * @param scores  out, [vocabulary] float32, may be NULL: the scores of all tokens that could come next, before any
 *                softmax.
 * @return CLV_OK; CLV_E_ARGUMENT (an id outside the vocabulary, no token); CLV_E_SHAPE (more tokens than info.room);
 *         CLV_E_DEVICE_MEMORY; CLV_E_DEVICE. After a failure the text is as before.
 */
CLV_API clv_status clv_sequence_feed(clv_sequence *sequence, const int32_t *ids, size_t count,
                                     float *scores);
/**
 * Adds one token to each of several texts of one model: ids[i] to sequences[i]. This is faster than feeding them one by
 * one, because the weights are read once for up to 8 texts. The scores of each text (clv_sequence_scores) have the same
 * bits as if clv_sequence_feed had fed its token alone.
 *
 * @param count  any number of texts; up to 8 at a time are computed together.
 * @return the statuses of clv_sequence_feed; CLV_E_ARGUMENT (texts of different models, or the same text twice). After
 *         a failure all texts are as before, but have no scores.
 */
CLV_API clv_status clv_sequences_feed(clv_sequence *const *sequences, size_t count,
                                      const int32_t *ids);
/** Gets the scores of all tokens that could follow the last token fed; borrowed until the next call with this sequence.
 *  Returns CLV_E_ARGUMENT if there are no scores. */
CLV_API clv_status clv_sequence_scores(clv_sequence *sequence, const float **scores);

/** How a token is drawn from scores. Start with CLV_SAMPLING_INIT, which has the usual values, or with CLV_INIT, which
 *  takes the highest score (temperature 0). The steps are applied in the order of the fields. */
typedef struct clv_sampling {
    size_t size; /**< sizeof(clv_sampling) */
    /** Positive scores of recent tokens are divided by this number, negative ones are multiplied by it; 0 and 1: no
     *  penalty. */
    double penalty;
    size_t penalty_last; /**< how many of the last tokens count as recent, prompt included */
    size_t top_k;        /**< keep the K tokens with the highest scores; 0: all */
    double top_p; /**< keep the fewest tokens whose probabilities sum to this; 0 and 1: all */
    double min_p; /**< keep tokens with at least this share of the highest probability; 0: all */
    /** The probabilities of the remaining tokens are softmax(score / temperature). 0: take the highest score after the
     *  penalty, whatever else is set. */
    double temperature;
    uint64_t seed; /**< key of Philox4x32-10, whose counter is the token's position */
} clv_sampling;

#define CLV_SAMPLING_INIT                                     \
    {                                                         \
        sizeof(clv_sampling), 1.0, 64, 40, 0.95, 0.05, 0.8, 0 \
    }

/**
 * Draws a token from scores. Among equal scores the lower id comes first. A token with score -infinity is never drawn.
 *
 * @param recent    the text so far; its last penalty_last tokens are penalised.
 * @param position  position in the text of the token to draw.
 * @return CLV_OK; CLV_E_ARGUMENT (a value outside its range; a NULL); CLV_E_WRONG_RESULT (a score is NaN or +infinity,
 *         or none is finite; the message names the position); CLV_E_MEMORY.
 */
CLV_API clv_status clv_sample(const float *scores, size_t count, const clv_sampling *sampling,
                              const int32_t *recent, size_t recent_count, uint64_t position,
                              int32_t *id);
/** Gets the distribution from which clv_sample draws: the ids [count] of the remaining tokens, in the order of drawing,
 *  and their probabilities [count]; *kept is how many there are. */
CLV_API clv_status clv_sample_from(const float *scores, size_t count, const clv_sampling *sampling,
                                   const int32_t *recent, size_t recent_count, int32_t *ids,
                                   double *probabilities, size_t *kept);

/** Why a text ended. */
typedef enum clv_stop {
    CLV_STOP_END = 0,     /**< the model ended the text */
    CLV_STOP_TEXT = 1,    /**< a stop text appeared */
    CLV_STOP_LENGTH = 2,  /**< the text has as many new tokens as you asked for */
    CLV_STOP_CONTEXT = 3, /**< the text has reached the largest number of tokens */
    CLV_STOP_CALLER = 4,  /**< your function stopped the generation */
} clv_stop;

/** Receives each new token `id`, except one with which the model ends the text, and the text that the token completes:
 *  whole characters, perhaps none. At the end it may be called once more, with the last token and the text that was
 *  still held back. Return 0 to go on. */
typedef int clv_piece(const char *text, size_t length, int32_t id, void *user);

/** How clv_sequence_write continues a text. Start with CLV_INIT. */
typedef struct clv_writing {
    size_t size;   /**< sizeof(clv_writing) */
    size_t tokens; /**< largest number of new tokens; 0: until something else ends the text */
    const clv_sampling *sampling; /**< NULL: always take the token with the highest score */
    /** Stop texts: the text ends before the first of them that appears. The list ends with NULL; may be NULL. */
    const char *const *stops;
    bool ignore_end;  /**< go on after tokens that would end the text */
    clv_piece *piece; /**< may be NULL */
    void *user;
    /** Largest number of tokens to guess ahead, 0 (none) to 7. If the last tokens occurred earlier in the text, the
     *  guess is the tokens that followed that earlier occurrence. One step checks all guesses together. Tokens, text
     *  and scores have the same bits as without guesses, but texts that repeat themselves are written faster. */
    size_t lookup;
} clv_writing;

/** What clv_sequence_write wrote. Free `tokens` and `text` with clv_free. Start with CLV_INIT. */
typedef struct clv_written {
    size_t size;     /**< sizeof(clv_written) */
    int32_t *tokens; /**< all new tokens, including the token that ended the text */
    size_t count;
    char *text; /**< without control tokens and stop texts; terminated */
    size_t length;
    clv_stop stop;
    double first_s; /**< seconds until the first token was drawn */
    double rest_s;  /**< seconds for the other tokens */
    size_t guessed; /**< with `lookup`: how many tokens were guessed */
    size_t hits;    /**< with `lookup`: how many of these guesses were right */
} clv_written;

/**
 * Continues a text token by token. The text must already have tokens (clv_sequence_feed).
 *
 * The last new token is not fed: feed it before you continue the text further.
 * @return the statuses of clv_sequence_feed and clv_sample; after a failure *written holds what was written before the
 *         failure.
 */
CLV_API clv_status clv_sequence_write(clv_sequence *sequence, const clv_writing *writing,
                                      clv_written *written);
/**
 * Continues several texts of one model together: each step adds one token to each text (clv_sequences_feed), until the
 * last text ends. Each text is bit for bit the text that clv_sequence_write would write; `lookup` is ignored.
 *
 * @param writings  [count], how to continue each text.
 * @param written   out, [count].
 * @return the statuses of clv_sequence_write; after a failure each *written[i] holds what was written before the
 *         failure.
 */
CLV_API clv_status clv_sequences_write(clv_sequence *const *sequences, size_t count,
                                       const clv_writing *const *writings,
                                       clv_written *const *written);

/* ------------------------------------------------------------- one text of a folder, as before -- */

/** Sizes and rules of a decoder's model. Borrowed from the decoder; may gain fields at its end. */
typedef struct clv_decoder_config {
    size_t width;    /**< D, hidden_size */
    size_t heads;    /**< H, divides D; D / H is even, at most 256 */
    size_t kv_heads; /**< num_key_value_heads, divides H */
    size_t layers;
    size_t ffn;        /**< intermediate_size */
    size_t vocabulary; /**< V */
    size_t positions;  /**< largest number of tokens of a text, prompt included */
    float eps;         /**< rms_norm_eps */
    double rope_base;  /**< rope_theta */
    bool tied;         /**< the word table also computes the scores */
} clv_decoder_config;

/** An open language model and the one text that it continues. */
typedef struct clv_decoder clv_decoder;

typedef struct clv_generate_options {
    size_t size;        /**< sizeof(clv_generate_options) */
    size_t tokens;      /**< largest number of new tokens */
    double temperature; /**< 0: always take the token with the highest score; else draw from
                             softmax(scores / temperature) */
    size_t top_k;       /**< number of highest scores to draw from; 0: all scores */
    uint64_t seed;      /**< key of Philox4x32-10, whose counter is the token's position */
    bool stops;         /**< end the text after the token `stop` */
    int32_t stop;
} clv_generate_options;

/**
 * Opens a model for one text, as clv_language_open does, but needs no tokenizer.
 *
 * @param positions  largest number of tokens of the text; 0: as many as the model was trained for.
 * @return the statuses of clv_language_open.
 */
CLV_API clv_status clv_decoder_open(clv_context *context, const char *path, size_t positions,
                                    clv_decoder **decoder);
/** Closes a decoder. Call it before you free its context. Accepts NULL. */
CLV_API void clv_decoder_close(clv_decoder *decoder);
CLV_API const clv_decoder_config *clv_decoder_get_config(const clv_decoder *decoder);

/**
 * Feeds `count` tokens and computes the scores of the tokens that could come next. With first = 0 the tokens begin a
 * new text; otherwise they follow the first `first` tokens of the text so far, whose keys and values are kept.
 *
 * @param scores  out, [V] float32: before any softmax.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, no token, an id outside the vocabulary, `first` beyond the tokens kept);
 *         CLV_E_SHAPE (more than `positions` tokens); CLV_E_DEVICE.
 * Accuracy: that of float32 sums. Threads: one call at a time per decoder.
 */
CLV_API clv_status clv_decoder_feed(clv_decoder *decoder, size_t first, const int32_t *ids,
                                    size_t count, float *scores);

/**
 * Feeds a prompt and continues it token by token.
 *
 * @param made   out, [options->tokens]: the new tokens.
 * @param count  out: how many new tokens there are; fewer than options->tokens if `stop` came or the text reached
 *                `positions` tokens.
 * @return the statuses of clv_decoder_feed; CLV_E_ARGUMENT (a temperature below 0).
 * The same prompt, seed and device give the same tokens.
 */
CLV_API clv_status clv_generate(clv_decoder *decoder, const int32_t *prompt, size_t prompt_count,
                                const clv_generate_options *options, int32_t *made, size_t *count);

CLV_END_DECLS

#endif
