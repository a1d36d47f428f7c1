/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a FITS file of images whose rows may come in any order. The file may be larger than memory, and ends up
 * complete or absent. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_ROWS_H
#define CLEAVE_HOST_IO_FORMATS_FITS_ROWS_H

#include "host/io/formats/fits_table.h"

enum { CLV_FITS_MOST_IMAGES = 24 };

typedef struct clv_fits_image {
    char name[24];
    int bitpix;  /* -32: float32, -64: float64, 32: int32 */
    size_t rank; /* 1 to 3; an image of rank 1 is one row */
    /* outermost first; row i is the part [i] of the first axis */
    size_t shape[3];
} clv_fits_image;

typedef struct clv_fits_rows {
    const char *path; /* borrowed, for messages */
    char *temporary;
    int file;
    size_t count;
    clv_fits_image image[CLV_FITS_MOST_IMAGES];
    /* offset of the end of the last image, in bytes */
    size_t end;
    /* start: offset in bytes; row_length: numbers per row */
    size_t start[CLV_FITS_MOST_IMAGES], row_length[CLV_FITS_MOST_IMAGES];
} clv_fits_rows;

/* Begins a file with the complete HDUs in `head`, a primary HDU and tables. The images follow; their rows are zero
 * until they are written. Returns CLV_OK, CLV_E_IO or CLV_E_MEMORY. */
clv_status clv_fits_rows_begin(const char *path, clv_fits_table *head, const clv_fits_image *images,
                               size_t count, clv_fits_rows *rows);
/* Writes row `row` of image `image`: floats, doubles or int32, according to its BITPIX. */
clv_status clv_fits_rows_put(clv_fits_rows *rows, size_t image, size_t row, const void *numbers);
/* Appends the HDUs in `tail`, which must be complete, after the images. */
clv_status clv_fits_rows_append(clv_fits_rows *rows, clv_fits_table *tail);
/* Gives the complete file the name `path`. Leaves no file after a failure. */
clv_status clv_fits_rows_end(clv_fits_rows *rows, const char *path);
/* removes the unfinished file; accepts one that has ended */
void clv_fits_rows_abandon(clv_fits_rows *rows);

#endif
