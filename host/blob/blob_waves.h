/* SPDX-License-Identifier: Apache-2.0 */
/* Filters with large sigmas by cosine transforms: when they pay, at what length, and their tables. */
#ifndef CLEAVE_HOST_BLOB_BLOB_WAVES_H
#define CLEAVE_HOST_BLOB_BLOB_WAVES_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>

struct clv_blob_plan;

enum { CLV_BLOB_WAVE_BLOCK = 32 }; /* lines transformed together */

/* Tables of the transforms; cl/blob/cosine.cl describes them. */
typedef struct clv_blob_waves {
    bool used; /* on CPU cores, in place of sums over taps */
    struct {
        size_t length, padded; /* length of a line along y, x; rounded up to whole blocks */
        float *waves;          /* [length][2] cos and -sin of 2 pi k / length */
        float *quarters;       /* [length / 2 + 1][2] cos and sin of pi k / 2 length */
    } along[2];
    float *filters; /* [scale]: [padded y] first, [padded y] second, [length x] pairs */
    size_t filter_floats;
} clv_blob_waves;

/* Returns whether CPU cores should use the transforms; this depends on the plan's ladder and shape alone. */
bool clv_blob_waves_pay(const struct clv_blob_plan *plan);
clv_status clv_blob_waves_create(const struct clv_blob_plan *plan, clv_blob_waves *waves);
void clv_blob_waves_clear(clv_blob_waves *waves);

/* Returns the transform length for lines of `size` pixels under taps of `radius`: the size itself, or more. */
size_t clv_blob_wave_length(size_t size, size_t radius);

#endif
