/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the filters of large sigma by cosine transforms: decides when the transforms are faster and which length
 * they have, and computes their tables. */
#ifndef CLEAVE_HOST_BLOB_BLOB_WAVES_H
#define CLEAVE_HOST_BLOB_BLOB_WAVES_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>

struct clv_blob_plan;

enum { CLV_BLOB_WAVE_BLOCK = 32 }; /* lines transformed together */

/* Tables of the transforms; cl/blob/cosine.cl describes them. */
typedef struct clv_blob_waves {
    bool used; /* true: CPU cores use transforms in place of sums over taps */
    struct {
        /* transform length along y, x; the same rounded up to whole blocks */
        size_t length, padded;
        float *waves;    /* [length][2] cos and -sin of 2 pi k / length */
        float *quarters; /* [length / 2 + 1][2] cos and sin of pi k / 2 length */
    } along[2];
    /* [scale]: [padded y] first kernel, [padded y] second kernel, [length x] pairs */
    float *filters;
    size_t filter_floats;
} clv_blob_waves;

/* Returns whether CPU cores should use the transforms. The answer depends only on the plan's ladder and shape. */
bool clv_blob_waves_pay(const struct clv_blob_plan *plan);
clv_status clv_blob_waves_create(const struct clv_blob_plan *plan, clv_blob_waves *waves);
void clv_blob_waves_clear(clv_blob_waves *waves);

/* Returns the transform length for lines of `size` pixels and taps of `radius`: at least `size`. */
size_t clv_blob_wave_length(size_t size, size_t radius);

#endif
