/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvalues of one symmetric matrix on the host. */
#ifndef CLEAVE_HOST_ARRAY_EIGEN_HOST_H
#define CLEAVE_HOST_ARRAY_EIGEN_HOST_H

#include <stddef.h>

size_t clv_eigen_room(size_t n); /* doubles */
/* Computes the eigenvalues from the lower triangle of [n,n], in no particular order; all are NaN if an element is
 * NaN or infinite. The bits are the same with any instruction set, because nothing is contracted. */
void clv_eigen_host(const float *matrix, size_t n, double *room, float *values);

#endif
