/* SPDX-License-Identifier: Apache-2.0 */
/* Runs cross-encoders, which are models that read two texts together and score how well the texts match. */
#ifndef CLEAVE_RANK_H
#define CLEAVE_RANK_H

#include <cleave/classes.h>
#include <cleave/job.h>

CLV_BEGIN_DECLS

/** The function that is applied to a model's scores. */
typedef enum clv_rank_activation {
    /** The function that config.json names; if it names none, SIGMOID for one score and NONE for several. */
    CLV_RANK_DEFAULT = 0,
    CLV_RANK_NONE = 1,
    CLV_RANK_SIGMOID = 2, /**< 1 / (1 + exp(-s)) */
    CLV_RANK_SOFTMAX = 3, /**< over the scores of a pair; only for several scores */
} clv_rank_activation;

/** Options of clv_ranker_open. Zero fields mean the default. */
typedef struct clv_ranker_options {
    size_t size; /**< sizeof(clv_ranker_options) */
    /** Largest number of tokens of a pair, including the tokens around and between its texts; 0: the model's limit. */
    size_t max_length;
    size_t batch_tokens; /**< as in clv_encoder_options */
    size_t threads;      /**< threads that tokenize, as in clv_tokenize_options */
    clv_rank_activation activation;
    bool half;                          /**< as in clv_encoder_options */
    bool replace_invalid, drop_invalid; /**< as in clv_tokenizer_options */
    bool half_products;                 /**< as in clv_encoder_options */
} clv_ranker_options;

/** An open cross-encoder. Make one call at a time. */
typedef struct clv_ranker clv_ranker;

/**
 * Opens a model for sequence classification with one score or several, of any family in clv_model_family, as
 * sentence-transformers' CrossEncoder and `cleave finetune` save it.
 *
 * config.json may name the activation, as activation_fn of sentence_transformers or as
 * sbert_ce_default_activation_function. Identity, Sigmoid and Softmax of torch.nn are accepted; any other one is
 * refused. A model with two token types needs memory for its word table twice, because the words of second texts have a
 * table of their own.
 *
 * @param context  must outlive the ranker.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, an option outside its range); CLV_E_FORMAT (a tokenizer whose pairs are
 *         neither [CLS] A [SEP] B [SEP] nor <s> A </s> </s> B </s>, or whose token types differ from BERT's); what
 *         clv_model_open, clv_classes_open and clv_tokenizer_open return; CLV_E_MEMORY. *out is NULL after a failure.
 */
CLV_API clv_status clv_ranker_open(clv_context *context, const char *folder,
                                   const clv_ranker_options *options, clv_ranker **out);
/** Closes a ranker. Call it before you free its context. Accepts NULL. */
CLV_API void clv_ranker_close(clv_ranker *ranker);

/** Returns the model's classes, borrowed from the ranker. A pair has as many scores as there are classes
 *  (clv_classes_count). */
CLV_API const clv_classes *clv_ranker_classes(const clv_ranker *ranker);
/** Returns the largest number of tokens of a pair. */
CLV_API size_t clv_ranker_max_length(const clv_ranker *ranker);

/** Sets the function to which the ranker reports how many pairs of the current block are done, as clv_encoder_watch
 *  does. */
CLV_API void clv_ranker_watch(clv_ranker *ranker, clv_progress *progress, void *user);

/**
 * Scores pairs of texts: [CLS] first [SEP] second [SEP], or <s> first </s> </s> second </s>, depending on the model's
 * tokenizer. From the second text on, the token type is 1. All token types are 0 if the model has no types, or if
 * tokenizer_config.json says that its tokenizer makes none: because its model_input_names lack token_type_ids, or
 * because its tokenizer_class is one that makes no types in transformers, such as AlbertTokenizer.
 *
 * A pair with too many tokens loses the last tokens of its longer text until both are equally long, and then the last
 * tokens of both ("longest_first", as in sentence-transformers).
 *
 * @param texts, lengths  [count]: UTF-8, lengths in bytes. A text is tokenized once, however many pairs contain it.
 * @param pairs   [pair_count][2]: indices of the first and of the second text.
 * @param scores  out: [pair_count, classes], after the activation; the error against float64 is about 1e-6.
 * @param truncated  out, may be NULL: how many pairs were truncated.
 * @param report  NULL, or the report to which the runs are added.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, a pair with an index of `count` or more); CLV_E_FORMAT (bytes that are not
 *         UTF-8; the message names the text); what clv_encode returns.
 */
CLV_API clv_status clv_ranker_scores(clv_ranker *ranker, const char *const *texts,
                                     const size_t *lengths, size_t count, const size_t *pairs,
                                     size_t pair_count, float *scores, size_t *truncated,
                                     clv_report *report);

CLV_END_DECLS

#endif
