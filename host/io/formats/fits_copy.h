/* SPDX-License-Identifier: Apache-2.0 */
/* Copies tables from one FITS file to another: header cards, and rows as undecoded bytes. Also lists the HDUs of a
 * file. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_COPY_H
#define CLEAVE_HOST_IO_FORMATS_FITS_COPY_H

#include "host/io/formats/fits_table.h"

#include <stdbool.h>

/* A binary table as the file stores it. Zero-initialise; clv_fits_raw_read fills it, and clv_fits_raw_clear frees
 * it. */
typedef struct clv_fits_raw {
    clv_text cards; /* cards of 80 characters each: columns and keywords, without those for sizes */
    size_t columns, rows, width;
    unsigned char *bytes; /* [rows,width], in the file's byte order */
} clv_fits_raw;

/* Reads the binary table called `name`. *found is false if there is no such table, or if it has a heap (columns of
 * variable length). Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT (damaged, or shorter than its header claims);
 * CLV_E_MEMORY. */
clv_status clv_fits_raw_read(const char *path, const char *name, clv_fits_raw *raw, bool *found);
/* Reads the cards of the primary HDU whose key is in `keys` [count]; fills only raw->cards. */
clv_status clv_fits_raw_primary(const char *path, const char *const *keys, size_t count,
                                clv_fits_raw *raw);
void clv_fits_raw_clear(clv_fits_raw *raw);

/* Parses the TFORM of the column `name`: its letter and its repeat count. Returns false if there is no such column. */
bool clv_fits_raw_column(const clv_fits_raw *raw, const char *name, char *type, unsigned *repeat);

/* The most HDUs of a file that clv_fits_describe reads; it ignores the others. */
enum { CLV_FITS_MOST_HDUS = 32 };

typedef struct clv_fits_hdu {
    char name[72]; /* EXTNAME; "" if there is none */
    bool has_image, is_table;
    clv_text cards; /* cards of 80 characters each, without those for sizes */
} clv_fits_hdu;

typedef struct clv_fits_hdus {
    size_t count;
    clv_fits_hdu item[CLV_FITS_MOST_HDUS];
} clv_fits_hdus;

/* Lists the kind, the name and the cards of every HDU of a file. Zero-initialise *hdus; free it with
 * clv_fits_hdus_clear. Returns CLV_OK, CLV_E_IO, CLV_E_FORMAT or CLV_E_MEMORY. */
clv_status clv_fits_describe(const char *path, clv_fits_hdus *hdus);
void clv_fits_hdus_clear(clv_fits_hdus *hdus);
/* Each gets the value of the card `key`, a text without its quotes; returns false if there is no such card or value. */
bool clv_fits_hdu_text(const clv_fits_hdu *hdu, const char *key, char *out, size_t capacity);
bool clv_fits_hdu_number(const clv_fits_hdu *hdu, const char *key, double *out);

/* Appends a table called `name` to `table`, with those rows of `raw` whose numbers are in `rows` [count]. The columns
 * and their units come from `raw`. */
void clv_fits_raw_write(const clv_fits_raw *raw, const char *name, const size_t *rows, size_t count,
                        clv_fits_table *table);

#endif
