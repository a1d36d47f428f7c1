/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects pixels that no template explains, such as cosmic rays, hot columns and badly subtracted sky lines: they are
 * left out, and the star is fitted again. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_REJECT_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_REJECT_H

#include "host/spectra/spectra_plan.h"

enum {
    CLV_REJECT_ROUNDS = 3, /* most fits of a star after its first */
    /* rejects at most one pixel in CLV_REJECT_SHARE: if there are more outliers, the fit is bad */
    CLV_REJECT_SHARE = 25,
    CLV_REJECT_WINDOW = 64, /* pixels on either side that determine the local scatter */
};

/* The outliers of one star: [spectra] masks with 1 for outliers; NULL for a spectrum without outliers. */
typedef struct clv_star_masks {
    int32_t *of[CLV_SPECTRA_MAX_SPECTRA];
} clv_star_masks;

/* Finds the outliers of one star, whose spectra are `items` and whose fit with its models is `fit`:
 * pixels further from the model than reject_sigma times the larger of their own error and the local
 * scatter. Stores these outliers in `masks`, in place of earlier ones, and counts them in fit->rejected.
 *
 * @param scratch  [4 * the longest spectrum]
 * @param flags    [the longest spectrum]
 * @param more     out: whether a mask has changed, so that the star must be fitted again. */
clv_status clv_reject_find(const clv_spectrum *items, size_t spectra,
                           const clv_specfit_options *options, bool edges, clv_specfit_result *fit,
                           clv_star_masks *masks, double *scratch, unsigned char *flags,
                           bool *more);
void clv_star_masks_clear(clv_star_masks *masks, size_t count);

#endif
