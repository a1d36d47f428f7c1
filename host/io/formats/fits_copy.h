/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that pass from one FITS file to another: header cards and rows as they lie in the file. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_COPY_H
#define CLEAVE_HOST_IO_FORMATS_FITS_COPY_H

#include "host/io/formats/fits_table.h"

#include <stdbool.h>

/* Zero-initialise; read, clear. */
typedef struct clv_fits_raw {
    clv_text cards; /* of 80 characters: columns and keywords, without what tells sizes */
    size_t columns, rows, width;
    unsigned char *bytes; /* [rows,width], in the file's byte order */
} clv_fits_raw;

/* The binary table called `name`; *found is false without one, and for one with a heap (columns of
 * varying length). CLV_E_IO; CLV_E_FORMAT (damaged, too short for its sizes); CLV_E_MEMORY. */
clv_status clv_fits_raw_read(const char *path, const char *name, clv_fits_raw *raw, bool *found);
/* Those cards of the primary HDU whose key is in `keys`: raw->cards alone is filled. */
clv_status clv_fits_raw_primary(const char *path, const char *const *keys, size_t count,
                                clv_fits_raw *raw);
void clv_fits_raw_clear(clv_fits_raw *raw);

/* The TFORM of a column: its letter and repeat count; false without such a column. */
bool clv_fits_raw_column(const clv_fits_raw *raw, const char *name, char *type, unsigned *repeat);

/* Appends a table of the rows `rows` [count]: names, units and numbers are those of `raw`. */
void clv_fits_raw_write(const clv_fits_raw *raw, const char *name, const size_t *rows, size_t count,
                        clv_fits_table *table);

#endif
