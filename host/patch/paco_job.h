/* SPDX-License-Identifier: Apache-2.0 */
/* Declares PACO as a job, in which unit u is the row margin + u of patch centres. */
#ifndef CLEAVE_HOST_PATCH_PACO_JOB_H
#define CLEAVE_HOST_PATCH_PACO_JOB_H

#include "host/patch/paco_plan.h"

/* Result buffers of a chunk. */
enum {
    CLV_PACO_SUMS,  /* int64 [4][map rows][map pitch] */
    CLV_PACO_FOUND, /* uint32 [map rows][map pitch] */
    CLV_PACO_STATE, /* uint8 [band rows][pitch] */
    /* a clv_paco_layout: the pitches of the other results, which depend on the device */
    CLV_PACO_SHAPE,
    CLV_PACO_RESULTS
};

/* The rows of a chunk and all rows that its patches touch. */
typedef struct clv_paco_chunk {
    size_t first, rows;          /* pixel rows that belong to the chunk */
    size_t centre0, centre_rows; /* rows of patch centres among the chunk's rows */
    /* pixel rows under the chunk's patches, including the chunk's own rows */
    size_t band0, band_rows;
    size_t map0, map_rows; /* map rows to which the chunk's patches can contribute */
} clv_paco_chunk;

size_t clv_paco_units(const clv_paco_plan *plan);
clv_paco_chunk clv_paco_chunk_of(const clv_paco_plan *plan, size_t first, size_t count);

clv_cost clv_paco_cost(size_t first, size_t count, void *plan);
clv_status clv_paco_setup(clv_worker *worker, void *plan);
clv_status clv_paco_enqueue_rows(clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_paco_commit(const clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_paco_reference(clv_slot *slot, size_t first, size_t count, void *plan);

#endif
