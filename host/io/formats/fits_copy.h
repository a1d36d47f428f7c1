/* SPDX-License-Identifier: Apache-2.0 */
/* Copies tables from one FITS file to another: header cards, and rows as they are in the file. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_COPY_H
#define CLEAVE_HOST_IO_FORMATS_FITS_COPY_H

#include "host/io/formats/fits_table.h"

#include <stdbool.h>

/* Zero-initialise; read, clear. */
typedef struct clv_fits_raw {
    clv_text cards; /* of 80 characters: columns and keywords, without those for sizes */
    size_t columns, rows, width;
    unsigned char *bytes; /* [rows,width], in the file's byte order */
} clv_fits_raw;

/* Reads the binary table called `name`. *found is false if there is none, or if it has a heap (columns of variable
 * length). Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT (damaged, too short for its sizes); CLV_E_MEMORY. */
clv_status clv_fits_raw_read(const char *path, const char *name, clv_fits_raw *raw, bool *found);
/* Reads those cards of the primary HDU whose key is in `keys`; fills only raw->cards. */
clv_status clv_fits_raw_primary(const char *path, const char *const *keys, size_t count,
                                clv_fits_raw *raw);
void clv_fits_raw_clear(clv_fits_raw *raw);

/* Parses the TFORM of a column: its letter and repeat count. Returns false without such a column. */
bool clv_fits_raw_column(const clv_fits_raw *raw, const char *name, char *type, unsigned *repeat);

/* The contents of a file: every HDU's kind, name, and cards without those for sizes. Zero-initialise; describe, clear.
 * HDUs after the first CLV_FITS_MOST_HDUS are not read. */
enum { CLV_FITS_MOST_HDUS = 32 };

typedef struct clv_fits_hdu {
    char name[72]; /* EXTNAME; "" without */
    bool has_image, is_table;
    clv_text cards; /* of 80 characters */
} clv_fits_hdu;

typedef struct clv_fits_hdus {
    size_t count;
    clv_fits_hdu item[CLV_FITS_MOST_HDUS];
} clv_fits_hdus;

/* Lists the HDUs of a file. Returns CLV_OK, CLV_E_IO, CLV_E_FORMAT or CLV_E_MEMORY. */
clv_status clv_fits_describe(const char *path, clv_fits_hdus *hdus);
void clv_fits_hdus_clear(clv_fits_hdus *hdus);
/* Returns the value of a card, text without its quotes; false without such a card or value. */
bool clv_fits_hdu_text(const clv_fits_hdu *hdu, const char *key, char *out, size_t capacity);
bool clv_fits_hdu_number(const clv_fits_hdu *hdu, const char *key, double *out);

/* Appends a table of the rows `rows` [count]; its names, units and numbers come from `raw`. */
void clv_fits_raw_write(const clv_fits_raw *raw, const char *name, const size_t *rows, size_t count,
                        clv_fits_table *table);

#endif
