/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a tokenizer: its rules, its vocabulary, and the work on one text.
 *
 * A text is repaired (invalid UTF-8) and cut at added tokens. Each fragment between them is normalised
 * (normalize.c) and split into words (split.c), and the model turns each word into ids (bpe.c, unigram.c).
 * WordPiece does all of that in one pass of its own (wordpiece.c). */
#ifndef CLEAVE_HOST_TOKENIZER_TOKENIZER_H
#define CLEAVE_HOST_TOKENIZER_TOKENIZER_H

#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"
#include "host/tokenizer/pieces.h"

#include <cleave/gguf.h>
#include <cleave/tokenizer.h>

enum {
    CLV_SPECIALS_MAX = 4096,
    CLV_WORD_CHARS_MAX = 256,  /* largest accepted max_input_chars_per_word */
    CLV_CHAR_TABLE = 0x3400,   /* code points whose rules are precomputed */
    CLV_CODE_POINT = 0x1FFFFF, /* mask of the code point in a rule */
    CLV_RULE_SHIFT = 24,
};

/* How a code point is treated; a rule combines this with the code point that replaces it. */
typedef enum clv_rule {
    CLV_RULE_LETTER, /* part of a word */
    CLV_RULE_DROP,   /* ignored */
    CLV_RULE_SPACE,  /* ends a word */
    CLV_RULE_ALONE,  /* a word of its own: punctuation */
    CLV_RULE_MARK,   /* dropped; may end a run of combining marks: see clv_char_spell */
    CLV_RULE_SPELL,  /* several code points, or one whose neighbours matter */
} clv_rule;

/* The options of BertNormalizer. */
typedef struct clv_char_flags {
    bool lower, strip, cjk;
} clv_char_flags;

/* One of the code points that replace another. */
typedef struct clv_spelled {
    uint32_t c;
    clv_rule rule;      /* LETTER, ALONE, SPACE, MARK */
    unsigned combining; /* combining class; 0: a run of combining marks ends here */
} clv_spelled;

enum { CLV_SPELLED_MAX = 12 };

/* Replaces a code point by 0 to CLV_SPELLED_MAX others; returns their number. */
size_t clv_char_spell(clv_char_flags flags, uint32_t c, clv_spelled out[CLV_SPELLED_MAX]);
/* Returns the same in one number for simple cases: rule << CLV_RULE_SHIFT | code point. */
uint32_t clv_char_rule(clv_char_flags flags, uint32_t c);

/* Facts about code points as the reference (the Rust library tokenizers) knows them: see wordpiece_chars.c. */
bool clv_char_is_old_mark(uint32_t c); /* M* */
unsigned clv_char_old_combining(uint32_t c);
/* Writes the canonical (or with `compat` the compatibility) decomposition; returns its length. */
size_t clv_char_old_decompose(uint32_t c, bool compat, uint32_t out[CLV_COMPAT_MAX]);
/* Writes the lower case of a code point; returns its length, 1 or 2. */
size_t clv_char_old_lower(uint32_t c, uint32_t out[2]);

/* An added token: texts are searched for it before anything else happens to them. */
typedef struct clv_special {
    char *text;
    size_t length;
    int32_t id;
    bool plain;       /* found even if special tokens are to be treated as text */
    bool single_word; /* only matches without a letter, number or underscore beside it */
    bool left, right; /* includes the white space on that side */
    bool late;        /* searched for in the normal form of a fragment, not in the text */
} clv_special;

/* Added tokens in the order of the search, and the bytes with which they begin. */
typedef struct clv_special_set {
    clv_special *tokens; /* of the tokenizer; texts of late ones are in normal form */
    size_t count;
    bool start[256];
} clv_special_set;

/* ---- stages of byte pair encoding ---------------------------------------------------------------- */

typedef enum clv_normal_kind {
    CLV_NORMAL_NFC,
    CLV_NORMAL_PREPEND, /* puts `to` in front of every fragment that is not empty */
    CLV_NORMAL_REPLACE, /* replaces every `from` by `to` */
    CLV_NORMAL_SPACES,  /* replaces two or more spaces by `to` */
    CLV_NORMAL_NFD,
    CLV_NORMAL_NFKD,
    CLV_NORMAL_NFKC,
    CLV_NORMAL_LOWER,
    CLV_NORMAL_ACCENTS, /* drops marks */
    CLV_NORMAL_STRIP,   /* drops white space at the ends */
    CLV_NORMAL_CHARSMAP,
    CLV_NORMAL_BERT,
} clv_normal_kind;

typedef struct clv_normal {
    clv_normal_kind kind;
    char from[8], to[8]; /* UTF-8, terminated */
    bool left, right;    /* STRIP */
    clv_char_flags bert;
} clv_normal;

/* A compiled map of SentencePiece: a trie of texts (a double array), and what they become. */
typedef struct clv_charsmap {
    uint32_t *units;
    size_t count;
    char *texts; /* each ended by NUL */
    size_t length;
} clv_charsmap;
/* Decodes the base64 text of tokenizer.json. */
clv_status clv_charsmap_open(clv_charsmap *map, const char *what, const char *base64);
void clv_charsmap_clear(clv_charsmap *map);
/* Appends the mapped form of UTF-8 text. */
void clv_charsmap_apply(const clv_charsmap *map, const char *text, size_t length, clv_text *out);

typedef enum clv_split_kind {
    CLV_SPLIT_NUMBERS, /* separates single digits (most 1), or runs of digits */
    CLV_SPLIT_WORDS,   /* splits by one of the usual regular expressions: see split.c */
    CLV_SPLIT_META,    /* turns spaces into `mark`, with which words then begin */
    CLV_SPLIT_SPACES,  /* words are the parts between white space */
} clv_split_kind;

typedef struct clv_split {
    clv_split_kind kind;
    size_t most;       /* most digits in a word; 0: any number */
    bool contractions; /* 's, 't, 're, 've, 'm, 'll, 'd are words */
    bool any_case;     /* contractions match in any case */
    bool any_lead;     /* any character but letters, numbers and line ends may begin a word of
                          letters; else a space may begin words of all kinds */
    bool lines;        /* line ends join the word in front of them */
    bool prefix;       /* META: puts a mark in front of the first word; WORDS: a space */
    bool first_only;   /* ... of the text only, not of every fragment */
    bool cuts;         /* META: cuts into words at the marks */
    char mark[8];
} clv_split;

enum { CLV_STAGES_MAX = 8, CLV_FRAME_MAX = 8 };

/* A pair of neighbouring pieces that join, and the piece that they become; the lowest rank joins first. */
typedef struct clv_merge {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank;
    int32_t id; /* -1: a free slot */
} clv_merge;

struct clv_tokenizer {
    clv_tokenizer_kind kind;
    clv_pieces pieces;
    unsigned char *types;  /* [pieces.ids]: clv_token_type; NULL: all normal but the special ones */
    clv_special *specials; /* once complete: the early ones, then the late ones, sorted by bytes */
    size_t special_count, special_room;
    clv_special_set early, late; /* what clv_specials_match searches for */
    int32_t unk, cls, sep, pad, mask, bos, eos;
    int32_t before[CLV_FRAME_MAX], after[CLV_FRAME_MAX]; /* put around a text */
    size_t before_count, after_count;
    bool pairs,
        pair_types; /* two texts are [CLS] A [SEP] B [SEP]; B and what follows it are of type 1 */
    bool double_pairs; /* two texts are <s> A </s> </s> B </s> */
    size_t max_length;
    bool keep_end;  /* keeps the last tokens of a text that is too long, not the first */
    bool pads_left; /* tokenizer.json says so; Cleave does not pad */
    bool replace_invalid, drop_invalid;
    bool lower_asked; /* sentence_bert_config.json wants lower case whatever the normalizer does */

    /* WORDPIECE */
    clv_char_flags flags;
    clv_char_flags written; /* what tokenizer.json says ... */
    bool
        flags_given; /* ... but tokenizer_config.json has other rules, which `flags` are from the start */
    uint32_t rules[CLV_CHAR_TABLE];
    size_t max_word_chars;

    /* byte pair encoding */
    clv_normal normal[CLV_STAGES_MAX];
    clv_split split[CLV_STAGES_MAX];
    size_t normal_count, split_count;
    bool byte_level;       /* words are bytes, each written as a character of its own */
    bool bytes_as_hex;     /* pieces like <0x0A> spell the bytes of characters without a piece */
    bool whole_words;      /* a word that is a piece is not split */
    bool fuse_unknown;     /* neighbouring unknown characters become one token */
    bool strip_first;      /* decoding removes one leading space from a text's first piece */
    int32_t byte_ids[256]; /* the piece of a byte; -1: none */
    float *scores;         /* [pieces.ids]: SENTENCEPIECE; higher joins first */
    double *weights;       /* [pieces.ids]: UNIGRAM; logarithms of probabilities */
    double unknown_weight; /* UNIGRAM: of a character without a piece */
    clv_charsmap charsmap;
    clv_merge *merges;  /* BPE: a hash table */
    size_t merge_slots; /* a power of two */
};

/* ---- opening ------------------------------------------------------------------------------------- */

/* Reads the JSON of tokenizer.json. `what` names it in messages. */
clv_status clv_tokenizer_from_json(clv_tokenizer *tokenizer, const char *what, const char *text,
                                   size_t length);
/* Reads vocab.txt; `config` is the text of tokenizer_config.json, NULL: the defaults of BERT. `added` is the content of
 * added_tokens.json, NULL: there is none. */
clv_status clv_tokenizer_from_vocabulary(clv_tokenizer *tokenizer, const char *what,
                                         const char *text, size_t length, const char *config_name,
                                         const char *config, size_t config_length,
                                         const clv_json *added);
/* Reads the rest of tokenizer.json if its model is BPE or Unigram. */
clv_status clv_tokenizer_from_bpe_json(clv_tokenizer *tokenizer, const char *what,
                                       const clv_json *root);
/* Reads the vocabulary of a GGUF file. */
/* Notes how pairs of texts are made, once before[] and after[] are known. */
void clv_tokenizer_take_pairs(clv_tokenizer *tokenizer, const clv_json *post_processor);
clv_status clv_tokenizer_from_gguf(clv_tokenizer *tokenizer, const clv_gguf *file);

/* Helpers that the JSON readers share. */
clv_status clv_tokenizer_refuse(const char *what, const char *part, const clv_json *found,
                                const char *expected);
clv_status clv_tokenizer_flag(const char *what, const clv_json *object, const char *key,
                              bool fallback, bool *out);
clv_status clv_tokenizer_take_pieces(clv_tokenizer *tokenizer, const char *what,
                                     const clv_json *vocabulary);
/* Reads the normalizer, and the model of UNIGRAM. */
clv_status clv_tokenizer_take_normalizer(clv_tokenizer *tokenizer, const char *what,
                                         const clv_json *normalizer);
clv_status clv_tokenizer_take_unigram(clv_tokenizer *tokenizer, const char *what,
                                      const clv_json *model);
/* Reads a text of at most 7 bytes; an empty one only if `empty` is set. */
clv_status clv_tokenizer_take_mark(const char *what, const clv_json *object, const char *key,
                                   bool empty, char out[8]);
/* Reads the options of a BertNormalizer. */
clv_status clv_tokenizer_take_bert(const char *what, const clv_json *normalizer,
                                   clv_char_flags *flags);
/* Gets the split rule of a known regular expression, by its exact text; returns false for an unknown one. */
bool clv_split_of_pattern(const char *pattern, clv_split *split);

clv_status clv_tokenizer_add_special(clv_tokenizer *tokenizer, const char *what, const char *text,
                                     int64_t id);
/* Adds `special`, whose text is copied. */
clv_status clv_tokenizer_add(clv_tokenizer *tokenizer, const char *what,
                             const clv_special *special);
/* clv_bpe_make_merges makes room for `count` merges; clv_bpe_add_merge adds one, which joins two pieces, given by
 * their ids, to a third with this rank. */
clv_status clv_bpe_make_merges(clv_tokenizer *tokenizer, const char *what, size_t count);
void clv_bpe_add_merge(clv_tokenizer *tokenizer, int32_t left, int32_t right, uint32_t rank,
                       int32_t id);
/* Adds a merge given by the texts of its two pieces; a merge of unknown pieces is counted in *skipped. */
clv_status clv_bpe_merge_line(clv_tokenizer *tokenizer, const char *what, const char *left,
                              size_t left_length, const char *right, size_t right_length,
                              uint32_t rank, size_t *skipped);
/* Builds the tables of added tokens, and normalises late ones. */
clv_status clv_specials_finish(clv_tokenizer *tokenizer, const char *what);
/* Builds the tables of byte pair encoding; call it once all pieces and added tokens are there. */
clv_status clv_bpe_finish(clv_tokenizer *tokenizer, const char *what);
/* Reads from the folder's tokenizer_config.json which tokens are put around a text. */
clv_status clv_bpe_take_config(clv_tokenizer *tokenizer, const char *folder,
                               const clv_json *config);
/* Builds the tables; call it once all pieces and special tokens are there. */
clv_status clv_tokenizer_finish(clv_tokenizer *tokenizer, const char *what, const char *tail_mark);
void clv_tokenizer_discard(clv_tokenizer *tokenizer); /* frees what it holds, not itself */

/* ---- work ------------------------------------------------------------------------------------------ */

/* Appends the tokens of one text, without [CLS] and [SEP], to rows->ids. At most `most` are appended; if the text
 * has more, rows->truncated is incremented. Returns CLV_E_MEMORY, or CLV_E_FORMAT with *bad the byte that is not
 * UTF-8 (without a message, since only the caller knows the text's name). */
clv_status clv_wordpiece(const clv_tokenizer *tokenizer, const char *text, size_t length,
                         size_t most, clv_token_rows *rows, size_t *bad);

/* Appends all tokens of one text by byte pair encoding. With `literal`, special tokens in the text are treated as
 * text; `marks` (may be NULL) does so for those with a marked (nonzero) byte. CLV_E_FORMAT with *bad = SIZE_MAX
 * comes with a message. */
clv_status clv_bpe_encode(const clv_tokenizer *tokenizer, const char *text, size_t length,
                          bool literal, const unsigned char *marks, clv_token_rows *rows,
                          size_t *bad);

/* Returns valid UTF-8: `text` itself, or a repaired copy in *copy. Returns NULL if there is no memory
 * (copy->failed), or else with *bad the first invalid byte. */
const char *clv_text_repair(const clv_tokenizer *tokenizer, const char *text, size_t *length,
                            clv_text *copy, clv_token_rows *rows, size_t *bad);
/* Appends a decomposition (NFD, or with `compat` NFKD), lower case, a text without marks, and BERT's normal form. */
void clv_text_decompose(const char *text, size_t length, bool compat, clv_text *out);
void clv_text_lower(const char *text, size_t length, clv_text *out);
void clv_text_drop_marks(const char *text, size_t length, clv_text *out);
void clv_text_bert(clv_char_flags flags, const char *text, size_t length, clv_text *out);
/* Returns the normal form of a fragment: `text` itself, or one of the caller's two work texts. */
const char *clv_text_normalize(const clv_tokenizer *tokenizer, const char *text, size_t *length,
                               clv_text work[2]);
/* Returns the bytes of the first word of `text`, which must not be empty. */
size_t clv_split_next(const clv_split *split, const char *text, size_t length);

/* Returns the added token of a set that begins at text[at]; NULL if there is none. */
const clv_special *clv_specials_match(const clv_special_set *set, const char *text, size_t at,
                                      size_t length, bool literal, const unsigned char *marks);
/* Return where the white space before text[to] begins (at least `from`), and where the white space from text[at] on
 * ends. */
size_t clv_spaces_before(const char *text, size_t from, size_t to);
size_t clv_spaces_behind(const char *text, size_t at, size_t length);

/* clv_bpe_word converts one word to ids and appends them to rows. The next word reuses the memory of `work`. */
typedef struct clv_bpe_work clv_bpe_work;
clv_bpe_work *clv_bpe_work_create(void);
void clv_bpe_work_free(clv_bpe_work *work);
clv_status clv_bpe_word(const clv_tokenizer *tokenizer, clv_bpe_work *work, const char *word,
                        size_t length, clv_token_rows *rows);

/* Appends the ids of one word by UNIGRAM. `work` is as above. */
clv_status clv_unigram_word(const clv_tokenizer *tokenizer, clv_bpe_work *work, const char *word,
                            size_t length, clv_token_rows *rows);
/* One end of the best path through a word, and memory for `count` of them in `work`; NULL without memory. */
typedef struct clv_best_end {
    double score;
    size_t from; /* SIZE_MAX: no path leads here */
    int32_t id;
} clv_best_end;
clv_best_end *clv_bpe_work_ends(clv_bpe_work *work, size_t count);

bool clv_token_push(clv_token_rows *rows, int32_t id);

/* GPT-2's characters for bytes: printable Latin-1 stands for itself, the other 68 bytes are U+0100 and up. */
uint32_t clv_byte_char(unsigned char byte);
int clv_char_byte(uint32_t c); /* -1: none */

#endif
