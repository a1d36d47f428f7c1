/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of the blob kernels a device gets, and the geometry that follows from it. */
#ifndef CLEAVE_HOST_BLOB_BLOB_FAMILY_H
#define CLEAVE_HOST_BLOB_BLOB_FAMILY_H

#include "host/blob/blob_job.h"

typedef struct clv_blob_family {
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

#endif
