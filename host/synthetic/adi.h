/* SPDX-License-Identifier: Apache-2.0 */
/* Makes synthetic inputs for demo, selftest and bench, with known correct answers. The same seed gives the same input
 * on every machine. */
#ifndef CLEAVE_HOST_SYNTHETIC_ADI_H
#define CLEAVE_HOST_SYNTHETIC_ADI_H

#include <cleave/status.h>

#include <stddef.h>
#include <stdint.h>

enum { SYNTHETIC_MAX_PLANETS = 4 };

typedef struct synthetic_planet {
    double x, y; /* column and row in the map, at angle 0 */
    double flux; /* in units of the PSF's peak */
} synthetic_planet;

/* An ADI sequence: a star's halo, constant speckles, speckles that last for some frames, white noise of sigma 1 far
 * from the star, and planets that rotate with the field. */
typedef struct synthetic_adi {
    size_t frames, height, width, psf_size;
    float *cube;    /* [frames,height,width], aligned for zero-copy */
    double *angles; /* [frames], degrees */
    float *psf;     /* [psf_size,psf_size], peak 1 in the middle */
    double fwhm;    /* FWHM of the PSF, in pixels */
    synthetic_planet planets[SYNTHETIC_MAX_PLANETS];
    size_t planet_count;
} synthetic_adi;

/* Creates a sequence with the star on pixel (width / 2, height / 2); sides below 30 leave no room for a planet. Takes
 * about 2 s for [100,1024,1024]. Returns CLV_OK or CLV_E_MEMORY. Free the sequence with synthetic_adi_clear. */
clv_status synthetic_adi_create(size_t frames, size_t height, size_t width, uint64_t seed,
                                synthetic_adi *adi);
void synthetic_adi_clear(synthetic_adi *adi);

/* Damages the cube as detectors do: a corner of NaN, one NaN in one frame, a dead pixel, a column
 * of zeros at the edge. */
void synthetic_adi_damage(synthetic_adi *adi);

#endif
