/* SPDX-License-Identifier: Apache-2.0 */
/* Makes synthetic stars: a small library of templates with lines, and noisy spectra of stars made from the library. */
#ifndef CLEAVE_HOST_SYNTHETIC_STARS_H
#define CLEAVE_HOST_SYNTHETIC_STARS_H

#include <cleave/spectra.h>

typedef struct synthetic_stars {
    clv_spectra_library library;
    clv_spectra_stars stars;
    double (*truth)[CLV_SPECTRA_UNKNOWNS]; /* velocity, vsini, teff, logg, feh, alpha */
    struct synthetic_stars_memory *memory;
} synthetic_stars;

/* The dimensions of a library and its stars. */
typedef struct synthetic_stars_shape {
    size_t arms, layers, hidden[4]; /* layers of the network, without input and output */
    /* in Angstrom; `point`: pixel of a template at the arm's middle */
    double start[3], pixel, point;
    size_t pixels[3], ccf_points, templates, lines, diagonals;
    double margin_kms;
} synthetic_stars_shape;

extern const synthetic_stars_shape synthetic_stars_small; /* two arms of 350 pixels */
extern const synthetic_stars_shape synthetic_stars_desi;  /* like DESI's, 7958 pixels */

clv_status synthetic_stars_create_like(const synthetic_stars_shape *shape, size_t count,
                                       uint64_t seed, bool resolution, synthetic_stars *stars);
/* Creates `count` small stars of two spectra each, with S/N of 15 to 60; `resolution`: adds resolution matrices. */
clv_status synthetic_stars_create(size_t count, uint64_t seed, bool resolution,
                                  synthetic_stars *stars);
/* Writes the library to a folder in the format that `cleave specfit` reads. */
clv_status synthetic_stars_write_library(const synthetic_stars *stars, const char *folder);
/* Writes a DESI coadd of `count` stars. If there are fewer stars, repeats them with different noise. */
clv_status synthetic_stars_write_coadd(const synthetic_stars *stars, size_t count,
                                       const char *path);
/* Replaces the first four stars by bad fibres: all NaN, zero weight, all pixels flagged, one arm without a pixel. */
void synthetic_stars_damage(synthetic_stars *stars);
void synthetic_stars_clear(synthetic_stars *stars);

#endif
