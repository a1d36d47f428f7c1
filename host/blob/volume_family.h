/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the form of the volume kernels for a device, and launches them for a slab. */
#ifndef CLEAVE_HOST_BLOB_VOLUME_FAMILY_H
#define CLEAVE_HOST_BLOB_VOLUME_FAMILY_H

#include "host/blob/volume_plan.h"

#include <cleave/job.h>

typedef enum clv_volume_form {
    CLV_VOLUME_ROWS, /* cl/blob/volume_rows.cl: explicit vectors along rows, for CPU cores */
    /* cl/blob/volume_items.cl: one work-item per voxel, with all arrays in global memory */
    CLV_VOLUME_ITEMS,
    CLV_VOLUME_TILE, /* like the items form, but computes planes by tiles in local memory */
} clv_volume_form;

typedef struct clv_volume_family {
    clv_volume_form form;
    size_t local;       /* items, tile: size of a work-group */
    size_t tile_local;  /* tile: size of a work-group that computes a tile */
    size_t band, bands; /* rows: rows per work-item; bands per plane */
    size_t pad, ring;   /* rows: padding beside a row of pixels; rows in a ring buffer */
    /* rows: scratch memory of all work-items; items: rows summed along x, before they are summed along y */
    size_t own_floats;
} clv_volume_family;

/* Buffers of a chunk in flight in addition to its results; these are clv_slot_buffer keys. */
enum {
    CLV_VOLUME_PIXELS = CLV_VOLUME_RESULTS,
    CLV_VOLUME_MAP,
    CLV_VOLUME_A, /* cl/blob/volume.clh describes this buffer and the following ones */
    CLV_VOLUME_C,
    CLV_VOLUME_L,
    CLV_VOLUME_G,
    CLV_VOLUME_OWN,
    CLV_VOLUME_BUFFERS
};
/* Tables that all chunks of a worker share; these are clv_worker_buffer keys. */
enum { CLV_VOLUME_TAPS, CLV_VOLUME_FACTOR, CLV_VOLUME_TABLES };

/* Returns the names of the forms that make sense on the device, default first; the list ends with NULL. */
const char *const *clv_volume_variants(const clv_device *device);
/* Returns the family of the form that the worker's setup chose among clv_volume_variants, for slabs whose responses
 * require `planes` planes of voxels. */
clv_volume_family clv_volume_family_for(const clv_volume_plan *plan, const clv_worker *worker,
                                        size_t planes);
/* Returns the size in floats of one of the buffers from CLV_VOLUME_A on, for the thickest slab. */
size_t clv_volume_floats(const clv_volume_plan *plan, const clv_volume_family *f, int buffer);
/* Returns the largest own_floats of any form, for the thickest slab, on a machine of usual size. */
size_t clv_volume_own_estimate(const clv_volume_plan *plan);
/* Returns the size of a tile's local memory, in floats. */
size_t clv_volume_tile_floats(const clv_volume_plan *plan);

/* What the launches of one slab share. */
typedef struct clv_volume_pass {
    const clv_volume_plan *plan;
    const clv_volume_family *f;
    clv_queue *queue;
    clv_volume_slab slab;
    clv_place pixels; /* first plane of the slab */
    clv_buffer *table[CLV_VOLUME_TABLES], *buffer[CLV_VOLUME_BUFFERS];
    size_t number; /* index of the slab within the chunk */
} clv_volume_pass;

/* Enqueues all launches of a slab. */
clv_status clv_volume_look_at(const clv_volume_pass *pass);

#endif
