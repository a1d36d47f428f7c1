/* SPDX-License-Identifier: Apache-2.0 */
/* The two steps of clv_paco_characterize: measures companions, then calibrates their errors with injected planets. */
#ifndef CLEAVE_HOST_PATCH_MEASURE_H
#define CLEAVE_HOST_PATCH_MEASURE_H

#include "host/patch/fit.h"

/* Measures position and flux, with errors from the likelihood. Uses the patch radius options->measure_radius wherever
 * that patch fits. */
clv_status clv_measure(clv_context *context, const clv_paco_input *input,
                       const clv_paco_options *options, double fwhm_px, bool keep_places,
                       clv_companion *companions, size_t count, clv_report *report);
/* Rescales the errors by hidden planets; `input` must no longer contain the companions. */
clv_status clv_measure_errors(clv_context *context, const clv_paco_input *input,
                              const clv_paco_options *options, double fwhm_px,
                              clv_companion *companions, size_t count, clv_report *report);

/* Does the same as clv_measure with a prepared fit of one channel or several. `spectra` [count][channel_count] are
 * those of the companions; NULL with one channel. */
clv_status clv_measure_fit(const clv_fit *fit, double fwhm, bool keep_places,
                           clv_companion *companions, size_t count, const double *spectra);
/* Does the same as clv_measure_errors with a prepared fit. Companions marked in `left_out` [count], which may be NULL,
 * are not measured. */
clv_status clv_measure_rings(const clv_fit *fit, double fwhm, const bool *left_out,
                             clv_companion *companions, size_t count, const double *spectra);

/* Scales the likelihood's errors of a companion by how far the fitted planets of its ring lie from the hidden ones in
 * units of those errors, and by how uncertain that number is. Fewer than 6 usable planets change nothing. */
void clv_measure_by_ring(const clv_fit_planet *ring, size_t planned, clv_companion *companion);

/* ---- channels.c ---- */

/* A sequence of several wavelengths; `rest` are the channels' inputs without the companions that were taken out. */
typedef struct clv_channels {
    clv_context *context;
    clv_paco_input *rest;
    size_t count;
    const clv_paco_options *options;
    double fwhm;
    clv_report *report;
} clv_channels;

/* Measures position and mean flux of a companion near c->x, c->y, and writes flux and error of every channel to
 * fluxes[l][2]. `spectrum` [count]: in, the expected spectrum; out, the spectrum with which the position was found, of
 * mean 1. */
clv_status clv_channels_measure(const clv_channels *s, bool keep_place, double *spectrum,
                                clv_companion *c, double *fluxes);
/* Rescales all errors by hidden planets; `rest` must no longer contain the companions. spectra [count][s->count],
 * fluxes [count][s->count][2]. */
clv_status clv_channels_errors(const clv_channels *s, const double *spectra,
                               clv_companion *companions, double *fluxes, size_t count);

#endif
