/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a tokenizer: rules, vocabulary, and the work on one text. */
#ifndef CLEAVE_HOST_TOKENIZER_TOKENIZER_H
#define CLEAVE_HOST_TOKENIZER_TOKENIZER_H

#include "host/tokenizer/pieces.h"

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

typedef struct clv_special {
    char *text;
    size_t length;
    int32_t id;
} clv_special;

struct clv_tokenizer {
    clv_pieces pieces;
    clv_special *specials; /* longest first */
    size_t special_count, special_room;
    bool special_start[256]; /* bytes with which one begins */
    clv_char_flags flags;
    uint32_t rules[CLV_CHAR_TABLE];
    size_t max_word_chars;
    int32_t unk, cls, sep, pad, mask;
    size_t max_length;
    bool keep_end; /* of a text that is too long: the last tokens, not the first */
    bool replace_invalid;
};

/* Reads the JSON of tokenizer.json. `what` names it in messages. */
clv_status clv_tokenizer_from_json(clv_tokenizer *tokenizer, const char *what, const char *text,
                                   size_t length);
/* Reads vocab.txt; `config` is the text of tokenizer_config.json, NULL: the defaults of BERT. */
clv_status clv_tokenizer_from_vocabulary(clv_tokenizer *tokenizer, const char *what,
                                         const char *text, size_t length, const char *config_name,
                                         const char *config, size_t config_length);
clv_status clv_tokenizer_add_special(clv_tokenizer *tokenizer, const char *what, const char *text,
                                     int64_t id);
/* When pieces and specials are there: the tables. */
clv_status clv_tokenizer_finish(clv_tokenizer *tokenizer, const char *what, const char *tail_mark);
void clv_tokenizer_discard(clv_tokenizer *tokenizer); /* frees what it holds, not itself */

/* Appends the tokens of one text, without [CLS] and [SEP], to rows->ids; at most `most`, and then
 * rows->truncated counts. CLV_E_MEMORY; CLV_E_FORMAT: *bad is the byte that is not UTF-8 (no message
 * is made, the caller knows the text's name). */
clv_status clv_wordpiece(const clv_tokenizer *tokenizer, const char *text, size_t length,
                         size_t most, clv_token_rows *rows, size_t *bad);

#endif
