/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the eigenvalues of one symmetric matrix on the host. */
#ifndef CLEAVE_HOST_ARRAY_EIGEN_HOST_H
#define CLEAVE_HOST_ARRAY_EIGEN_HOST_H

#include <stddef.h>

size_t clv_eigen_room(size_t n); /* size of `room` below, in doubles */
/* Computes the eigenvalues of a matrix from the lower triangle of [n,n], in no particular order. If an element is NaN
 * or infinite, all eigenvalues are NaN. The bits are the same with any instruction set, because no products and sums
 * are fused. */
void clv_eigen_host(const float *matrix, size_t n, double *room, float *values);

#endif
