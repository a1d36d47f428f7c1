/* SPDX-License-Identifier: Apache-2.0 */
/* Makes FITS files with binary tables and images in memory, without CFITSIO. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_TABLE_H
#define CLEAVE_HOST_IO_FORMATS_FITS_TABLE_H

#include "base/text.h"

#include <cleave/status.h>

enum { CLV_FITS_TEXT_WIDTH = 8 };

typedef struct clv_fits_column {
    char name[40];
    char type;           /* D float64, E float32, K int64, J int32, I int16, L logical, A text */
    const char *unit;    /* may be NULL */
    const char *comment; /* TCOMM; may be NULL */
    unsigned width;      /* bytes of a text (type A); 0: CLV_FITS_TEXT_WIDTH */
} clv_fits_column;

typedef struct clv_fits_value {
    double real;
    int64_t whole;
    const char *text;
} clv_fits_value;

/* A FITS file in memory. Zero-initialise; begin, add rows and images, write, clear. If memory runs out,
 * clv_fits_table_write reports it. */
typedef struct clv_fits_table {
    clv_text bytes;
    const clv_fits_column *columns;
    size_t count, data_start;
    char types[256];
    unsigned widths[256]; /* bytes of each column */
} clv_fits_table;

/* Begins with a primary HDU without data and, unless `name` is NULL, the header of a table of `rows` rows. Add these
 * rows immediately afterwards. */
void clv_fits_table_begin(clv_fits_table *table, const char *name, const clv_fits_column *columns,
                          size_t count, size_t rows);
/* Begins with a primary HDU without data that also has the `count` cards of 80 characters in `cards`. */
void clv_fits_table_primary(clv_fits_table *table, const char *cards, size_t count);
/* Adds the header of a table whose columns are described by `count` cards of 80 characters. Append the bytes of its
 * rows afterwards. */
void clv_fits_table_head(clv_fits_table *table, const char *name, size_t width, size_t rows,
                         size_t columns, const char *cards, size_t count);
/* Adds the header of another table of `rows` rows. Add these rows immediately afterwards. */
void clv_fits_table_next(clv_fits_table *table, const char *name, const clv_fits_column *columns,
                         size_t count, size_t rows);
void clv_fits_table_row(clv_fits_table *table, const clv_fits_value *values);

/* Adds the header of an image extension (BITPIX -32, -64 or 32); `shape` is outermost first. Add its numbers
 * afterwards. */
void clv_fits_table_image(clv_fits_table *table, const char *name, int bitpix, size_t rank,
                          const size_t *shape);
void clv_fits_table_float(clv_fits_table *table, float value);
void clv_fits_table_double(clv_fits_table *table, double value);

/* Pads the last block, so that the table's bytes are complete HDUs. */
void clv_fits_table_finish(clv_fits_table *table);

/* Pads the last block and writes DATASUM and CHECKSUM into every HDU (fits_checksum.c). Returns CLV_OK or
 * CLV_E_MEMORY. */
clv_status clv_fits_table_seal(clv_fits_table *table);

/* Writes the file, which is complete or absent. Returns CLV_OK, CLV_E_IO or CLV_E_MEMORY. */
clv_status clv_fits_table_write(clv_fits_table *table, const char *path);
void clv_fits_table_clear(clv_fits_table *table);

#endif
