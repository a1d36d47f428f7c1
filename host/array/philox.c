/* SPDX-License-Identifier: Apache-2.0 */
/* Makes random points with Philox on the host. */
#include "host/array/philox.h"

#include <stdbool.h>

static bool is_inside(uint32_t x, uint32_t y)
{
    const uint64_t a = x >> 8, b = y >> 8;
    return a * a + b * b <= (uint64_t)1 << 48;
}

static uint64_t one_by_one(uint64_t first, uint64_t count, const uint32_t key[2])
{
    uint64_t inside = 0;
    for (uint64_t at = first; at < first + count;) {
        const uint64_t i = at / 2;
        const clv_philox r =
            clv_philox_make((clv_philox){ { (uint32_t)i, (uint32_t)(i >> 32), 0, 0 } }, key);
        if (at % 2 == 0) {
            inside += is_inside(r.word[0], r.word[1]);
            ++at;
        }
        if (at % 2 && at < first + count) {
            inside += is_inside(r.word[2], r.word[3]);
            ++at;
        }
    }
    return inside;
}

#if defined(__x86_64__)
#include <immintrin.h>

enum { VECTORS = 2 }; /* vectors in flight, because a single one would wait for its products */

/* Counts pairs of points [first, first + groups * 16) like base/philox.c. Each 64-bit lane holds one 32-bit word in its
 * lower half; its upper half is undefined. */
__attribute__((target("avx512f"))) static uint64_t wide(uint64_t first, uint64_t groups,
                                                        const uint32_t key[2])
{
    const __m512i m0 = _mm512_set1_epi64(0xD2511F53), m1 = _mm512_set1_epi64(0xCD9E8D57);
    const __m512i w0 = _mm512_set1_epi64(0x9E3779B9), w1 = _mm512_set1_epi64(0xBB67AE85);
    const __m512i bits = _mm512_set1_epi64(0xFFFFFF), most = _mm512_set1_epi64((int64_t)1 << 48);
    const __m512i lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    uint64_t inside = 0;
    for (; groups; --groups, first += 8 * VECTORS) {
        __m512i c[VECTORS][4], k0 = _mm512_set1_epi64(key[0]), k1 = _mm512_set1_epi64(key[1]);
        for (int v = 0; v < VECTORS; ++v) {
            c[v][0] = _mm512_add_epi64(_mm512_set1_epi64((int64_t)first + 8 * v), lanes);
            c[v][1] = _mm512_srli_epi64(c[v][0], 32);
            c[v][2] = c[v][3] = _mm512_setzero_si512();
        }
        for (int round = 0; round < 10; ++round) {
            for (int v = 0; v < VECTORS; ++v) {
                const __m512i p = _mm512_mul_epu32(m0, c[v][0]), q = _mm512_mul_epu32(m1, c[v][2]);
                c[v][0] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(q, 32), c[v][1], k0, 0x96);
                c[v][2] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p, 32), c[v][3], k1, 0x96);
                c[v][1] = q, c[v][3] = p;
            }
            k0 = _mm512_add_epi64(k0, w0), k1 = _mm512_add_epi64(k1, w1);
        }
        for (int v = 0; v < VECTORS; ++v)
            for (int pair = 0; pair < 4; pair += 2) {
                const __m512i x = _mm512_and_si512(_mm512_srli_epi64(c[v][pair], 8), bits);
                const __m512i y = _mm512_and_si512(_mm512_srli_epi64(c[v][pair + 1], 8), bits);
                const __m512i sum =
                    _mm512_add_epi64(_mm512_mul_epu32(x, x), _mm512_mul_epu32(y, y));
                inside += (unsigned)__builtin_popcount(_mm512_cmple_epu64_mask(sum, most));
            }
    }
    return inside;
}

/* Does what `wide` does, with groups of 8 pairs. */
__attribute__((target("avx2"))) static uint64_t narrow(uint64_t first, uint64_t groups,
                                                       const uint32_t key[2])
{
    const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
    const __m256i w0 = _mm256_set1_epi64x(0x9E3779B9), w1 = _mm256_set1_epi64x(0xBB67AE85);
    const __m256i bits = _mm256_set1_epi64x(0xFFFFFF), most = _mm256_set1_epi64x((int64_t)1 << 48);
    const __m256i lanes = _mm256_set_epi64x(3, 2, 1, 0);
    __m256i outside = _mm256_setzero_si256();
    uint64_t count[4], points = 16 * groups;
    for (; groups; --groups, first += 4 * VECTORS) {
        __m256i c[VECTORS][4], k0 = _mm256_set1_epi64x(key[0]), k1 = _mm256_set1_epi64x(key[1]);
        for (int v = 0; v < VECTORS; ++v) {
            c[v][0] = _mm256_add_epi64(_mm256_set1_epi64x((int64_t)first + 4 * v), lanes);
            c[v][1] = _mm256_srli_epi64(c[v][0], 32);
            c[v][2] = c[v][3] = _mm256_setzero_si256();
        }
        for (int round = 0; round < 10; ++round) {
            for (int v = 0; v < VECTORS; ++v) {
                const __m256i p = _mm256_mul_epu32(m0, c[v][0]), q = _mm256_mul_epu32(m1, c[v][2]);
                c[v][0] = _mm256_xor_si256(_mm256_srli_epi64(q, 32), _mm256_xor_si256(c[v][1], k0));
                c[v][2] = _mm256_xor_si256(_mm256_srli_epi64(p, 32), _mm256_xor_si256(c[v][3], k1));
                c[v][1] = q, c[v][3] = p;
            }
            k0 = _mm256_add_epi64(k0, w0), k1 = _mm256_add_epi64(k1, w1);
        }
        for (int v = 0; v < VECTORS; ++v)
            for (int pair = 0; pair < 4; pair += 2) {
                const __m256i x = _mm256_and_si256(_mm256_srli_epi64(c[v][pair], 8), bits);
                const __m256i y = _mm256_and_si256(_mm256_srli_epi64(c[v][pair + 1], 8), bits);
                const __m256i sum =
                    _mm256_add_epi64(_mm256_mul_epu32(x, x), _mm256_mul_epu32(y, y));
                outside = _mm256_sub_epi64(outside, _mm256_cmpgt_epi64(sum, most));
            }
    }
    _mm256_storeu_si256((__m256i *)(void *)count, outside);
    return points - count[0] - count[1] - count[2] - count[3];
}

/* Counts the hits in the whole groups at the start of the next `pairs` pairs. *done is the number of pairs in these
 * groups. */
static uint64_t by_vectors(uint64_t first, uint64_t pairs, const uint32_t key[2], uint64_t *done)
{
    const bool widest = __builtin_cpu_supports("avx512f");
    const uint64_t group = widest ? 8 * VECTORS : 4 * VECTORS;
    *done = widest || __builtin_cpu_supports("avx2") ? pairs / group * group : 0;
    return *done ? (widest ? wide : narrow)(first, *done / group, key) : 0;
}
#else
static uint64_t by_vectors(uint64_t first, uint64_t pairs, const uint32_t key[2], uint64_t *done)
{
    (void)first, (void)pairs, (void)key;
    return *done = 0;
}
#endif

uint64_t clv_philox_count(uint64_t first, uint64_t count, const uint32_t key[2])
{
    const uint64_t odd = first % 2 && count ? 1 : 0; /* the first point is the second of a pair */
    uint64_t done, inside = one_by_one(first, odd, key);
    first += odd, count -= odd;
    inside += by_vectors(first / 2, count / 2, key, &done);
    return inside + one_by_one(first + 2 * done, count - 2 * done, key);
}
