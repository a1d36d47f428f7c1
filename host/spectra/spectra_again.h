/* SPDX-License-Identifier: Apache-2.0 */
/* Fits some stars again: without their outliers, and, where the minimum is ambiguous, from other starting points. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_AGAIN_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_AGAIN_H

#include "host/spectra/spectra_plan.h"
#include "host/spectra/spectra_reject.h"

/* Improves the results of a plan that has run. If options.reject_sigma is finite, the results must have the models of
 * all stars. `models`: whether the new results need models. */
clv_status clv_spectra_fit_again(clv_context *context, const clv_spectra_plan *plan, bool models,
                                 clv_report *report);

/* ---- spectra_listed.c ---- */
/* A list of stars to fit again, and how to fit them. */
typedef struct clv_again {
    const size_t *number; /* [count] indices of the stars in the plan */
    size_t count;
    const clv_star_masks *masks; /* of all stars of the plan */
    const double *begin;         /* [count,starts,6] points to fit from; NULL: the usual points */
    unsigned starts;
    bool models;
    double *
        scans; /* [count,velocities of the start's grid] values at the points in place of a fit; NULL: fit */
} clv_again;

/* Fits the stars of `again` without the pixels in their masks. The caller clears the `again->count` results before the
 * call. `peaks`: as in clv_spectra_run. */
clv_status clv_fit_listed(clv_context *context, const clv_spectra_plan *plan,
                          const clv_again *again, clv_specfit_result *results, float *peaks,
                          clv_report *report);
/* Frees the result `to` and moves the newer result `by` into it; `by` is empty afterwards. */
void clv_replace_result(clv_specfit_result *to, clv_specfit_result *by);
/* Returns the step, in km/s, of the grid of velocities that the search for start values tries. */
double clv_scan_step(const clv_spectra_plan *plan);

/* ---- spectra_elsewhere.c ---- */
enum { CLV_AGAIN_MOST = 8 }; /* most points from which a round fits a star */
/* If the star's fit ended at a face of a gap in a grid, sets points at the gap's other faces, and in the cells beside
 * the fit's cell along that face: there may be one minimum at each face of a gap, and one in each cell along it.
 * Returns their number. */
size_t clv_points_around(const clv_spectra_plan *plan, size_t star,
                         double points[CLV_AGAIN_MOST][CLV_SPECTRA_UNKNOWNS]);
/* Fits ambiguous stars from other points as well, and keeps their lowest minima. `number` [stars]: scratch. */
clv_status clv_look_elsewhere(clv_context *context, const clv_spectra_plan *plan, size_t *number,
                              const clv_star_masks *masks, bool models, clv_report *report);

#endif
