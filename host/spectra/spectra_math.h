/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of spectral fitting in float64, straight from the formulas: the reference. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_MATH_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_MATH_H

#include <cleave/spectra.h>

#define CLV_LIGHT_KMS 299792.458

/* Computes exp(network): `out` [arm->points]. `work` holds 2 * the widest layer. */
void clv_spectra_network(const clv_spectra_arm *arm, const double parameters[4], double *work,
                         double *out);
size_t clv_spectra_widest(const clv_spectra_arm *arm);

/* Computes the weights -reach..reach of the rotation kernel for a radius of R pixels, limb darkening 0.6, normalised to
 * sum 1; `weights` has room for 2 * reach + 1. clv_rotation_reach returns reach = ceil(R + 1), 0 for no rotation. */
size_t clv_rotation_reach(double radius);
void clv_rotation_kernel(double radius, double *weights);
/* Convolves with the rotation kernel. The result has the same length; the input counts as zero beyond its ends. */
void clv_rotate(const double *in, size_t count, double radius, double *out);

/* Prepares a natural cubic spline through (x, y): writes its second derivatives to z; `work` holds `count` values. */
void clv_spline_prepare(const double *x, const double *y, size_t count, double *z, double *work);
/* Returns the spline's value at q; finds the interval by bisection. */
double clv_spline_at(const double *x, const double *y, const double *z, size_t count, double q);

/* Evaluates the continuum basis at x in [-1, 1]: 1, x, x^2, then Gaussians. */
void clv_spectra_basis(double x, unsigned terms, double *out);

/* Converts the rows of the resolution matrix so that they act on a template that is already smoothed by sigma_px: raw
 * [diagonals,pixels] as DESI stores it, out [pixels,diagonals] with out[k][m] = R[k, k+m-half]. With sigma_px 0 the
 * rows stay as they are. Rows that are all zero stay zero. Returns CLV_OK or CLV_E_MEMORY. */
clv_status clv_resolution_rows(const float *raw, size_t diagonals, size_t pixels, double sigma_px,
                               double *out);
void clv_resolution_apply(const double *rows, size_t diagonals, size_t pixels, const double *in,
                          double *out);

/* Computes log det M + |D - a'S|^2 of one spectrum (without 2 sum ln s) for a template t at its pixels: basis
 * [pixels,terms], d and s [pixels]. `a` gets the coefficients. Returns false if M is singular. */
bool clv_spectra_value(const double *basis, unsigned terms, size_t pixels, const double *t,
                       const double *d, const double *s, double *a, double *value);

/* Measures how far a point is outside the training points: the larger squared distance from the convex hulls of (q0,
 * q1) and of (q2, q3). */
typedef struct clv_spectra_hull {
    size_t facets[2];
    double (*facet[2])[3]; /* normal and offset; owned */
} clv_spectra_hull;
clv_status clv_spectra_hull_create(const double *points, size_t count, clv_spectra_hull *hull);
void clv_spectra_hull_clear(clv_spectra_hull *hull);
double clv_spectra_outside(const clv_spectra_hull *hull, const double q[4]);

/* Computes from values on a grid of velocities the lowest point (by a parabola), and spread, skewness and kurtosis of
 * exp(-value / 2). */
void clv_velocity_moments(const double *velocity, const double *value, size_t count,
                          double moments[4]);

double clv_median(double *values, size_t count); /* reorders; NaN if empty */

#endif
