/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the form of the PACO kernels for a device, and the geometry that follows from it. */
#ifndef CLEAVE_HOST_PATCH_PACO_FAMILY_H
#define CLEAVE_HOST_PATCH_PACO_FAMILY_H

#include "host/patch/paco_job.h"

/* Number of workers of the solver that runs without work-groups. Each keeps a patch's equations in memory, 30 KB for
 * radius 6. */
enum { CLV_PACO_ITEM_WORKERS = 1 << 14 };

typedef struct clv_paco_family {
    size_t lanes; /* pixels adjacent in x that one work-item handles */
    size_t tile;  /* adjacent pixels that share memory: lanes, or a work-group */
    size_t local; /* work-group size in x */
    size_t lag_block, frame_block, map_rows;
    size_t item_frames;     /* frames that one work-item of the projection handles */
    size_t max_workers;     /* of the solver; each keeps a Cholesky factor in scratch memory */
    bool in_groups;         /* teams or project_patches 0: exceeds the device's limits */
    size_t side, teams;     /* solver: half the work-items per patch; patches per work-group */
    size_t project_patches; /* projection: patches per work-group */
    uint64_t max_turns;     /* loop iterations allowed per work-item; UINT64_MAX: no limit */
    /* derived */
    size_t lags_padded, width, pitch;
} clv_paco_family;

/* Returns the names of the variants that make sense on the device, default first; the list ends with NULL. */
const char *const *clv_paco_variants(const clv_device *device);
/* Stores the variant that is known to be the fastest without a trial. Returns false if the variants must be
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

/* Returns source, name and the defines that the kernel reads. It sets no other defines, since each value of each define
 * is a separate program to compile. */
clv_launch clv_paco_describe(const clv_paco_plan *plan, const clv_paco_family *family,
                             clv_paco_kernel kernel);

/* Local memory in floats of a work-group of the solver, and of a work-group of the projection
 * (clv_paco_project_floats). */
size_t clv_paco_local_floats(const clv_paco_plan *plan, const clv_paco_family *family);
size_t clv_paco_project_floats(const clv_paco_plan *plan, const clv_paco_family *family);

/* Solver scratch memory for `workers` workers, in floats. */
size_t clv_paco_scratch_floats(const clv_paco_plan *plan, const clv_paco_family *family,
                               size_t workers);

/* Memory layout of a chunk's results, which depends on the device that computes them. It is one of the results, because
 * the chunk may be computed elsewhere. */
typedef struct clv_paco_layout {
    size_t map_pitch, state_pitch, state_pad;
} clv_paco_layout;
clv_status clv_paco_note_layout(const clv_paco_plan *plan, clv_slot *slot);

#endif
