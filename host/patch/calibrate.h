/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the scatter of an S/N map at every separation from the star and calibrates the map's values with it. */
#ifndef CLEAVE_HOST_PATCH_CALIBRATE_H
#define CLEAVE_HOST_PATCH_CALIBRATE_H

#include <cleave/patch.h>

typedef struct clv_calibration {
    double cx, cy, step;
    size_t count;
    double *scale;   /* [count] scatter of the noise at radius i * step */
    double *samples; /* [count] independent samples at each radius: 2 pi r / FWHM */
    double *after;   /* [count] scatter of the corrected noise, by which values are divided */
    double *table;   /* correction table; one allocation holds all four arrays */
} clv_calibration;

clv_status clv_calibration_create(const float *noise, size_t height, size_t width, double cx,
                                  double cy, double fwhm, const bool *masked, clv_calibration *out);
/* Calibrates the value at pixel `place` of a map with the noise outside one FWHM of that pixel. Otherwise a peak near
 * the star would be a large part of the noise with which it is compared. */
clv_status clv_calibrated_alone(const float *snr, size_t height, size_t width, double cx, double cy,
                                double fwhm, const bool *masked, size_t place, double *value);
void clv_calibration_clear(clv_calibration *c);
/* Writes the scatter of the noise at the separations 0, 1, ... count - 1 pixels; NaN throughout if the map has no value
 * at all. */
clv_status clv_calibration_scatter(const float *noise, size_t height, size_t width, double cx,
                                   double cy, double fwhm, const bool *masked, double *scatter,
                                   size_t count);
double clv_calibrated(const clv_calibration *c, double snr, double x, double y);
double clv_uncalibrated(const clv_calibration *c, double calibrated, double x, double y);

/* Return the natural logarithm of a one-sided tail probability, or the inverse for the normal distribution. */
double clv_log_normal_tail(double z);
double clv_normal_of_log_tail(double log_p);
double clv_log_student_tail(double t, double freedom);

#endif
