/* SPDX-License-Identifier: Apache-2.0 */
/* The highest peak of an S/N map, and how often noise alone has one. */
#ifndef CLEAVE_HOST_PATCH_PEAKS_H
#define CLEAVE_HOST_PATCH_PEAKS_H

#include <cleave/patch.h>

typedef struct clv_peaks {
    size_t height, width;
    double cx, cy, fwhm;
    const float *raw, *calibrated; /* [height,width] */
    const double
        *places; /* [count,2] x, y of companions: nothing within one FWHM of them is looked at */
    size_t count;
} clv_peaks;

/* The peak that is worth most, each by the noise without itself; `any`: one exceeds the threshold. */
clv_status clv_peaks_best(const clv_peaks *peaks, double threshold, size_t *best, double *value,
                          bool *any);

/* Probability that noise alone has a peak above `snr` somewhere in a map of `pixels`. */
double clv_false_alarm(double snr, double pixels, double fwhm);

#endif
