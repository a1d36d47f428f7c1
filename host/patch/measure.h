/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of clv_paco_characterize. */
#ifndef CLEAVE_HOST_PATCH_MEASURE_H
#define CLEAVE_HOST_PATCH_MEASURE_H

#include <cleave/patch.h>

/* Place and flux with the errors of the likelihood. */
clv_status clv_measure(clv_context *context, const clv_paco_input *input,
                       const clv_paco_options *options, double fwhm_px, bool keep_places,
                       clv_companion *companions, size_t count, clv_report *report);
/* Errors by hidden planets; `input` lacks the companions. */
clv_status clv_measure_errors(clv_context *context, const clv_paco_input *input,
                              const clv_paco_options *options, double fwhm_px,
                              clv_companion *companions, size_t count, clv_report *report);

#endif
