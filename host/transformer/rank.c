/* SPDX-License-Identifier: Apache-2.0 */
/* Implements cross-encoders: opens a model with its tokenizer and its classes, builds rows of tokens from pairs of
 * texts, and computes the scores of the pairs. */
#include <cleave/init.h>
#include <cleave/rank.h>
#include <cleave/tokenizer.h>
#include <cleave/transformer.h>

#include "host/transformer/encoder.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/options.h"

#include <math.h>
#include <string.h>

/* the most pairs, and the most tokens, that one call of clv_encode encodes */
enum { MOST_PAIRS = 8192, MOST_TOKENS = 1 << 21 };

struct clv_ranker {
    clv_model *model;
    clv_classes *classes;
    clv_tokenizer *tokenizer; /* without a limit on tokens */
    clv_encoder *encoder;
    float *word;   /* [types * V, D]; NULL: the model has one type of tokens */
    size_t second; /* added to the ids of second texts */
    size_t max_length, threads;
    size_t separators, around;      /* special tokens: between the two texts; in all */
    bool keeps_end, pair_types;     /* see clv_tokenizer_info */
    clv_rank_activation activation; /* never CLV_RANK_DEFAULT */
    clv_token_rows rows;            /* of the texts of a call */
};

/* ---- opening ------------------------------------------------------------------------------------ */

/* Returns the name of the activation that config.json states; NULL if it states none. */
static const char *activation_name(const clv_json *root)
{
    const clv_json *own = clv_json_get(root, "sentence_transformers");
    const char *name = clv_json_string(clv_json_get(own, "activation_fn"), NULL);
    return name ? name
                : clv_json_string(clv_json_get(root, "sbert_ce_default_activation_function"), NULL);
}

static clv_status choose_activation(const char *folder, size_t classes, clv_rank_activation *out)
{
    static const struct {
        const char *name;
        clv_rank_activation kind;
    } known[] = { { "Identity", CLV_RANK_NONE },
                  { "Sigmoid", CLV_RANK_SIGMOID },
                  { "Softmax", CLV_RANK_SOFTMAX } };
    clv_json *root = NULL;
    if (*out == CLV_RANK_SOFTMAX && classes < 2)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: the softmax of a single score is always 1; choose another activation",
                        folder);
    if (*out) return CLV_OK;
    CLV_TRY(clv_folder_json(folder, "config.json", true, &root));
    const char *name = activation_name(root);
    *out = classes == 1 ? CLV_RANK_SIGMOID : CLV_RANK_NONE;
    clv_status status = CLV_OK;
    if (name) {
        const char *dot = strrchr(name, '.');
        bool found = false;
        for (size_t i = 0; i < CLV_LEN(known) && !found; ++i)
            if (!strncmp(name, "torch.nn.", 9) && !strcmp(dot + 1, known[i].name)) {
                *out = known[i].kind;
                found = true;
            }
        if (!found)
            status = clv_fail(CLV_E_FORMAT,
                              "%s/config.json: the activation is %.80s, expected Identity, Sigmoid "
                              "or Softmax of torch.nn, or an activation that you choose yourself",
                              folder, name);
    }
    clv_json_free(root);
    return status;
}

/* Builds the table of words for all types of tokens. Row k V + i is word[i] + type[k] - type[0], because the encoder
 * adds type[0] to every word. */
static clv_status spread_types(clv_ranker *r, clv_model_config *config, clv_model_weights *weights)
{
    const size_t d = clv_table_width(config), words = config->vocabulary;
    size_t floats;
    if (config->types < 2 || !weights->type) return CLV_OK;
    if (!clv_size_mul(2 * words, d, &floats) || !clv_size_mul(floats, sizeof(float), &floats) ||
        !(r->word = clv_alloc_pages(floats)))
        return clv_fail(CLV_E_MEMORY,
                        "cross-encoder: not enough memory for the words of second texts");
    memcpy(r->word, weights->word, words * d * sizeof *r->word);
    for (size_t i = 0; i < words * d; ++i)
        r->word[words * d + i] =
            weights->word[i] + (weights->type[d + i % d] - weights->type[i % d]);
    weights->word = r->word;
    config->vocabulary = 2 * words;
    r->second = words;
    return CLV_OK;
}

/* Returns whether a tokenizer class of the Python library transformers makes no token types by default. */
static bool is_untyped(const char *kind)
{
    static const char *const untyped[] = { "TokenizersBackend",
                                           "PreTrainedTokenizerFast",
                                           "Roberta",
                                           "XLMRoberta",
                                           "Camembert",
                                           "MPNet",
                                           "Albert",
                                           "DistilBert" };
    for (size_t i = 0; i < CLV_LEN(untyped); ++i)
        if (!strncmp(kind, untyped[i], strlen(untyped[i]))) return true;
    return false;
}

/* Sets *out to whether the tokens of second texts have type 1. They have not if tokenizer_config.json lists the model's
 * inputs without the types, or if it lists no inputs and names a class that makes no types. */
static clv_status has_types(const char *folder, bool *out)
{
    clv_json *root = NULL;
    CLV_TRY(clv_folder_json(folder, "tokenizer_config.json", false, &root));
    const clv_json *inputs = clv_json_get(root, "model_input_names");
    *out = !is_untyped(clv_json_string(clv_json_get(root, "tokenizer_class"), ""));
    if (clv_json_is_array(inputs)) *out = false;
    for (size_t i = 0; clv_json_is_array(inputs) && i < clv_json_count(inputs); ++i)
        *out |= !strcmp(clv_json_string(clv_json_at(inputs, i), ""), "token_type_ids");
    clv_json_free(root);
    return CLV_OK;
}

static clv_status open_encoder(clv_ranker *r, clv_context *context, const char *folder,
                               const clv_ranker_options *o)
{
    clv_model_config config = *clv_classes_get_config(r->classes);
    clv_model_weights weights = *clv_model_get_weights(r->model);
    const clv_encoder_options options = { .size = sizeof options,
                                          .batch_tokens = o->batch_tokens,
                                          .half = o->half,
                                          .half_products = o->half_products };
    bool types;
    CLV_TRY(has_types(folder, &types));
    types &= config.types > 1;
    if (types && !r->pair_types)
        return clv_fail(CLV_E_FORMAT,
                        "%s: its tokenizer gives the tokens of a pair other types than BERT's "
                        "does; expected type 0 up to the first [SEP], and 1 after it",
                        folder);
    if (types) CLV_TRY(spread_types(r, &config, &weights));
    return clv_encoder_open(context, &config, &weights, &options, &r->encoder);
}

/* Opens the tokenizer twice: once to find the model's limit on tokens, and once without a limit, because this file
 * truncates the two texts of a pair together. */
static clv_status open_tokenizer(clv_ranker *r, const char *folder, const clv_ranker_options *o)
{
    const clv_tokenizer_options limited = { .size = sizeof limited, .max_length = o->max_length };
    const clv_tokenizer_options free = { .size = sizeof free,
                                         .unlimited = true,
                                         .replace_invalid = o->replace_invalid,
                                         .drop_invalid = o->drop_invalid };
    clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
    clv_tokenizer *tokenizer;
    CLV_TRY(clv_tokenizer_open(folder, &limited, &tokenizer));
    clv_tokenizer_get_info(tokenizer, &info);
    clv_tokenizer_close(tokenizer);
    r->max_length = CLV_MIN(info.max_length, clv_classes_get_config(r->classes)->positions);
    r->separators = info.double_pairs ? 2 : 1;
    r->around = r->separators + 2;
    if (r->max_length < r->around)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: a pair may have at most %zu tokens, but at least %zu are needed for "
                        "the special tokens around and between the two texts",
                        folder, r->max_length, r->around);
    if (info.vocabulary > clv_model_get_config(r->model)->vocabulary)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: the tokenizer has ids up to %zu, but the model's word table has only %zu rows",
            folder, info.vocabulary - 1, clv_model_get_config(r->model)->vocabulary);
    r->keeps_end = info.keeps_end, r->pair_types = info.pair_types;
    if (!info.pairs && !info.double_pairs)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: its tokenizer makes pairs differently from those of BERT and RoBERTa; expected a "
            "post_processor with the pair [CLS] A [SEP] B [SEP] or <s> A </s> </s> B </s>",
            folder);
    return clv_tokenizer_open(folder, &free, &r->tokenizer);
}

clv_status clv_ranker_open(clv_context *context, const char *folder,
                           const clv_ranker_options *given, clv_ranker **out)
{
    clv_ranker_options o;
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_ranker_open: out is NULL");
    *out = NULL;
    if (!context || !folder)
        return clv_fail(CLV_E_ARGUMENT, "clv_ranker_open: an argument is NULL");
    CLV_TRY(clv_take_struct(&o, sizeof o, given, "clv_ranker_open", "clv_ranker_options"));
    if (o.activation > CLV_RANK_SOFTMAX)
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_ranker_open: activation %d is not one of the enumerators",
                        (int)o.activation);
    clv_ranker *r = clv_zalloc(1, sizeof *r);
    if (!r) return clv_fail(CLV_E_MEMORY, "cross-encoder: out of memory");
    r->threads = o.threads, r->activation = o.activation;
    char *inside = NULL;
    clv_status status = clv_model_open(folder, &r->model);
    if (!status) status = clv_folder_transformer(folder, &inside);
    if (!status) status = clv_classes_open(r->model, folder, &r->classes);
    if (!status) status = choose_activation(inside, clv_classes_count(r->classes), &r->activation);
    if (!status) status = open_tokenizer(r, folder, &o);
    if (!status) status = open_encoder(r, context, inside, &o);
    clv_free(inside);
    if (status)
        clv_ranker_close(r);
    else
        *out = r;
    return status;
}

void clv_ranker_close(clv_ranker *r)
{
    if (!r) return;
    clv_encoder_close(r->encoder);
    clv_tokenizer_close(r->tokenizer);
    clv_classes_close(r->classes);
    clv_model_close(r->model);
    clv_token_rows_clear(&r->rows);
    clv_free(r->word);
    clv_free(r);
}

const clv_classes *clv_ranker_classes(const clv_ranker *r)
{
    return r->classes;
}

size_t clv_ranker_max_length(const clv_ranker *r)
{
    return r->max_length;
}

void clv_ranker_watch(clv_ranker *r, clv_progress *progress, void *user)
{
    clv_encoder_watch(r->encoder, progress, user);
}

/* ---- pairs --------------------------------------------------------------------------------------- */

/* The tokens and the vectors of a block of pairs. */
typedef struct block {
    int32_t *ids;
    size_t *offsets;
    float *vectors;
    size_t pairs, id_room;
} block;

/* Lowers *a and *b, the numbers of tokens of two texts, until their sum is at most `most`. The shorter text keeps all
 * its tokens while the longer one remains at least as long. Otherwise each keeps half of `most`, and the longer text
 * (the second, if both are equally long) also keeps an odd token. Hugging Face's library tokenizers does the same. */
static void cut(size_t most, size_t *a, size_t *b)
{
    size_t *const shorter = *a > *b ? b : a, *const longer = *a > *b ? a : b;
    if (*a + *b <= most) return;
    if (*shorter <= most / 2) {
        *longer = most - *shorter;
        return;
    }
    *shorter = most / 2;
    *longer = most - most / 2;
}

static clv_status add_pair(clv_ranker *r, block *b, size_t first, size_t second, size_t *truncated)
{
    const size_t *const offsets = r->rows.offsets;
    const int32_t *const one = r->rows.ids + offsets[first], *const two =
                                                                 r->rows.ids + offsets[second];
    size_t ones = offsets[first + 1] - offsets[first] - 2;
    size_t twos = offsets[second + 1] - offsets[second] - 2;
    const size_t all_ones = ones, all_twos = twos, at = b->offsets[b->pairs];
    cut(r->max_length - r->around, &ones, &twos);
    *truncated += ones + twos < all_ones + all_twos;
    /* truncation_side "left" keeps the last tokens of both texts */
    const bool end = r->keeps_end;
    const size_t skip_one = end ? all_ones - ones : 0, skip_two = end ? all_twos - twos : 0;
    if (!clv_reserve(&b->ids, &b->id_room, at + ones + twos + r->around, sizeof *b->ids))
        return clv_fail(CLV_E_MEMORY, "cross-encoder: not enough memory for %zu tokens", at);
    int32_t *to = b->ids + at;
    const int32_t separator = one[offsets[first + 1] - offsets[first] - 1];
    to[0] = one[0];
    memcpy(to + 1, one + 1 + skip_one, ones * sizeof *to);
    to += 1 + ones;
    for (size_t i = 0; i < r->separators; ++i)
        *to++ = separator;
    for (size_t i = 0; i < twos; ++i)
        *to++ = two[1 + skip_two + i] + (int32_t)r->second;
    *to = separator + (int32_t)r->second;
    b->offsets[++b->pairs] = at + ones + twos + r->around;
    return CLV_OK;
}

static clv_status score_block(clv_ranker *r, block *b, float *scores, clv_report *report)
{
    const size_t each = clv_classes_count(r->classes);
    CLV_TRY(clv_encode(r->encoder, b->ids, b->offsets, b->pairs, b->vectors, report));
    CLV_TRY(r->activation == CLV_RANK_SOFTMAX
                ? clv_classes_probabilities(r->classes, b->vectors, b->pairs, scores)
                : clv_classes_scores(r->classes, b->vectors, b->pairs, scores));
    for (size_t i = 0; i < b->pairs * each && r->activation == CLV_RANK_SIGMOID; ++i)
        scores[i] = (float)(1 / (1 + exp(-(double)scores[i])));
    b->pairs = 0;
    return CLV_OK;
}

static clv_status score_pairs(clv_ranker *r, const size_t *pairs, size_t count, float *scores,
                              size_t *truncated, clv_report *report)
{
    const size_t d = clv_classes_get_config(r->classes)->width;
    const size_t each = clv_classes_count(r->classes), most = CLV_MIN(count, (size_t)MOST_PAIRS);
    block b = { .offsets = clv_zalloc(most + 1, sizeof *b.offsets),
                .vectors = clv_alloc(most * d + 1, sizeof *b.vectors) };
    clv_status status =
        b.offsets && b.vectors
            ? CLV_OK
            : clv_fail(CLV_E_MEMORY, "cross-encoder: not enough memory for %zu pairs", most);
    size_t first = 0;
    for (size_t i = 0; i < count && !status; ++i) {
        status = add_pair(r, &b, pairs[2 * i], pairs[2 * i + 1], truncated);
        if (!status && (b.pairs == most || i + 1 == count || b.offsets[b.pairs] > MOST_TOKENS)) {
            status = score_block(r, &b, scores + first * each, report);
            first = i + 1;
        }
    }
    clv_free(b.ids), clv_free(b.offsets), clv_free(b.vectors);
    return status;
}

clv_status clv_ranker_scores(clv_ranker *r, const char *const *texts, const size_t *lengths,
                             size_t count, const size_t *pairs, size_t pair_count, float *scores,
                             size_t *truncated, clv_report *report)
{
    size_t cuts = 0;
    if (truncated) *truncated = 0;
    if (!r || (count && (!texts || !lengths)) || (pair_count && (!pairs || !scores)))
        return clv_fail(CLV_E_ARGUMENT, "clv_ranker_scores: an argument is NULL");
    for (size_t i = 0; i < 2 * pair_count; ++i)
        if (pairs[i] >= count)
            return clv_fail(CLV_E_ARGUMENT,
                            "cross-encoder: pair %zu names text %zu, but there are %zu texts",
                            i / 2, pairs[i], count);
    if (!pair_count) return CLV_OK;
    const clv_tokenize_options options = { .size = sizeof options, .threads = r->threads };
    CLV_TRY(clv_tokenize(r->tokenizer, texts, lengths, count, &options, &r->rows));
    const clv_status status = score_pairs(r, pairs, pair_count, scores, &cuts, report);
    if (truncated) *truncated = cuts;
    return status;
}
