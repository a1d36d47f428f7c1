/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a product on the host by tiles of AVX-512. Every element is a chain of fused multiply-adds over k, as in
 * gemm_host.c. */
#include "runtime/blas/gemm_avx512.h"

#include "base/alloc.h"
#include "runtime/blas/rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

bool clv_gemm_avx512_runs_here(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma");
}

enum { WIDE_ROWS = 12, WIDE_COLUMNS = 32 };

/* Finishes the elements of a tile as gemm_host.c does for one element. The sums of the tile's rows lie in memory. */
__attribute__((target("avx512f"), noinline)) static void finish_wide(const clv_host_gemm *g,
                                                                     size_t i0, size_t rows,
                                                                     size_t j0, size_t columns,
                                                                     const float *sums)
{
    const __m512 alpha = _mm512_set1_ps(g->alpha), beta = _mm512_set1_ps(g->beta);
    for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < columns; j += 16) {
            float *to = g->c + (i0 + i) * g->c_row + j0 + j;
            const __mmask16 there = (__mmask16)((1u << CLV_MIN(columns - j, (size_t)16)) - 1);
            __m512 x = _mm512_mul_ps(alpha, _mm512_loadu_ps(sums + i * WIDE_COLUMNS + j));
            if (g->bias) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(there, g->bias + j0 + j));
            if (g->beta != 0) x = _mm512_fmadd_ps(beta, _mm512_maskz_loadu_ps(there, to), x);
            _mm512_mask_storeu_ps(to, there, x);
        }
}

/* Operations on the last vector of a row: 16 columns, or 8 if there are no more (a 512-bit vector takes twice the
 * time on cores that process it in halves). */
#define WITH_512 __attribute__((target("avx512f,avx512vl,fma"), always_inline)) static inline
WITH_512 __m512 fma_16(__m512 w, __m512 v, __m512 sum)
{
    return _mm512_fmadd_ps(w, v, sum);
}
WITH_512 __m256 fma_8(__m512 w, __m256 v, __m256 sum)
{
    return _mm256_fmadd_ps(_mm512_castps512_ps256(w), v, sum);
}
WITH_512 void store_16(float *to, __mmask16 there, __m512 x)
{
    _mm512_mask_storeu_ps(to, there, x);
}
WITH_512 void store_8(float *to, __mmask16 there, __m256 x)
{
    _mm256_mask_storeu_ps(to, (__mmask8)there, x);
}
#define FMA_LAST(w, v, sum) _Generic((sum), __m512 : fma_16, __m256 : fma_8)(w, v, sum)
#define STORE_LAST(to, x) _Generic((x), __m512 : store_16, __m256 : store_8)(to, there, x)

#define TERM_TWO(i)                            \
    w = _mm512_set1_ps(p[i / 3][i % 3 * row]); \
    x##i = _mm512_fmadd_ps(w, u, x##i);        \
    y##i = FMA_LAST(w, v, y##i);
#define TERM_ONE(i) y##i = FMA_LAST(_mm512_set1_ps(p[i / 3][i % 3 * row]), v, y##i);
#define OPEN_ROW(i)                    \
    __m512 x##i = _mm512_setzero_ps(); \
    last y##i = { 0 };
#define STORE_ONE(i) STORE_LAST(to + i * width, y##i);
#define STORE_TWO(i)                        \
    _mm512_storeu_ps(to + i * width, x##i); \
    STORE_LAST(to + i * width + 16, y##i);
/* Addresses are a pointer plus one index, so that three rows share one pointer. */
#define NEXT_TERM p[0] += step, p[1] += step, p[2] += step, p[3] += step, b += next

/* Defines a function that computes ROWS rows and up to 32 columns. The columns of B are neighbours, and so are those
 * of C. LOAD reads the columns of the LAST vector that exist. */
#define WIDE_TILE(NAME, ROWS, LAST, LOAD)                                                \
    __attribute__((target("avx512f,avx512vl,fma"))) static void NAME##_##ROWS(           \
        const clv_host_gemm *g, size_t i0, size_t j0)                                    \
    {                                                                                    \
        typedef LAST last;                                                               \
        const size_t columns = CLV_MIN(g->n - j0, (size_t)WIDE_COLUMNS);                 \
        const bool two = columns > 16;                                                   \
        const __mmask16 there = (__mmask16)((1u << (two ? columns - 16 : columns)) - 1); \
        const size_t row = g->a_row, step = g->a_col, next = g->b_row;                   \
        const float *b = g->b + j0, *a = g->a + i0 * row;                                \
        const float *p[] = { a, a + 3 * row, a + 6 * row, a + 9 * row };                 \
        ROWS_##ROWS(OPEN_ROW) if (two) for (size_t left = g->k; left; --left, NEXT_TERM) \
        {                                                                                \
            const __m512 u = _mm512_loadu_ps(b);                                         \
            const last v = LOAD(b + 16);                                                 \
            __m512 w;                                                                    \
            ROWS_##ROWS(TERM_TWO)                                                        \
        }                                                                                \
        else for (size_t left = g->k; left; --left, NEXT_TERM)                           \
        {                                                                                \
            const last v = LOAD(b);                                                      \
            ROWS_##ROWS(TERM_ONE)                                                        \
        }                                                                                \
        const bool whole = g->alpha == 1 && g->beta == 0 && !g->bias;                    \
        float sums[ROWS * WIDE_COLUMNS], *to = whole ? g->c + i0 * g->c_row + j0 : sums; \
        const size_t width = whole ? g->c_row : WIDE_COLUMNS;                            \
        if (two) {                                                                       \
            ROWS_##ROWS(STORE_TWO)                                                       \
        } else {                                                                         \
            ROWS_##ROWS(STORE_ONE)                                                       \
        }                                                                                \
        if (!whole) finish_wide(g, i0, ROWS, j0, columns, sums);                         \
    }
#define ALL_ROWS(NAME, LAST, LOAD)  \
    WIDE_TILE(NAME, 1, LAST, LOAD)  \
    WIDE_TILE(NAME, 2, LAST, LOAD)  \
    WIDE_TILE(NAME, 3, LAST, LOAD)  \
    WIDE_TILE(NAME, 4, LAST, LOAD)  \
    WIDE_TILE(NAME, 5, LAST, LOAD)  \
    WIDE_TILE(NAME, 6, LAST, LOAD)  \
    WIDE_TILE(NAME, 7, LAST, LOAD)  \
    WIDE_TILE(NAME, 8, LAST, LOAD)  \
    WIDE_TILE(NAME, 9, LAST, LOAD)  \
    WIDE_TILE(NAME, 10, LAST, LOAD) \
    WIDE_TILE(NAME, 11, LAST, LOAD) \
    WIDE_TILE(NAME, 12, LAST, LOAD)
/* Table of functions, indexed by the number of rows, which is at least 1. */
#define TABLE(NAME)                                                                           \
    {                                                                                         \
        NULL, NAME##_1, NAME##_2, NAME##_3, NAME##_4, NAME##_5, NAME##_6, NAME##_7, NAME##_8, \
            NAME##_9, NAME##_10, NAME##_11, NAME##_12                                         \
    }
#define LOAD_SOME(from) _mm512_maskz_loadu_ps(there, from)
#define LOAD_FEW(from) _mm256_maskz_loadu_ps((__mmask8)there, from)

ALL_ROWS(whole, __m512, _mm512_loadu_ps) /* 16 or 32 columns */
ALL_ROWS(ragged, __m512, LOAD_SOME)
ALL_ROWS(slim, __m256, LOAD_FEW) /* at most 8 in the last vector */

/* Splits the rows evenly among as few tiles as possible. */
void clv_gemm_avx512(const clv_host_gemm *g)
{
    typedef void tile(const clv_host_gemm *g, size_t i0, size_t j0);
    static tile *const tiles_of[][WIDE_ROWS + 1] = { TABLE(whole), TABLE(ragged), TABLE(slim) };
    size_t tiles = (g->m + WIDE_ROWS - 1) / WIDE_ROWS;
    for (size_t i = 0, rows; i < g->m; i += rows, --tiles) {
        rows = (g->m - i + tiles - 1) / tiles;
        for (size_t j = 0; j < g->n; j += WIDE_COLUMNS) {
            const size_t over = CLV_MIN(g->n - j, (size_t)WIDE_COLUMNS) % 16;
            tiles_of[over == 0 ? 0 : over > 8 ? 1 : 2][rows](g, i, j);
        }
    }
}
#else
bool clv_gemm_avx512_runs_here(void)
{
    return false;
}

void clv_gemm_avx512(const clv_host_gemm *g)
{
    (void)g;
}
#endif
