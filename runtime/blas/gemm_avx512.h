/* SPDX-License-Identifier: Apache-2.0 */
/* Computes products on the host by AVX-512. */
#ifndef CLEAVE_RUNTIME_BLAS_GEMM_AVX512_H
#define CLEAVE_RUNTIME_BLAS_GEMM_AVX512_H

#include "runtime/blas/gemm.h"

/* Returns whether the processor has the instructions. */
bool clv_gemm_avx512_runs_here(void);
/* Computes a product in which the columns of B and of C are neighbours. */
void clv_gemm_avx512(const clv_host_gemm *g);

#endif
