/* SPDX-License-Identifier: Apache-2.0 */
/* An opened FITS file and its HDUs; the one place that includes CFITSIO. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_LIBRARY_H
#define CLEAVE_HOST_IO_FORMATS_FITS_LIBRARY_H

#include "host/io/formats/fits.h"
#include "host/io/stream.h"

#include <fitsio.h>

#include <stdbool.h>

/* What a header says of a tile-compressed image, as read by us (screen.c). */
typedef struct clv_fits_tiles {
    bool found;                       /* the current HDU is one */
    bool mentioned;                   /* CFITSIO might take it for one */
    int hdu;                          /* its number, from 0 */
    int64_t rank, axis[CLV_MAX_RANK]; /* as FITS counts axes; -1: no number */
    char *hidden;                     /* the Z that was, in the source's bytes */
} clv_fits_tiles;

/* Stays where it is while open: CFITSIO points into it. */
typedef struct clv_fits_source {
    const char *path; /* borrowed, for messages */
    fitsfile *file;
    clv_input input; /* for a look at headers before CFITSIO reads them */
    char *bytes;     /* the whole file, when it is compressed by gzip or has compressed images */
    size_t length;
    clv_fits_tiles tiles;
    void *unpacked; /* the current compressed image, once it was asked for */
    size_t unpacked_bytes;
} clv_fits_source;

/* At the primary HDU. */
clv_status clv_fits_open(clv_fits_source *source, const char *path);
void clv_fits_close(clv_fits_source *source); /* accepts one that is zero or failed to open */

/* Of a card that CFITSIO has not seen: refuses what it reads without a check, and notes tiles. */
clv_status clv_fits_screen_card(const char *path, char *card, clv_fits_tiles *tiles);
/* Makes "ZIMAGE" another word, so that CFITSIO takes a compressed image for the table that holds it. Returns the
 * first character that was changed, from Z; NULL: the card has no such word. */
char *clv_fits_hide_tiles(char *card);
bool clv_fits_mentions_tiles(char *card);
void clv_fits_forget(clv_fits_source *source);

/* To the next HDU; *more is false behind the last one. No other way leads to an HDU whose header
 * nobody has looked at. */
clv_status clv_fits_next(clv_fits_source *source, bool *more);
/* To HDU `hdu` (0 is the primary one), or to the first one called `name` (EXTNAME, any case). */
clv_status clv_fits_goto(clv_fits_source *source, int hdu, bool *found);
clv_status clv_fits_goto_name(clv_fits_source *source, const char *name, bool *found);
/* To the HDU that `extension` names: "3", "SCI" or "SCI,2" (EXTVER). CLV_E_FORMAT when there is none. */
clv_status clv_fits_goto_extension(clv_fits_source *source, const char *extension);

/* Bytes of the file, or of what gzip held. */
LONGLONG clv_fits_length(const clv_fits_source *source);
/* After CFITSIO went to another HDU. Where the last one of a file in memory says that it is longer than the file,
 * CFITSIO takes that for the file's length and reads behind the memory. */
void clv_fits_settle(clv_fits_source *source);

/* Fails with what CFITSIO says: "path: cannot <doing>: ..." */
clv_status clv_fits_error(const char *path, const char *doing, int error);

/* Rows of the current table; fails unless the file holds them. */
clv_status clv_fits_count_rows(clv_fits_source *source, LONGLONG *rows);

/* The current HDU's image. */
typedef struct clv_fits_image {
    int bitpix, type; /* BITPIX and the CFITSIO type that pixels are read as */
    bool compressed, blanks;
    size_t rank, shape[CLV_MAX_RANK]; /* C order */
    clv_type array_type;
} clv_fits_image;

bool clv_fits_has_image(const clv_fits_source *source);
/* Has the current HDU's tiles unpacked, in a process of its own, where `reader` reads all `pixels`: CLV_E_FORMAT when
 * that process crashes. What it tells of the image, but the number of pixels, is not to be trusted. */
typedef clv_status clv_fits_reader(clv_fits_source *own, clv_fits_image *image, size_t pixels,
                                   void *data);
clv_status clv_fits_unpack(clv_fits_source *source, clv_fits_reader *reader);
/* What was unpacked, and its pixels. */
const clv_fits_image *clv_fits_unpacked(const clv_fits_source *source, const char **pixels);
clv_status clv_fits_image_describe(clv_fits_source *source, clv_fits_image *out);
/* `count` pixels from pixel `first` on as image->type. */
clv_status clv_fits_image_read(clv_fits_source *source, const clv_fits_image *image, size_t first,
                               size_t count, void *data);

#endif
