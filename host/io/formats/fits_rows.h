/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a FITS file of images whose rows come in any order. It may be larger than memory, and ends up complete or
 * absent. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_ROWS_H
#define CLEAVE_HOST_IO_FORMATS_FITS_ROWS_H

#include "host/io/formats/fits_table.h"

enum { CLV_FITS_MOST_IMAGES = 24 };

typedef struct clv_fits_image {
    char name[24];
    int bitpix;      /* -32 or -64; 32: whole numbers */
    size_t rank;     /* 1 to 3; 1 is one row */
    size_t shape[3]; /* outermost first; rows are the innermost images of the first axis */
} clv_fits_image;

typedef struct clv_fits_rows {
    const char *path; /* borrowed: for messages */
    char *temporary;
    int file;
    size_t count;
    clv_fits_image image[CLV_FITS_MOST_IMAGES];
    size_t end;                                                           /* of the last image */
    size_t start[CLV_FITS_MOST_IMAGES], row_length[CLV_FITS_MOST_IMAGES]; /* bytes; numbers */
} clv_fits_rows;

/* Begins a file. `head` holds a primary HDU and tables, complete; the images follow it, zero until they are written.
 * Returns CLV_OK, CLV_E_IO or CLV_E_MEMORY. */
clv_status clv_fits_rows_begin(const char *path, clv_fits_table *head, const clv_fits_image *images,
                               size_t count, clv_fits_rows *rows);
/* Writes one row of an image: floats, doubles or int32, according to BITPIX. */
clv_status clv_fits_rows_put(clv_fits_rows *rows, size_t image, size_t row, const void *numbers);
/* Appends HDUs after the images; `tail` must hold complete ones. */
clv_status clv_fits_rows_append(clv_fits_rows *rows, clv_fits_table *tail);
/* Gives the file its name. After a failure nothing is left. */
clv_status clv_fits_rows_end(clv_fits_rows *rows, const char *path);
void clv_fits_rows_abandon(clv_fits_rows *rows); /* accepts a file that has ended */

#endif
