/* search/codes_group.cl -- products of queries with rows of codes on GPUs.
 *
 * clv_search_bytes: S[q, r] = sum over i of Q[query + q, i] * X[r, i] with X in char, and scale[r] = 1 / |X[r]|, or 0
 * if the row is all zeros.
 * clv_search_bits_group: S[q, r] = width - 2 (number of bits in which Q[query + q] and X[r] differ).
 * A work-item takes a row and QUERIES queries; all work-items read the same queries, from caches.
 *
 * Launch   2-D: global (rows, rounded up to GROUP; blocks of queries), local (GROUP, 1).
 * Defines  GROUP, up to CLV_SEARCH_GROUP; QUERIES; bits: WORDS, the 64-bit words of a row, rounded up.
 * Needs    OpenCL C 1.2. Rows of float queries are padded with zeros to a multiple of 4; both kinds of queries are
 *          padded to a multiple of QUERIES. Bits: Q is [blocks of CLV_SEARCH_BITS_BLOCK, WORDS, that block], and the
 *          bits beyond `width` are 0 in X and in Q. Nothing beyond a row of X is read.
 * Order    clv_search_bytes adds terms within each of four lanes in ascending order, then
 *          x + y + z + w. Bits give exact whole numbers. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/sums.clh"
#include "search/shared.clh"

#define UNROLL _Pragma("unroll")
#define BLOCK CLV_SEARCH_BITS_BLOCK

#ifdef WORDS

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
clv_search_bits_group(__global const uchar *restrict X, ulong x_offset, ulong x_row, __global const ulong *restrict Q,
                      uint query, __global float *restrict S, uint s_row, uint count, uint bytes, uint width,
                      uint queries)
{
    const uint r = get_global_id(0), q = get_group_id(1) * QUERIES, at = query + q;
    if (r >= count) return;
    __global const uchar *x = X + x_offset + r * x_row;
    __global const ulong *y = Q + (size_t)(at / BLOCK) * BLOCK * WORDS + at % BLOCK;
    uint differ[QUERIES];
    UNROLL for (int j = 0; j < QUERIES; ++j) differ[j] = 0;
    for (uint w = 0; w < WORDS; ++w) {
        ulong word = 0;
        const uint here = min(bytes - 8 * w, 8u);
        for (uint b = 0; b < here; ++b) word |= (ulong)x[8 * w + b] << 8 * b;
        UNROLL for (int j = 0; j < QUERIES; ++j) differ[j] += (uint)popcount(word ^ y[BLOCK * w + j]);
    }
    UNROLL for (int j = 0; j < QUERIES; ++j)
        if (q + j < queries) S[(size_t)(q + j) * s_row + r] = (float)((int)width - 2 * (int)differ[j]);
}

#else

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
clv_search_bytes(__global const char *restrict X, ulong x_offset, ulong x_row, __global const float *restrict Q,
                 uint q_row, uint query, __global float *restrict S, uint s_row, __global float *restrict scale,
                 uint count, uint width, uint queries)
{
    const uint r = get_global_id(0), q = get_group_id(1) * QUERIES;
    if (r >= count) return;
    __global const char *x = X + x_offset + r * x_row;
    __global const float *y = Q + (size_t)(query + q) * q_row;
    float4 sum[QUERIES], square = (float4)(0.0f);
    UNROLL for (int j = 0; j < QUERIES; ++j) sum[j] = (float4)(0.0f);
    for (uint e = 0; e < width; e += 4) {
        float4 v;
        if (e + 4 <= width)
            v = convert_float4(vload4(0, x + e));
        else
            v = (float4)(x[e], e + 1 < width ? x[e + 1] : 0, e + 2 < width ? x[e + 2] : 0, 0.0f);
        square = fma(v, v, square);
        UNROLL for (int j = 0; j < QUERIES; ++j) sum[j] = fma(v, vload4(0, y + (size_t)j * q_row + e), sum[j]);
    }
    UNROLL for (int j = 0; j < QUERIES; ++j)
        if (q + j < queries) S[(size_t)(q + j) * s_row + r] = sum[j].x + sum[j].y + sum[j].z + sum[j].w;
    if (query + q == 0) {
        const float length = square.x + square.y + square.z + square.w;
        scale[r] = length == 0.0f ? 0.0f : 1.0f / sqrt(length);
    }
}

#endif
