/* SPDX-License-Identifier: Apache-2.0 */
/* Computes products on the host by the caller's BLAS, through its function cblas_sgemm. */
#include "runtime/blas/provider.h"

#include "base/error.h"

#include <cleave/blas.h>

#include <stdatomic.h>
#include <stdint.h>

/* cblas_sgemm with 64-bit and with 32-bit integers; its enumerations are ints. */
typedef void sgemm_64(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
                      const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                      float *c, int64_t ldc);
typedef void sgemm_32(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                      int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* From here on a BLAS, which packs its operands, is faster than clv_gemm_host. */
static const double least_terms = 16 * 16 * 16;

static _Atomic(sgemm_64 *) wide;
static _Atomic(sgemm_32 *) narrow;

clv_status clv_blas_use(clv_function *sgemm, unsigned integer_bits)
{
    if (sgemm && integer_bits != 32 && integer_bits != 64)
        return clv_fail(CLV_E_ARGUMENT, "blas: integers have %u bits, but 32 or 64 are expected",
                        integer_bits);
    atomic_store(&wide, integer_bits == 64 ? (sgemm_64 *)sgemm : NULL);
    atomic_store(&narrow, integer_bits == 32 ? (sgemm_32 *)sgemm : NULL);
    return CLV_OK;
}

bool clv_blas_is_for(size_t m, size_t n, size_t k)
{
    if (m > INT32_MAX || n > INT32_MAX || k > INT32_MAX) return false;
    return (double)m * (double)n * (double)k >= least_terms &&
           (atomic_load(&wide) || atomic_load(&narrow));
}

bool clv_blas_multiply(const clv_dense_gemm *g)
{
    enum { ROW_MAJOR = 101, AS_IT_IS = 111, TURNED = 112 };
    const int ta = g->a_turned ? TURNED : AS_IT_IS, tb = g->b_turned ? TURNED : AS_IT_IS;
    const int64_t lda = (int64_t)(g->a_turned ? g->m : g->k);
    const int64_t ldb = (int64_t)(g->b_turned ? g->k : g->n);
    const int64_t m = (int64_t)g->m, n = (int64_t)g->n, k = (int64_t)g->k;
    sgemm_64 *large = atomic_load(&wide);
    sgemm_32 *small = atomic_load(&narrow);
    if (large)
        large(ROW_MAJOR, ta, tb, m, n, k, 1, g->a, lda, g->b, ldb, 0, g->c, n);
    else if (small)
        small(ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, 1, g->a, (int)lda, g->b, (int)ldb, 0, g->c,
              (int)n);
    return large || small;
}
