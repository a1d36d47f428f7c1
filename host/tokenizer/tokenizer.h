/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a tokenizer: rules, vocabulary, and the work on one text.
 *
 * A text is repaired (UTF-8), cut at added tokens, and each fragment between them goes through normal
 * forms (normalize.c), splitting into words (split.c), and the model that makes ids of a word (bpe.c).
 * WordPiece does all of that in one pass of its own (wordpiece.c). */
#ifndef CLEAVE_HOST_TOKENIZER_TOKENIZER_H
#define CLEAVE_HOST_TOKENIZER_TOKENIZER_H

#include "base/json.h"
#include "base/text.h"
#include "host/tokenizer/pieces.h"

#include <cleave/gguf.h>
#include <cleave/tokenizer.h>

enum {
    CLV_SPECIALS_MAX = 4096,
    CLV_WORD_CHARS_MAX = 256,  /* the most that max_input_chars_per_word may say */
    CLV_CHAR_TABLE = 0x3400,   /* code points whose rule is made beforehand */
    CLV_CODE_POINT = 0x1FFFFF, /* mask of the code point in a rule */
    CLV_RULE_SHIFT = 24,
};

/* What becomes of a code point; in a rule beside the code point that it becomes. */
typedef enum clv_rule {
    CLV_RULE_LETTER, /* part of a word */
    CLV_RULE_DROP,   /* as if it were not there */
    CLV_RULE_SPACE,  /* ends a word */
    CLV_RULE_ALONE,  /* a word of its own: punctuation */
    CLV_RULE_MARK,   /* dropped, and ends a run of combining marks or not: see clv_char_spell */
    CLV_RULE_SPELL,  /* several code points, or one of which the neighbours matter */
} clv_rule;

/* What BertNormalizer is told. */
typedef struct clv_char_flags {
    bool lower, strip, cjk;
} clv_char_flags;

/* One code point of what another becomes. */
typedef struct clv_spelled {
    uint32_t c;
    clv_rule rule;      /* LETTER, ALONE, SPACE, MARK */
    unsigned combining; /* class; 0: a run of combining marks ends here */
} clv_spelled;

enum { CLV_SPELLED_MAX = 12 };

/* What a code point becomes: 0 to CLV_SPELLED_MAX others. */
size_t clv_char_spell(clv_char_flags flags, uint32_t c, clv_spelled out[CLV_SPELLED_MAX]);
/* The same in one number, for those that are simple: rule << CLV_RULE_SHIFT | code point. */
uint32_t clv_char_rule(clv_char_flags flags, uint32_t c);

/* A token that is looked for in texts before anything else happens to them. */
typedef struct clv_special {
    char *text;
    size_t length;
    int32_t id;
    bool plain;       /* looked for even where special tokens are text */
    bool single_word; /* only where no letter, number or underscore is beside it */
    bool left, right; /* takes white space on that side with it */
} clv_special;

/* ---- stages of byte pair encoding ---------------------------------------------------------------- */

typedef enum clv_normal_kind {
    CLV_NORMAL_NFC,
    CLV_NORMAL_PREPEND, /* `to` in front of every fragment that is not empty */
    CLV_NORMAL_REPLACE, /* every `from` by `to` */
} clv_normal_kind;

typedef struct clv_normal {
    clv_normal_kind kind;
    char from[8], to[8]; /* UTF-8, terminated */
} clv_normal;

typedef enum clv_split_kind {
    CLV_SPLIT_NUMBERS, /* every number alone (most 1), or runs of them */
    CLV_SPLIT_WORDS,   /* one of the usual regular expressions: see split.c */
    CLV_SPLIT_META,    /* spaces become `mark`, words begin with it */
} clv_split_kind;

typedef struct clv_split {
    clv_split_kind kind;
    size_t most;       /* numbers in a word; 0: any */
    bool contractions; /* 's, 't, 're, 've, 'm, 'll, 'd are words */
    bool any_case;     /* of contractions */
    bool any_lead;     /* any character but letters, numbers and line ends may begin a word of
                          letters; else a space may begin words of all kinds */
    bool lines;        /* line ends join what is in front of them */
    bool prefix;       /* META: a mark in front of the first word; WORDS: a space */
    bool first_only;   /* ... of the text, not of every fragment */
    bool cuts;         /* META: into words */
    char mark[8];
} clv_split;

enum { CLV_STAGES_MAX = 8, CLV_FRAME_MAX = 8 };

/* Two neighbours that join, and what they become; the lowest rank joins first. */
typedef struct clv_merge {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank;
    int32_t id; /* -1: a free slot */
} clv_merge;

struct clv_tokenizer {
    clv_tokenizer_kind kind;
    clv_pieces pieces;
    unsigned char *types;  /* [pieces.ids]: clv_token_type; NULL: all normal but the special ones */
    clv_special *specials; /* WORDPIECE: longest first; else by their bytes */
    size_t special_count, special_room;
    bool special_start[256]; /* bytes with which one begins */
    int32_t unk, cls, sep, pad, mask, bos, eos;
    int32_t before[CLV_FRAME_MAX], after[CLV_FRAME_MAX]; /* put around a text */
    size_t before_count, after_count;
    size_t max_length;
    bool keep_end; /* of a text that is too long: the last tokens, not the first */
    bool replace_invalid, drop_invalid;

    /* WORDPIECE */
    clv_char_flags flags;
    uint32_t rules[CLV_CHAR_TABLE];
    size_t max_word_chars;

    /* byte pair encoding */
    clv_normal normal[CLV_STAGES_MAX];
    clv_split split[CLV_STAGES_MAX];
    size_t normal_count, split_count;
    bool byte_level;       /* words are bytes, each written as a character of its own */
    bool bytes_as_hex;     /* pieces like <0x0A> are bytes of characters that are no piece */
    bool whole_words;      /* a word that is a piece is not taken apart */
    bool fuse_unknown;     /* neighbouring unknown characters are one token */
    bool strip_first;      /* a text's first piece loses one leading space when it is decoded */
    int32_t byte_ids[256]; /* the piece of a byte; -1: none */
    float *scores;         /* [pieces.ids]: SENTENCEPIECE; higher joins first */
    clv_merge *merges;     /* BPE: by hash */
    size_t merge_slots;    /* a power of two */
};

/* ---- opening ------------------------------------------------------------------------------------- */

/* Reads the JSON of tokenizer.json. `what` names it in messages. */
clv_status clv_tokenizer_from_json(clv_tokenizer *tokenizer, const char *what, const char *text,
                                   size_t length);
/* Reads vocab.txt; `config` is the text of tokenizer_config.json, NULL: the defaults of BERT. */
clv_status clv_tokenizer_from_vocabulary(clv_tokenizer *tokenizer, const char *what,
                                         const char *text, size_t length, const char *config_name,
                                         const char *config, size_t config_length);
/* The rest of tokenizer.json where its model is BPE. */
clv_status clv_tokenizer_from_bpe_json(clv_tokenizer *tokenizer, const char *what,
                                       const clv_json *root);
/* The vocabulary of a GGUF file. */
clv_status clv_tokenizer_from_gguf(clv_tokenizer *tokenizer, const clv_gguf *file);

/* Shared by the readers of JSON. */
clv_status clv_tokenizer_refuse(const char *what, const char *part, const clv_json *found,
                                const char *expected);
clv_status clv_tokenizer_flag(const char *what, const clv_json *object, const char *key,
                              bool fallback, bool *out);
clv_status clv_tokenizer_take_pieces(clv_tokenizer *tokenizer, const char *what,
                                     const clv_json *vocabulary);
/* The rule of a regular expression that is known by its text; false: it is not. */
bool clv_split_of_pattern(const char *pattern, clv_split *split);

clv_status clv_tokenizer_add_special(clv_tokenizer *tokenizer, const char *what, const char *text,
                                     int64_t id);
/* Adds `special`, whose text is copied. */
clv_status clv_tokenizer_add(clv_tokenizer *tokenizer, const char *what,
                             const clv_special *special);
/* Joins two pieces, known by their ids, to a third with this rank. Room for `count` was made. */
clv_status clv_bpe_make_merges(clv_tokenizer *tokenizer, const char *what, size_t count);
void clv_bpe_add_merge(clv_tokenizer *tokenizer, int32_t left, int32_t right, uint32_t rank,
                       int32_t id);
/* The same of a text "left right", or of two texts; unknown pieces count in *skipped. */
clv_status clv_bpe_merge_line(clv_tokenizer *tokenizer, const char *what, const char *left,
                              size_t left_length, const char *right, size_t right_length,
                              uint32_t rank, size_t *skipped);
/* When pieces and added tokens are there. */
clv_status clv_bpe_finish(clv_tokenizer *tokenizer, const char *what);
/* What the folder's tokenizer_config.json says about the tokens around a text. */
clv_status clv_bpe_take_config(clv_tokenizer *tokenizer, const char *folder,
                               const clv_json *config);
/* When pieces and specials are there: the tables. */
clv_status clv_tokenizer_finish(clv_tokenizer *tokenizer, const char *what, const char *tail_mark);
void clv_tokenizer_discard(clv_tokenizer *tokenizer); /* frees what it holds, not itself */

/* ---- work ------------------------------------------------------------------------------------------ */

/* Appends the tokens of one text, without [CLS] and [SEP], to rows->ids; at most `most`, and then
 * rows->truncated counts. CLV_E_MEMORY; CLV_E_FORMAT: *bad is the byte that is not UTF-8 (no message
 * is made, the caller knows the text's name). */
clv_status clv_wordpiece(const clv_tokenizer *tokenizer, const char *text, size_t length,
                         size_t most, clv_token_rows *rows, size_t *bad);

/* The same by byte pair encoding, all of them. `literal`: special tokens in the text are text; `marks`
 * (may be NULL): so are those of which one of these bytes is not 0. After CLV_E_FORMAT with *bad SIZE_MAX
 * the message is there. */
clv_status clv_bpe_encode(const clv_tokenizer *tokenizer, const char *text, size_t length,
                          bool literal, const unsigned char *marks, clv_token_rows *rows,
                          size_t *bad);

/* UTF-8 for sure: `text`, or a repaired copy in *copy. NULL: *bad is the first bad byte, or there is no
 * memory (copy->failed). */
const char *clv_text_repair(const clv_tokenizer *tokenizer, const char *text, size_t *length,
                            clv_text *copy, clv_token_rows *rows, size_t *bad);
/* The normal form of a fragment: `text`, or one of two texts that are the caller's. */
const char *clv_text_normalize(const clv_tokenizer *tokenizer, const char *text, size_t *length,
                               clv_text work[2]);
/* Bytes of the first word of `text`, which is not empty. */
size_t clv_split_next(const clv_split *split, const char *text, size_t length);

/* The added token that begins at text[at]; NULL: none. */
const clv_special *clv_specials_match(const clv_tokenizer *tokenizer, const char *text, size_t at,
                                      size_t length, bool literal, const unsigned char *marks);

/* One word to ids, appended to rows. The work's memory is used again for the next word. */
typedef struct clv_bpe_work clv_bpe_work;
clv_bpe_work *clv_bpe_work_create(void);
void clv_bpe_work_free(clv_bpe_work *work);
clv_status clv_bpe_word(const clv_tokenizer *tokenizer, clv_bpe_work *work, const char *word,
                        size_t length, clv_token_rows *rows);

bool clv_token_push(clv_token_rows *rows, int32_t id);

/* GPT-2's characters for bytes: printable Latin-1 as it is, the other 68 bytes from U+0100 upwards. */
uint32_t clv_byte_char(unsigned char byte);
int clv_char_byte(uint32_t c); /* -1: none */

#endif
