/* SPDX-License-Identifier: Apache-2.0 */
/* Trials: a planet of a given flux at a given place, out of all frames of the patches that it passes. */
#ifndef CLEAVE_HOST_PATCH_TRIAL_H
#define CLEAVE_HOST_PATCH_TRIAL_H

#include "host/patch/paco_plan.h"

typedef struct clv_trial {
    double x, y;     /* in the map */
    double injected; /* flux of a planet that is added to the data first */
    double flux;     /* in: what to take out of the data; out: the same at the last round */
    double a, b; /* out: of the last round; NaN where a patch leaves the frame or cannot be used */
} clv_trial;

/* Where the planet of a trial is in a frame, as trial_place in cl/patch/trial.clh. */
typedef struct clv_trial_place {
    int32_t row, col;
    float fy, fx;
} clv_trial_place;

/* A batch on its way. */
typedef struct clv_trials {
    const clv_paco_plan *plan;
    clv_trial *trials; /* those that stay inside the frame come first in `order` */
    size_t *order, count;
    size_t rounds;
    size_t row0, col0, height, width; /* the part of the frames that the batch needs */
    float *data;         /* [frames][height][width] and 16 more: (cube - mean) * scale */
    float *coefficients; /* [CLV_TRIAL_TERMS][psf_size][stride] */
    size_t stride;
    clv_trial_place *places; /* [count][frames], relative to row0 and col0 */
    float *start, *injected; /* [count], in the kernels' units */
} clv_trials;

/* Rounds of {take flux out, statistics, a, b, next flux = max(b, 0) / a}; with one round, a and b for the flux given.
 * On the context's devices. `progress` may be NULL. */
clv_status clv_trials_run(clv_context *context, const clv_paco_plan *plan, clv_trial *trials,
                          size_t count, size_t rounds, clv_progress *progress, void *user,
                          clv_report *report);

/* ---- trial_ref.c ---- */

/* [trials][3]: a, b, flux of the trials [first, first + count) of the batch. */
enum { CLV_TRIAL_RESULT };
clv_status clv_trial_reference(clv_slot *slot, size_t first, size_t count, void *batch);

#endif
