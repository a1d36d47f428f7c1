/* SPDX-License-Identifier: Apache-2.0 */
/* Text to token numbers: WordPiece as BERT's models use it. */
#ifndef CLEAVE_TOKENIZER_H
#define CLEAVE_TOKENIZER_H

#include <cleave/export.h>
#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** A vocabulary and its rules. Never changes once open: any number of threads may use one. */
typedef struct clv_tokenizer clv_tokenizer;

/** All-zero is the default. */
typedef struct clv_tokenizer_options {
    size_t size;          /**< sizeof(clv_tokenizer_options), or 0 for version 1 */
    size_t max_length;    /**< most tokens of a text, [CLS] and [SEP] included; 0: the folder's */
    bool unlimited;       /**< no limit at all */
    bool replace_invalid; /**< not UTF-8: U+FFFD, which the rules drop; else an error */
} clv_tokenizer_options;

/** What is known about an open tokenizer. */
typedef struct clv_tokenizer_info {
    size_t size;                      /**< in: sizeof(clv_tokenizer_info) */
    size_t vocabulary;                /**< one more than the largest id */
    size_t max_length;                /**< most tokens of a text; SIZE_MAX: no limit */
    int32_t unk, cls, sep, pad, mask; /**< ids; -1 where the vocabulary has none */
    bool lower_case;
} clv_tokenizer_info;

/** Tokens of many texts without padding: text i has ids[offsets[i]] up to ids[offsets[i + 1] - 1].
 *  Zero-initialise; used again by the next call, so that a loop allocates once. */
typedef struct clv_token_rows {
    int32_t *ids;
    size_t *offsets; /**< [rows + 1] */
    size_t rows, tokens;
    size_t truncated;         /**< texts that were cut at max_length */
    size_t unknown;           /**< [UNK] tokens that stand for a word, cut ones too */
    size_t replaced;          /**< bytes that were not UTF-8 (replace_invalid) */
    size_t id_room, row_room; /**< the library's own */
} clv_token_rows;

/** All-zero: one thread, texts are counted from 0 in messages. */
typedef struct clv_tokenize_options {
    size_t size;      /**< sizeof(clv_tokenize_options), or 0 for version 1 */
    size_t threads;   /**< share the texts among so many threads; 0: as many as this process may
                           keep busy (affinity, cgroup quota) */
    size_t first;     /**< number of the first text in messages */
    const char *what; /**< how messages call a text; NULL: "text" */
} clv_tokenize_options;

/**
 * Opens the tokenizer of a model folder: tokenizer.json, or without one vocab.txt with
 * tokenizer_config.json. `path` may also name one of the two files.
 *
 * The most tokens of a text: options->max_length, else max_seq_length of sentence_bert_config.json,
 * else model_max_length of tokenizer_config.json, and never above max_position_embeddings of
 * config.json. A text that has more keeps its first tokens, or its last where truncation_side of
 * tokenizer_config.json is left, or is not there and the direction of tokenizer.json's truncation is.
 * Else truncation and padding written in tokenizer.json are ignored, as sentence-transformers does.
 * Where tokenizer_config.json has other rules for capitals, accents or ideographs than tokenizer.json
 * (BERT's, where it has none), the latter is obeyed, with a warning: transformers obeys the former.
 * A token that only tokenizer_config.json adds is warned about as well: it is split like any word.
 *
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT (not JSON, a kind of tokenizer that is not WordPiece, a rule
 *         that is not known: each named); CLV_E_ARGUMENT (max_length below 2 or above the model's
 *         positions); CLV_E_MEMORY. *out is NULL then.
 */
CLV_API clv_status clv_tokenizer_open(const char *path, const clv_tokenizer_options *options,
                                      clv_tokenizer **out);
CLV_API void clv_tokenizer_close(clv_tokenizer *tokenizer); /**< accepts NULL */

CLV_API void clv_tokenizer_get_info(const clv_tokenizer *tokenizer, clv_tokenizer_info *info);
/** The piece with that id as in the vocabulary ("##ing"); NULL where there is none. */
CLV_API const char *clv_tokenizer_piece(const clv_tokenizer *tokenizer, int32_t id);
/** The id of a piece as in the vocabulary, -1 when there is none. */
CLV_API int32_t clv_tokenizer_find(const clv_tokenizer *tokenizer, const char *piece);

/**
 * Tokens of `count` texts: [CLS], the pieces, [SEP]. Special tokens written in a text are found
 * first. Then: control characters dropped, white space to spaces, spaces round CJK ideographs, NFD
 * without marks (Mn), lower case code point by code point, split at white space and punctuation,
 * greedy longest match of pieces; a word of more than 100 characters, or with a rest that is no
 * piece, is one [UNK]. The ids are those of the Rust library tokenizers 0.23, which takes its
 * character classes from Unicode 8.
 *
 * @param texts    UTF-8, any bytes, NUL included.
 * @param lengths  bytes of each; NULL: texts end at NUL.
 * @param rows     out; the same for every number of threads.
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_FORMAT names the text and the byte that is not UTF-8 (what
 *         lies behind the cut of a text that is too long is not looked at); CLV_E_MEMORY. After a
 *         failure `rows` is empty but keeps its memory.
 */
CLV_API clv_status clv_tokenize(const clv_tokenizer *tokenizer, const char *const *texts,
                                const size_t *lengths, size_t count,
                                const clv_tokenize_options *options, clv_token_rows *rows);
CLV_API void clv_token_rows_clear(clv_token_rows *rows); /**< frees and zeroes */

CLV_END_DECLS

#endif
