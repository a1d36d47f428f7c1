/* SPDX-License-Identifier: Apache-2.0 */
/* Runs trials. Each trial tests a planet of a given flux at a given position, with all frames of the patches that the
 * planet crosses. */
#ifndef CLEAVE_HOST_PATCH_TRIAL_H
#define CLEAVE_HOST_PATCH_TRIAL_H

#include "host/patch/paco_plan.h"

typedef struct clv_trial {
    double x, y; /* position in the map */
    double flux; /* flux of the planet that is subtracted from the data */
    /* flux of a planet that is first added to the data, at x + aside_x, y + aside_y */
    double injected;
    double aside_x, aside_y;
    /* Results; NaN if a patch leaves the frame or cannot be used. With J = (h, dh/dx, dh/dy): A = J'C^-1 J as [3][3], c
     * = J'C^-1 z, where z is the patch without the planet and without its mean. */
    double A[9], c[3];
    double a, b; /* h'C^-1 h and h'C^-1 (z + flux h) */
} clv_trial;

/* Position of a trial's planet in a frame, like trial_place in cl/patch/trial.clh. */
typedef struct clv_trial_place {
    int32_t row, col;
    float fy, fx;
    float weight, gain; /* weight of the frame, as in clv_rotation */
} clv_trial_place;

/* A batch of trials that is running. */
typedef struct clv_trials {
    const clv_paco_plan *plan;
    clv_trial *trials; /* `order` lists the trials that stay inside the frame first */
    size_t *order, count;
    size_t row0, col0, height, width; /* the part of the frames that the batch uses */
    float *data;         /* [frames][height][width], and 16 elements more: (cube - mean) * scale */
    float *coefficients; /* [psf_size][CLV_TRIAL_TERMS][stride] */
    size_t stride;
    /* [count][frames], relative to row0 and col0; `origins`: of the injected planets */
    clv_trial_place *places, *origins;
    float *flux, *injected; /* [count], in the kernels' units */
} clv_trials;

/* Subtracts the planets, adds the injected ones, and fills in A, c, a and b of all trials, on the context's devices.
 * `progress` may be NULL. */
clv_status clv_trials_run(clv_context *context, const clv_paco_plan *plan, clv_trial *trials,
                          size_t count, clv_progress *progress, void *user, clv_report *report);

/* ---- trial_ref.c ---- */

/* The result buffer: [trials][frames][CLV_TRIAL_SUMS], for the trials [first, first + count) of the batch. */
enum { CLV_TRIAL_RESULT };
clv_status clv_trial_reference(clv_slot *slot, size_t first, size_t count, void *batch);

#endif
