/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the plain C fit share: a point of the fit, and its evaluation. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_REF_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_REF_H

#include "host/spectra/spectra_plan.h"

/* the point, its neighbour along each unknown, a second one along velocity */
enum { CLV_REF_LANES = 7 };

/* Scratch memory for one evaluation. */
typedef struct clv_ref_work {
    double *network, *wave, *raw, *turned, *bend, *sweep; /* of the longest template */
    double *lane[CLV_REF_LANES];                          /* [all_pixels] templates at the pixels */
    double *blurred;                                      /* [all_pixels] */
    double *rows;                                         /* [all_pixels,diagonals] of the star */
} clv_ref_work;

/* The evaluation of a point. */
typedef struct clv_ref_judged {
    double value, log_det, chi[CLV_SPECTRA_MAX_SPECTRA];
    double prior;   /* contribution of the priors; slope and normal include it, value does not */
    double penalty; /* for points where the grid has no templates; not in value */
    double normal[CLV_SPECTRA_UNKNOWNS][CLV_SPECTRA_UNKNOWNS], slope[CLV_SPECTRA_UNKNOWNS],
        det[CLV_SPECTRA_UNKNOWNS];
    bool bad;
} clv_ref_judged;

clv_status clv_ref_work_create(const clv_spectra_plan *plan, clv_ref_work *w);
void clv_ref_work_clear(clv_ref_work *w);

/* Computes one lane of one spectrum: a rotated template at the pixels. `same` reuses the spline of the previous call;
 * `home` is the point whose neighbour this is. */
void clv_ref_lane(const clv_spectra_plan *plan, size_t i, const double home[CLV_SPECTRA_UNKNOWNS],
                  const double x[CLV_SPECTRA_UNKNOWNS], bool same, clv_ref_work *w, double *out);
/* Adds the star's priors to the evaluation of a point. */
void clv_ref_add_prior(const float prior[CLV_SPECTRA_PRIOR], const double x[CLV_SPECTRA_UNKNOWNS],
                       clv_ref_judged *now);
/* Evaluates the point `x` of a star; `model` gets the best fit, unless it is NULL. */
void clv_ref_judge(const clv_spectra_plan *plan, const clv_star_data *d,
                   const double x[CLV_SPECTRA_UNKNOWNS], clv_ref_work *w, clv_ref_judged *now,
                   float *model);

#endif
