/* SPDX-License-Identifier: Apache-2.0 */
/* Converts text to token numbers and back: WordPiece, byte pair encoding and Unigram for encoders, byte pair encoding
 * and SentencePiece for language models. */
#ifndef CLEAVE_TOKENIZER_H
#define CLEAVE_TOKENIZER_H

#include <cleave/export.h>
#include <cleave/gguf.h>
#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** An open tokenizer: a vocabulary and its rules. It never changes, so any number of threads may use it at the same
 *  time. */
typedef struct clv_tokenizer clv_tokenizer;

/** Zero fields mean the default. */
typedef struct clv_tokenizer_options {
    size_t size; /**< sizeof(clv_tokenizer_options) */
    /** Largest number of tokens of a text, [CLS] and [SEP] included; 0: the model's limit. */
    size_t max_length;
    bool unlimited;       /**< no limit at all */
    bool replace_invalid; /**< replace each part that is not UTF-8 by U+FFFD, which BERT's rules
                               drop; else such a part is an error */
    bool drop_invalid;    /**< leave out each part that is not UTF-8 */
} clv_tokenizer_options;

/** How a tokenizer splits words into pieces. */
typedef enum clv_tokenizer_kind {
    CLV_TOKENIZER_WORDPIECE = 0,     /**< takes the longest piece first; BERT */
    CLV_TOKENIZER_BPE = 1,           /**< joins pairs of pieces in the order of a list */
    CLV_TOKENIZER_SENTENCEPIECE = 2, /**< joins the pair whose result has the highest score */
    CLV_TOKENIZER_UNIGRAM = 3,       /**< finds the pieces whose scores have the highest sum */
} clv_tokenizer_kind;

/** What a token stands for. */
typedef enum clv_token_type {
    CLV_TOKEN_NONE = 0,    /**< there is no such id */
    CLV_TOKEN_NORMAL = 1,  /**< a piece of text */
    CLV_TOKEN_UNKNOWN = 2, /**< stands for text that no piece covers */
    CLV_TOKEN_CONTROL = 3, /**< marks the start or end of a text or a message; has no text */
    CLV_TOKEN_USER = 4,    /**< added to the vocabulary; matched in any text before it is split */
    CLV_TOKEN_UNUSED = 5,  /**< never produced */
    CLV_TOKEN_BYTE = 6,    /**< one byte of a character that is not a piece */
} clv_token_type;

/** Facts about an open tokenizer. */
typedef struct clv_tokenizer_info {
    size_t size;                      /**< in: sizeof(clv_tokenizer_info) */
    size_t vocabulary;                /**< one more than the largest id */
    size_t max_length;                /**< largest number of tokens of a text; SIZE_MAX: no limit */
    int32_t unk, cls, sep, pad, mask; /**< ids; -1 where the vocabulary has none */
    bool lower_case;
    clv_tokenizer_kind kind;
    int32_t bos, eos; /**< ids that begin and end a text of a language model; -1: none */
    bool adds_bos;    /**< clv_tokenize puts `bos` in front of texts */
    bool keeps_end;   /**< a text that is too long keeps its last tokens, not its first */
    bool pairs;       /**< the model's pairs of texts are [CLS] A [SEP] B [SEP] */
    /** The tokens of a pair [CLS] A [SEP] B [SEP] are of type 0 up to the first [SEP], and of type 1 after it. */
    bool pair_types;
    /** The model's pairs of texts are <s> A </s> </s> B </s>, as RoBERTa's; then `pairs` and `pair_types` are false. */
    bool double_pairs;
} clv_tokenizer_info;

/** Tokens of many texts without padding: text i has ids[offsets[i]] up to ids[offsets[i + 1] - 1]. Zero-initialise it
 *  once; each call reuses its memory, so that a loop allocates only once. Frozen. */
typedef struct clv_token_rows {
    int32_t *ids;
    size_t *offsets; /**< [rows + 1] */
    size_t rows, tokens;
    size_t truncated;         /**< texts that were cut at max_length */
    size_t unknown;           /**< [UNK] tokens made, including ones that were then cut off */
    size_t replaced;          /**< bytes that were not UTF-8 (replace_invalid) */
    size_t id_room, row_room; /**< for the library only */
} clv_token_rows;

/** Zero fields mean the default. */
typedef struct clv_tokenize_options {
    size_t size;      /**< sizeof(clv_tokenize_options) */
    size_t threads;   /**< number of threads that share the texts; 0: as many as this process may
                           keep busy (affinity, cgroup quota) */
    size_t first;     /**< number of the first text in messages */
    const char *what; /**< what messages call a text; NULL: "text" */
    bool bare;        /**< leave out the tokens that the model puts around a text */
    bool literal; /**< treat special tokens in a text ("<|im_end|>") as text; not for WordPiece */
} clv_tokenize_options;

/**
 * Opens the tokenizer of a model: a GGUF file, or a folder with tokenizer.json or (BERT) vocab.txt and
 * tokenizer_config.json. `path` may also name one of these files.
 *
 * From tokenizer.json, the library supports WordPiece with BERT's rules, and BPE and Unigram with these parts:
 * - the normalizers NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Precompiled (the character map of
 *   SentencePiece), BertNormalizer, Prepend and Replace (of a text, or of two or more spaces);
 * - the pre-tokenizers WhitespaceSplit, Digits, ByteLevel, Metaspace and Split by the regular expressions of GPT-2,
 *   Llama 3 and Qwen2.
 *
 * From GGUF, the library supports tokenizer.ggml.model gpt2 (pre-tokenizers of GPT-2, SmolLM, Llama 3, Qwen2 and
 * similar ones) and llama. Everything else is refused with a message that names it: ignoring it would silently change
 * the ids.
 *
 * Rules for WordPiece, and for the folders of encoders (model_type of config.json):
 * - The largest number of tokens of a text is options->max_length, else max_seq_length of sentence_bert_config.json,
 *   else model_max_length of tokenizer_config.json, and never more than the model's positions in config.json.
 * - A longer text keeps its first tokens. It keeps its last tokens instead if truncation_side of tokenizer_config.json
 *   is left, or if that member is missing and the direction of tokenizer.json's truncation is left. Everything else in
 *   tokenizer.json about truncation and padding is ignored, as in sentence-transformers.
 * - If tokenizer_config.json and tokenizer.json (without it: BERT) have different rules for capitals, accents or
 *   ideographs, tokenizer_config.json counts, with a warning, as in transformers. If sentence_bert_config.json asks for
 *   do_lower_case, texts become lower-case first.
 * - A token that only tokenizer_config.json adds is split like any word, also with a warning.
 *
 * For other kinds of tokenizers, options->max_length is the only limit.
 *
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT (not JSON, an unknown kind of tokenizer or rule, a vocabulary whose parts do
 *         not fit together; the message names it); CLV_E_ARGUMENT (max_length below 2 or above the model's positions);
 *         CLV_E_MEMORY. *out is NULL after a failure.
 */
CLV_API clv_status clv_tokenizer_open(const char *path, const clv_tokenizer_options *options,
                                      clv_tokenizer **out);
/** Opens the tokenizer of a GGUF file that you have opened; you may close the file afterwards. */
CLV_API clv_status clv_tokenizer_open_gguf(const clv_gguf *file,
                                           const clv_tokenizer_options *options,
                                           clv_tokenizer **out);
CLV_API void clv_tokenizer_close(clv_tokenizer *tokenizer); /**< accepts NULL */

CLV_API void clv_tokenizer_get_info(const clv_tokenizer *tokenizer, clv_tokenizer_info *info);
/** Returns the piece with that id as it is in the vocabulary ("##ing"); NULL if there is none. */
CLV_API const char *clv_tokenizer_piece(const clv_tokenizer *tokenizer, int32_t id);
/** Returns the id of a piece, written as in the vocabulary; -1 if there is none. */
CLV_API int32_t clv_tokenizer_find(const clv_tokenizer *tokenizer, const char *piece);
CLV_API clv_token_type clv_tokenizer_type(const clv_tokenizer *tokenizer, int32_t id);

/**
 * Converts `count` texts to tokens and adds the tokens that the model puts around a text: [CLS] and [SEP], a token that
 * begins a text, or none. The function first finds the special tokens that are written in a text, leftmost and longest
 * first, and tokenizes each part between them on its own.
 *
 * WordPiece drops control characters, turns white space into spaces, puts spaces around CJK ideographs, applies NFD and
 * drops combining marks (category Mn), turns each code point into lower case, splits at white space and punctuation,
 * and then takes the longest matching piece again and again. A word of more than 100 characters, or with a rest that is
 * not a piece, becomes one [UNK]. The ids are those of the Rust library tokenizers 0.23, which takes its character
 * classes from Unicode 8.
 *
 * Byte pair encoding brings the text into normal form and splits it into words by the model's rule. In each word, it
 * then joins the neighbouring pieces with the lowest rank (or the highest score), leftmost first, in O(n log n) for a
 * word of n characters.
 *
 * Unigram also splits the normal form into words. It then cuts each word into the pieces whose scores, which are
 * logarithms of probabilities, have the highest sum. A character that no piece covers has the lowest score minus 10.
 *
 * @param texts    UTF-8, any bytes, NUL included.
 * @param lengths  bytes of each text; NULL: texts end at NUL.
 * @param rows     out; the same for every number of threads.
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_FORMAT (the message names the text and the byte that is not UTF-8; the part of
 *         a text that is cut off is not checked); CLV_E_MEMORY. After a failure `rows` is empty but keeps its memory.
 */
CLV_API clv_status clv_tokenize(const clv_tokenizer *tokenizer, const char *const *texts,
                                const size_t *lengths, size_t count,
                                const clv_tokenize_options *options, clv_token_rows *rows);
/**
 * Counts the tokens at the beginning of a text that belong to a prompt that was put before it, as sentence-transformers
 * does. They are the prompt's own tokens and the tokens that the model puts before a text, without those that it puts
 * after a text.
 * @return CLV_OK; CLV_E_ARGUMENT (a NULL); what clv_tokenize returns.
 */
CLV_API clv_status clv_tokenizer_prompt_length(const clv_tokenizer *tokenizer, const char *prompt,
                                               size_t *tokens);
/**
 * Converts a text to tokens in which marked bytes never become part of a special token: use it for a conversation that
 * contains text from a user. Not for WordPiece.
 *
 * @param marks  [length]: non-zero for each byte that must not be part of a special token.
 */
CLV_API clv_status clv_tokenize_marked(const clv_tokenizer *tokenizer, const char *text,
                                       const unsigned char *marks, size_t length,
                                       const clv_tokenize_options *options, clv_token_rows *rows);
CLV_API void clv_token_rows_clear(clv_token_rows *rows); /**< frees and zeroes */

/** Converts tokens to text, one by one. */
typedef struct clv_detokenizer clv_detokenizer;

/** Creates a detokenizer for one text after another. With `keep_control`, control tokens appear as in the vocabulary
 *  ("<|im_end|>"); otherwise they give no text. */
CLV_API clv_status clv_detokenizer_create(const clv_tokenizer *tokenizer, bool keep_control,
                                          clv_detokenizer **out);
CLV_API void clv_detokenizer_free(clv_detokenizer *detokenizer); /**< accepts NULL */
/**
 * Gets the piece of text that the next token adds, always in whole characters. Bytes of a character that is not
 * complete yet are held back; bytes that cannot become a character give U+FFFD. The text is the concatenation of all
 * pieces.
 *
 * @param text    out, borrowed until the next call; terminated.
 * @param length  out, bytes; may be 0.
 * @return CLV_OK; CLV_E_ARGUMENT (an id that the vocabulary does not have); CLV_E_MEMORY.
 */
CLV_API clv_status clv_detokenizer_add(clv_detokenizer *detokenizer, int32_t id, const char **text,
                                       size_t *length);
/** Ends the text and gets the bytes that are still held back. The next token then begins a new text. */
CLV_API clv_status clv_detokenizer_finish(clv_detokenizer *detokenizer, const char **text,
                                          size_t *length);

CLV_END_DECLS

#endif
