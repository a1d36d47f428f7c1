/* SPDX-License-Identifier: Apache-2.0 */
/* Reads spectra from DESI's coadd, spectra and frame files. */
#ifndef CLEAVE_HOST_IO_TABLES_DESI_H
#define CLEAVE_HOST_IO_TABLES_DESI_H

#include "host/io/array.h"

enum { CLV_DESI_ARMS = 3, CLV_DESI_CATALOGUE = 16, CLV_DESI_OBJECT = 40 };

/* What the tables say about one row of the file. */
typedef struct clv_desi_row {
    int64_t target, reference, brick, expid; /* -1: unknown */
    int32_t fiber, status;
    double ra, dec, snr[CLV_DESI_ARMS]; /* NaN: unknown */
    char catalogue[CLV_DESI_CATALOGUE];
    char object[CLV_DESI_OBJECT]; /* "": unknown; DESI's files have no object, plate or day */
    int64_t plate, mjd;
    bool is_star; /* not SKY or BAD, and its fibre was usable */
} clv_desi_row;

/* An open DESI file: its tables and wavelengths. Zero-initialise; clv_desi_clear frees it. */
typedef struct clv_desi {
    char *path;
    size_t rows;
    clv_desi_row *row;
    /* a cframe- or similar file: one arm of one exposure, with the images FLUX, IVAR, ... */
    bool is_frame;
    bool present[CLV_DESI_ARMS];              /* the file has the arm b, r, z */
    clv_file_array wavelength[CLV_DESI_ARMS]; /* f64 [pixels] */
} clv_desi;

/* The spectra of rows [first, first + count), for the arms that the file has. clv_desi_block_clear frees it. */
typedef struct clv_desi_block {
    size_t first, count;
    clv_file_array flux[CLV_DESI_ARMS], ivar[CLV_DESI_ARMS]; /* f32 [count,pixels] */
    clv_file_array mask[CLV_DESI_ARMS];                      /* i32 [count,pixels]; may be empty */
    clv_file_array resolution[CLV_DESI_ARMS]; /* f32 [count,diagonals,pixels]; may be empty */
} clv_desi_block;

extern const char clv_desi_arm_letters[CLV_DESI_ARMS + 1]; /* "BRZ" */

/* Opens a file and reads its tables and wavelengths. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT (not FITS, no arm, no
 * FIBERMAP, or tables and images with different rows); CLV_E_MEMORY. */
clv_status clv_desi_open(const char *path, clv_desi *desi);
void clv_desi_clear(clv_desi *desi);

/* Reads rows [first, first + count), with the resolution matrices only if `resolution` is set. Returns the statuses of
 * clv_desi_open; the block is zero after a failure. */
clv_status clv_desi_read(const clv_desi *desi, size_t first, size_t count, bool resolution,
                         clv_desi_block *block);
void clv_desi_block_clear(clv_desi_block *block);

#endif
