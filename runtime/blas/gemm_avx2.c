/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a product on the host by tiles of AVX2, for processors without AVX-512.
 *
 * Twelve sums of eight elements are under way at a time, which keeps both multipliers busy. 16 columns of B are copied
 * into the innermost cache, and the rows of A that they meet stay in the next one. Every element is a chain of fused
 * multiply-adds over k, as in gemm_host.c. */
#include "runtime/blas/gemm_avx2.h"

#include "base/alloc.h"
#include "runtime/blas/rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { TILE_ROWS = 6, TILE_COLUMNS = 16 };
enum {
    BLOCK_ROWS = 48,   /* of A: up to 96 KB, in the second cache */
    FEW_TERMS = 128,   /* fewer terms than that: B is read where it lies, */
    MOST_TERMS = 512,  /* and if there are more, too */
    TOGETHER = 2,      /* times 16 columns that meet a block of A in turn, */
    LARGE = 256 << 10, /* if A has more bytes than that */
};

#define WITH_AVX2 __attribute__((target("avx2,fma")))

bool clv_gemm_avx2_runs_here(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* Returns the mask of the first `count` of eight elements. */
WITH_AVX2 static __m256i first(size_t count)
{
    const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)CLV_MIN(count, (size_t)8)), places);
}

/* Finishes a tile, whose sums lie in memory: scales them, and adds the bias and what C held. */
WITH_AVX2 static void finish(const clv_host_gemm *g, size_t i0, size_t rows, size_t j0,
                             size_t columns, const float *sums)
{
    const __m256 alpha = _mm256_set1_ps(g->alpha), beta = _mm256_set1_ps(g->beta);
    for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < columns; j += 8) {
            float *to = g->c + (i0 + i) * g->c_row + j0 + j;
            const __m256i there = first(columns - j);
            __m256 x = _mm256_mul_ps(alpha, _mm256_loadu_ps(sums + i * TILE_COLUMNS + j));
            if (g->bias) x = _mm256_add_ps(x, _mm256_maskload_ps(g->bias + j0 + j, there));
            if (g->beta != 0) x = _mm256_fmadd_ps(beta, _mm256_maskload_ps(to, there), x);
            _mm256_maskstore_ps(to, there, x);
        }
}

#define OPEN_ROW(i) __m256 x##i = _mm256_setzero_ps(), y##i = _mm256_setzero_ps();
#define TERM(i)                                          \
    w = _mm256_broadcast_ss(p[(i) / 3] + (i) % 3 * row); \
    x##i = _mm256_fmadd_ps(w, u, x##i);                  \
    y##i = _mm256_fmadd_ps(w, v, y##i);
#define STORE(i)                            \
    _mm256_storeu_ps(to + (i)*width, x##i); \
    _mm256_storeu_ps(to + (i)*width + 8, y##i);
#define ALL_OF(from, there) _mm256_loadu_ps(from)
#define SOME_OF(from, there) _mm256_maskload_ps(from, there)

/* Defines a function that computes ROWS rows and at most 16 columns. `b` is the first row of these columns, and rows
 * are `next` elements apart. LOAD reads the columns that exist. */
#define TILE(NAME, ROWS, LOAD)                                                                   \
    WITH_AVX2 static void NAME##_##ROWS(const clv_host_gemm *g, const float *b, size_t next,     \
                                        size_t i0, size_t j0)                                    \
    {                                                                                            \
        const size_t columns = CLV_MIN(g->n - j0, (size_t)TILE_COLUMNS);                         \
        const size_t row = g->a_row, step = g->a_col;                                            \
        const __m256i low = first(columns), high = first(columns > 8 ? columns - 8 : 0);         \
        const float *p[] = { g->a + i0 * row, g->a + (i0 + 3) * row };                           \
        ROWS_##ROWS(OPEN_ROW) for (size_t left = g->k; left; --left)                             \
        {                                                                                        \
            const __m256 u = LOAD(b, low), v = LOAD(b + 8, high);                                \
            __m256 w;                                                                            \
            ROWS_##ROWS(TERM) p[0] += step, p[1] += step, b += next;                             \
        }                                                                                        \
        (void)low, (void)high;                                                                   \
        const bool whole = columns == TILE_COLUMNS && g->alpha == 1 && g->beta == 0 && !g->bias; \
        float sums[ROWS * TILE_COLUMNS], *to = whole ? g->c + i0 * g->c_row + j0 : sums;         \
        const size_t width = whole ? g->c_row : TILE_COLUMNS;                                    \
        ROWS_##ROWS(STORE) if (!whole) finish(g, i0, ROWS, j0, columns, sums);                   \
    }
#define ALL_ROWS(NAME, LOAD) \
    TILE(NAME, 1, LOAD)      \
    TILE(NAME, 2, LOAD)      \
    TILE(NAME, 3, LOAD)      \
    TILE(NAME, 4, LOAD)      \
    TILE(NAME, 5, LOAD)      \
    TILE(NAME, 6, LOAD)
/* Table of functions, indexed by the number of rows, which is at least 1. */
#define TABLE(NAME)                                                      \
    {                                                                    \
        NULL, NAME##_1, NAME##_2, NAME##_3, NAME##_4, NAME##_5, NAME##_6 \
    }

ALL_ROWS(whole, ALL_OF)
ALL_ROWS(ragged, SOME_OF)

typedef void tile(const clv_host_gemm *g, const float *b, size_t next, size_t i0, size_t j0);

/* Copies up to 16 columns of B from column j0 on; those that do not exist become 0. */
WITH_AVX2 static void pack(const clv_host_gemm *g, size_t j0, float *to)
{
    const __m256i low = first(g->n - j0), high = first(g->n - j0 > 8 ? g->n - j0 - 8 : 0);
    const float *from = g->b + j0;
    for (size_t q = 0; q < g->k; ++q, from += g->b_row, to += TILE_COLUMNS) {
        _mm256_storeu_ps(to, _mm256_maskload_ps(from, low));
        _mm256_storeu_ps(to + 8, _mm256_maskload_ps(from + 8, high));
    }
}

static size_t columns_together(const clv_host_gemm *g)
{
    return TILE_COLUMNS * (g->m * g->k * sizeof(float) > LARGE ? TOGETHER : 1);
}

/* Computes the columns from j0 to j1. */
static void compute_columns(const clv_host_gemm *g, size_t j0, size_t j1)
{
    static tile *const tiles_of[][TILE_ROWS + 1] = { TABLE(whole), TABLE(ragged) };
    float copy[TOGETHER][TILE_COLUMNS * MOST_TERMS];
    const bool packs = g->k >= FEW_TERMS && g->k <= MOST_TERMS && g->m >= BLOCK_ROWS / 2;
    for (size_t j = j0; packs && j < j1; j += TILE_COLUMNS)
        pack(g, j, copy[(j - j0) / TILE_COLUMNS]);
    for (size_t i0 = 0; i0 < g->m; i0 += BLOCK_ROWS)
        for (size_t j = j0; j < j1; j += TILE_COLUMNS) {
            tile *const *of = tiles_of[!packs && g->n - j < TILE_COLUMNS];
            const float *b = packs ? copy[(j - j0) / TILE_COLUMNS] : g->b + j;
            const size_t end = CLV_MIN(i0 + BLOCK_ROWS, g->m);
            size_t tiles = (end - i0 + TILE_ROWS - 1) / TILE_ROWS;
            for (size_t i = i0, rows; i < end; i += rows, --tiles) {
                rows = (end - i + tiles - 1) / tiles; /* as many in each tile as possible */
                of[rows](g, b, packs ? TILE_COLUMNS : g->b_row, i, j);
            }
        }
}

void clv_gemm_avx2_share(void *work)
{
    clv_gemm_avx2_work *w = work;
    const clv_host_gemm *g = w->gemm;
    const size_t width = columns_together(g);
    for (size_t j; (j = atomic_fetch_add(&w->next, width)) < g->n;)
        compute_columns(g, j, CLV_MIN(j + width, g->n));
}
#else
bool clv_gemm_avx2_runs_here(void)
{
    return false;
}

void clv_gemm_avx2_share(void *work)
{
    (void)work;
}
#endif
