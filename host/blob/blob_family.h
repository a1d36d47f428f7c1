/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of the blob kernels a device gets, and the geometry that follows from it. */
#ifndef CLEAVE_HOST_BLOB_BLOB_FAMILY_H
#define CLEAVE_HOST_BLOB_BLOB_FAMILY_H

#include "host/blob/blob_job.h"

typedef struct clv_blob_family {
    bool rows;    /* explicit vectors along rows; else a work-item a pixel */
    size_t local; /* work-group of the latter */
    size_t lanes;
    size_t tile, tiles; /* columns of a work-item; in a row */
    size_t band, bands; /* rows of a work-item; in a frame */
    size_t pad, ring;
    size_t group; /* frames of a launch */
    size_t scratch_floats;
} clv_blob_family;

clv_blob_family clv_blob_family_for(const clv_blob_plan *plan, const clv_worker *worker,
                                    size_t frames);
/* Bytes of scratch that no family exceeds. */
size_t clv_blob_scratch_estimate(const clv_blob_plan *plan);

/* What the launches of one chunk share. */
typedef struct clv_blob_pass {
    const clv_blob_plan *plan;
    const clv_blob_family *f;
    clv_slot *slot;
    clv_place pixels;
    clv_buffer *pedestal, *counts, *peaks, *inverse, *bins, *scratch;
} clv_blob_pass;

/* Memory of a worker. */
enum { CLV_BLOB_TAPS, CLV_BLOB_LEVEL, CLV_BLOB_LEAK };
clv_arg clv_blob_constant(const clv_blob_pass *pass, unsigned key);
float clv_blob_dog_factor(const clv_blob_plan *plan);

/* Each enqueues what `frames` frames of the chunk need, from frame `at` on. */
clv_status clv_blob_look_rows(const clv_blob_pass *pass, size_t at, size_t frames);
clv_status clv_blob_noise_rows(const clv_blob_pass *pass, size_t at, size_t frames);
clv_status clv_blob_look_items(const clv_blob_pass *pass, size_t at, size_t frames);
clv_status clv_blob_noise_medians(const clv_blob_pass *pass, size_t at, size_t frames);

#endif
