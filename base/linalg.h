/* SPDX-License-Identifier: Apache-2.0 */
/* Small dense problems on the host, in float64; row-major. */
#ifndef CLEAVE_BASE_LINALG_H
#define CLEAVE_BASE_LINALG_H

#include <stdbool.h>
#include <stddef.h>

/* Eigenvalues (falling) and eigenvectors (rows of `vectors`) of a symmetric n x n matrix, which is
 * destroyed. Cyclic Jacobi: accurate also for the small ones. */
void clv_eigen_symmetric(double *matrix, size_t n, double *values, double *vectors);

/* X minimising |A X - B|: A [rows,n] and B [rows,k] are destroyed, X [n,k]. Householder QR. False
 * when A has not full rank. */
bool clv_least_squares(double *a, size_t rows, size_t n, double *b, size_t k, double *x);

/* L of the lower triangle of a positive definite n x n matrix, in place; false when it is not. */
bool clv_cholesky(double *matrix, size_t n);
/* x = L^-1 b, in place. */
void clv_forward_substitute(const double *l, size_t n, double *b);
/* x = (L^T)^-1 b, in place. */
void clv_back_substitute(const double *l, size_t n, double *b);
/* Levenberg's and Marquardt's step: (N + damping diag(N)) step = right, of whose positive definite N [n,n] the lower
 * triangle is read. `l`: scratch [n,n]. False where it has no solution. */
bool clv_damped_step(const double *normal, size_t n, double damping, const double *right, double *l,
                     double *step);

#endif
