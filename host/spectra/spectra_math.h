/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of spectral fitting in float64, as the formulas have them: the reference. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_MATH_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_MATH_H

#include <cleave/spectra.h>

#define CLV_LIGHT_KMS 299792.458

/* exp(network): `out` [arm->points]. `work` holds 2 * the widest layer. */
void clv_spectra_network(const clv_spectra_arm *arm, const double parameters[4], double *work,
                         double *out);
size_t clv_spectra_widest(const clv_spectra_arm *arm);

/* Weights -reach..reach of the rotation's kernel for a radius of R pixels, limb darkening 0.6,
 * sum 1; `weights` has room for 2 * reach + 1. Returns reach = ceil(R + 1), 0 for no rotation. */
size_t clv_rotation_reach(double radius);
void clv_rotation_kernel(double radius, double *weights);
/* Convolution of the same length, zeros beyond the ends. */
void clv_rotate(const double *in, size_t count, double radius, double *out);

/* Natural cubic spline through (x, y): second derivatives into z; `work` holds count. */
void clv_spline_prepare(const double *x, const double *y, size_t count, double *z, double *work);
/* Value at q; the interval is found by bisection. */
double clv_spline_at(const double *x, const double *y, const double *z, size_t count, double q);

/* Continuum basis at x in [-1, 1]: 1, x, x^2, then Gaussians. */
void clv_spectra_basis(double x, unsigned terms, double *out);

/* Rows of the resolution matrix made to act on a template that is smoothed by sigma_px already:
 * raw [diagonals,pixels] as DESI stores it, out [pixels,diagonals] with out[k][m] = R[k, k+m-half].
 * With sigma_px 0 they act on it as they are. Rows that are all zero stay zero. CLV_E_MEMORY. */
clv_status clv_resolution_rows(const float *raw, size_t diagonals, size_t pixels, double sigma_px,
                               double *out);
void clv_resolution_apply(const double *rows, size_t diagonals, size_t pixels, const double *in,
                          double *out);

/* log det M + |D - a'S|^2 of one spectrum (without 2 sum ln s) for a template t at its pixels:
 * basis [pixels,terms], d and s [pixels]. `a` gets the coefficients. False: M is singular. */
bool clv_spectra_value(const double *basis, unsigned terms, size_t pixels, const double *t,
                       const double *d, const double *s, double *a, double *value);

/* Outside flag: squared largest distance from the convex hulls of (q0, q1) and of (q2, q3). */
typedef struct clv_spectra_hull {
    size_t facets[2];
    double (*facet[2])[3]; /* normal and offset; owned */
} clv_spectra_hull;
clv_status clv_spectra_hull_create(const double *points, size_t count, clv_spectra_hull *hull);
void clv_spectra_hull_clear(clv_spectra_hull *hull);
double clv_spectra_outside(const clv_spectra_hull *hull, const double q[4]);

/* Lowest point of values on a grid of velocities: parabola, spread, skewness, kurtosis of
 * exp(-value / 2). */
void clv_velocity_moments(const double *velocity, const double *value, size_t count,
                          double moments[4]);

double clv_median(double *values, size_t count); /* reorders; NaN for none */

#endif
