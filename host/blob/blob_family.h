/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of the blob kernels a device gets, and the geometry that follows from it. */
#ifndef CLEAVE_HOST_BLOB_BLOB_FAMILY_H
#define CLEAVE_HOST_BLOB_BLOB_FAMILY_H

#include "host/blob/blob_job.h"

typedef enum clv_blob_form {
    CLV_BLOB_ROWS,   /* cl/blob/rows.cl: explicit vectors along rows, for cores */
    CLV_BLOB_ITEMS,  /* cl/blob/items.cl: a work-item a pixel, planes in global memory */
    CLV_BLOB_TILE,   /* cl/blob/tile.cl: a work-group a tile, all in local memory */
    CLV_BLOB_COSINE, /* cl/blob/cosine.cl: cosine transforms, for cores and large sigmas */
} clv_blob_form;

typedef struct clv_blob_family {
    clv_blob_form form;
    size_t local; /* items, tile: work-items of a group */
    size_t lanes;
    size_t tile, tiles; /* columns of a work-item; in a row (cosine: work-items) */
    size_t band, bands; /* rows of a work-item; in a frame */
    size_t pad, ring, level_group;
    size_t group; /* frames of a launch */
    size_t scratch_floats;
} clv_blob_family;

/* Names of the forms that make sense on the device, default first; ends with NULL. Frames and stacks share them: each
 * has a geometry here and in volume_family.c. */
const char *const *clv_blob_variants(const clv_device *device);
/* The one that the worker's setup chose. */
clv_blob_family clv_blob_family_for(const clv_blob_plan *plan, const clv_worker *worker,
                                    size_t frames);
/* Each form's geometry for launches of up to `frames` frames. `max_turns`: of the loops of a work-item. */
clv_blob_family clv_blob_rows_family(const clv_blob_plan *plan, size_t lanes, size_t cores,
                                     uint64_t max_turns, size_t frames);
clv_blob_family clv_blob_items_family(const clv_blob_plan *plan, size_t local, size_t frames);
clv_blob_family clv_blob_tile_family(size_t local, size_t frames);
clv_blob_family clv_blob_cosine_family(const clv_blob_plan *plan, size_t cores, size_t frames);
/* Local memory of a tile. */
size_t clv_blob_tile_floats(const clv_blob_plan *plan);
/* Bytes of scratch that no family exceeds. */
size_t clv_blob_scratch_estimate(const clv_blob_plan *plan);

/* Tables that all chunks of a worker share: clv_worker_buffer keys. */
enum {
    CLV_BLOB_TAPS,
    CLV_BLOB_LEVEL,
    CLV_BLOB_LEAK,
    CLV_BLOB_FACTOR,
    CLV_BLOB_WAVES_Y, /* these and those that follow: where plan->waves.used */
    CLV_BLOB_WAVES_X,
    CLV_BLOB_QUARTERS_Y,
    CLV_BLOB_QUARTERS_X,
    CLV_BLOB_FILTERS,
    CLV_BLOB_TABLES
};

/* What the launches of one chunk share. */
typedef struct clv_blob_pass {
    const clv_blob_plan *plan;
    const clv_blob_family *f;
    clv_queue *queue;
    clv_place pixels;
    clv_buffer *table[CLV_BLOB_TABLES];
    clv_buffer *pedestal, *map, *counts, *peaks, *bins, *scratch;
} clv_blob_pass;

/* An int of a kernel, from a size that is known to fit. */
static inline clv_arg clv_blob_int(size_t value)
{
    return clv_arg_i32((int32_t)value);
}

/* What differences of Gaussians are scaled by. */
static inline float clv_blob_dog_factor(const clv_blob_plan *plan)
{
    return (float)(1 / (plan->options.sigma_ratio - 1));
}

/* Pixels between those whose responses are counted for the noise; 0: none. */
static inline size_t clv_blob_step(const clv_blob_plan *plan)
{
    return plan->by_noise ? plan->noise_step : 0;
}

/* Each enqueues what `frames` frames of the chunk need, from frame `at` on. */
clv_status clv_blob_look_rows(const clv_blob_pass *pass, size_t at, size_t frames);
clv_status clv_blob_look_items(const clv_blob_pass *pass, size_t at, size_t frames);
clv_status clv_blob_look_cosine(const clv_blob_pass *pass, size_t at, size_t frames);
clv_status clv_blob_look_tile(const clv_blob_pass *pass, size_t at, size_t frames);

#endif
