/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the form of the blob kernels for a device, and the geometry that follows from it. */
#ifndef CLEAVE_HOST_BLOB_BLOB_FAMILY_H
#define CLEAVE_HOST_BLOB_BLOB_FAMILY_H

#include "host/blob/blob_job.h"

typedef enum clv_blob_form {
    CLV_BLOB_ROWS,  /* cl/blob/rows.cl: explicit vectors along rows, for CPU cores */
    CLV_BLOB_ITEMS, /* cl/blob/items.cl: one work-item per pixel, planes in global memory */
    CLV_BLOB_SWEEP, /* cl/blob/sweep.cl: one work-group per strip of columns, windows in registers */
    CLV_BLOB_TILE,  /* cl/blob/tile.cl: one work-group per tile, all in local memory */
    CLV_BLOB_COSINE, /* cl/blob/cosine.cl: cosine transforms, for CPU cores and large sigmas */
} clv_blob_form;

typedef struct clv_blob_family {
    clv_blob_form form;
    size_t local; /* items, tile: size of a work-group; sweep: work-items per level */
    size_t lanes; /* columns that a work-item computes at a time */
    /* columns per work-item (sweep: per work-group); tiles per row (cosine: number of work-items) */
    size_t tile, tiles;
    size_t band, bands; /* rows per work-item; bands per frame */
    size_t pad, ring, level_group;
    size_t group; /* frames per launch */
    size_t scratch_floats;
} clv_blob_family;

/* Returns the names of the forms that make sense on the device, default first; the list ends with NULL. */
const char *const *clv_blob_variants(const clv_device *device);
/* Returns the family of the form that the worker's setup chose. */
clv_blob_family clv_blob_family_for(const clv_blob_plan *plan, const clv_worker *worker,
                                    size_t frames);
/* Each returns a form's geometry for launches of up to `frames` frames. `max_turns` limits the loop iterations of a
 * work-item. */
clv_blob_family clv_blob_rows_family(const clv_blob_plan *plan, size_t lanes, size_t cores,
                                     uint64_t max_turns, size_t frames);
clv_blob_family clv_blob_items_family(const clv_blob_plan *plan, size_t local, size_t frames);
clv_blob_family clv_blob_tile_family(size_t local, size_t frames);
/* Computes the geometry of the sweep form. `each`: columns per work-item; `items`: most work-items of a work-group;
 * `groups`: number of work-groups that keep the device busy. Returns false if a work-group cannot hold all levels, or
 * if the registers cannot hold the widest level. */
bool clv_blob_sweep_family(const clv_blob_plan *plan, size_t each, size_t items, size_t groups,
                           size_t frames, clv_blob_family *f);
clv_blob_family clv_blob_cosine_family(const clv_blob_plan *plan, size_t cores, size_t frames);
/* Returns the size of a tile's local memory, in floats. */
size_t clv_blob_tile_floats(const clv_blob_plan *plan);
/* Returns an upper bound of the scratch memory of any family, in bytes. */
size_t clv_blob_scratch_estimate(const clv_blob_plan *plan);

/* Tables that all chunks of a worker share; these are clv_worker_buffer keys. */
enum {
    CLV_BLOB_TAPS,
    CLV_BLOB_LEVEL,
    CLV_BLOB_LEAK,
    CLV_BLOB_FACTOR,
    CLV_BLOB_WAVES_Y, /* this and the following tables exist only if plan->waves.used */
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

/* Returns a kernel's int argument; `value` must fit an int. */
static inline clv_arg clv_blob_int(size_t value)
{
    return clv_arg_i32((int32_t)value);
}

/* Returns the factor that scales differences of Gaussians. */
static inline float clv_blob_dog_factor(const clv_blob_plan *plan)
{
    return (float)(1 / (plan->options.sigma_ratio - 1));
}

/* Returns the distance, in pixels, between the pixels whose responses are sampled for the noise; 0: none are
 * sampled. */
static inline size_t clv_blob_step(const clv_blob_plan *plan)
{
    return plan->by_noise ? plan->noise_step : 0;
}

/* Launches a kernel on whole frames, from frame `at` of the chunk on. The kernel's arguments are the inputs, `memory`
 * unless it is NULL, the results, the frame's height and width, `count` (at most 7) numbers from `geometry`, and the
 * rules. */
clv_status clv_blob_launch(const clv_blob_pass *pass, const clv_launch *launch, size_t at,
                           const clv_arg *memory, const size_t *geometry, size_t count);
/* Each of these enqueues a form's launches for `frames` frames of the chunk, from frame `at` on. */
clv_status clv_blob_look_rows(const clv_blob_pass *pass, size_t at, size_t frames);
clv_status clv_blob_look_items(const clv_blob_pass *pass, size_t at, size_t frames);
clv_status clv_blob_look_cosine(const clv_blob_pass *pass, size_t at, size_t frames);
clv_status clv_blob_look_tile(const clv_blob_pass *pass, size_t at, size_t frames);
clv_status clv_blob_look_sweep(const clv_blob_pass *pass, size_t at, size_t frames);

#endif
