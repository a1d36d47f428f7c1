/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of at most 80 columns with a hanging indent, and colours that cost no columns. */
#ifndef CLEAVE_PROBE_WRAP_H
#define CLEAVE_PROBE_WRAP_H

#include "base/text.h"

enum { CLV_WRAP_COLUMNS = 80 };

typedef enum clv_tint { CLV_PLAIN, CLV_BOLD, CLV_DIM, CLV_GREEN, CLV_YELLOW, CLV_RED } clv_tint;

/* A line in the making: begin, words, end. Prefixes may hold UTF-8. */
typedef struct clv_wrap {
    clv_text *out;
    const char *next; /* prefix of the lines after the first */
    unsigned column;
    bool colour, fresh; /* fresh: nothing after the prefix yet */
} clv_wrap;

void clv_wrap_begin(clv_wrap *wrap, clv_text *out, bool colour, const char *first,
                    const char *next);
/* Appends the text's words; they move to the next line where they do not fit. A word that fits no
 * line is cut by force. */
void clv_wrap_words(clv_wrap *wrap, clv_tint tint, const char *format, ...) CLV_PRINTF(3, 4);
/* As one word, blanks and all, while it fits a line. */
void clv_wrap_piece(clv_wrap *wrap, clv_tint tint, const char *format, ...) CLV_PRINTF(3, 4);
/* Fills up with blanks to a column; already beyond it: one blank. */
void clv_wrap_column(clv_wrap *wrap, unsigned column);
void clv_wrap_end(clv_wrap *wrap);

unsigned clv_columns(const char *text, size_t length); /* code points */

#endif
