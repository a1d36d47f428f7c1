/* SPDX-License-Identifier: Apache-2.0 */
/* Language models: texts that go on. */
#ifndef CLEAVE_GENERATE_H
#define CLEAVE_GENERATE_H

#include <cleave/chat.h>
#include <cleave/runtime.h>
#include <cleave/tokenizer.h>

CLV_BEGIN_DECLS

/* ------------------------------------------------------------------------------------ models -- */

/** An open model: weights on one or several devices, a tokenizer, a chat template. */
typedef struct clv_language clv_language;

typedef enum clv_language_cache {
    CLV_LANGUAGE_CACHE_F32 = 0, /**< keys and values as float32 */
    CLV_LANGUAGE_CACHE_F16 = 1, /**< as halves: half the memory */
} clv_language_cache;

typedef enum clv_language_activations {
    CLV_LANGUAGE_F32 = 0, /**< products are those of float32 numbers */
    /** What a matrix is multiplied with is rounded, 32 numbers to multiples of a 127th of the largest, for
     *  tokens that come one by one or a few at a time; prompts are as with F32. Faster where PoCL
     *  compiles for AVX2, on weights of Q4_0, Q4_1 and Q8_0; scores change by up to 0.8. On GPUs and in plain
     *  C it is F32. */
    CLV_LANGUAGE_INT8 = 1,
} clv_language_activations;

/** Start with CLV_INIT. */
typedef struct clv_language_options {
    size_t size;    /**< sizeof(clv_language_options) */
    size_t context; /**< most tokens of a text, the prompt included; 0: the model's, at most 4096,
                                   and what memory allows */
    clv_language_cache cache; /**< how keys and values are kept */
    size_t chunk;             /**< tokens of a prompt that are worked on together; 0: 512 */
    const size_t
        *split; /**< layers for each of the context's devices, in their order; NULL: chosen by
                                   measured speed and room */
    size_t split_count;                   /**< of `split`; the layers' sum must be the model's */
    clv_language_activations activations; /**< of a token's products */
} clv_language_options;

/** What is known about an open model. Texts are borrowed from it. Start with CLV_INIT. */
typedef struct clv_language_info {
    size_t size;              /**< sizeof(clv_language_info) */
    const char *architecture; /**< "llama", "mistral", "qwen2", "qwen3" */
    const char *name;         /**< as the file calls the model; "" */
    const char *template_;    /**< the chat template; NULL: none */
    size_t layers, width, heads, kv_heads, head_width, ffn;
    size_t vocabulary;   /**< scores of a token */
    size_t context;      /**< tokens that the model was made for */
    size_t room;         /**< most tokens of a text here */
    uint64_t parameters; /**< weights of the model */
    uint64_t bytes;      /**< of its weights in the files */
    const int32_t *ends; /**< tokens that end a text */
    size_t end_count;
    size_t device_count; /**< devices that have layers; 0: plain C computes */
    bool tied;           /**< scores are made by the table of words */
    const char
        *types; /**< tensors of each type: "210 Q4_1, 1 Q8_0, 61 F32", that of most bytes first */
} clv_language_info;

/** A device's share of a model. Start with CLV_INIT. */
typedef struct clv_language_share {
    size_t size;           /**< sizeof(clv_language_share) */
    const char *device;    /**< its label; borrowed from the context */
    size_t first, layers;  /**< layers [first, first + layers) */
    uint64_t weight_bytes; /**< of the weights there */
    uint64_t cache_bytes;  /**< of a token's keys and values there */
    double bytes_s; /**< bytes that its memory moves per second; 0: it was not measured, since the
                                    context has no other device or the split was given */
    bool int8;      /**< CLV_LANGUAGE_INT8 was asked for, and this device does it */
} clv_language_share;

/**
 * Opens a model: a GGUF file, or a folder with config.json, safetensors files and tokenizer.json.
 *
 * Architectures: llama, mistral, qwen2, qwen3. Weights: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to
 * Q6_K, IQ4_NL, IQ4_XS. They stay quantised on the devices. Anything else is refused by name.
 *
 * @param context  devices; NULL: plain C computes, and only when something is fed, so that this is a quick
 *                 way to look at a model.
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT names the key or the tensor, what was found and what was expected;
 *         CLV_E_UNSUPPORTED (an architecture, a type, a rule); CLV_E_ARGUMENT (a split that does not fit, a
 *         context longer than the model's); CLV_E_NO_DEVICE; CLV_E_DEVICE_MEMORY; CLV_E_MEMORY.
 *         *out is NULL then.
 * Accuracy: that of float32 activations and sums: scores differ by less than 1e-4 from a computation in
 * double precision on models of 30 layers.
 */
CLV_API clv_status clv_language_open(clv_context *context, const char *path,
                                     const clv_language_options *options, clv_language **out);
/** Before its context, and after its sequences. Accepts NULL. */
CLV_API void clv_language_close(clv_language *language);
CLV_API clv_status clv_language_get_info(const clv_language *language, clv_language_info *info);
/** CLV_E_ARGUMENT beyond info.device_count. */
CLV_API clv_status clv_language_get_share(const clv_language *language, size_t index,
                                          clv_language_share *share);
/** Borrowed. */
CLV_API const clv_tokenizer *clv_language_tokenizer(const clv_language *language);

/**
 * The tokens of a conversation, up to where the model's answer begins. What messages hold is never taken
 * for special tokens. Bytes that are not UTF-8 become U+FFFD.
 *
 * @param family  NULL or "auto": the model's own template, or a family's by the tokens in it where the
 *                template is not understood; else one of clv_chat_template.
 * @param rows    out: one row.
 * @param note    out, may be NULL: what was chosen for the caller, in words; "" for nothing. Static.
 * @return as clv_chat_render; CLV_E_UNSUPPORTED (the model has no template, or one that is not understood and
 *         of no known family).
 */
CLV_API clv_status clv_language_chat(const clv_language *language, const clv_chat_message *messages,
                                     size_t count, const char *family, clv_token_rows *rows,
                                     const char **note);

/* --------------------------------------------------------------------------------- sequences -- */

/** One text: its tokens, and their keys and values on the model's devices. Sequences of one model share its
 *  weights; calls on them may come from several threads and take turns. */
typedef struct clv_sequence clv_sequence;

CLV_API clv_status clv_sequence_create(clv_language *language, clv_sequence **out);
CLV_API void clv_sequence_free(clv_sequence *sequence); /**< accepts NULL */
/** Tokens that were fed, borrowed; *count may be NULL. */
CLV_API const int32_t *clv_sequence_tokens(const clv_sequence *sequence, size_t *count);
/** Forgets what is behind the first `count` tokens. CLV_E_ARGUMENT: there are fewer. */
CLV_API clv_status clv_sequence_rewind(clv_sequence *sequence, size_t count);

/**
 * Adds tokens to the text.
 *
 * @param scores  out, [vocabulary] float32, may be NULL: of what follows the last of them, before any softmax.
 * @return CLV_OK; CLV_E_ARGUMENT (an id outside the vocabulary, no token); CLV_E_SHAPE (more than there is
 *         room for: info.room); CLV_E_DEVICE_MEMORY; CLV_E_DEVICE. After a failure the text is as before.
 */
CLV_API clv_status clv_sequence_feed(clv_sequence *sequence, const int32_t *ids, size_t count,
                                     float *scores);
/**
 * Adds one token to each of several texts of one model: ids[i] to sequences[i]. Weights are read once for up to 8
 * of them. Each text's scores (clv_sequence_scores) have the bits that clv_sequence_feed of its token alone
 * would give.
 *
 * @param count  any number of texts; they are taken 8 at a time.
 * @return as clv_sequence_feed; CLV_E_ARGUMENT (texts of different models, a text twice). After a failure all
 *         texts are as before, but have no scores.
 */
CLV_API clv_status clv_sequences_feed(clv_sequence *const *sequences, size_t count,
                                      const int32_t *ids);
/** Scores behind the last token that was fed; borrowed until the next call. CLV_E_ARGUMENT: there is none. */
CLV_API clv_status clv_sequence_scores(clv_sequence *sequence, const float **scores);

/** How a token is drawn from scores. Start with CLV_SAMPLING_INIT, which has the usual values, or with
 *  CLV_INIT: then temperature 0, the highest score. In this order: */
typedef struct clv_sampling {
    size_t size; /**< sizeof(clv_sampling) */
    double
        penalty; /**< scores of recent tokens are divided by it (multiplied, below 0); 0 and 1: none */
    size_t penalty_last; /**< how many tokens are recent, the prompt's included */
    size_t top_k;        /**< of the K highest; 0: of all */
    double
        top_p; /**< of the fewest whose probabilities sum up to it, at least one; 0 and 1: of all */
    double min_p; /**< of those with at least that part of the highest probability; 0: of all */
    double
        temperature; /**< probabilities are softmax(score / temperature) of what is left; 0: the highest
                              score behind the penalty, whatever else is set */
    uint64_t seed; /**< Philox4x32-10, keyed by it, counted by the token's position */
} clv_sampling;

#define CLV_SAMPLING_INIT                                     \
    {                                                         \
        sizeof(clv_sampling), 1.0, 64, 40, 0.95, 0.05, 0.8, 0 \
    }

/**
 * Draws a token from scores. Of equal scores the lower id comes first; -infinity is never drawn.
 *
 * @param recent    the text so far; its last penalty_last tokens are penalised.
 * @param position  of the token that is drawn.
 * @return CLV_OK; CLV_E_ARGUMENT (a value outside its range; a NULL); CLV_E_WRONG_RESULT (a score is NaN, or
 *         none is finite: names the position); CLV_E_MEMORY.
 */
CLV_API clv_status clv_sample(const float *scores, size_t count, const clv_sampling *sampling,
                              const int32_t *recent, size_t recent_count, uint64_t position,
                              int32_t *id);
/** The same, and the distribution that it is drawn from: ids [count] in the order in which they are counted,
 *  and their probabilities; *kept is how many. */
CLV_API clv_status clv_sample_from(const float *scores, size_t count, const clv_sampling *sampling,
                                   const int32_t *recent, size_t recent_count, int32_t *ids,
                                   double *probabilities, size_t *kept);

/** Why a text ended. */
typedef enum clv_stop {
    CLV_STOP_END = 0,     /**< the model ended it */
    CLV_STOP_TEXT = 1,    /**< a stop text came */
    CLV_STOP_LENGTH = 2,  /**< as many tokens as asked for */
    CLV_STOP_CONTEXT = 3, /**< there is no more room */
    CLV_STOP_CALLER = 4,  /**< the caller's function said so */
} clv_stop;

/** Told of every token `id` and the text that it completes: whole characters, perhaps none. What is still held
 *  back at the end comes once more with the last token. Returns 0 to go on. */
typedef int clv_piece(const char *text, size_t length, int32_t id, void *user);

/** Start with CLV_INIT. */
typedef struct clv_writing {
    size_t size;                  /**< sizeof(clv_writing) */
    size_t tokens;                /**< most that are made; 0: until something else ends the text */
    const clv_sampling *sampling; /**< NULL: the highest score */
    const char *const
        *stops;       /**< texts that end it and are left out; ends with NULL; may be NULL */
    bool ignore_end;  /**< tokens that end a text are tokens like others */
    clv_piece *piece; /**< may be NULL */
    void *user;
    size_t
        lookup; /**< most tokens that are guessed ahead, 0 (none) to 7: what followed the last tokens
                        where they stood before in the text. Guesses are checked together in one step; tokens,
                        text and scores have the same bits as without, sooner where texts repeat. */
} clv_writing;

/** What was written. Free `tokens` and `text` with clv_free. Start with CLV_INIT. */
typedef struct clv_written {
    size_t size;     /**< sizeof(clv_written) */
    int32_t *tokens; /**< all that were made, the one that ended the text included */
    size_t count;
    char *text; /**< without control tokens and stop texts; terminated */
    size_t length;
    clv_stop stop;
    double first_s; /**< until the first token was drawn */
    double rest_s;  /**< of the others */
    size_t guessed; /**< with `lookup`: tokens that were guessed, */
    size_t hits;    /**< and how many of them came so */
} clv_written;

/**
 * Goes on with a text that has tokens already (clv_sequence_feed), token by token.
 *
 * The last token is not fed: feed it before you go on from there.
 * @return as clv_sequence_feed and clv_sample; after a failure *written holds what was made before it.
 */
CLV_API clv_status clv_sequence_write(clv_sequence *sequence, const clv_writing *writing,
                                      clv_written *written);
/**
 * Goes on with several texts of one model together: a token of each per step (clv_sequences_feed), until the last
 * one ends. Each text is the one that clv_sequence_write would give, bit for bit; `lookup` is not used.
 *
 * @param writings  [count], how each text goes on.
 * @param written   out, [count].
 * @return as clv_sequence_write; after a failure each *written[i] holds what was made before it.
 */
CLV_API clv_status clv_sequences_write(clv_sequence *const *sequences, size_t count,
                                       const clv_writing *const *writings,
                                       clv_written *const *written);

/* ------------------------------------------------------------- one text of a folder, as before -- */

/** Sizes and rules of a decoder. Borrowed from it; may gain fields at its end. */
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

/** A model and one text of it. */
typedef struct clv_decoder clv_decoder;

typedef struct clv_generate_options {
    size_t size;        /**< sizeof(clv_generate_options) */
    size_t tokens;      /**< most that are made */
    double temperature; /**< 0: always the token of the highest score; else drawn from
                             softmax(scores / temperature) */
    size_t top_k;       /**< drawn from so many of the highest scores; 0: from all */
    uint64_t seed;      /**< of the drawing: Philox4x32-10, a counter a position */
    bool stops;         /**< at `stop`, which is the last one then */
    int32_t stop;
} clv_generate_options;

/**
 * Opens a model as clv_language_open does, for one text; a tokenizer need not be there.
 *
 * @param positions  room for so many tokens; 0: as many as the model was made for.
 * @return as clv_language_open.
 */
CLV_API clv_status clv_decoder_open(clv_context *context, const char *path, size_t positions,
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
