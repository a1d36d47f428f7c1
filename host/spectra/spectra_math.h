/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the stages of spectral fitting in float64, directly from the formulas, as the reference for the kernels. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_MATH_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_MATH_H

#include <cleave/spectra.h>

#define CLV_LIGHT_KMS 299792.458

/* Writes exp of the network's output to `out` [arm->points]. `work` has room for twice the widest layer. */
void clv_spectra_network(const clv_spectra_arm *arm, const double parameters[4], double *work,
                         double *out);
size_t clv_spectra_widest(const clv_spectra_arm *arm);

/* clv_rotation_reach returns reach = ceil(radius + 1), or 0 without rotation; the radius is in pixels. The other
 * function computes the 2 * reach + 1 weights of the rotation kernel with limb darkening 0.6, which sum to 1. */
size_t clv_rotation_reach(double radius);
void clv_rotation_kernel(double radius, double *weights);
/* Convolves `in` with the rotation kernel of `radius` pixels; `out` has the same length. The input counts as zero
 * beyond its ends. */
void clv_rotate(const double *in, size_t count, double radius, double *out);

/* Prepares a natural cubic spline through (x, y): writes its second derivatives to z. `work` has room for `count`
 * values. */
void clv_spline_prepare(const double *x, const double *y, size_t count, double *z, double *work);
/* Returns the value at q of the spline with second derivatives z; finds the interval by bisection. */
double clv_spline_at(const double *x, const double *y, const double *z, size_t count, double q);

/* Evaluates the continuum basis at x in [-1, 1]: 1, x, x^2, then Gaussians. */
void clv_spectra_basis(double x, unsigned terms, double *out);

/* Converts the rows of the resolution matrix so that they act on a template that is already smoothed by a Gaussian of
 * `sigma_px` pixels. `raw` [diagonals,pixels] is the matrix R as DESI stores it; `out` [pixels,diagonals] has out[k][m]
 * = R[k, k+m-half], with half = diagonals / 2. With sigma_px 0 the values do not change. Rows that are all zero stay
 * zero. Returns CLV_OK or CLV_E_MEMORY. */
clv_status clv_resolution_rows(const float *raw, size_t diagonals, size_t pixels, double sigma_px,
                               double *out);
void clv_resolution_apply(const double *rows, size_t diagonals, size_t pixels, const double *in,
                          double *out);

/* Computes log det M + |D - a'S|^2 of one spectrum (without 2 sum ln s) for the template `t` at the spectrum's pixels.
 * `basis` is [pixels,terms]; `d` and `s` are [pixels]. `a` receives the coefficients. Returns false if M is
 * singular. */
bool clv_spectra_value(const double *basis, unsigned terms, size_t pixels, const double *t,
                       const double *d, const double *s, double *a, double *value);

/* The convex hulls of a library's training points in the planes (q0, q1) and (q2, q3). The larger squared distance from
 * the two hulls measures how far a point lies outside the training points. */
typedef struct clv_spectra_hull {
    size_t facets[2];
    double (*facet[2])[3]; /* normal and offset; owned */
} clv_spectra_hull;
clv_status clv_spectra_hull_create(const double *points, size_t count, clv_spectra_hull *hull);
void clv_spectra_hull_clear(clv_spectra_hull *hull);
double clv_spectra_outside(const clv_spectra_hull *hull, const double q[4]);

/* Computes from values on a grid of velocities the velocity of the minimum (by a parabola), and the standard deviation,
 * the skewness and the kurtosis of exp(-value / 2). */
void clv_velocity_moments(const double *velocity, const double *value, size_t count,
                          double moments[4]);

double clv_median(double *values, size_t count); /* reorders `values`; NaN if count is 0 */

#endif
