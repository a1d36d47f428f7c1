/* SPDX-License-Identifier: Apache-2.0 */
/* Writes lines of at most 80 columns with a hanging indent. Colour sequences do not count as columns. */
#ifndef CLEAVE_PROBE_WRAP_H
#define CLEAVE_PROBE_WRAP_H

#include "base/text.h"

enum { CLV_WRAP_COLUMNS = 80 };

typedef enum clv_tint { CLV_PLAIN, CLV_BOLD, CLV_DIM, CLV_GREEN, CLV_YELLOW, CLV_RED } clv_tint;

/* A line under construction: begin it, add words, end it. Prefixes may contain UTF-8. */
typedef struct clv_wrap {
    clv_text *out;
    const char *next; /* prefix of the lines after the first */
    unsigned column;
    bool colour, fresh; /* fresh: only the prefix has been written */
} clv_wrap;

void clv_wrap_begin(clv_wrap *wrap, clv_text *out, bool colour, const char *first,
                    const char *next);
/* Appends the words of the text; a word that does not fit moves to the next line. A word longer than a line is cut. */
void clv_wrap_words(clv_wrap *wrap, clv_tint tint, const char *format, ...) CLV_PRINTF(3, 4);
/* Appends the text as one word, including its blanks, if it fits on one line. */
void clv_wrap_piece(clv_wrap *wrap, clv_tint tint, const char *format, ...) CLV_PRINTF(3, 4);
/* Adds blanks up to a column; adds one blank if the line already extends beyond it. */
void clv_wrap_column(clv_wrap *wrap, unsigned column);
void clv_wrap_end(clv_wrap *wrap);

unsigned clv_columns(const char *text, size_t length); /* returns the number of code points */

#endif
