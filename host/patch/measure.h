/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of clv_paco_characterize. */
#ifndef CLEAVE_HOST_PATCH_MEASURE_H
#define CLEAVE_HOST_PATCH_MEASURE_H

#include "host/patch/fit.h"

/* Place and flux with the errors of the likelihood. Both take options->measure_radius where it fits. */
clv_status clv_measure(clv_context *context, const clv_paco_input *input,
                       const clv_paco_options *options, double fwhm_px, bool keep_places,
                       clv_companion *companions, size_t count, clv_report *report);
/* Errors by hidden planets; `input` lacks the companions. */
clv_status clv_measure_errors(clv_context *context, const clv_paco_input *input,
                              const clv_paco_options *options, double fwhm_px,
                              clv_companion *companions, size_t count, clv_report *report);

/* The same with a fit of one channel or several; `spectra` [count][channel_count] of the companions, NULL with one. */
clv_status clv_measure_fit(const clv_fit *fit, double fwhm, bool keep_places,
                           clv_companion *companions, size_t count, const double *spectra);
/* `left_out` [count] or NULL: of these, nothing is measured. */
clv_status clv_measure_rings(const clv_fit *fit, double fwhm, const bool *left_out,
                             clv_companion *companions, size_t count, const double *spectra);

/* ---- channels.c ---- */

/* A sequence of several wavelengths; `rest` are the inputs of the channels with what is left of them. */
typedef struct clv_channels {
    clv_context *context;
    clv_paco_input *rest;
    size_t count;
    const clv_paco_options *options;
    double fwhm;
    clv_report *report;
} clv_channels;

/* Place, mean flux, and with fluxes[l][2] the flux and error of every channel, of a companion near c->x, c->y. In:
 * `spectrum` [count], what it is expected to look like; out: what the place was found with, of mean 1. */
clv_status clv_channels_measure(const clv_channels *s, bool keep_place, double *spectrum,
                                clv_companion *c, double *fluxes);
/* Scales all errors by hidden planets; `rest` lacks the companions. spectra [count][s->count], fluxes
 * [count][s->count][2]. */
clv_status clv_channels_errors(const clv_channels *s, const double *spectra,
                               clv_companion *companions, double *fluxes, size_t count);

#endif
