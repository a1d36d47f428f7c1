/* SPDX-License-Identifier: Apache-2.0 */
/* Reads texts: the lines of a file or stream, a chunk at a time, in bounded memory. */
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
    CLV_LINES_PLAIN, /* one text per line, or per tab-separated field of it */
    CLV_LINES_CSV,   /* one text per row: RFC 4180 */
    CLV_LINES_TSV,   /* the same with tabs between the fields */
    CLV_LINES_JSON,  /* one object per line */
} clv_lines_kind;

/* A chunk of lines. Plain lines end at LF only, or at another byte; the last one may end with the file. Texts may hold
 * any other bytes, including NUL and CR, and are not terminated. In tables and JSON, blank lines are skipped. */
typedef struct clv_lines {
    const char *path;   /* borrowed, for messages */
    size_t column;      /* set after opening: 0: whole lines; n: the n-th field */
    char end;           /* set after opening: the byte that ends a line; LF */
    const char *prefix; /* set after opening, borrowed, may be NULL: put in front of every text */
    size_t count;       /* lines in this chunk; 0: there are no more */
    uint64_t first;     /* number of the first of them, from 1 */
    atomic_bool *stop;  /* set after opening, may be NULL: true ends a wait for more */
    const char **texts;
    size_t *lengths;

    /* private to the reader */
    clv_lines_kind kind;
    uint64_t blank; /* JSON lines that were skipped */
    clv_text field,
        decoded; /* field: column or member; decoded: texts that differ from the file's bytes */
    int descriptor;
    bool ended;
    char *buffer;
    size_t start, used, room, text_room, length_room;
} clv_lines;

/* Opens a file, a pipe, or standard input ("-"). Returns CLV_OK or CLV_E_IO. */
clv_status clv_lines_open(clv_lines *lines, const char *path);
/* Opens a text that is in memory already, and takes it over (clv_free); `path` is its name in messages. */
void clv_lines_take(clv_lines *lines, const char *path, char *text, size_t length);
/* Continues to read the input as another kind. `name` selects the column or member of that name; NULL chooses one as
 * host/io/records.h describes. In tables this takes the first row as the header; with `column` (from 1), however, every
 * row is a text. `*chosen` is borrowed: it is the name or, if the column was given by number, that column of the first
 * row, which remains a text. It is empty at the input's end. Returns CLV_OK, CLV_E_IO, CLV_E_FORMAT or CLV_E_MEMORY. */
clv_status clv_lines_choose(clv_lines *lines, clv_lines_kind kind, const char *name, size_t column,
                            const char **chosen);
/* Reads the next lines: at most `most_lines`, and no more than about `most_bytes` unless a single line is longer. The
 * results of the previous call become invalid. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT for a line longer than
 * CLV_LINE_MAX or without the wanted column; CLV_E_MEMORY; CLV_E_CANCELLED if `stop` became true. */
clv_status clv_lines_next(clv_lines *lines, size_t most_lines, size_t most_bytes);
void clv_lines_close(clv_lines *lines);

#endif
