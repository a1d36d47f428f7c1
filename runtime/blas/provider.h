/* SPDX-License-Identifier: Apache-2.0 */
/* Computes products on the host by the caller's BLAS. */
#ifndef CLEAVE_RUNTIME_BLAS_PROVIDER_H
#define CLEAVE_RUNTIME_BLAS_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>

/* One product of dense matrices in row-major order: C [m,n] = A [m,k] B [k,n]. `a_turned`: A is stored as [k,m];
 * `b_turned`: B is stored as [n,k]. */
typedef struct clv_dense_gemm {
    size_t m, n, k;
    bool a_turned, b_turned;
    const float *a, *b;
    float *c;
} clv_dense_gemm;

/* Returns whether the caller's BLAS is to compute products of this size on the host. */
bool clv_blas_is_for(size_t m, size_t n, size_t k);
/* Computes a product by the caller's BLAS. Returns false, with nothing done, if the caller has taken it back. */
bool clv_blas_multiply(const clv_dense_gemm *g);

#endif
