/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the internal state of a language model and of its sequences. */
#ifndef CLEAVE_HOST_TRANSFORMER_GENERATE_LANGUAGE_H
#define CLEAVE_HOST_TRANSFORMER_GENERATE_LANGUAGE_H

#include "base/thread.h"
#include "host/transformer/generate/part.h"

/* The weights for plain C, in the types that the files have; each tensor is read when it is first used. */
typedef struct clv_lm_plain clv_lm_plain;

struct clv_language {
    clv_context *context; /* NULL: plain C */
    clv_lm_model *model;
    clv_lm_part *parts; /* [part_count], in the order of the layers */
    double *speeds;     /* [part_count]: measured bytes per second; 0: not measured */
    size_t part_count;
    clv_lm_plain *plain;
    size_t chunk, room;
    bool half, int8;
    clv_mutex lock; /* held during a step */
};

struct clv_sequence {
    clv_language *language;
    int32_t *tokens;
    size_t count, token_room;
    clv_lm_cache *caches; /* [part_count] */
    float *keys, *values; /* plain C: [layers][room][kv_heads * head] */
    size_t plain_room;
    float *scores; /* [vocabulary] scores of the next token, valid if `scored` */
    bool scored;
};

/* Does the work of clv_language_open. With `texts`, the model must have a tokenizer, which is loaded as well. */
clv_status clv_lm_language_open(clv_context *context, const char *path, bool texts,
                                const clv_language_options *options, clv_language **out);

/* Feeds up to CLV_LM_FEW tokens in one step, with the same bits as if they were fed one by one. `scores` is
 * [count][vocabulary]. The sequence stores the scores of the last token, too. */
clv_status clv_lm_feed_few(clv_sequence *sequence, const int32_t *ids, size_t count, float *scores);

/* Guesses the next tokens of a text: searches for an earlier occurrence of the last two or three tokens, and copies up
 * to `most` of the tokens that follow it to `guess`. Returns the number of guessed tokens. */
size_t clv_lm_guess(const int32_t *tokens, size_t count, size_t most, int32_t *guess);

/* Feeds tokens from position `first` on to the model in plain C; `scores` receives the scores of the last token. */
clv_status clv_lm_plain_feed(clv_sequence *sequence, size_t first, const int32_t *ids, size_t count,
                             float *scores);
void clv_lm_plain_free(clv_lm_plain *plain);

/* A device to which layers can be assigned: it has `room` bytes of free memory and reads `speed` bytes of weights per
 * second. */
typedef struct clv_lm_place {
    uint64_t room;
    double speed;
    size_t first, layers; /* out: [first, first + layers) */
} clv_lm_place;
/* Distributes the layers over the devices, without side effects. `layer_bytes` [layers] includes a layer's memory for
 * keys and values; `first_bytes` and `last_bytes` are the sizes of the word table and of the matrix that makes the
 * scores. The fastest device takes as many layers as fit into its memory, the next fastest takes the layers after
 * these, and so on. Returns false if the devices have no room for all layers. */
bool clv_lm_cut(const uint64_t *layer_bytes, size_t layers, uint64_t first_bytes,
                uint64_t last_bytes, clv_lm_place *places, size_t count);

#endif
