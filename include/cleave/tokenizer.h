/* SPDX-License-Identifier: Apache-2.0 */
/* Text to token numbers and back: WordPiece as BERT's models use it, byte pair encoding and SentencePiece as
 * language models do. */
#ifndef CLEAVE_TOKENIZER_H
#define CLEAVE_TOKENIZER_H

#include <cleave/export.h>
#include <cleave/gguf.h>
#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** A vocabulary and its rules. Never changes once open: any number of threads may use one. */
typedef struct clv_tokenizer clv_tokenizer;

/** All-zero is the default. */
typedef struct clv_tokenizer_options {
    size_t size;          /**< sizeof(clv_tokenizer_options) */
    size_t max_length;    /**< most tokens of a text, [CLS] and [SEP] included; 0: the folder's */
    bool unlimited;       /**< no limit at all */
    bool replace_invalid; /**< each part that is not UTF-8 becomes U+FFFD, which BERT's rules drop;
                               else it is an error */
    bool drop_invalid;    /**< such a part is left out */
} clv_tokenizer_options;

/** How words become pieces. */
typedef enum clv_tokenizer_kind {
    CLV_TOKENIZER_WORDPIECE = 0,     /**< the longest piece first; BERT */
    CLV_TOKENIZER_BPE = 1,           /**< pairs of pieces that are joined in the order of a list */
    CLV_TOKENIZER_SENTENCEPIECE = 2, /**< pairs that are joined by the score of the result */
} clv_tokenizer_kind;

/** What a token stands for. */
typedef enum clv_token_type {
    CLV_TOKEN_NONE = 0,    /**< there is no such id */
    CLV_TOKEN_NORMAL = 1,  /**< a piece of text */
    CLV_TOKEN_UNKNOWN = 2, /**< what is in no piece */
    CLV_TOKEN_CONTROL = 3, /**< the start or end of something; no text */
    CLV_TOKEN_USER = 4,    /**< added text, found in every text */
    CLV_TOKEN_UNUSED = 5,  /**< never made */
    CLV_TOKEN_BYTE = 6,    /**< one byte of a character that is no piece */
} clv_token_type;

/** What is known about an open tokenizer. */
typedef struct clv_tokenizer_info {
    size_t size;                      /**< in: sizeof(clv_tokenizer_info) */
    size_t vocabulary;                /**< one more than the largest id */
    size_t max_length;                /**< most tokens of a text; SIZE_MAX: no limit */
    int32_t unk, cls, sep, pad, mask; /**< ids; -1 where the vocabulary has none */
    bool lower_case;
    clv_tokenizer_kind kind;
    int32_t bos, eos; /**< what begins and ends a text of a language model; -1: none */
    bool adds_bos;    /**< texts get `bos` in front */
} clv_tokenizer_info;

/** Tokens of many texts without padding: text i has ids[offsets[i]] up to ids[offsets[i + 1] - 1].
 *  Zero-initialise; used again by the next call, so that a loop allocates once. Frozen. */
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
    size_t size;      /**< sizeof(clv_tokenize_options) */
    size_t threads;   /**< share the texts among so many threads; 0: as many as this process may
                           keep busy (affinity, cgroup quota) */
    size_t first;     /**< number of the first text in messages */
    const char *what; /**< how messages call a text; NULL: "text" */
    bool bare;        /**< without what the model puts in front of a text and behind it */
    bool literal;     /**< special tokens in a text are text ("<|im_end|>"); not for WordPiece */
} clv_tokenize_options;

/**
 * Opens the tokenizer of a model: a GGUF file, or a folder with tokenizer.json or (BERT) vocab.txt and
 * tokenizer_config.json. `path` may also name one of these files.
 *
 * Models of tokenizer.json: WordPiece, and BPE with the normalizers NFC, Prepend and Replace, the
 * pre-tokenizers Digits, ByteLevel, Metaspace and Split by the regular expressions of GPT-2, Llama 3 and
 * Qwen2. GGUF: tokenizer.ggml.model gpt2 (pre-tokenizers of GPT-2, SmolLM, Llama 3, Qwen2 and their
 * kin) and llama. Everything else is refused by name, because it would change the ids silently.
 *
 * For WordPiece:
 * The most tokens of a text: options->max_length, else max_seq_length of sentence_bert_config.json,
 * else model_max_length of tokenizer_config.json, and never above max_position_embeddings of
 * config.json. A text that has more keeps its first tokens, or its last where truncation_side of
 * tokenizer_config.json is left, or is not there and the direction of tokenizer.json's truncation is.
 * Else truncation and padding written in tokenizer.json are ignored, as sentence-transformers does.
 * Where tokenizer_config.json has other rules for capitals, accents or ideographs than tokenizer.json
 * (BERT's, where it has none), the latter is obeyed, with a warning: transformers obeys the former.
 * A token that only tokenizer_config.json adds is warned about as well: it is split like any word.
 *
 * Other kinds of tokenizers know no limit but options->max_length.
 *
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT (not JSON, a kind of tokenizer or a rule that is not known, a
 *         vocabulary whose parts do not fit together: each named); CLV_E_ARGUMENT (max_length below 2 or
 *         above the model's positions); CLV_E_MEMORY. *out is NULL then.
 */
CLV_API clv_status clv_tokenizer_open(const char *path, const clv_tokenizer_options *options,
                                      clv_tokenizer **out);
/** The same of a GGUF file that is open; it may be closed afterwards. */
CLV_API clv_status clv_tokenizer_open_gguf(const clv_gguf *file,
                                           const clv_tokenizer_options *options,
                                           clv_tokenizer **out);
CLV_API void clv_tokenizer_close(clv_tokenizer *tokenizer); /**< accepts NULL */

CLV_API void clv_tokenizer_get_info(const clv_tokenizer *tokenizer, clv_tokenizer_info *info);
/** The piece with that id as in the vocabulary ("##ing"); NULL where there is none. */
CLV_API const char *clv_tokenizer_piece(const clv_tokenizer *tokenizer, int32_t id);
/** The id of a piece as in the vocabulary, -1 when there is none. */
CLV_API int32_t clv_tokenizer_find(const clv_tokenizer *tokenizer, const char *piece);
CLV_API clv_token_type clv_tokenizer_type(const clv_tokenizer *tokenizer, int32_t id);

/**
 * Tokens of `count` texts, with what the model puts around them: [CLS] and [SEP], a token that begins a
 * text, nothing. Special tokens written in a text are found first, leftmost and longest; what lies
 * between them is tokenized by itself.
 *
 * WordPiece: control characters dropped, white space to spaces, spaces round CJK ideographs, NFD
 * without marks (Mn), lower case code point by code point, split at white space and punctuation,
 * greedy longest match of pieces; a word of more than 100 characters, or with a rest that is no
 * piece, is one [UNK]. The ids are those of the Rust library tokenizers 0.23, which takes its
 * character classes from Unicode 8.
 *
 * Byte pair encoding: normal form, words by the model's rule, then the neighbours of the lowest rank (or
 * of the highest score) are joined, leftmost first, in O(n log n) for a word of n characters.
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
/**
 * The tokens of one text of which some bytes came from elsewhere and must not act as special tokens: what
 * a user wrote into a conversation. Not for WordPiece.
 *
 * @param marks  [length]: not 0 where a byte cannot be part of a special token.
 */
CLV_API clv_status clv_tokenize_marked(const clv_tokenizer *tokenizer, const char *text,
                                       const unsigned char *marks, size_t length,
                                       const clv_tokenize_options *options, clv_token_rows *rows);
CLV_API void clv_token_rows_clear(clv_token_rows *rows); /**< frees and zeroes */

/** Tokens to text, one by one. */
typedef struct clv_detokenizer clv_detokenizer;

/** @param keep_control  control tokens appear as in the vocabulary ("<|im_end|>"); else they give nothing. */
CLV_API clv_status clv_detokenizer_create(const clv_tokenizer *tokenizer, bool keep_control,
                                          clv_detokenizer **out);
CLV_API void clv_detokenizer_free(clv_detokenizer *detokenizer); /**< accepts NULL */
/**
 * What the next token adds to the text: always whole characters. Bytes of a character that is not complete
 * yet are held back; what cannot become one is U+FFFD. All pieces one after the other are the text.
 *
 * @param text    out, borrowed until the next call; terminated.
 * @param length  out, bytes; may be 0.
 * @return CLV_OK; CLV_E_ARGUMENT (an id that the vocabulary does not have); CLV_E_MEMORY.
 */
CLV_API clv_status clv_detokenizer_add(clv_detokenizer *detokenizer, int32_t id, const char **text,
                                       size_t *length);
/** What is still held back; the next token begins a new text. */
CLV_API clv_status clv_detokenizer_finish(clv_detokenizer *detokenizer, const char **text,
                                          size_t *length);

CLV_END_DECLS

#endif
