/* SPDX-License-Identifier: Apache-2.0 */
/* Implements a growing string, and strict parsers of numbers and sizes. */
#ifndef CLEAVE_BASE_TEXT_H
#define CLEAVE_BASE_TEXT_H

#include <cleave/export.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing string: zero-initialise it, append, read `data`, clear it. After a failed append `failed` stays true and
 * the text stays as it was, so one check at the end is enough. */
typedef struct clv_text {
    char *data; /* NUL-terminated once something was appended; else NULL */
    size_t length, capacity;
    bool failed; /* out of memory */
} clv_text;

/* Work like snprintf and vsnprintf, but write numbers with a point in every locale: a program that uses the library may
 * have chosen a locale with a decimal comma, which neither OpenCL C nor our files and templates know. */
int clv_format(char *out, size_t capacity, const char *format, ...) CLV_PRINTF(3, 4);
int clv_vformat(char *out, size_t capacity, const char *format, va_list args);

void clv_text_add(clv_text *text, const char *format, ...) CLV_PRINTF(2, 3);
void clv_text_vadd(clv_text *text, const char *format, va_list args);
void clv_text_bytes(clv_text *text, const void *bytes, size_t length);
const char *clv_text_get(const clv_text *text); /* "" when empty; never NULL */
void clv_text_clear(clv_text *text);
void clv_text_restart(clv_text *text); /* empties the text but keeps its memory */

/* Each parser reads the whole text, or returns false and leaves *out unchanged. The locale has no effect. */
bool clv_parse_double(const char *text, double *out); /* finite only */
bool clv_parse_u64(const char *text, uint64_t *out);  /* decimal digits only */
bool clv_parse_i64(const char *text, int64_t *out);
/* Return the length in bytes of the decimal number without sign at the start of a text (digits, points and an
 * exponent; it may still have two points), or of the name there (letters, digits and '_', no digit first). */
size_t clv_decimal_length(const char *text);
size_t clv_name_length(const char *text);
/* Reads "4096", "256M", "1.5G", "2GiB", "800 MB": k, M, G, T are powers of 1000; Ki, Mi, Gi, Ti powers of
 * 1024. */
bool clv_parse_bytes(const char *text, uint64_t *out);
/* Reads "80%" as 0.8; 1e-8 <= fraction <= 1. */
bool clv_parse_percent(const char *text, double *fraction);

/* Writes "1.61 GB", "20.1 MB", "512 B", in decimal units. `out` holds at least 16 bytes and is returned. */
const char *clv_format_bytes(uint64_t bytes, char *out);
/* Writes "1.24 s", "15.0 ms", "2 min 05 s". `out` holds at least 24 bytes and is returned. */
const char *clv_format_seconds(double seconds, char *out);

/* Copies into a fixed field, always terminated; a text that is too long is cut at a UTF-8 boundary. */
void clv_copy_string(char *out, size_t capacity, const char *text);

/* Returns the position of `word` in a comma-separated list, counted from 0, or -1 if the list does not contain it. */
int clv_find_word(const char *list, const char *word);
/* Turns "a,b,c" with "or" into "a, b or c", cut to `capacity`. Returns `out`. */
const char *clv_list_words(const char *list, const char *link, char *out, size_t capacity);

bool clv_starts_with(const char *text, const char *prefix);
bool clv_ends_with(const char *text, const char *suffix);
bool clv_contains_nocase(const char *text, const char *part); /* ASCII letters */

#endif
