/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the functions that make the parts of a plan: they check the input and fill the kernels' tables of
 * constants. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_TABLES_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_TABLES_H

#include "host/spectra/spectra_plan.h"

/* ---- spectra_check.c ---- */
/* Copies the caller's options and fills in the defaults. */
clv_status clv_plan_read_options(const clv_specfit_options *given, clv_specfit_options *out);
clv_status clv_plan_check(const clv_spectra_library *library, const clv_spectra_stars *stars,
                          const clv_specfit_options *options);
/* Returns the largest speed that a fit may try, in km/s. */
double clv_plan_fastest(const clv_specfit_options *options);
clv_status clv_plan_check_spectrum(const clv_spectra_plan *plan, size_t star, size_t spectrum);
/* Checks that the wavelengths rise, and that the library covers them at every velocity. */
clv_status clv_plan_check_grid(const clv_spectra_plan *plan, const clv_spectra_grid *grid);
clv_status clv_plan_check_priors(const clv_spectra_plan *plan); /* call after make_box */

/* ---- spectra_tables.c ---- */
clv_status clv_plan_find_scales(clv_spectra_plan *plan);
void clv_plan_lay_out(clv_spectra_plan *plan); /* offsets of weights and start templates */
/* Fills in the weights and the start templates of the spectrum's arm. */
void clv_plan_fill(clv_spectra_plan *plan, size_t spectrum);
void clv_plan_fill_ranges(clv_spectra_plan *plan); /* segments of the spectra */
/* Fills in the places of the start values' velocities among the lags. Call it after make_box. */
void clv_plan_fill_places(clv_spectra_plan *plan);

/* ---- spectra_mix.c ---- */
/* If the library has many start templates, finds the few that are correlated in place of all. Call it after
 * clv_plan_fill. */
clv_status clv_plan_mix(clv_spectra_plan *plan);

#endif
