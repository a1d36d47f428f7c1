/* transformer/attention_back_tile.cl -- gradients of o = softmax(q k^T * scale + mask) v, by tiles in
 * registers, for GPUs. Formulas, blocks, strides and masks are as in transformer/attention_back.cl, which
 * needs no barrier.
 *
 * A work-group of clv_attention_back_q_tile has 64 queries and takes 32 keys at a time; it writes dq and
 * delta. clv_attention_back_kv_tile runs second: a work-group has 64 keys, takes 32 queries at a time of all
 * heads that share the keys, and writes dk and dv. Every number is written by one work-item, and sums run in a
 * fixed order.
 *
 * Launch   2-D: global (blocks * 64 / ROWS * WG, heads of q, or of k), local (WG, 1), WG = ROWS / 4 * TX.
 * Defines  LANES 1; DH: width of a head; ROWS, TX as in transformer/attention_tile.cl.
 * Needs    OpenCL C 1.2; local memory for SHARED_FLOATS + WG + ROWS floats, given as an argument. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"
#include "common/waves.clh"
#include "transformer/tiles.clh"

#define SPLIT (64 / ROWS) /* work-groups of a block of 64 queries or keys */
#define PARTS (WG / ROWS)
#define EACH (COLUMNS / PARTS)

/* tile[c][r] = scores of row r and column c */
#define SCORES(a, a_row, a_first, a_tokens, factor, b, b_row, b_first, b_tokens) \
    put_tile(tile, tile_product(shared, a, a_row, a_first, a_tokens, factor, b, b_row, b_first, b_tokens, id), id)

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) WAVES(3) void
clv_attention_back_q_tile(__global const float *restrict Q, ulong q_offset, ulong q_row, ulong q_head,
                          __global const float *restrict K, ulong k_offset, ulong k_row, ulong k_head,
                          __global const float *restrict V, ulong v_offset, ulong v_row, ulong v_head,
                          __global const float *restrict O, ulong o_offset, ulong o_row, ulong o_head,
                          __global const float *restrict G, ulong g_offset, ulong g_row, ulong g_head,
                          __global float *restrict DQ, ulong dq_offset, ulong dq_row, ulong dq_head,
                          __global const int4 *restrict blocks, ulong first_block,
                          __global const int *restrict mask, uint has_mask, uint causal, uint group,
                          float scale, __global const float2 *restrict tops, __global float *restrict delta,
                          ulong top_head, __local float *restrict shared)
{
    __local float *tile = shared, *rows = shared + TILE_FLOATS;
    __local float *part = shared + SHARED_FLOATS, *deltas = part + WG;
    const uint id = get_local_id(0), tx = id % TX, ty = id / TX;
    const size_t h = get_global_id(1);
    const ulong block = first_block + get_group_id(0) / SPLIT;
    const int4 where = blocks[2 * block], more = blocks[2 * block + 1];
    const int queries = where.y, keys = where.w, i0 = more.x + (int)(get_group_id(0) % SPLIT * ROWS);
    const size_t qt = (size_t)where.x, kt = (size_t)where.z;
    Q += q_offset + qt * q_row + h * q_head, O += o_offset + qt * o_row + h * o_head;
    G += g_offset + qt * g_row + h * g_head;
    K += k_offset + kt * k_row + h / group * k_head;
    V += v_offset + kt * v_row + h / group * v_head;
    mask += more.y;
    tops += h * top_head + qt, delta += h * top_head + qt;

    /* this work-item computes a part of this query's delta = sum of G o, then of its exponentials */
    const uint mine = id % ROWS, of = id / ROWS;
    const int query = min(i0 + (int)mine, queries - 1), see = causal ? query + keys - queries : keys;
    const float2 both = tops[query];
    float own = 0.0f;
    for (uint d = of; d < DH; d += PARTS) own = fma(G[(size_t)query * g_row + d], O[(size_t)query * o_row + d], own);
    part[id] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    own = 0.0f;
    UNROLL for (int p = 0; p < PARTS; ++p) own += part[p * ROWS + mine];
    if (of == 0 && i0 + (int)mine < queries) delta[query] = own;

    wide_rows dq;
    dq.r0 = dq.r1 = dq.r2 = dq.r3 = (wide_t)(0.0f);
    const int last = min(i0 + ROWS, queries);
    /* a work-group without queries meets the barriers, too, as in attention_tile.cl */
    const int end = i0 >= queries ? 0 : causal ? min(keys, last + keys - queries) : keys;
    for (int j = 0; j < end; j += COLUMNS) {
        const own_rows s = tile_product(shared, Q, q_row, i0, queries, scale, K, k_row, j, keys, id);
        const own_rows d = tile_product(shared, G, g_row, i0, queries, 1.0f, V, v_row, j, keys, id);
        /* computes P = exp(S - top) / sum in local memory, G v^T in registers, and then joins both */
        put_tile(tile, s, id);
        barrier(CLK_LOCAL_MEM_FENCE);
        _Pragma("unroll 1") for (int t = 0; t < EACH; ++t) {
            const int at = of * EACH + t, key = j + at;
            const bool seen = (key < keys) & (key <= see) & (!has_mask || mask[min(key, keys - 1)] != 0);
            const float p = exp_lanes(tile[at * SR + mine] - both.x) * both.y;
            tile[at * SR + mine] = select(0.0f, p, seen ? 1 : 0);
        }
        deltas[mine] = own; /* all work-items of a query write the same number */
        barrier(CLK_LOCAL_MEM_FENCE);
        const float4 less = *(__local const float4 *)(deltas + 4 * ty);
#define TURN(n, element)                                                                          \
    {                                                                                             \
        __local float4 *at = (__local float4 *)(tile + (OWN * tx + n) * SR + 4 * ty);             \
        *at *= (float4)(d.r0 element, d.r1 element, d.r2 element, d.r3 element) - less;           \
    }
        EACH_OWN(TURN)
#undef TURN
        barrier(CLK_LOCAL_MEM_FENCE);
        dq = tile_apply(tile, rows, dq, K, k_row, j, keys, id);
    }
    const int left = queries - i0 - (int)(4 * ty);
    __global float *to = DQ + dq_offset + (qt + i0 + 4 * ty) * dq_row + h * dq_head;
    if (left > 0) put_row(dq.r0 * scale, to, tx);
    if (left > 1) put_row(dq.r1 * scale, to + dq_row, tx);
    if (left > 2) put_row(dq.r2 * scale, to + 2 * dq_row, tx);
    if (left > 3) put_row(dq.r3 * scale, to + 3 * dq_row, tx);
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) WAVES(3) void
clv_attention_back_kv_tile(__global const float *restrict Q, ulong q_offset, ulong q_row, ulong q_head,
                           __global const float *restrict K, ulong k_offset, ulong k_row, ulong k_head,
                           __global const float *restrict V, ulong v_offset, ulong v_row, ulong v_head,
                           __global const float *restrict G, ulong g_offset, ulong g_row, ulong g_head,
                           __global float *restrict DK, ulong dk_offset, ulong dk_row, ulong dk_head,
                           __global float *restrict DV, ulong dv_offset, ulong dv_row, ulong dv_head,
                           __global const int4 *restrict blocks, ulong first_block,
                           __global const int *restrict mask, uint has_mask, uint causal, uint group,
                           float scale, __global const float2 *restrict tops,
                           __global const float *restrict delta, ulong top_head,
                           __local float *restrict shared)
{
    __local float *tile = shared, *rows = shared + TILE_FLOATS;
    const uint id = get_local_id(0), tx = id % TX, ty = id / TX;
    const size_t hk = get_global_id(1);
    const ulong block = first_block + get_group_id(0) / SPLIT;
    const int4 where = blocks[2 * block], more = blocks[2 * block + 1];
    const int queries = where.y, keys = where.w, j0 = more.x + (int)(get_group_id(0) % SPLIT * ROWS);
    const size_t qt = (size_t)where.x, kt = (size_t)where.z;
    K += k_offset + kt * k_row + hk * k_head, V += v_offset + kt * v_row + hk * v_head;
    mask += more.y;

    /* the first query that sees the key whose exponentials this work-item computes; `queries` if none does */
    const uint mine = id % ROWS, of = id / ROWS;
    const int key = min(j0 + (int)mine, keys - 1);
    const int from = has_mask && mask[key] == 0 ? queries : causal ? max(key - (keys - queries), 0) : 0;
    const int start = causal ? max(j0 - (keys - queries), 0) / COLUMNS * COLUMNS : 0;

    wide_rows dk, dv;
    dk.r0 = dk.r1 = dk.r2 = dk.r3 = (wide_t)(0.0f);
    dv.r0 = dv.r1 = dv.r2 = dv.r3 = (wide_t)(0.0f);
    const uint turns = j0 < keys ? group : 0; /* none for a work-group without keys */
    for (uint n = 0; n < turns; ++n) {
        const size_t h = hk * group + n;
        __global const float *qs = Q + q_offset + qt * q_row + h * q_head;
        __global const float *gs = G + g_offset + qt * g_row + h * g_head;
        __global const float2 *top = tops + h * top_head + qt;
        __global const float *own = delta + h * top_head + qt;
        for (int i = start; i < queries; i += COLUMNS) {
            SCORES(K, k_row, j0, keys, scale, qs, q_row, i, queries);
            barrier(CLK_LOCAL_MEM_FENCE);
            _Pragma("unroll 1") for (int t = 0; t < EACH; ++t) {
                const int at = of * EACH + t, query = min(i + at, queries - 1);
                const float p = exp_lanes(tile[at * SR + mine] - top[query].x) * top[query].y;
                const bool seen = (from <= i + at) & (i + at < queries);
                tile[at * SR + mine] = select(0.0f, p, seen ? 1 : 0);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            dv = tile_apply(tile, rows, dv, gs, g_row, i, queries, id);
            /* P is needed again, with (v G^T - delta); its rows stay in registers until then */
            own_rows p;
#define TAKE(m, element)                                                                          \
    {                                                                                             \
        const float4 column = *(__local const float4 *)(tile + (OWN * tx + m) * SR + 4 * ty);     \
        p.r0 element = column.x, p.r1 element = column.y, p.r2 element = column.z, p.r3 element = column.w; \
    }
            EACH_OWN(TAKE)
#undef TAKE
            const own_rows d = tile_product(shared, V, v_row, j0, keys, 1.0f, gs, g_row, i, queries, id);
#define TURN(m, element)                                                                          \
    {                                                                                             \
        const float less = own[min(i + (int)(OWN * tx) + m, queries - 1)];                        \
        p.r0 element *= d.r0 element - less, p.r1 element *= d.r1 element - less;                 \
        p.r2 element *= d.r2 element - less, p.r3 element *= d.r3 element - less;                 \
    }
            EACH_OWN(TURN)
#undef TURN
            put_tile(tile, p, id);
            barrier(CLK_LOCAL_MEM_FENCE);
            dk = tile_apply(tile, rows, dk, qs, q_row, i, queries, id);
        }
    }
    const int left = keys - j0 - (int)(4 * ty);
    __global float *to_k = DK + dk_offset + (kt + j0 + 4 * ty) * dk_row + hk * dk_head;
    __global float *to_v = DV + dv_offset + (kt + j0 + 4 * ty) * dv_row + hk * dv_head;
    if (left > 0) put_row(dk.r0 * scale, to_k, tx), put_row(dv.r0, to_v, tx);
    if (left > 1) put_row(dk.r1 * scale, to_k + dk_row, tx), put_row(dv.r1, to_v + dv_row, tx);
    if (left > 2) put_row(dk.r2 * scale, to_k + 2 * dk_row, tx), put_row(dv.r2, to_v + 2 * dv_row, tx);
    if (left > 3) put_row(dk.r3 * scale, to_k + 3 * dk_row, tx), put_row(dv.r3, to_v + 3 * dv_row, tx);
}
