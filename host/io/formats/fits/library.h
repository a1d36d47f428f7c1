/* SPDX-License-Identifier: Apache-2.0 */
/* An opened FITS file and its HDUs; the only header that includes CFITSIO. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_LIBRARY_H
#define CLEAVE_HOST_IO_FORMATS_FITS_LIBRARY_H

#include "host/io/formats/fits.h"
#include "host/io/stream.h"

#include <fitsio.h>

#include <stdbool.h>

/* What a header says about a tile-compressed image, as screen.c reads it. */
typedef struct clv_fits_tiles {
    bool found;                       /* the current HDU is such an image */
    bool mentioned;                   /* CFITSIO might take the HDU for one */
    int hdu;                          /* its number, from 0 */
    int64_t rank, axis[CLV_MAX_RANK]; /* in FITS order of axes; -1: not a number */
    /* position of the Z that was replaced, in the source's bytes */
    char *hidden;
} clv_fits_tiles;

/* Must not be moved while it is open: CFITSIO points into it. */
typedef struct clv_fits_source {
    const char *path; /* borrowed, for messages */
    fitsfile *file;
    clv_input input; /* to check headers before CFITSIO reads them */
    char *bytes;     /* the whole file, if it is compressed by gzip or has compressed images */
    size_t length;
    clv_fits_tiles tiles;
    void *unpacked; /* the current compressed image, once it was requested */
    size_t unpacked_bytes;
} clv_fits_source;

/* Opens a file at its primary HDU. */
clv_status clv_fits_open(clv_fits_source *source, const char *path);
void clv_fits_close(clv_fits_source *source); /* accepts one that is zero or failed to open */

/* Checks a card that CFITSIO has not seen: refuses values that CFITSIO reads without a check, and notes tiles. */
clv_status clv_fits_screen_card(const char *path, char *card, clv_fits_tiles *tiles);
/* Changes "ZIMAGE" into another word, so that CFITSIO takes a compressed image for the table that holds it. Returns the
 * first character that was changed, originally Z; NULL if the card does not contain the word. */
char *clv_fits_hide_tiles(char *card);
bool clv_fits_mentions_tiles(char *card);
void clv_fits_forget(clv_fits_source *source);

/* Goes to the next HDU; *more is false after the last one. This is the only way to an HDU, so that every header is
 * checked first. */
clv_status clv_fits_next(clv_fits_source *source, bool *more);
/* Goes to HDU `hdu` (0 is the primary one), or to the first one called `name` (EXTNAME, any case). */
clv_status clv_fits_goto(clv_fits_source *source, int hdu, bool *found);
clv_status clv_fits_goto_name(clv_fits_source *source, const char *name, bool *found);
/* Goes to the HDU that `extension` names: "3", "SCI" or "SCI,2" (EXTVER). Returns CLV_E_FORMAT if there is none. */
clv_status clv_fits_goto_extension(clv_fits_source *source, const char *extension);

/* Returns the length of the file in bytes, or of what gzip held. */
LONGLONG clv_fits_length(const clv_fits_source *source);
/* Call this after CFITSIO went to another HDU. If the last HDU of a file in memory claims to be longer than the file,
 * CFITSIO takes that for the file's length and reads beyond the memory. */
void clv_fits_settle(clv_fits_source *source);

/* Fails with CFITSIO's message: "path: cannot <doing>: ..." */
clv_status clv_fits_error(const char *path, const char *doing, int error);

/* Returns the number of rows of the current table; fails unless the file holds them. */
clv_status clv_fits_count_rows(clv_fits_source *source, LONGLONG *rows);

/* The image of the current HDU. */
typedef struct clv_fits_image {
    int bitpix, type; /* BITPIX and the CFITSIO type that pixels are read as */
    bool compressed, blanks;
    size_t rank, shape[CLV_MAX_RANK]; /* C order */
    clv_type array_type;
} clv_fits_image;

bool clv_fits_has_image(const clv_fits_source *source);
/* Unpacks the current HDU's tiles in a process of its own, where `reader` reads all `pixels`. Returns CLV_E_FORMAT if
 * that process crashes. Of what it says about the image, only the number of pixels can be trusted. */
typedef clv_status clv_fits_reader(clv_fits_source *own, clv_fits_image *image, size_t pixels,
                                   void *data);
clv_status clv_fits_unpack(clv_fits_source *source, clv_fits_reader *reader);
/* Returns the unpacked image and its pixels. */
const clv_fits_image *clv_fits_unpacked(const clv_fits_source *source, const char **pixels);
clv_status clv_fits_image_describe(clv_fits_source *source, clv_fits_image *out);
/* Reads `count` pixels from pixel `first` on as image->type. */
clv_status clv_fits_image_read(clv_fits_source *source, const clv_fits_image *image, size_t first,
                               size_t count, void *data);

#endif
