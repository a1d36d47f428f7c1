/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the shift between two images from their Fourier spectra. */
#ifndef CLEAVE_HOST_STAGE_SHIFT_H
#define CLEAVE_HOST_STAGE_SHIFT_H

#include "host/stage/transform.h"

#include <cleave/stage.h>

enum { STAGE_RINGS = 64 };

/* Averages over the frequencies of each ring of |k|, up to half a cycle per pixel. */
typedef struct stage_rings {
    double power[STAGE_RINGS]; /* of the spectrum */
    double noise;              /* mean power at the highest frequencies, corners included */
} stage_rings;

typedef struct stage_shifter {
    size_t height, width, columns; /* of the image; columns = width / 2 + 1 of the spectrum */
    size_t rings;
    unsigned char *ring; /* [height][columns]: of each frequency; `rings`: beyond all of them */
    double *cosine_y, *sine_y, *cosine_x, *sine_x; /* of 2 pi k d, for each row and each column */
    clv_wave *product;                             /* F conj(R), without weights */
    clv_transform *back;                           /* of half the size */
    clv_wave *coarse;
    float *correlation; /* on a grid of two pixels */
} stage_shifter;

clv_status stage_shifter_open(stage_shifter *s, size_t height, size_t width);
void stage_shifter_close(stage_shifter *s);

void stage_measure_rings(const stage_shifter *s, const clv_wave *spectrum, stage_rings *rings);
/* Finds the shift of `frame` against `reference`; of shifts that differ by the image's size, the one next to 0. */
void stage_find_shift(stage_shifter *s, const clv_wave *frame, const stage_rings *frame_rings,
                      const clv_wave *reference, const stage_rings *reference_rings,
                      clv_stage_shift *shift);
/* Moves the reference by y, x, then mixes in the frame: reference = (1 - part) moved + part frame. */
void stage_follow(stage_shifter *s, const clv_wave *frame, double y, double x, float part,
                  clv_wave *reference);

#endif
