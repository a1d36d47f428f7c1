/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan consists of: checks of what was given, and constants of the devices. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_TABLES_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_TABLES_H

#include "host/spectra/spectra_plan.h"

/* ---- spectra_check.c ---- */
/* The caller's options with the defaults filled in. */
clv_status clv_plan_read_options(const clv_specfit_options *given, clv_specfit_options *out);
clv_status clv_plan_check(const clv_spectra_library *library, const clv_spectra_stars *stars,
                          const clv_specfit_options *options);
/* The largest speed that a fit may try, km/s. */
double clv_plan_fastest(const clv_specfit_options *options);
clv_status clv_plan_check_spectrum(const clv_spectra_plan *plan, size_t star, size_t spectrum);
/* Wavelengths rise, and the library covers them at every velocity. */
clv_status clv_plan_check_grid(const clv_spectra_plan *plan, const clv_spectra_grid *grid);
clv_status clv_plan_check_priors(const clv_spectra_plan *plan); /* behind the box */

/* ---- spectra_tables.c ---- */
clv_status clv_plan_find_scales(clv_spectra_plan *plan);
void clv_plan_lay_out(clv_spectra_plan *plan); /* where weights and start templates lie */
void clv_plan_fill(clv_spectra_plan *plan, size_t spectrum); /* those of its arm */
void clv_plan_fill_ranges(clv_spectra_plan *plan);           /* segments of the spectra */

/* ---- spectra_mix.c ---- */
/* Finds few start templates to correlate in place of all, where a library has many; behind clv_plan_fill. */
clv_status clv_plan_mix(clv_spectra_plan *plan);

#endif
