/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes UTF-8, and gives facts about code points. Only base/unicode.c uses the Unicode library. The
 * locale has no effect. */
#ifndef CLEAVE_BASE_UNICODE_H
#define CLEAVE_BASE_UNICODE_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLV_COMPAT_MAX = 24 };    /* most code points of a compatibility decomposition; 18 today */
enum { CLV_DECOMPOSED_MAX = 8 }; /* most code points of one canonical decomposition; 4 today */

typedef enum clv_char_class {
    CLV_CHAR_OTHER = 0,   /* letters, numbers, symbols, separators, unassigned */
    CLV_CHAR_MARK,        /* Mn: non-spacing marks */
    CLV_CHAR_PUNCTUATION, /* P* */
    CLV_CHAR_CONTROL,     /* Cc, Cf, Co, Cs */
} clv_char_class;

clv_char_class clv_char_classify(uint32_t c);
bool clv_char_is_letter(uint32_t c); /* L* */
bool clv_char_is_number(uint32_t c); /* N*: digits, fractions, Roman numerals */
bool clv_char_is_mark(uint32_t c);   /* M*: also spacing and enclosing marks */
bool clv_char_is_space(uint32_t c);  /* White_Space */
/* Writes the full canonical decomposition (NFD) of one code point; returns its length, at least 1. */
size_t clv_char_decompose(uint32_t c, uint32_t out[CLV_DECOMPOSED_MAX]);
/* Writes the full compatibility decomposition (NFKD), at most `room` code points; returns its length, or 1 with the
 * code point itself if there is not enough room. */
size_t clv_char_decompose_compat(uint32_t c, uint32_t *out, size_t room);
unsigned clv_char_combining(uint32_t c); /* canonical combining class; 0: a starter */
uint32_t clv_char_lower(uint32_t c);     /* simple mapping, independent of context */
uint32_t clv_char_upper(uint32_t c);

/* The code points from `first` to `last`, both included. */
typedef struct clv_char_range {
    uint32_t first, last;
} clv_char_range;
/* Returns whether the code point is in one of the `count` ranges, which must be in ascending order. */
bool clv_char_within(const clv_char_range *ranges, size_t count, uint32_t c);

/* Decodes the character at `text` strictly: no overlong forms, no surrogates, no values above U+10FFFF. Returns the
 * length of the character in bytes (1 to 4), or 0 if the bytes are not UTF-8 or `length` is 0. */
size_t clv_utf8_decode(const char *text, size_t length, uint32_t *c);
size_t clv_utf8_encode(uint32_t c, char out[4]);
/* Returns the length in bytes, 1 to 3, of the maximal part at `text` that is not UTF-8 and that one U+FFFD should
 * replace, as Unicode recommends (chapter 3.9, "substitution of maximal subparts"). `length` is not 0, and no valid
 * character begins at `text`. */
size_t clv_utf8_bad(const char *text, size_t length);
/* Appends the composed form (NFC, or with `compat` NFKC) of UTF-8 text; a failure sets `out->failed`. */
void clv_utf8_compose(const char *text, size_t length, bool compat, clv_text *out);
/* Returns the length in bytes of the first grapheme cluster of valid UTF-8 text, which must not be empty. */
size_t clv_grapheme_length(const char *text, size_t length);

#endif
