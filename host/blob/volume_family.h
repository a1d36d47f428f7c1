/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of the volume kernels a device gets, and the launches of one slab. */
#ifndef CLEAVE_HOST_BLOB_VOLUME_FAMILY_H
#define CLEAVE_HOST_BLOB_VOLUME_FAMILY_H

#include "host/blob/volume_plan.h"

#include <cleave/job.h>

typedef enum clv_volume_form {
    CLV_VOLUME_ROWS,  /* cl/blob/volume_rows.cl: explicit vectors along rows, for cores */
    CLV_VOLUME_ITEMS, /* cl/blob/volume_items.cl: a work-item a voxel, all in global memory */
    CLV_VOLUME_TILE,  /* the same, planes by tiles in local memory */
} clv_volume_form;

typedef struct clv_volume_family {
    clv_volume_form form;
    size_t local;       /* items, tile: work-items of a group */
    size_t band, bands; /* rows: of a work-item; in a plane */
    size_t pad, ring;   /* rows: beside a row of pixels; rows of a ring */
    /* rows: scratch of all work-items; items: rows before they are summed along y */
    size_t own_floats;
} clv_volume_family;

/* Memory of a chunk in flight beside its results: clv_slot_buffer keys. */
enum {
    CLV_VOLUME_PIXELS = CLV_VOLUME_RESULTS,
    CLV_VOLUME_MAP,
    CLV_VOLUME_A, /* these and those that follow: see cl/blob/volume.clh */
    CLV_VOLUME_C,
    CLV_VOLUME_L,
    CLV_VOLUME_G,
    CLV_VOLUME_OWN,
    CLV_VOLUME_BUFFERS
};
/* Tables that all chunks of a worker share: clv_worker_buffer keys. */
enum { CLV_VOLUME_TAPS, CLV_VOLUME_FACTOR, CLV_VOLUME_TABLES };

/* The form that the worker's setup chose of clv_blob_variants, for slabs whose pixels are `planes` planes. */
clv_volume_family clv_volume_family_for(const clv_volume_plan *plan, const clv_worker *worker,
                                        size_t planes);
/* Floats of one of the buffers from CLV_VOLUME_A on, for the thickest slab. */
size_t clv_volume_floats(const clv_volume_plan *plan, const clv_volume_family *f, int buffer);
/* The most own_floats of any form, for the thickest slab, on a machine of a usual size. */
size_t clv_volume_own_estimate(const clv_volume_plan *plan);
/* Local memory of a tile. */
size_t clv_volume_tile_floats(const clv_volume_plan *plan);

/* What the launches of one slab share. */
typedef struct clv_volume_pass {
    const clv_volume_plan *plan;
    const clv_volume_family *f;
    clv_queue *queue;
    clv_volume_slab slab;
    clv_place pixels; /* of the slab's first plane */
    clv_buffer *table[CLV_VOLUME_TABLES], *buffer[CLV_VOLUME_BUFFERS];
    size_t number; /* of the slab in the chunk */
} clv_volume_pass;

/* Enqueues all that a slab needs. */
clv_status clv_volume_look_at(const clv_volume_pass *pass);

#endif
