/* SPDX-License-Identifier: Apache-2.0 */
/* The scale of an S/N map at every separation, and what a value is worth. */
#ifndef CLEAVE_HOST_PATCH_CALIBRATE_H
#define CLEAVE_HOST_PATCH_CALIBRATE_H

#include <cleave/patch.h>

typedef struct clv_calibration {
    double cx, cy, step;
    size_t count;
    double *scale;   /* [count] scatter of the noise at radius i * step */
    double *samples; /* independent ones there: 2 pi r / FWHM */
    double *after;   /* scatter of the corrected noise, to be divided by */
    double *table;   /* the correction; all four are one block */
} clv_calibration;

clv_status clv_calibration_create(const float *noise, size_t height, size_t width, double cx,
                                  double cy, double fwhm, const bool *masked, clv_calibration *out);
/* What the value at pixel `place` of a map is worth by the noise without what is within one FWHM of it: a peak near the
 * star would otherwise be a large part of the noise that it is compared with. */
clv_status clv_calibrated_alone(const float *snr, size_t height, size_t width, double cx, double cy,
                                double fwhm, const bool *masked, size_t place, double *value);
void clv_calibration_clear(clv_calibration *c);
/* Scatter of the noise at the whole separations 0 to count - 1; NaN where the map has no value at all. */
clv_status clv_calibration_scatter(const float *noise, size_t height, size_t width, double cx,
                                   double cy, double fwhm, const bool *masked, double *scatter,
                                   size_t count);
double clv_calibrated(const clv_calibration *c, double snr, double x, double y);
double clv_uncalibrated(const clv_calibration *c, double calibrated, double x, double y);

/* Natural logarithms of one-sided tail probabilities, and back. */
double clv_log_normal_tail(double z);
double clv_normal_of_log_tail(double log_p);
double clv_log_student_tail(double t, double freedom);

#endif
