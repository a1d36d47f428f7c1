/* SPDX-License-Identifier: Apache-2.0 */
/* Fits the flux and position of many planets at once. At the solution, the whitened residuals are orthogonal to the
 * planet's image and, unless the position is fixed, to the derivatives of the image. */
#ifndef CLEAVE_HOST_PATCH_FIT_H
#define CLEAVE_HOST_PATCH_FIT_H

#include "host/patch/trial.h"

/* A planet to fit. `at` holds the initial guess before the fit and the solution after it. */
typedef struct clv_fit_planet {
    clv_trial at;
    double reach; /* how far the planet may move, in pixels; 0: the position is fixed */
    /* [channel_count] flux in each channel, divided by at.flux; NULL: 1 in all channels */
    const double *spectrum;
    /* out: errors from the likelihood; NaN if they cannot be computed */
    double flux_err, x_err, y_err;
    double start_x, start_y; /* private to the fit, like all fields below */
    double unit[3];          /* unit of the fields below: the errors at the start of the fit */
    /* moves of earlier rounds, and the changes of the step that they caused */
    double past[3][3], change[3][3];
    double last[3], step[3];
    double low, high; /* the solution lies between these fluxes */
    size_t known;
    bool settled;
} clv_fit_planet;

typedef struct clv_fit {
    clv_context *context;
    const clv_paco_plan *plan;            /* geometry; for a single channel also the data */
    const clv_paco_plan *const *channels; /* the data of several channels; NULL: one channel */
    size_t channel_count;
    bool negative; /* negative fluxes are valid solutions, too */
    clv_progress *progress;
    void *user;
    clv_report *report;
} clv_fit;

/* Solves h'C^-1 z = 0, and where `reach` is above 0 also (dh/dx)'C^-1 z = (dh/dy)'C^-1 z = 0; C and z belong to the
 * data without the planet. Takes Gauss-Newton steps, which Anderson mixing (Anderson 1965) accelerates with the steps
 * of earlier rounds. Ends when the remaining distance is below `tolerance` times the error, or after `rounds` rounds.
 * The first `warm` rounds change only the flux. */
clv_status clv_fit_run(const clv_fit *fit, clv_fit_planet *planets, size_t count, size_t rounds,
                       size_t warm, double tolerance);

#endif
