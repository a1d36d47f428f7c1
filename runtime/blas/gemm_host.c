/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a product on the host, on one thread: for products too small for a launch, and to check devices.
 *
 * Every element is a chain of fused multiply-adds over k, as on the devices, so the result does not depend on the
 * instructions used. */
#include "base/team.h"
#include "runtime/blas/gemm_avx2.h"
#include "runtime/blas/gemm_avx512.h"

#include <math.h>

static void finish(const clv_host_gemm *g, size_t i, size_t j, float sum)
{
    float x = g->alpha * sum, *to = g->c + i * g->c_row + j * g->c_col;
    if (g->bias) x += g->bias[j];
    *to = g->beta != 0 ? fmaf(g->beta, *to, x) : x;
}

static void plain(const clv_host_gemm *g, size_t i0, size_t i1, size_t j0, size_t j1)
{
    for (size_t i = i0; i < i1; ++i)
        for (size_t j = j0; j < j1; ++j) {
            float sum = 0;
            for (size_t q = 0; q < g->k; ++q)
                sum =
                    fmaf(g->a[i * g->a_row + q * g->a_col], g->b[q * g->b_row + j * g->b_col], sum);
            finish(g, i, j, sum);
        }
}

static void by_avx2(const clv_host_gemm *g, clv_team *team)
{
    clv_gemm_avx2_work work = { .gemm = g };
    clv_team_run(team, clv_gemm_avx2_share, &work);
}

static bool by_vectors(const clv_host_gemm *g)
{
    if (g->b_col != 1 || g->c_col != 1 || !g->m || !g->n) return false;
    if (clv_gemm_avx512_runs_here())
        clv_gemm_avx512(g);
    else if (clv_gemm_avx2_runs_here())
        by_avx2(g, NULL);
    else
        return false;
    return true;
}

double clv_gemm_host_flops(size_t n)
{
    if (n >= 8 && clv_gemm_avx512_runs_here()) return 64e9;
    if (n >= 16 && clv_gemm_avx2_runs_here()) return 48e9;
    return 0;
}

bool clv_gemm_host_is_quick(size_t m, size_t n, size_t k)
{
    enum { ROWS = 6, COLUMNS = 16, LINES = 512, TERMS = 1 << 26 };
    if (clv_gemm_avx512_runs_here() || !clv_gemm_avx2_runs_here()) return false;
    return m >= ROWS && n >= COLUMNS && k <= LINES && (double)m * (double)n * (double)k <= TERMS;
}

bool clv_gemm_host_is_shared(size_t m, size_t n, size_t k)
{
    enum { TERMS = 1 << 19 };
    return clv_gemm_host_is_quick(m, n, k) && m * n * k >= TERMS;
}

void clv_gemm_host_by(clv_team *team, const clv_host_gemm *gemm)
{
    if (clv_gemm_host_is_quick(gemm->m, gemm->n, gemm->k))
        by_avx2(gemm, team);
    else
        clv_gemm_host(gemm);
}

void clv_gemm_host(const clv_host_gemm *gemm)
{
    if (!by_vectors(gemm)) plain(gemm, 0, gemm->m, 0, gemm->n);
}

void clv_linear_host(const float *x, size_t rows, size_t k, const float *w, const float *b,
                     size_t n, float *y)
{
    clv_gemm_host(&(clv_host_gemm){ .m = rows,
                                    .n = n,
                                    .k = k,
                                    .a = x,
                                    .a_row = k,
                                    .a_col = 1,
                                    .b = w,
                                    .b_row = n,
                                    .b_col = 1,
                                    .c = y,
                                    .c_row = n,
                                    .c_col = 1,
                                    .alpha = 1,
                                    .bias = b });
}
