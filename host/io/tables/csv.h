/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads tables with one header line: comma-separated values (RFC 4180), tab-separated values, or JSON. */
#ifndef CLEAVE_HOST_IO_TABLES_CSV_H
#define CLEAVE_HOST_IO_TABLES_CSV_H

#include "base/text.h"

#include <cleave/status.h>

#include <stdbool.h>

/* ---- writing: begin, then the cells of a row in the order of the columns, end the row -------- */

typedef enum clv_csv_kind {
    CLV_CSV_COMMAS,
    CLV_CSV_TABS, /* tabs between the fields, instead of commas */
    CLV_CSV_JSON, /* an array with one object per row; values that are not finite become null */
} clv_csv_kind;

/* A table that is being written. Zero-initialise. If memory runs out, clv_csv_write reports it. */
typedef struct clv_csv {
    clv_text text;
    size_t columns, cells; /* cells: in the unfinished row */
    size_t rows;           /* finished rows */
    clv_csv_kind kind;
    const char *const *names; /* names of the columns, borrowed until the end (JSON) */
} clv_csv;

void clv_csv_begin(clv_csv *csv, const char *const *names, size_t columns);
/* shortest text that reads back as the same value */
void clv_csv_float(clv_csv *csv, float value);
/* shortest text of 15 to 17 digits that reads back the same */
void clv_csv_double(clv_csv *csv, double value);
void clv_csv_number(clv_csv *csv, double value); /* %.9g; nan, inf, -inf */
void clv_csv_int(clv_csv *csv, int64_t value);
void clv_csv_unsigned(clv_csv *csv, uint64_t value);
void clv_csv_string(clv_csv *csv, const char *value); /* quoted if necessary */
/* a text of `length` bytes, without a NUL; quoted if necessary */
void clv_csv_text(clv_csv *csv, const char *value, size_t length);
void clv_csv_begin_as(clv_csv *csv, clv_csv_kind kind, const char *const *names, size_t columns);
void clv_csv_missing(clv_csv *csv);                 /* an empty cell; null in JSON */
void clv_csv_raw(clv_csv *csv, const char *number); /* appends the text of a number unchanged */
void clv_csv_end_row(clv_csv *csv);
void clv_csv_end(clv_csv *csv); /* after the last row: appends JSON's closing bracket */

/* Writes the table; lines end with LF. The file is complete or absent; "-" is standard output, see clv_parts_write.
 * Returns CLV_OK, CLV_E_IO or CLV_E_MEMORY. */
clv_status clv_csv_write(const clv_csv *csv, const char *path);
void clv_csv_clear(clv_csv *csv);

/* ---- reading ----------------------------------------------------------------------------------- */

/* A table in memory: a file's text and the offsets of its rows. Takes about the file's size in memory. */
typedef struct clv_csv_table clv_csv_table;

/* Reads the whole file (at most 1 GiB, 4096 columns) and checks that every row has as many fields as the header.
 * Accepts quoted fields, CRLF, a byte-order mark and empty lines. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT, whose message
 * names the line; CLV_E_MEMORY. Free the table with clv_csv_free. */
clv_status clv_csv_read(const char *path, clv_csv_table **table);
void clv_csv_free(clv_csv_table *table); /* accepts NULL */

size_t clv_csv_rows(const clv_csv_table *table);
size_t clv_csv_columns(const clv_csv_table *table);
const char *clv_csv_name(const clv_csv_table *table, size_t column);
/* Finds the column called `name`. Returns CLV_E_FORMAT if there is none (the message lists the columns) or if there are
 * two. */
clv_status clv_csv_find(const clv_csv_table *table, const char *name, size_t *column);
/* Reads the column's number in each row to `values` [rows]. Returns CLV_E_FORMAT for a field that is empty or not a
 * finite number; the message names line, column and text. */
clv_status clv_csv_doubles(const clv_csv_table *table, size_t column, double *values);
/* One field of a row. */
typedef struct clv_csv_cell {
    const char *at; /* the text inside the surrounding quotes; quotes in it are still doubled */
    size_t length;
    bool quoted, last; /* last: the last field of its row */
} clv_csv_cell;

/* Sets `cells` [clv_csv_columns] to the fields of a row; they point into the table. */
void clv_csv_cells(const clv_csv_table *table, size_t row, clv_csv_cell *cells);
/* Appends the field's text to `out`, with doubled quotes undone. */
void clv_csv_cell_text(const clv_csv_cell *cell, clv_text *out);
bool clv_csv_cell_double(const clv_csv_table *table, const clv_csv_cell *cell, double *value);

/* Makes a table from `text`, which was allocated with clv_alloc and has a NUL after it. Takes ownership of `text`, also
 * after a failure. `between` is the separator of the fields. Returns the statuses of clv_csv_read. */
clv_status clv_csv_take(const char *path, char *text, size_t length, char between,
                        clv_csv_table **table);

/* Decides whether the table's numbers have decimal commas. They do if some number with one comma cannot have it as a
 * thousands separator, and no number has a decimal point. If the numbers leave this open, clv_csv_doubles fails for
 * them and explains why. */
void clv_csv_find_decimal(clv_csv_table *table);
void clv_csv_set_decimal(clv_csv_table *table, char decimal); /* '.' or ',' */
char clv_csv_decimal(const clv_csv_table *table);

/* Sets the columns' NumPy types ("u4", "f4", "S"), for a table that came from NumPy; without them clv_csv_code returns
 * "". Takes ownership of `codes`. */
void clv_csv_set_codes(clv_csv_table *table, char (*codes)[3]);
const char *clv_csv_code(const clv_csv_table *table, size_t column);

void clv_csv_drop_rows(clv_csv_table *table, size_t count); /* drops the first `count` rows */

/* Copies a field without its quotes and trailing blanks, cut to `capacity` - 1 bytes. */
void clv_csv_field(const clv_csv_table *table, size_t row, size_t column, char *out,
                   size_t capacity);
/* Returns the text of a row as in the file, without its line end, for copying it to another table. clv_csv_header does
 * the same for the header. */
const char *clv_csv_row(const clv_csv_table *table, size_t row, size_t *length);
const char *clv_csv_header(const clv_csv_table *table, size_t *length);

#endif
