/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as comma-separated values with one header line (RFC 4180), written and read. */
#ifndef CLEAVE_HOST_IO_TABLES_CSV_H
#define CLEAVE_HOST_IO_TABLES_CSV_H

#include "base/text.h"

#include <cleave/status.h>

/* ---- writing: begin, then the cells of a row in the order of the columns, end the row -------- */

/* Zero-initialise. Memory that ran out is reported by clv_csv_write. */
typedef struct clv_csv {
    clv_text text;
    size_t columns, cells; /* `cells` of the row that is being made */
} clv_csv;

void clv_csv_begin(clv_csv *csv, const char *const *names, size_t columns);
void clv_csv_float(clv_csv *csv, float value);   /* shortest text that reads back the same */
void clv_csv_number(clv_csv *csv, double value); /* %.9g; nan, inf, -inf */
void clv_csv_int(clv_csv *csv, int64_t value);
void clv_csv_string(clv_csv *csv, const char *value); /* quoted where it has to be */
void clv_csv_end_row(clv_csv *csv);

/* Lines end with LF. Complete or absent; "-" is standard output, see clv_parts_write. CLV_E_IO,
 * CLV_E_MEMORY. */
clv_status clv_csv_write(const clv_csv *csv, const char *path);
void clv_csv_clear(clv_csv *csv);

/* ---- reading ----------------------------------------------------------------------------------- */

/* The file's text and where its rows begin: about the file's size of memory. */
typedef struct clv_csv_table clv_csv_table;

/* Reads the whole file (at most 1 GiB, 4096 columns) and checks that every row has as many fields
 * as the header. Quoted fields, CRLF, a byte-order mark and empty lines are accepted. CLV_E_IO;
 * CLV_E_FORMAT names the line; CLV_E_MEMORY. Free with clv_csv_free. */
clv_status clv_csv_read(const char *path, clv_csv_table **table);
void clv_csv_free(clv_csv_table *table); /* accepts NULL */

size_t clv_csv_rows(const clv_csv_table *table);
size_t clv_csv_columns(const clv_csv_table *table);
const char *clv_csv_name(const clv_csv_table *table, size_t column);
/* The column of that name. CLV_E_FORMAT: not there (the message lists what is), or there twice. */
clv_status clv_csv_find(const clv_csv_table *table, const char *name, size_t *column);
/* One number for each row. CLV_E_FORMAT names line, column and text of a field that is empty or
 * not a finite number. */
clv_status clv_csv_doubles(const clv_csv_table *table, size_t column, double *values);
/* A row's field without quotes and blanks behind it, cut to `capacity` - 1 bytes. */
void clv_csv_field(const clv_csv_table *table, size_t row, size_t column, char *out,
                   size_t capacity);
/* A row's text as in the file, without its line end, to be copied into another table. */
const char *clv_csv_row(const clv_csv_table *table, size_t row, size_t *length);
const char *clv_csv_header(const clv_csv_table *table, size_t *length);

#endif
