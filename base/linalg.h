/* SPDX-License-Identifier: Apache-2.0 */
/* Solves small dense problems on the host, in float64. Matrices are row-major. */
#ifndef CLEAVE_BASE_LINALG_H
#define CLEAVE_BASE_LINALG_H

#include <stdbool.h>
#include <stddef.h>

/* Computes the eigenvalues (in falling order) and eigenvectors (rows of `vectors`) of a symmetric n x n
 * matrix, which is destroyed. Uses cyclic Jacobi, which is accurate for small eigenvalues too. */
void clv_eigen_symmetric(double *matrix, size_t n, double *values, double *vectors);

/* Computes the X [n,k] that minimises |A X - B|. A [rows,n] and B [rows,k] are destroyed. Uses Householder
 * QR. Returns false when A does not have full rank. */
bool clv_least_squares(double *a, size_t rows, size_t n, double *b, size_t k, double *x);

/* Replaces the lower triangle of a positive definite n x n matrix by its Cholesky factor L. Returns false when the
 * matrix is not positive definite. */
bool clv_cholesky(double *matrix, size_t n);
/* Replaces b by L^-1 b. */
void clv_forward_substitute(const double *l, size_t n, double *b);
/* Replaces b by (L^T)^-1 b. */
void clv_back_substitute(const double *l, size_t n, double *b);
/* Computes a Levenberg-Marquardt step: (N + damping diag(N)) step = right. Reads only the lower triangle of
 * the positive definite N [n,n]. `l`: scratch [n,n]. Returns false when there is no solution. */
bool clv_damped_step(const double *normal, size_t n, double damping, const double *right, double *l,
                     double *step);

#endif
