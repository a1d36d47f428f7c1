/* SPDX-License-Identifier: Apache-2.0 */
/* Combines the maps of several wavelengths, whose noise is correlated, into one S/N map per spectrum that the search
 * tries. */
#ifndef CLEAVE_HOST_PATCH_COMBINE_H
#define CLEAVE_HOST_PATCH_COMBINE_H

#include <stdint.h>

#include <cleave/patch.h>

/* The input of a combination: maps of `channels` wavelengths with the star at (cx, cy). */
typedef struct clv_combination {
    size_t channels, height, width;
    double cx, cy, fwhm;
    const double *spectra; /* [spectrum_count][channels] */
    size_t spectrum_count;
} clv_combination;

/* The noise of the channels' S/N maps as a function of separation. */
typedef struct clv_whitening {
    size_t radii; /* separations are 0, 1, ... radii - 1 pixels */
    size_t *zone; /* [radii] zone of each separation */
    /* [radii][channels] scatter of a channel divided by the geometric mean over all channels */
    double *scale;
    /* [radii] geometric mean of the channels' scatter; part of the block of `scale` */
    double *common;
    double *factor; /* [zones][channels][channels] Cholesky factor of the shrunk correlation */
} clv_whitening;

/* Measures the noise of the maps a, b [channels][height][width], except the pixels within one FWHM of the `count`
 * places. */
clv_status clv_whitening_create(const clv_combination *c, const double *a, const double *b,
                                const double *places, size_t count, clv_whitening *w);
void clv_whitening_clear(clv_whitening *w);

/* Computes raw [spectrum_count][height][width] = u' R^-1 s / sqrt(u' R^-1 u) with s = b / sqrt(a), u = g sqrt(a) and R
 * the covariance of the noise of s; NaN where a channel has no value. `alike` [spectrum_count][spectrum_count] receives
 * the mean correlation that noise causes between the maps of two spectra; it may be NULL. */
clv_status clv_combine(const clv_combination *c, const clv_whitening *w, const double *a,
                       const double *b, float *raw, double *alike);

/* The correction of the S/N for trying several spectra: noise makes the highest of several S/N values exceed z more
 * often than a single one. Below `body` this is no longer rare, and P(highest < z) = P(one < z)^trials is used. All
 * fields zero: there is only one spectrum, and nothing is corrected. */
enum { CLV_PRICE_STEPS = 41 };
typedef struct clv_price {
    double
        log_trials[CLV_PRICE_STEPS]; /* at z = -8, -7.5, ... 12: log(P(highest > z) / P(one > z)) */
    double body, trials;
} clv_price;

/* Computes the correction from the correlation of the spectra's maps, by importance sampling (Naiman and Priebe
 * 2001). */
clv_status clv_price_create(const double *alike, size_t count, clv_price *price);
/* clv_price_paid returns the value of a single normal variable that is as rare as `highest`; clv_price_unpaid is the
 * inverse. */
double clv_price_paid(const clv_price *price, double highest);
double clv_price_unpaid(const clv_price *price, double paid);

#endif
