/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a language model and its sequences. */
#ifndef CLEAVE_HOST_TRANSFORMER_GENERATE_LANGUAGE_H
#define CLEAVE_HOST_TRANSFORMER_GENERATE_LANGUAGE_H

#include "base/thread.h"
#include "host/transformer/generate/part.h"

/* Weights as they lie in the files, for plain C: read at the first use. */
typedef struct clv_lm_plain clv_lm_plain;

struct clv_language {
    clv_context *context; /* NULL: plain C */
    clv_lm_model *model;
    clv_lm_part *parts; /* [part_count], in the order of the layers */
    double *speeds;     /* [part_count]: measured bytes per second; 0: not */
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
    float *scores; /* [vocabulary] behind the last token */
    bool scored;
};

/* clv_language_open; `texts`: with the tokenizer, which must be there. */
clv_status clv_lm_language_open(clv_context *context, const char *path, bool texts,
                                const clv_language_options *options, clv_language **out);

/* Feeds up to CLV_LM_FEW tokens in one step, with the bits of one after the other; `scores` [count]
 * [vocabulary]. The sequence's own scores are those of the last. */
clv_status clv_lm_feed_few(clv_sequence *sequence, const int32_t *ids, size_t count, float *scores);

/* What may follow: up to `most` tokens that came after the last two or three where these stood before. How
 * many. */
size_t clv_lm_guess(const int32_t *tokens, size_t count, size_t most, int32_t *guess);

/* Tokens behind the first `first`, in plain C; `scores` of the last. */
clv_status clv_lm_plain_feed(clv_sequence *sequence, size_t first, const int32_t *ids, size_t count,
                             float *scores);
void clv_lm_plain_free(clv_lm_plain *plain);

/* Which layers go where: pure. A device has `room` bytes and does `speed` bytes of weights in a second. */
typedef struct clv_lm_place {
    uint64_t room;
    double speed;
    size_t first, layers; /* out: [first, first + layers) */
} clv_lm_place;
/* `layer_bytes` [layers] with what a layer needs beside its weights; `first_bytes` and `last_bytes` are the
 * word table and the scores. The fastest device has everything that fits there; what does not goes to the
 * next one. False: there is no room for all. */
bool clv_lm_cut(const uint64_t *layer_bytes, size_t layers, uint64_t first_bytes,
                uint64_t last_bytes, clv_lm_place *places, size_t count);

#endif
