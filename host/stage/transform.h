/* SPDX-License-Identifier: Apache-2.0 */
/* Computes Fourier transforms of real images. */
#ifndef CLEAVE_HOST_STAGE_TRANSFORM_H
#define CLEAVE_HOST_STAGE_TRANSFORM_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct clv_transform clv_transform;

/* A complex number of a spectrum. */
typedef struct clv_wave {
    float re, im;
} clv_wave;

/* Returns whether the library for transforms was there when this one was built. */
bool clv_transform_available(void);
/* Returns the smallest multiple of 4 that is at least `least` and has no prime factors but 2, 3 and 5. */
size_t clv_transform_size(size_t least);
/* Prepares transforms of [height][width]; both are even. `inverse`: from the spectrum back to the image. */
clv_status clv_transform_create(size_t height, size_t width, bool inverse, clv_transform **out);
void clv_transform_free(clv_transform *transform); /* accepts NULL */

/* spectrum[ky][kx] = sum image[y][x] exp(-2 pi i (ky y / height + kx x / width)), kx = 0 ... width / 2. */
void clv_transform_forward(clv_transform *transform, const float *image, clv_wave *spectrum);
/* The inverse, times height * width. It overwrites the spectrum. */
void clv_transform_back(clv_transform *transform, clv_wave *spectrum, float *image);

#endif
