/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the files of the plain C fit share: the evaluation of a point of the fit. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_REF_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_REF_H

#include "host/spectra/spectra_plan.h"

/* Templates per evaluation: lane 0 is at the point, lanes 1 to 5 are beside it along vsini, teff, logg, feh and alpha,
 * and lane 6 is beside it along velocity. */
enum { CLV_REF_LANES = 7 };

/* Scratch memory for one evaluation. */
typedef struct clv_ref_work {
    double *network, *wave, *raw, *turned, *bend, *sweep; /* as long as the longest template */
    double *lane[CLV_REF_LANES];                          /* [all_pixels] templates at the pixels */
    double *blurred;                                      /* [all_pixels] */
    double *rows;                                         /* [all_pixels,diagonals] of the star */
} clv_ref_work;

/* The evaluation of a point. */
typedef struct clv_ref_judged {
    double value, log_det, chi[CLV_SPECTRA_MAX_SPECTRA];
    double prior;   /* contribution of the priors, which is in slope and normal but not in value */
    double penalty; /* penalty outside the grid's templates; not in value */
    double normal[CLV_SPECTRA_UNKNOWNS][CLV_SPECTRA_UNKNOWNS], slope[CLV_SPECTRA_UNKNOWNS],
        det[CLV_SPECTRA_UNKNOWNS];
    bool bad;
} clv_ref_judged;

clv_status clv_ref_work_create(const clv_spectra_plan *plan, clv_ref_work *w);
void clv_ref_work_clear(clv_ref_work *w);

/* Computes the rotated template at the pixels of spectrum `i` for one lane of the evaluation of the point `home`.
 * `same` reuses the spline of the previous call. */
void clv_ref_lane(const clv_spectra_plan *plan, size_t i, const double home[CLV_SPECTRA_UNKNOWNS],
                  const double x[CLV_SPECTRA_UNKNOWNS], bool same, clv_ref_work *w, double *out);
/* Adds the star's priors to the evaluation of a point. */
void clv_ref_add_prior(const float prior[CLV_SPECTRA_PRIOR], const double x[CLV_SPECTRA_UNKNOWNS],
                       clv_ref_judged *now);
/* Evaluates the point `x` of a star; `model` receives the model spectrum there, unless `model` is NULL. */
void clv_ref_judge(const clv_spectra_plan *plan, const clv_star_data *d,
                   const double x[CLV_SPECTRA_UNKNOWNS], clv_ref_work *w, clv_ref_judged *now,
                   float *model);

#endif
