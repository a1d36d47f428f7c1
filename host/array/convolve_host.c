/* SPDX-License-Identifier: Apache-2.0 */
/* Computes rows of a convolution on the host. The terms are added in the devices' order, and each vector holds
 * neighbouring pixels. */
#include "host/array/convolve.h"

#include "base/alloc.h"

#include <math.h>

static void plain(const clv_filter *f, size_t first, size_t count, float *out)
{
    for (size_t y = 0; y < count; ++y)
        for (size_t x = 0; x < f->width; ++x) {
            const float *at = f->padded + (first + y) * f->pitch + x, *w = f->weights;
            float sum = 0;
            for (size_t i = 0; i < f->kernel_height; ++i, at += f->pitch)
                for (size_t j = 0; j < f->kernel_width; ++j)
                    sum = fmaf(*w++, at[j], sum);
            out[y * f->width + x] = sum;
        }
}

#if defined(__x86_64__)
#include <immintrin.h>

enum { BLOCK = 32, WIDE_ROWS = 4, NARROW_ROWS = 2 };

static void keep(const clv_filter *f, const float sums[][BLOCK], size_t rows, size_t x, float *out)
{
    const size_t columns = CLV_MIN(f->width - x, (size_t)BLOCK);
    for (size_t r = 0; r < rows; ++r)
        for (size_t l = 0; l < columns; ++l)
            out[r * f->width + x + l] = sums[r][l];
}

/* Computes up to four rows of 32 columns; the padded image is always wide enough. If there are fewer than four rows,
 * the missing ones repeat the last. The loops are written out so that every compiler keeps the sums in registers. */
__attribute__((target("avx512f"))) static void wide(const clv_filter *f, const float *at,
                                                    size_t rows, size_t x, float *out)
{
    float sums[WIDE_ROWS][BLOCK];
    const float *p0 = at, *p1 = at + CLV_MIN(rows - 1, (size_t)1) * f->pitch;
    const float *p2 = at + CLV_MIN(rows - 1, (size_t)2) * f->pitch;
    const float *p3 = at + (rows - 1) * f->pitch, *w = f->weights;
    __m512 a0 = _mm512_setzero_ps(), b0 = a0, a1 = a0, b1 = a0, a2 = a0, b2 = a0, a3 = a0, b3 = a0;
    for (size_t i = 0; i < f->kernel_height; ++i) {
        for (size_t j = 0; j < f->kernel_width; ++j) {
            const __m512 v = _mm512_set1_ps(*w++);
            a0 = _mm512_fmadd_ps(v, _mm512_loadu_ps(p0 + j), a0);
            b0 = _mm512_fmadd_ps(v, _mm512_loadu_ps(p0 + j + 16), b0);
            a1 = _mm512_fmadd_ps(v, _mm512_loadu_ps(p1 + j), a1);
            b1 = _mm512_fmadd_ps(v, _mm512_loadu_ps(p1 + j + 16), b1);
            a2 = _mm512_fmadd_ps(v, _mm512_loadu_ps(p2 + j), a2);
            b2 = _mm512_fmadd_ps(v, _mm512_loadu_ps(p2 + j + 16), b2);
            a3 = _mm512_fmadd_ps(v, _mm512_loadu_ps(p3 + j), a3);
            b3 = _mm512_fmadd_ps(v, _mm512_loadu_ps(p3 + j + 16), b3);
        }
        p0 += f->pitch, p1 += f->pitch, p2 += f->pitch, p3 += f->pitch;
    }
    _mm512_storeu_ps(sums[0], a0), _mm512_storeu_ps(sums[0] + 16, b0);
    _mm512_storeu_ps(sums[1], a1), _mm512_storeu_ps(sums[1] + 16, b1);
    _mm512_storeu_ps(sums[2], a2), _mm512_storeu_ps(sums[2] + 16, b2);
    _mm512_storeu_ps(sums[3], a3), _mm512_storeu_ps(sums[3] + 16, b3);
    keep(f, (const float(*)[BLOCK])sums, rows, x, out);
}

/* Does what `wide` does, for up to two rows. */
__attribute__((target("avx2,fma"))) static void narrow(const clv_filter *f, const float *at,
                                                       size_t rows, size_t x, float *out)
{
    float sums[NARROW_ROWS][BLOCK];
    const float *p = at, *q = at + (rows - 1) * f->pitch, *w = f->weights;
    __m256 a0 = _mm256_setzero_ps(), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
    for (size_t i = 0; i < f->kernel_height; ++i, p += f->pitch, q += f->pitch)
        for (size_t j = 0; j < f->kernel_width; ++j) {
            const __m256 v = _mm256_set1_ps(*w++);
            a0 = _mm256_fmadd_ps(v, _mm256_loadu_ps(p + j), a0);
            a1 = _mm256_fmadd_ps(v, _mm256_loadu_ps(p + j + 8), a1);
            a2 = _mm256_fmadd_ps(v, _mm256_loadu_ps(p + j + 16), a2);
            a3 = _mm256_fmadd_ps(v, _mm256_loadu_ps(p + j + 24), a3);
            b0 = _mm256_fmadd_ps(v, _mm256_loadu_ps(q + j), b0);
            b1 = _mm256_fmadd_ps(v, _mm256_loadu_ps(q + j + 8), b1);
            b2 = _mm256_fmadd_ps(v, _mm256_loadu_ps(q + j + 16), b2);
            b3 = _mm256_fmadd_ps(v, _mm256_loadu_ps(q + j + 24), b3);
        }
    _mm256_storeu_ps(sums[0], a0), _mm256_storeu_ps(sums[0] + 8, a1);
    _mm256_storeu_ps(sums[0] + 16, a2), _mm256_storeu_ps(sums[0] + 24, a3);
    _mm256_storeu_ps(sums[1], b0), _mm256_storeu_ps(sums[1] + 8, b1);
    _mm256_storeu_ps(sums[1] + 16, b2), _mm256_storeu_ps(sums[1] + 24, b3);
    keep(f, (const float(*)[BLOCK])sums, rows, x, out);
}

static bool by_vectors(const clv_filter *f, size_t first, size_t count, float *out)
{
    const bool widest = __builtin_cpu_supports("avx512f");
    if (!widest && (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")))
        return false;
    const size_t step = widest ? WIDE_ROWS : NARROW_ROWS;
    for (size_t y = 0; y < count; y += step) {
        const size_t rows = CLV_MIN(count - y, step);
        for (size_t x = 0; x < f->width; x += BLOCK)
            (widest ? wide : narrow)(f, f->padded + (first + y) * f->pitch + x, rows, x,
                                     out + y * f->width);
    }
    return true;
}
#else
static bool by_vectors(const clv_filter *f, size_t first, size_t count, float *out)
{
    (void)f, (void)first, (void)count, (void)out;
    return false;
}
#endif

void clv_filter_rows(const clv_filter *f, size_t first, size_t count, float *out)
{
    if (!by_vectors(f, first, count, out)) plain(f, first, count, out);
}
