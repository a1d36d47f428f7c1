/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of the PACO kernels a device gets, and the geometry that follows from it. */
#ifndef CLEAVE_HOST_PATCH_PACO_FAMILY_H
#define CLEAVE_HOST_PATCH_PACO_FAMILY_H

#include "host/patch/paco_job.h"

/* Workers of the solver without groups: each keeps a patch's equations in memory, 30 KB for radius 6. */
enum { CLV_PACO_ITEM_WORKERS = 1 << 14 };

typedef struct clv_paco_family {
    size_t lanes; /* neighbours in x for one work-item */
    size_t tile;  /* neighbours that share memory: lanes, or a work-group */
    size_t local; /* work-group size in x */
    size_t lag_block, frame_block, map_rows;
    size_t item_frames;     /* frames for one work-item of the projection */
    size_t max_workers;     /* of the solver; each keeps a factor in scratch memory */
    bool in_groups;         /* below, 0: work-groups would exceed the device's limits */
    size_t side, teams;     /* solver: half the work-items per patch; patches per work-group */
    size_t project_patches; /* projection: patches per work-group */
    uint64_t max_turns;     /* loop turns we allow a work-item; UINT64_MAX: no limit */
    /* derived */
    size_t lags_padded, width, pitch;
} clv_paco_family;

/* Names of the variants that make sense on the device, default first; ends with NULL. */
const char *const *clv_paco_variants(const clv_device *device);
/* The one that needs no trial; false: the variants have to be measured. */
bool clv_paco_usual(const clv_device *device, size_t *variant);
clv_paco_family clv_paco_family_of(const clv_paco_plan *plan, const clv_device *device,
                                   size_t variant);
/* The one that the worker's setup chose. */
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

/* Source, name and the defines that the kernel reads: no others, since each value of each is a
 * program of its own to compile. */
clv_launch clv_paco_describe(const clv_paco_plan *plan, const clv_paco_family *family,
                             clv_paco_kernel kernel);

/* Floats of local memory for a work-group of the solver, and of the projection, in groups. */
size_t clv_paco_local_floats(const clv_paco_plan *plan, const clv_paco_family *family);
size_t clv_paco_project_floats(const clv_paco_plan *plan, const clv_paco_family *family);

/* Floats of solver scratch for `workers`. */
size_t clv_paco_scratch_floats(const clv_paco_plan *plan, const clv_paco_family *family,
                               size_t workers);

/* How the results of a slot lie, on whichever device they were made. */
typedef struct clv_paco_layout {
    size_t map_pitch, state_pitch, state_pad;
} clv_paco_layout;
clv_paco_layout clv_paco_layout_of(const clv_paco_plan *plan, const clv_slot *slot);

#endif
