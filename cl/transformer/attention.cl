/* transformer/attention.cl -- o = softmax(q k^T * scale + mask) v, one pass over the keys.
 *
 * A work-group or vector has QB queries of one sequence and head, each lane one of them. Keys come in
 * tiles; the running maximum and sum of every query are corrected tile by tile (online softmax). A
 * query without any key gives 0.
 *
 * Element (token t, head h, i) of q lies at offset + t * row + h * head + i; k, v, o likewise.
 * A block is two int4: first token of the queries, their number, first token of the keys, their
 * number; first query of the block within its sequence, first element of the mask, -, -.
 * Query i may see key j when mask[j] is not 0 (has_mask) and j <= i + keys - queries (causal).
 *
 * Launch   2-D: global (blocks * LOCAL, heads), local (LOCAL, 1).
 * Defines  LANES, LOCAL (LANES * LOCAL = QB), DH: width of a head, TILE keys at a time.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/rows.clh"

#define UNROLL _Pragma("unroll")
#if DH % 16 == 0
#define PART 16
#elif DH % 8 == 0
#define PART 8
#elif DH % 4 == 0
#define PART 4
#else
#define PART 1
#endif

#if LANES == 16 && PART == 16
#define TURN /* rows become lanes in registers */
#endif

/* Brings a cache line near: for compilers to machine code, not to somebody's intermediate one. */
#if LANES > 1 && defined(__has_builtin) && !defined(__SPIR__) && !defined(__SPIR64__)
#if __has_builtin(__builtin_prefetch)
#define FETCH(p) __builtin_prefetch((const void *)(size_t)(p), 0, 3)
#endif
#endif

/* Left to itself a compiler makes gathers of it. */
#if PART > 1
#define copy_part(from, to) LANES_JOIN(vstore, PART)(LANES_JOIN(vload, PART)(0, from), 0, to)
#else
#define copy_part(from, to) (*(to) = *(from))
#endif

#if LANES == 1
#define LANE 0
#else
#define LANE lanes_iota()
#endif

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_attention(__global const float *restrict Q, ulong q_offset, ulong q_row, ulong q_head,
              __global const float *restrict K, ulong k_offset, ulong k_row, ulong k_head,
              __global const float *restrict V, ulong v_offset, ulong v_row, ulong v_head,
              __global float *restrict O, ulong o_offset, ulong o_row, ulong o_head,
              __global const int4 *restrict blocks, ulong first_block, int base,
              __global const int *restrict mask, uint has_mask, uint causal, uint group,
              float scale, __global float2 *restrict tops, ulong top_head, uint keep)
{
    const size_t h = get_global_id(1);
    const int4 where = blocks[2 * (first_block + get_group_id(0))];
    const int4 more = blocks[2 * (first_block + get_group_id(0)) + 1];
    const int queries = where.y, keys = where.w;
    const int i0 = more.x + (int)get_local_id(0) * LANES;
    if (i0 >= queries) return;
    const size_t qt = (size_t)(where.x - base), kt = (size_t)(where.z - base);
    K += k_offset + kt * k_row + h / group * k_head;
    V += v_offset + kt * v_row + h / group * v_head;
    mask += more.y;

    fvec q[DH], o[DH];
#ifdef TURN
    for (int c = 0; c < DH; c += 16) {
        fvec rows[16];
        UNROLL for (int l = 0; l < 16; ++l)
            rows[l] = vload16(0, Q + q_offset + (qt + min(i0 + l, queries - 1)) * q_row +
                                     h * q_head + c);
        lanes_turn(rows);
        UNROLL for (int i = 0; i < 16; ++i) q[c + i] = rows[i] * scale, o[c + i] = (fvec)(0.0f);
    }
#else
    {
        float part[DH * LANES];
        for (int l = 0; l < LANES; ++l) {
            __global const float *from =
                Q + q_offset + (qt + min(i0 + l, queries - 1)) * q_row + h * q_head;
            for (int c = 0; c < DH; ++c)
                part[c * LANES + l] = from[c] * scale;
        }
        for (int c = 0; c < DH; ++c) {
            q[c] = lanes_load(part + c * LANES);
            o[c] = (fvec)(0.0f);
        }
    }
#endif
    const ivec see = causal ? (ivec)(i0 + keys - queries) + LANE : (ivec)(keys);
    fvec top = (fvec)(-INFINITY), sum = (fvec)(0.0f);
    const int end = causal ? min(keys, i0 + LANES + keys - queries) : keys;

    for (int j = 0; j < end; j += TILE) {
        fvec s[TILE];
#ifdef FETCH
        for (int t = 0; t < TILE; ++t) /* rows lie far apart: nobody else foresees them */
            UNROLL for (int c = 0; c < DH; c += 16) {
                FETCH(K + (size_t)(j + TILE + t) * k_row + c);
                FETCH(V + (size_t)(j + TILE + t) * v_row + c);
            }
#endif
#if LANES > 1
        float near[TILE * DH]; /* the tile's keys, at constant distances */
        for (int t = 0; t < TILE; ++t) {
            __global const float *from = K + (size_t)min(j + t, keys - 1) * k_row;
            UNROLL for (int c = 0; c < DH; c += PART) copy_part(from + c, near + t * DH + c);
        }
#define KEY(t, c) near[(t) * DH + (c)]
#else
#define KEY(t, c) K[(size_t)min(j + (t), keys - 1) * k_row + (c)]
#endif
        UNROLL for (int t = 0; t < TILE; ++t) s[t] = (fvec)(0.0f);
#if LANES == 1
        UNROLL
#endif
        for (int c = 0; c < DH; ++c)
            UNROLL for (int t = 0; t < TILE; ++t) s[t] = fma(q[c], (fvec)(KEY(t, c)), s[t]);

        fvec high = top;
        UNROLL for (int t = 0; t < TILE; ++t) {
            const bool there = j + t < keys && (!has_mask || mask[min(j + t, keys - 1)] != 0);
            s[t] = pick(see < (ivec)(there ? j + t : INT_MAX), (fvec)(-INFINITY), s[t]);
            high = fmax(high, s[t]);
        }
        /* nothing seen yet: any number does in place of the maximum, but not an infinite one */
        const fvec from = pick(high == -INFINITY, (fvec)(0.0f), high);
        const fvec shrink = exp_lanes(top - from);
        top = high;
        sum = sum * shrink;
        UNROLL for (int t = 0; t < TILE; ++t) {
            s[t] = exp_lanes(s[t] - from);
            sum += s[t];
        }
#if LANES == 1
        UNROLL
#endif
        for (int c = 0; c < DH; c += PART) {
            fvec acc[PART];
            UNROLL for (int i = 0; i < PART; ++i) acc[i] = o[c + i] * shrink;
            UNROLL for (int t = 0; t < TILE; ++t) {
                __global const float *value = V + (size_t)min(j + t, keys - 1) * v_row + c;
                UNROLL for (int i = 0; i < PART; ++i)
                    acc[i] = fma(s[t], (fvec)(value[i]), acc[i]);
            }
            UNROLL for (int i = 0; i < PART; ++i) o[c + i] = acc[i];
        }
    }

    const fvec inverse = pick(sum > 0.0f, 1.0f / sum, (fvec)(0.0f));
    float part[DH * LANES];
#ifdef TURN
    for (int c = 0; c < DH; c += 16) {
        fvec rows[16];
        UNROLL for (int i = 0; i < 16; ++i) rows[i] = o[c + i] * inverse;
        lanes_turn(rows);
        UNROLL for (int l = 0; l < 16; ++l)
            if (i0 + l < queries)
                vstore16(rows[l], 0, O + o_offset + (qt + i0 + l) * o_row + h * o_head + c);
    }
#else
    for (int c = 0; c < DH; ++c)
        lanes_store(o[c] * inverse, part + c * LANES);
    for (int l = 0; l < LANES && i0 + l < queries; ++l) {
        __global float *to = O + o_offset + (qt + i0 + l) * o_row + h * o_head;
        for (int c = 0; c < DH; ++c)
            to[c] = part[c * LANES + l];
    }
#endif
    if (keep) { /* maximum and 1 / sum of each row's exponentials: what the way back needs */
        float highest[LANES];
        lanes_store(pick(sum > 0.0f, top, (fvec)(0.0f)), highest);
        lanes_store(inverse, part);
        for (int l = 0; l < LANES && i0 + l < queries; ++l)
            tops[h * top_head + qt + i0 + l] = (float2)(highest[l], part[l]);
    }
}
