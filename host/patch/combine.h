/* SPDX-License-Identifier: Apache-2.0 */
/* One S/N map from the maps of several wavelengths, whose noise is alike, for every spectrum that is tried. */
#ifndef CLEAVE_HOST_PATCH_COMBINE_H
#define CLEAVE_HOST_PATCH_COMBINE_H

#include <stdint.h>

#include <cleave/patch.h>

/* What is combined: maps of `channels` wavelengths with the star at (cx, cy). */
typedef struct clv_combination {
    size_t channels, height, width;
    double cx, cy, fwhm;
    const double *spectra; /* [spectrum_count][channels] */
    size_t spectrum_count;
} clv_combination;

/* The noise of the channels' S/N maps by separation. */
typedef struct clv_whitening {
    size_t radii; /* whole separations 0 to radii - 1 */
    size_t *zone; /* [radii] */
    double *
        scale; /* [radii][channels] scatter of a channel over the geometric mean of all channels' */
    double *common; /* [radii] that mean; in the same block */
    double *factor; /* [zones][channels][channels] Cholesky factor of the shrunk correlation */
} clv_whitening;

/* From the maps a, b [channels][height][width] without what is within one FWHM of the places. */
clv_status clv_whitening_create(const clv_combination *c, const double *a, const double *b,
                                const double *places, size_t count, clv_whitening *w);
void clv_whitening_clear(clv_whitening *w);

/* raw [spectrum_count][height][width] = u' R^-1 s / sqrt(u' R^-1 u) with s = b / sqrt(a), u = g sqrt(a), R the noise
 * of s; NaN where a channel has no value. `alike` [spectrum_count][spectrum_count], may be NULL: the mean correlation
 * of the maps of two spectra in noise. */
clv_status clv_combine(const clv_combination *c, const clv_whitening *w, const double *a,
                       const double *b, float *raw, double *alike);

/* The price of trying several spectra: the highest of their S/N exceeds z more often than one of them does. Below
 * `body`, where that is no longer rare, P(highest < z) = P(one < z)^trials. All-zero: one spectrum, no price. */
enum { CLV_PRICE_STEPS = 41 };
typedef struct clv_price {
    double
        log_trials[CLV_PRICE_STEPS]; /* at z = -8, -7.5, ... 12: log(P(highest > z) / P(one > z)) */
    double body, trials;
} clv_price;

/* From the correlation of their maps, by importance sampling (Naiman and Priebe 2001). */
clv_status clv_price_create(const double *alike, size_t count, clv_price *price);
/* The value of one normal variable that is as rare as `highest`, and back. */
double clv_price_paid(const clv_price *price, double highest);
double clv_price_unpaid(const clv_price *price, double paid);

#endif
