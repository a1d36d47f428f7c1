/* SPDX-License-Identifier: Apache-2.0 */
/* Fits some of the stars again: without their outliers, and from other points where the minimum is ambiguous. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_AGAIN_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_AGAIN_H

#include "host/spectra/spectra_plan.h"

/* Improves the results of a plan that has run. If options.reject_sigma is finite, the results must have the models of
 * all stars. `models`: whether the new results need models. */
clv_status clv_spectra_fit_again(clv_context *context, const clv_spectra_plan *plan, bool models,
                                 clv_report *report);

#endif
