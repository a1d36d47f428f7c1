/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines of a file or a stream as texts, a chunk of lines at a time, in bounded memory. */
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
    CLV_LINES_PLAIN, /* one text per line: the whole line, or one of its tab-separated fields */
    CLV_LINES_CSV,   /* one text per row of comma-separated values (RFC 4180) */
    CLV_LINES_TSV,   /* one text per row of tab-separated values */
    CLV_LINES_JSON,  /* one JSON object per line, with the text in one of its members */
} clv_lines_kind;

/* A chunk of lines. A plain line ends at LF or CR LF, or at the byte `end`; the last line may end with the file
 * instead. A text may hold any other bytes, including NUL and CR, and is not terminated. A byte-order mark at the start
 * of the input is no part of a text. In tables and JSON, blank lines are skipped. */
typedef struct clv_lines {
    const char *path;   /* borrowed, for messages */
    size_t column;      /* set after opening; 0: whole lines, n: the n-th field */
    char end;           /* set after opening; the byte that ends a line, LF by default */
    const char *prefix; /* set after opening, borrowed, or NULL; precedes every text */
    size_t count;       /* lines in this chunk; 0 at the end of the input */
    uint64_t first;     /* number of this chunk's first line, from 1 */
    atomic_bool *stop;  /* set after opening, or NULL; true ends a wait for input */
    const char **texts;
    size_t *lengths;

    /* private to the reader */
    clv_lines_kind kind;
    uint64_t blank; /* blank JSON lines that were skipped */
    size_t header;  /* fields of the table's header; 0: the table has none */
    /* field: name of the column or member; decoded: texts that are not in `buffer` as they are */
    clv_text field, decoded;
    int descriptor;
    bool begun; /* the start of the input was searched for a byte-order mark */
    bool ended, warned;
    char *buffer;
    size_t start, used, room, text_room, length_room;
} clv_lines;

/* Opens a file, a pipe, or standard input ("-"). Returns CLV_OK or CLV_E_IO. */
clv_status clv_lines_open(clv_lines *lines, const char *path);
/* Opens a text that is in memory, as if it were a file. Takes ownership of `text` and frees it with clv_free; `path`
 * names it in messages. */
void clv_lines_take(clv_lines *lines, const char *path, char *text, size_t length);
/* Sets how the rest of the input is read. `name` is the column or the JSON member that holds the texts; NULL chooses
 * one as clv_record_find describes. A table's first row is then its header. If `column` is not 0, it is the number of
 * the column, from 1, and the table has no header. *chosen, which is borrowed, is the name of the column or member, or,
 * for a column given by number, its field in the first row; it is empty if the input holds nothing more. Returns
 * CLV_OK, CLV_E_IO, CLV_E_FORMAT or CLV_E_MEMORY. */
clv_status clv_lines_choose(clv_lines *lines, clv_lines_kind kind, const char *name, size_t column,
                            const char **chosen);
/* Reads the next chunk of lines: at most `most_lines`, and no more than about `most_bytes` unless a single line is
 * longer. The texts of the previous chunk become invalid. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT for a line that is
 * longer than CLV_LINE_MAX or lacks the chosen column; CLV_E_MEMORY; CLV_E_CANCELLED if `stop` became true. */
clv_status clv_lines_next(clv_lines *lines, size_t most_lines, size_t most_bytes);
void clv_lines_close(clv_lines *lines);

#endif
