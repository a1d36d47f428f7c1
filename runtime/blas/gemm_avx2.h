/* SPDX-License-Identifier: Apache-2.0 */
/* Computes products on the host by AVX2. */
#ifndef CLEAVE_RUNTIME_BLAS_GEMM_AVX2_H
#define CLEAVE_RUNTIME_BLAS_GEMM_AVX2_H

#include "runtime/blas/gemm.h"

#include <stdatomic.h>

/* Returns whether the processor has the instructions. */
bool clv_gemm_avx2_runs_here(void);
/* A product in which the columns of B and of C are neighbours. */
typedef struct clv_gemm_avx2_work {
    const clv_host_gemm *gemm;
    atomic_size_t next; /* the first column that no thread has taken; 0 at first */
} clv_gemm_avx2_work;

/* Computes columns of a clv_gemm_avx2_work until none are left; several threads may do so at the same time. */
void clv_gemm_avx2_share(void *work);

#endif
