/* transformer/attention_split.cl -- o = softmax(q k^T * scale + mask) v for few queries and many keys, as
 * in decoders. The work-groups share the keys, so that all of the device reads them.
 *
 * clv_attention_part: a work-group takes 64 keys of one head of keys, and QN rows. Rows are the queries of
 *                     all heads that share this head of keys: row r is query r / group of head
 *                     group * hk + r % group. For each row it writes the highest score, the sum of the
 *                     exponentials, and their products with the values.
 * clv_attention_join: joins all parts of a row.
 *
 * Blocks, strides and masks are as in transformer/attention.cl. P holds for each block, row of the call
 * (query * heads + head) and part: PADDED products, the maximum, the sum.
 *
 * Launch   part: 3-D: global (parts * 256, heads of keys * batches of QN rows, blocks), local (256, 1, 1).
 *          join: 3-D: global (64, rows, blocks), local (64, 1, 1).
 * Defines  LANES 1; DH: width of a head; WIDTH: 64, 128 or 256, DH at least; QN: 1, 2, 4 or 8.
 * Needs    OpenCL C 1.2; for part local memory of QN * (WIDTH + 256) + 256 floats, given as an argument.
 * Memory   Keys and values are read once.
 * Order    Sums run over elements by four partial sums, over keys in pairs, over parts in ascending order. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"
#include "transformer/shared.clh"

#define UNROLL _Pragma("unroll")
#define WG CLV_SPLIT_GROUP
#define KEYS CLV_SPLIT_KEYS /* per work-group */
#define QUARTERS (WG / KEYS)
#define SHARES (WG / WIDTH) /* work-items per element of a head while values are added */
#define STRIDE (WIDTH + 2)

/* Returns the sum or maximum of the 64 numbers at x, computed in pairs; all 64 work-items must call it. */
static float over_keys(__local float *x, uint key, bool highest)
{
    for (uint apart = KEYS / 2; apart; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (key < apart) x[key] = highest ? fmax(x[key], x[key + apart]) : x[key] + x[key + apart];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return x[0];
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_attention_part(__global const float *restrict Q, ulong q_offset, ulong q_row, ulong q_head,
                   __global const float *restrict K, ulong k_offset, ulong k_row, ulong k_head,
                   __global const float *restrict V, ulong v_offset, ulong v_row, ulong v_head,
                   __global const int4 *restrict blocks, ulong first_block, int base,
                   __global const int *restrict mask, uint has_mask, uint causal, uint heads, uint group,
                   float scale, __global float *restrict P, uint most_rows, uint most_parts,
                   __local float *restrict shared)
{
    __local float *q = shared, *scores = q + QN * WIDTH, *other = scores + QN * KEYS * QUARTERS;
    const uint id = get_local_id(0), part = get_group_id(0), block = get_group_id(2);
    const int4 where = blocks[2 * (first_block + block)], more = blocks[2 * (first_block + block) + 1];
    const uint kv_heads = heads / group, hk = get_group_id(1) % kv_heads;
    const uint r0 = get_group_id(1) / kv_heads * QN, rows = group * (uint)(where.y - more.x);
    const int keys = where.w, queries = where.y, j0 = (int)(part * KEYS);
    if (j0 >= keys || r0 >= rows) return; /* all of the work-group */
    const size_t kt = (size_t)(where.z - base);
    K += k_offset + kt * k_row + hk * k_head, V += v_offset + kt * v_row + hk * v_head;
    mask += more.y;

    for (uint e = id; e < QN * WIDTH; e += WG) {
        const uint r = min(r0 + e / WIDTH, rows - 1), d = e % WIDTH;
        const size_t at = (size_t)(where.x - base + more.x) + r / group;
        q[e] = d < DH ? Q[q_offset + at * q_row + (hk * group + r % group) * q_head + d] * scale : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    { /* four work-items read 16 neighbouring elements of a key at a time */
        const uint key = id / QUARTERS, quarter = id % QUARTERS;
        __global const float *k = K + (size_t)min(j0 + (int)key, keys - 1) * k_row;
        float sum[QN];
        UNROLL for (int r = 0; r < QN; ++r) sum[r] = 0.0f;
        for (uint d = 4 * quarter; d < DH; d += 4 * QUARTERS) {
            float4 x;
            if (DH % 4 == 0) x = vload4(0, k + d);
            else x = (float4)(k[d], d + 1 < DH ? k[d + 1] : 0.0f, d + 2 < DH ? k[d + 2] : 0.0f,
                              d + 3 < DH ? k[d + 3] : 0.0f);
            UNROLL for (int r = 0; r < QN; ++r) {
                const float4 y = *(__local const float4 *)(q + r * WIDTH + d);
                sum[r] = fma(x.x, y.x, sum[r]), sum[r] = fma(x.y, y.y, sum[r]);
                sum[r] = fma(x.z, y.z, sum[r]), sum[r] = fma(x.w, y.w, sum[r]);
            }
        }
        UNROLL for (int r = 0; r < QN; ++r) scores[(r * QUARTERS + quarter) * KEYS + key] = sum[r];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const uint key = id % KEYS, lane = id / KEYS;
    const size_t row_floats = (size_t)most_parts * STRIDE;
    const bool there = (j0 + (int)key < keys) && (!has_mask || mask[min(j0 + (int)key, keys - 1)] != 0);
    for (uint n = 0; n < QN; n += QUARTERS) { /* each 64 work-items take one row at a time */
        const uint r = min(n + lane, (uint)QN - 1);
        __local float *s = scores + r * QUARTERS * KEYS, *turn = other + lane * KEYS;
        const int see = causal ? more.x + (int)((r0 + r) / group) + keys - queries : keys;
        const float x = (s[key] + s[KEYS + key]) + (s[2 * KEYS + key] + s[3 * KEYS + key]);
        const float own = there && j0 + (int)key <= see ? x : -INFINITY;
        turn[key] = own;
        const float high = over_keys(turn, key, true), from = high == -INFINITY ? 0.0f : high;
        barrier(CLK_LOCAL_MEM_FENCE);
        const float p = exp_lanes(own - from);
        turn[key] = p;
        const float total = over_keys(turn, key, false);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (n + lane < QN) s[key] = p;
        if (key == 0 && n + lane < QN && r0 + r < rows) {
            const size_t row = (r0 + r) / group * heads + hk * group + (r0 + r) % group;
            __global float *to = P + ((size_t)block * most_rows + row) * row_floats + part * STRIDE + WIDTH;
            to[0] = high, to[1] = total;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const uint d = id % WIDTH, share = id / WIDTH;
    float out[QN];
    UNROLL for (int r = 0; r < QN; ++r) out[r] = 0.0f;
    const int last = min(KEYS, keys - j0);
    if (d < DH)
        _Pragma("unroll 4") for (int j = (int)share; j < last; j += SHARES) {
            const float v = V[(size_t)(j0 + j) * v_row + d];
            UNROLL for (int r = 0; r < QN; ++r) out[r] = fma(scores[r * QUARTERS * KEYS + j], v, out[r]);
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int r = 0; r < QN; ++r) scores[r * WG + id] = out[r];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint e = id; e < QN * WIDTH; e += WG) {
        const uint r = e / WIDTH, at = e % WIDTH;
        if (r0 + r >= rows) continue;
        float sum = 0.0f;
        for (uint s = 0; s < SHARES; ++s)
            sum += scores[r * WG + s * WIDTH + at];
        const size_t row = (r0 + r) / group * heads + hk * group + (r0 + r) % group;
        P[((size_t)block * most_rows + row) * row_floats + part * STRIDE + at] = sum;
    }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
clv_attention_join(__global const float *restrict P, __global float *restrict O, ulong o_offset, ulong o_row,
                   ulong o_head, __global const int4 *restrict blocks, ulong first_block, int base,
                   uint heads, uint most_rows, uint most_parts)
{
    const uint row = get_global_id(1), block = get_global_id(2);
    const int4 where = blocks[2 * (first_block + block)], more = blocks[2 * (first_block + block) + 1];
    const uint query = row / heads, parts = (uint)(where.w + KEYS - 1) / KEYS;
    if ((int)query >= where.y - more.x) return;
    __global const float *p = P + ((size_t)block * most_rows + row) * most_parts * STRIDE;
    float high = -INFINITY, sum = 0.0f;
    for (uint i = 0; i < parts; ++i)
        high = fmax(high, p[i * STRIDE + WIDTH]);
    const float from = high == -INFINITY ? 0.0f : high;
    for (uint i = 0; i < parts; ++i)
        sum += p[i * STRIDE + WIDTH + 1] * exp_lanes(p[i * STRIDE + WIDTH] - from);
    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
    __global float *to =
        O + o_offset + (size_t)(where.x - base + more.x + (int)query) * o_row + row % heads * o_head;
    for (uint d = get_local_id(0); d < DH; d += 64) {
        float x = 0.0f;
        for (uint i = 0; i < parts; ++i)
            x = fma(p[i * STRIDE + d], exp_lanes(p[i * STRIDE + WIDTH] - from), x);
        to[d] = x * inverse;
    }
}
