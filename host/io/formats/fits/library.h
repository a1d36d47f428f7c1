/* SPDX-License-Identifier: Apache-2.0 */
/* Declares an open FITS file and the functions that read its HDUs. The only header that includes CFITSIO. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_LIBRARY_H
#define CLEAVE_HOST_IO_FORMATS_FITS_LIBRARY_H

#include "host/io/formats/fits.h"
#include "host/io/stream.h"

#include <fitsio.h>

#include <stdbool.h>

/* What the current HDU's header says about a tile-compressed image; screen.c fills it in. */
typedef struct clv_fits_tiles {
    bool found; /* the current HDU is a tile-compressed image */
    /* a card contains ZIMAGE, so CFITSIO might take the HDU for a compressed image */
    bool mentioned;
    int hdu;                          /* number of the HDU, from 0 */
    int64_t rank, axis[CLV_MAX_RANK]; /* axis: lengths in FITS order of axes; -1: not a number */
    /* the replaced Z of ZIMAGE, in the source's `bytes` */
    char *hidden;
} clv_fits_tiles;

/* An open FITS file. Must not be moved in memory while it is open: CFITSIO points into it. */
typedef struct clv_fits_source {
    const char *path; /* borrowed, for messages */
    fitsfile *file;
    clv_input input; /* the same file, to check headers before CFITSIO reads them */
    char *bytes;     /* the whole file, if it is compressed by gzip or has compressed images */
    size_t length;
    clv_fits_tiles tiles;
    void *unpacked; /* the current HDU's unpacked image; NULL before it is requested */
    size_t unpacked_bytes;
} clv_fits_source;

/* Opens a FITS file; its primary HDU becomes the current HDU. */
clv_status clv_fits_open(clv_fits_source *source, const char *path);
void clv_fits_close(clv_fits_source *source); /* accepts a source that is zero or failed to open */

/* Checks a header card before CFITSIO reads the header. Fails for values that CFITSIO uses without a check, and records
 * in *tiles what the card says about a tile-compressed image. */
clv_status clv_fits_screen_card(const char *path, char *card, clv_fits_tiles *tiles);
/* Changes the word ZIMAGE in a card, so that CFITSIO reads a compressed image as the table that holds it. Returns the
 * first character that was changed, originally Z; NULL if the card does not contain the word. */
char *clv_fits_hide_tiles(char *card);
bool clv_fits_mentions_tiles(char *card);
void clv_fits_forget(clv_fits_source *source);

/* Makes the next HDU the current one; *more is false after the last HDU. An HDU is reached for the first time only
 * through this function, so that every header is checked before CFITSIO reads it. */
clv_status clv_fits_next(clv_fits_source *source, bool *more);
/* clv_fits_goto goes to HDU `hdu` (0 is the primary one); clv_fits_goto_name goes to the first HDU called `name`
 * (EXTNAME or HDUNAME, any case). */
clv_status clv_fits_goto(clv_fits_source *source, int hdu, bool *found);
clv_status clv_fits_goto_name(clv_fits_source *source, const char *name, bool *found);
/* Goes to the HDU that `extension` names: "3", "SCI" or "SCI,2" (EXTVER). Returns CLV_E_FORMAT if there is none. */
clv_status clv_fits_goto_extension(clv_fits_source *source, const char *extension);

/* Returns the length of the file in bytes; if gzip compressed it, of its unpacked contents. */
LONGLONG clv_fits_length(const clv_fits_source *source);
/* Tells CFITSIO again how long a file in memory is; call it after CFITSIO has moved to another HDU. If the last HDU
 * claims to be longer than the file, CFITSIO takes its end for the end of the file and reads beyond the memory. */
void clv_fits_settle(clv_fits_source *source);

/* Fails with CFITSIO's message: "path: cannot <doing>: ..." */
clv_status clv_fits_error(const char *path, const char *doing, int error);

/* Sets *rows to the number of rows of the current table; fails if the file is too short for them. */
clv_status clv_fits_count_rows(clv_fits_source *source, LONGLONG *rows);

/* The types and the shape of the current HDU's image. */
typedef struct clv_fits_image {
    int bitpix, type; /* BITPIX, and the CFITSIO type as which the pixels are read */
    bool compressed, blanks;
    size_t rank, shape[CLV_MAX_RANK]; /* C order */
    clv_type array_type;
} clv_fits_image;

bool clv_fits_has_image(const clv_fits_source *source);
/* clv_fits_unpack unpacks the current HDU's tiles in a process of its own, where `reader` reads all `pixels`. Returns
 * CLV_E_FORMAT if that process crashes. A damaged process may return anything: of *image, only the number of pixels has
 * been checked. */
typedef clv_status clv_fits_reader(clv_fits_source *own, clv_fits_image *image, size_t pixels,
                                   void *data);
clv_status clv_fits_unpack(clv_fits_source *source, clv_fits_reader *reader);
/* Returns the image that clv_fits_unpack unpacked, and sets *pixels to its pixels unless `pixels` is NULL. Both are
 * borrowed. */
const clv_fits_image *clv_fits_unpacked(const clv_fits_source *source, const char **pixels);
clv_status clv_fits_image_describe(clv_fits_source *source, clv_fits_image *out);
/* Reads `count` pixels, beginning at pixel `first`, as the type image->type. */
clv_status clv_fits_image_read(clv_fits_source *source, const clv_fits_image *image, size_t first,
                               size_t count, void *data);

#endif
