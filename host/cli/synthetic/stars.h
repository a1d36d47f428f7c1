/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up stars: a small library of templates with lines, and noisy spectra of stars from it. */
#ifndef CLEAVE_HOST_CLI_SYNTHETIC_STARS_H
#define CLEAVE_HOST_CLI_SYNTHETIC_STARS_H

#include <cleave/spectra.h>

typedef struct synthetic_stars {
    clv_spectra_library library;
    clv_spectra_stars stars;
    double (*truth)[CLV_SPECTRA_UNKNOWNS]; /* velocity, vsini, teff, logg, feh, alpha */
    struct synthetic_stars_memory *memory;
} synthetic_stars;

/* `count` stars of two spectra each, with S/N 15 to 60; `resolution`: with resolution matrices. */
clv_status synthetic_stars_create(size_t count, uint64_t seed, bool resolution,
                                  synthetic_stars *stars);
/* Bad fibres in place of the first four: NaN, no weight, all flagged, one arm without a pixel. */
void synthetic_stars_damage(synthetic_stars *stars);
void synthetic_stars_clear(synthetic_stars *stars);

#endif
