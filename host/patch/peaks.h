/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the highest peak of an S/N map, and computes how often noise alone produces a peak as high. */
#ifndef CLEAVE_HOST_PATCH_PEAKS_H
#define CLEAVE_HOST_PATCH_PEAKS_H

#include <cleave/patch.h>

typedef struct clv_peaks {
    size_t height, width;
    double cx, cy, fwhm;
    const float *raw, *calibrated; /* [height,width] */
    const double
        *places; /* [count,2] x, y of companions; pixels within one FWHM of them are skipped */
    size_t count;
} clv_peaks;

/* Finds the peak with the highest calibrated S/N; each peak is calibrated with the noise outside the peak. *any: the
 * peak's S/N exceeds the threshold. */
clv_status clv_peaks_best(const clv_peaks *peaks, double threshold, size_t *best, double *value,
                          bool *any);

/* Returns the probability that noise alone produces a peak above `snr` somewhere in a map of `pixels` pixels. */
double clv_false_alarm(double snr, double pixels, double fwhm);

#endif
