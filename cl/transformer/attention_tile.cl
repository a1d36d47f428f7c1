/* transformer/attention_tile.cl -- o = softmax(q k^T * scale + mask) v, one pass over the keys, by tiles
 * in registers, for GPUs.
 *
 * A work-group has ROWS queries of one sequence and head, and takes 32 keys at a time: it computes scores as
 * products of tiles, then their exponentials, and then the products with the values. The running maximum and
 * sum of every query are corrected tile by tile (online softmax: Milakov and Gimelshein 2018; Dao et
 * al. 2022). A query without any key gives 0. Blocks, strides and masks are as in
 * transformer/attention.cl, which needs no barrier.
 *
 * Launch   2-D: global (blocks * 64 / ROWS * WG, heads), local (WG, 1), WG = ROWS / 4 * TX.
 * Defines  LANES 1; DH: width of a head; ROWS, TX: 64 and 8 for heads of up to 64, 64 and 16 for wider
 *          ones; on GPUs with few registers 64 and 16, and 32 and 32; BIAS or not.
 * Needs    OpenCL C 1.2; local memory for SHARED_FLOATS + WG + ROWS floats, given as an argument.
 * Memory   Keys and values are read once for ROWS queries; queries are read once for 32 keys, from the cache.
 * Order    Sums over elements and keys run in ascending order by fma. The exponentials of a query are added in
 *          WG / 64 partial sums. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"
#include "common/waves.clh"
#include "transformer/bias.clh"
#include "transformer/tiles.clh"

#define SPLIT (64 / ROWS) /* work-groups of a block of 64 queries */
#define PARTS (WG / ROWS) /* work-items of a query while exponentials are taken */
#define EACH (COLUMNS / PARTS)

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) WAVES(3) void
clv_attention_tile(__global const float *restrict Q, ulong q_offset, ulong q_row, ulong q_head,
                   __global const float *restrict K, ulong k_offset, ulong k_row, ulong k_head,
                   __global const float *restrict V, ulong v_offset, ulong v_row, ulong v_head,
                   __global float *restrict O, ulong o_offset, ulong o_row, ulong o_head,
                   __global const int4 *restrict blocks, ulong first_block, int base,
                   __global const int *restrict mask, uint has_mask, uint causal, uint group,
                   float scale, __global float2 *restrict tops, ulong top_head, uint keep BIAS_ARGUMENTS,
                   __local float *restrict shared)
{
    __local float *tile = shared, *rows = shared + TILE_FLOATS;
    __local float *part = shared + SHARED_FLOATS, *shrinks = part + WG;
    const uint id = get_local_id(0), tx = id % TX, ty = id / TX;
    const size_t h = get_global_id(1);
    const ulong block = first_block + get_group_id(0) / SPLIT;
    const int4 where = blocks[2 * block], more = blocks[2 * block + 1];
    const int queries = where.y, keys = where.w, i0 = more.x + (int)(get_group_id(0) % SPLIT * ROWS);
    const size_t qt = (size_t)(where.x - base), kt = (size_t)(where.z - base);
    Q += q_offset + qt * q_row + h * q_head;
    K += k_offset + kt * k_row + h / group * k_head;
    V += v_offset + kt * v_row + h / group * v_head;
    mask += more.y;
#ifdef BIAS
    bias += bias_at + h * bias_head;
#endif

    /* this work-item computes a part of the exponentials of this query */
    const uint mine = id % ROWS, of = id / ROWS;
    const int see = causal ? i0 + (int)mine + keys - queries : keys;
    float top = -INFINITY, sum = 0.0f;
    wide_rows out;
    out.r0 = out.r1 = out.r2 = out.r3 = (wide_t)(0.0f);

    const int last = min(i0 + ROWS, queries);
    /* A work-group without queries meets the barriers, too: it must not return before them, because PoCL's code for
     * heads of 4 elements then writes to wrong places. */
    const int end = i0 >= queries ? 0 : causal ? min(keys, last + keys - queries) : keys;
    for (int j = 0; j < end; j += COLUMNS) {
        put_tile(tile, tile_product(shared, Q, q_row, i0, queries, scale, K, k_row, j, keys, id), id);
        barrier(CLK_LOCAL_MEM_FENCE);
        float high = -INFINITY;
        _Pragma("unroll 1") for (int t = 0; t < EACH; ++t) {
            const int at = of * EACH + t, key = j + at;
            const bool seen = (key < keys) & (key <= see) & (!has_mask || mask[min(key, keys - 1)] != 0);
#ifdef BIAS
            const float score = tile[at * SR + mine] + bias[i0 + (int)mine - key];
#else
            const float score = tile[at * SR + mine];
#endif
            const float s = select(-INFINITY, score, seen ? 1 : 0);
            tile[at * SR + mine] = s;
            high = fmax(high, s);
        }
        part[id] = high;
        barrier(CLK_LOCAL_MEM_FENCE);
        high = top;
        UNROLL for (int p = 0; p < PARTS; ++p) high = fmax(high, part[p * ROWS + mine]);
        /* no key seen yet: any finite number may replace the maximum */
        const float from = high == -INFINITY ? 0.0f : high;
        const float shrink = exp_lanes(top - from);
        top = high;
        sum *= shrink;
        if (of == 0) shrinks[mine] = shrink;
        _Pragma("unroll 1") for (int t = 0; t < EACH; ++t) {
            const float p = exp_lanes(tile[(of * EACH + t) * SR + mine] - from);
            tile[(of * EACH + t) * SR + mine] = p;
            sum += p;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const float4 by = *(__local const float4 *)(shrinks + 4 * ty);
        out.r0 *= by.x, out.r1 *= by.y, out.r2 *= by.z, out.r3 *= by.w;
        out = tile_apply(tile, rows, out, V, v_row, j, keys, id);
    }

    barrier(CLK_LOCAL_MEM_FENCE);
    part[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0.0f;
    UNROLL for (int p = 0; p < PARTS; ++p) sum += part[p * ROWS + mine];
    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
    if (of == 0) {
        shrinks[mine] = inverse;
        /* the gradients need the maximum and 1 / sum of each row's exponentials */
        if (keep && i0 + (int)mine < queries)
            tops[h * top_head + qt + i0 + mine] = (float2)(sum > 0.0f ? top : 0.0f, inverse);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int left = queries - i0 - (int)(4 * ty);
    __local const float *by = shrinks + 4 * ty;
    __global float *to = O + o_offset + (qt + i0 + 4 * ty) * o_row + h * o_head;
    if (left > 0) put_row(out.r0 * by[0], to, tx);
    if (left > 1) put_row(out.r1 * by[1], to + o_row, tx);
    if (left > 2) put_row(out.r2 * by[2], to + 2 * o_row, tx);
    if (left > 3) put_row(out.r3 * by[3], to + 3 * o_row, tx);
}
