/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the form of the PACO kernels for a device, and the geometry that follows from it. */
#ifndef CLEAVE_HOST_PATCH_PACO_FAMILY_H
#define CLEAVE_HOST_PATCH_PACO_FAMILY_H

#include "host/patch/paco_job.h"

/* Returns the number of workers of the solver without work-groups. Each keeps the equations of one patch in memory,
 * 30 KB for radius 6; all of them together take at most a quarter of a gigabyte. */
size_t clv_paco_item_workers(const clv_paco_plan *plan);

typedef struct clv_paco_family {
    size_t lanes; /* pixels adjacent in x per work-item */
    size_t tile;  /* adjacent pixels that share memory: `lanes`, or a work-group */
    size_t local; /* work-group size in x */
    size_t lag_block, frame_block, map_rows;
    size_t item_frames; /* frames per work-item of the projection */
    /* most workers of the solver; each keeps a Cholesky factor in scratch memory */
    size_t max_workers;
    bool in_groups; /* teams or project_patches of 0: the work-group exceeds the device's limits */
    size_t side, teams;     /* solver: half the work-items per patch; patches per work-group */
    size_t project_patches; /* projection: patches per work-group */
    uint64_t max_turns;     /* most loop iterations per work-item; UINT64_MAX: no limit */
    /* derived from the fields above */
    size_t lags_padded, width, pitch;
} clv_paco_family;

/* Returns the names of the variants that make sense on the device, default first; the list ends with NULL. */
const char *const *clv_paco_variants(const clv_device *device);
/* Stores the variant that is known to be the fastest without measuring. Returns false if the variants must be
 * measured. */
bool clv_paco_usual(const clv_device *device, size_t *variant);
clv_paco_family clv_paco_family_of(const clv_paco_plan *plan, const clv_device *device,
                                   size_t variant);
/* Returns the family of the variant that the worker's setup chose. */
clv_paco_family clv_paco_family_for(const clv_paco_plan *plan, const clv_worker *worker);

typedef enum clv_paco_kernel {
    CLV_PACO_CENTRE,
    CLV_PACO_LAG_COVARIANCE,
    CLV_PACO_SOLVE_ROWS,
    CLV_PACO_SOLVE_GROUP,
    CLV_PACO_PROJECT,
    CLV_PACO_ACCUMULATE,
    CLV_PACO_PROJECT_GROUPS,
    CLV_PACO_KERNELS
} clv_paco_kernel;

/* Returns the source, the name and only those defines that the kernel reads, because each value of each define is a
 * separate program to compile. */
clv_launch clv_paco_describe(const clv_paco_plan *plan, const clv_paco_family *family,
                             clv_paco_kernel kernel);

/* Return the local memory, in floats, of a work-group of the solver (clv_paco_local_floats) and of the projection
 * (clv_paco_project_floats). */
size_t clv_paco_local_floats(const clv_paco_plan *plan, const clv_paco_family *family);
size_t clv_paco_project_floats(const clv_paco_plan *plan, const clv_paco_family *family);

/* Returns the solver's scratch memory for `workers` workers, in floats. */
size_t clv_paco_scratch_floats(const clv_paco_plan *plan, const clv_paco_family *family,
                               size_t workers);

/* The memory layout of a chunk's results, which depends on the device that computes the chunk. The layout is stored
 * with the results, because their reader does not know which device computed them. */
typedef struct clv_paco_layout {
    size_t map_pitch, state_pitch, state_pad;
} clv_paco_layout;
clv_status clv_paco_note_layout(const clv_paco_plan *plan, clv_slot *slot);

#endif
