/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the two steps of clv_paco_characterize: measures companions, then calibrates their errors with injected
 * planets. */
#ifndef CLEAVE_HOST_PATCH_MEASURE_H
#define CLEAVE_HOST_PATCH_MEASURE_H

#include "host/patch/fit.h"

/* Measures the position and flux of companions, with errors from the likelihood. Uses the patch radius
 * options->measure_radius wherever a patch of that size fits. */
clv_status clv_measure(clv_context *context, const clv_paco_input *input,
                       const clv_paco_options *options, double fwhm_px, bool keep_places,
                       clv_companion *companions, size_t count, clv_report *report);
/* Rescales the errors by the fits of injected planets; the companions must have been subtracted from `input`. */
clv_status clv_measure_errors(clv_context *context, const clv_paco_input *input,
                              const clv_paco_options *options, double fwhm_px,
                              clv_companion *companions, size_t count, clv_report *report);

/* Does what clv_measure does, with a prepared fit of one or several channels. `spectra` [count][channel_count] are the
 * companions' spectra; NULL for one channel. */
clv_status clv_measure_fit(const clv_fit *fit, double fwhm, bool keep_places,
                           clv_companion *companions, size_t count, const double *spectra);
/* Does what clv_measure_errors does, with a prepared fit. Leaves out companions marked in `left_out` [count], which may
 * be NULL. */
clv_status clv_measure_rings(const clv_fit *fit, double fwhm, const bool *left_out,
                             clv_companion *companions, size_t count, const double *spectra);

/* Scales the likelihood's errors of a companion by two factors: the scatter of the fitted planets of its ring around
 * the injected ones, in units of those errors, and the uncertainty of that scatter. With fewer than 6 usable planets,
 * the errors do not change. */
void clv_measure_by_ring(const clv_fit_planet *ring, size_t planned, clv_companion *companion);

/* ---- channels.c ---- */

/* A sequence of several wavelengths; `rest` are the channels' inputs after the known companions have been
 * subtracted. */
typedef struct clv_channels {
    clv_context *context;
    clv_paco_input *rest;
    size_t count;
    const clv_paco_options *options;
    double fwhm;
    clv_report *report;
} clv_channels;

/* Measures the position and mean flux of a companion near c->x, c->y, and writes flux and error of channel l to
 * fluxes[l][2]. `spectrum` [count]: on input the expected spectrum; on output the spectrum with which the position was
 * found, of mean 1. */
clv_status clv_channels_measure(const clv_channels *s, bool keep_place, double *spectrum,
                                clv_companion *c, double *fluxes);
/* Rescales all errors by the fits of injected planets; the companions must have been subtracted from `rest`. spectra
 * [count][s->count], fluxes [count][s->count][2]. */
clv_status clv_channels_errors(const clv_channels *s, const double *spectra,
                               clv_companion *companions, double *fluxes, size_t count);

#endif
