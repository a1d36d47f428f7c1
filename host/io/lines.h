/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in: the lines of a file or stream, a chunk at a time, in bounded memory. */
#ifndef CLEAVE_HOST_IO_LINES_H
#define CLEAVE_HOST_IO_LINES_H

#include "base/text.h"

#include <cleave/status.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLV_LINE_MAX = 64 << 20 }; /* bytes; a longer line is an error */

typedef enum clv_lines_kind {
    CLV_LINES_PLAIN, /* a text a line, or a field of it between tabs */
    CLV_LINES_CSV,   /* a text a row: RFC 4180 */
    CLV_LINES_TSV,   /* the same with tabs between the fields */
    CLV_LINES_JSON,  /* an object a line */
} clv_lines_kind;

/* A chunk of lines. Plain lines end at LF alone, or at another byte; the last one may end with the file. Texts
 * hold any other bytes, NUL and CR included, and are not terminated. Of tables and JSON, blank lines are skipped. */
typedef struct clv_lines {
    const char *path;   /* borrowed, for messages */
    size_t column;      /* set after opening: 0: whole lines; n: the n-th field */
    char end;           /* set after opening: ends a line; LF */
    const char *prefix; /* set after opening, borrowed, may be NULL: in front of every text */
    size_t count;       /* lines in hand; 0: there are no more */
    uint64_t first;     /* number of the first of them, from 1 */
    atomic_bool *stop;  /* set after opening, may be NULL: true ends a wait for more */
    const char **texts;
    size_t *lengths;

    /* the reader's own */
    clv_lines_kind kind;
    uint64_t blank; /* JSON lines that were skipped */
    clv_text field,
        decoded; /* which member or column; texts that are not as they lie in the file */
    int descriptor;
    bool ended;
    char *buffer;
    size_t start, used, room, text_room, length_room;
} clv_lines;

/* A file, a pipe, or standard input ("-"). CLV_E_IO. */
clv_status clv_lines_open(clv_lines *lines, const char *path);
/* Reads on as another kind. By name, the column or member of that name; NULL chooses, as host/io/records.h has it. Of
 * tables this takes the first row, which is a header then; with `column` (from 1) every row is a text. `*chosen` is
 * borrowed: the name, or where the column was given by number, what the first row has there, which stays a text.
 * Empty at the input's end. CLV_E_IO, CLV_E_FORMAT, CLV_E_MEMORY. */
clv_status clv_lines_choose(clv_lines *lines, clv_lines_kind kind, const char *name, size_t column,
                            const char **chosen);
/* The next lines: at most `most_lines`, and no more than about `most_bytes` unless one line alone is
 * longer. What the last call gave is gone. CLV_E_IO; CLV_E_FORMAT: a line longer than CLV_LINE_MAX,
 * or without the wanted column; CLV_E_MEMORY; CLV_E_CANCELLED: `stop` became true. */
clv_status clv_lines_next(clv_lines *lines, size_t most_lines, size_t most_bytes);
void clv_lines_close(clv_lines *lines);

#endif
