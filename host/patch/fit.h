/* SPDX-License-Identifier: Apache-2.0 */
/* Flux and place of planets, many at once: where the sums of their trials vanish. */
#ifndef CLEAVE_HOST_PATCH_FIT_H
#define CLEAVE_HOST_PATCH_FIT_H

#include "host/patch/trial.h"

/* A planet that is fitted; `at` begins with what is known and ends with the solution. */
typedef struct clv_fit_planet {
    clv_trial at;
    double reach; /* how far it may move, in pixels; 0: its place is known */
    const double
        *spectrum; /* [channel_count] its flux in a channel, times at.flux; NULL: 1 in all */
    double flux_err, x_err, y_err;   /* out: of the likelihood; NaN where there are none */
    double start_x, start_y;         /* of the fit itself, as all that follows */
    double unit[3];                  /* of the following: the errors when the fit began */
    double past[3][3], change[3][3]; /* moves of earlier rounds, and what they did to the step */
    double last[3], step[3];
    double low, high; /* fluxes between which the solution lies */
    size_t known;
    bool settled;
} clv_fit_planet;

typedef struct clv_fit {
    clv_context *context;
    const clv_paco_plan *plan;            /* geometry, and the data of one channel */
    const clv_paco_plan *const *channels; /* the data of several; NULL: only one */
    size_t channel_count;
    bool negative; /* fluxes below 0 are solutions, too */
    clv_progress *progress;
    void *user;
    clv_report *report;
} clv_fit;

/* Solves h'C^-1 z = 0, and with `reach` (dh/dx)'C^-1 z = (dh/dy)'C^-1 z = 0, C and z being those of the data without
 * the planet: rounds of Gauss and Newton's step, quickened by the steps before (Anderson 1965). Ends when what is
 * left to go is below `tolerance` times the error, or after `rounds`. The first `warm` rounds change the flux only. */
clv_status clv_fit_run(const clv_fit *fit, clv_fit_planet *planets, size_t count, size_t rounds,
                       size_t warm, double tolerance);

#endif
