/* SPDX-License-Identifier: Apache-2.0 */
/* A product on the host, one thread: for what is too small for a launch, and to check devices.
 *
 * Every element is a chain of fused multiply-adds over k, as on the devices, so that it does not
 * matter which instructions do it. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"

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

#if defined(__x86_64__)
#include <immintrin.h>

enum { NARROW_ROWS = 4 };

/* Written out, so that sums stay in registers with every compiler. */
#define ROWS_4(what) what(0) what(1) what(2) what(3)
#define ROWS_8(what) ROWS_4(what) what(4) what(5) what(6) what(7)
#define ROWS_12(what) ROWS_8(what) what(8) what(9) what(10) what(11)

/* What finish does, to the columns of a mask. */
__attribute__((target("avx512f"))) static inline void
finish_wide(const clv_host_gemm *g, size_t i, size_t j, __mmask16 there, __m512 sum)
{
    float *to = g->c + i * g->c_row + j;
    __m512 x = _mm512_mul_ps(_mm512_set1_ps(g->alpha), sum);
    if (g->bias) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(there, g->bias + j));
    if (g->beta != 0)
        x = _mm512_fmadd_ps(_mm512_set1_ps(g->beta), _mm512_maskz_loadu_ps(there, to), x);
    _mm512_mask_storeu_ps(to, there, x);
}

#define TERM_TWO(i)                     \
    w = _mm512_set1_ps(a##i[q]);        \
    x##i = _mm512_fmadd_ps(w, u, x##i); \
    y##i = _mm512_fmadd_ps(w, v, y##i);
#define TERM_ONE(i) x##i = _mm512_fmadd_ps(_mm512_set1_ps(a##i[q]), u, x##i);
/* rows beyond the last do its work again */
#define OPEN_ROW(i)                                                            \
    const float *a##i = g->a + (i0 + CLV_MIN((size_t)i, rows - 1)) * g->a_row; \
    __m512 x##i = _mm512_setzero_ps(), y##i = _mm512_setzero_ps();
#define CLOSE_ROW(i)                                           \
    if ((size_t)i < rows) {                                    \
        finish_wide(g, i0 + i, j0, low, x##i);                 \
        if (high) finish_wide(g, i0 + i, j0 + 16, high, y##i); \
    }

/* Up to ROWS rows and 32 columns; columns of B are neighbours, and those of C. */
#define WIDE_TILE(ROWS)                                                                    \
    __attribute__((target("avx512f"))) static void wide_tile_##ROWS(                       \
        const clv_host_gemm *g, size_t i0, size_t rows, size_t j0, size_t columns)         \
    {                                                                                      \
        const __mmask16 low = (__mmask16)((1u << CLV_MIN(columns, (size_t)16)) - 1);       \
        const __mmask16 high = (__mmask16)(columns > 16 ? (1u << (columns - 16)) - 1 : 0); \
        const float *b = g->b + j0;                                                        \
        const size_t step = g->a_col, next = g->b_row;                                     \
        size_t q = 0;                                                                      \
        ROWS_##ROWS(OPEN_ROW) if (high) for (size_t left = g->k; left;                     \
                                             --left, q += step, b += next)                 \
        {                                                                                  \
            const __m512 u = _mm512_maskz_loadu_ps(low, b);                                \
            const __m512 v = _mm512_maskz_loadu_ps(high, b + 16);                          \
            __m512 w;                                                                      \
            ROWS_##ROWS(TERM_TWO)                                                          \
        }                                                                                  \
        else for (size_t left = g->k; left; --left, q += step, b += next)                  \
        {                                                                                  \
            const __m512 u = _mm512_maskz_loadu_ps(low, b);                                \
            ROWS_##ROWS(TERM_ONE)                                                          \
        }                                                                                  \
        ROWS_##ROWS(CLOSE_ROW)                                                             \
    }
WIDE_TILE(4)
WIDE_TILE(8)
WIDE_TILE(12)

static void by_wide_tiles(const clv_host_gemm *g)
{
    for (size_t i = 0, rows; i < g->m; i += rows) {
        rows = CLV_MIN(g->m - i, (size_t)12);
        for (size_t j = 0; j < g->n; j += 32) {
            const size_t columns = CLV_MIN(g->n - j, (size_t)32);
            (rows > 8   ? wide_tile_12
             : rows > 4 ? wide_tile_8
                        : wide_tile_4)(g, i, rows, j, columns);
        }
    }
}

/* Four rows and 8 columns, all of them there. */
__attribute__((target("avx2,fma"))) static void narrow_tile(const clv_host_gemm *g, size_t i0,
                                                            size_t j0)
{
    const float *a = g->a + i0 * g->a_row, *b = g->b + j0;
    __m256 x[NARROW_ROWS];
    float sums[8];
    for (size_t i = 0; i < NARROW_ROWS; ++i)
        x[i] = _mm256_setzero_ps();
    for (size_t q = 0; q < g->k; ++q, b += g->b_row) {
        const __m256 v = _mm256_loadu_ps(b);
        for (size_t i = 0; i < NARROW_ROWS; ++i)
            x[i] = _mm256_fmadd_ps(_mm256_set1_ps(a[i * g->a_row + q * g->a_col]), v, x[i]);
    }
    for (size_t i = 0; i < NARROW_ROWS; ++i) {
        _mm256_storeu_ps(sums, x[i]);
        for (size_t j = 0; j < 8; ++j)
            finish(g, i0 + i, j0 + j, sums[j]);
    }
}

static bool by_vectors(const clv_host_gemm *g)
{
    if (g->b_col != 1 || g->c_col != 1 || !g->m || !g->n) return false;
    if (__builtin_cpu_supports("avx512f")) {
        by_wide_tiles(g);
        return true;
    }
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return false;
    const size_t rows = g->m / NARROW_ROWS * NARROW_ROWS, columns = g->n / 8 * 8;
    for (size_t i = 0; i < rows; i += NARROW_ROWS)
        for (size_t j = 0; j < columns; j += 8)
            narrow_tile(g, i, j);
    plain(g, 0, rows, columns, g->n);
    plain(g, rows, g->m, 0, g->n);
    return true;
}
#else
static bool by_vectors(const clv_host_gemm *g)
{
    (void)g;
    return false;
}
#endif

void clv_gemm_host(const clv_host_gemm *gemm)
{
    if (!by_vectors(gemm)) plain(gemm, 0, gemm->m, 0, gemm->n);
}
