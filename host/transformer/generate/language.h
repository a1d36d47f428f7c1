/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a language model and its sequences. */
#ifndef CLEAVE_HOST_TRANSFORMER_GENERATE_LANGUAGE_H
#define CLEAVE_HOST_TRANSFORMER_GENERATE_LANGUAGE_H

#include "base/thread.h"
#include "host/transformer/generate/part.h"

/* Weights in the files' own types, for plain C; each is read when it is first used. */
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
    clv_mutex lock; /* one step at a time */
};

struct clv_sequence {
    clv_language *language;
    int32_t *tokens;
    size_t count, token_room;
    clv_lm_cache *caches; /* [part_count] */
    float *keys, *values; /* plain C: [layers][room][kv_heads * head] */
    size_t plain_room;
    float *scores; /* [vocabulary] for the token after the last one */
    bool scored;
};

/* Does the work of clv_language_open; with `texts` the tokenizer is loaded as well, and must exist. */
clv_status clv_lm_language_open(clv_context *context, const char *path, bool texts,
                                const clv_language_options *options, clv_language **out);

/* Feeds up to CLV_LM_FEW tokens in one step. The results have the same bits as feeding them one by one;
 * `scores` is [count][vocabulary]. The sequence keeps the scores of the last token. */
clv_status clv_lm_feed_few(clv_sequence *sequence, const int32_t *ids, size_t count, float *scores);

/* Guesses the next tokens of a text: finds the last two or three tokens earlier in the text and copies up to
 * `most` tokens that followed them there. Returns how many it guessed. */
size_t clv_lm_guess(const int32_t *tokens, size_t count, size_t most, int32_t *guess);

/* Feeds tokens that follow the first `first` ones, in plain C; `scores` receives the scores of the last. */
clv_status clv_lm_plain_feed(clv_sequence *sequence, size_t first, const int32_t *ids, size_t count,
                             float *scores);
void clv_lm_plain_free(clv_lm_plain *plain);

/* A device in the decision which layers go where: it has `room` bytes and processes `speed` bytes of weights
 * per second. */
typedef struct clv_lm_place {
    uint64_t room;
    double speed;
    size_t first, layers; /* out: [first, first + layers) */
} clv_lm_place;
/* Distributes the layers over the devices; a pure function. `layer_bytes` [layers] includes what a layer needs
 * beside its weights; `first_bytes` and `last_bytes` are the sizes of the word table and of the scores'
 * matrix. The fastest device takes as many layers as fit there, the next fastest takes the following ones, and
 * so on. Returns false if the devices have no room for all layers. */
bool clv_lm_cut(const uint64_t *layer_bytes, size_t layers, uint64_t first_bytes,
                uint64_t last_bytes, clv_lm_place *places, size_t count);

#endif
