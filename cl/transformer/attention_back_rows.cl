/* transformer/attention_back_rows.cl -- the backward pass of attention for CPU cores, in one pass over queries and
 * keys. Formulas and arguments are as in transformer/attention_back.cl.
 *
 * A work-item has one text and one head of keys, with all heads of queries that share it. It takes LANES
 * queries and TILE keys at a time; P and S of such a tile are computed once and serve dq (queries in
 * lanes) as well as dk and dv (columns in lanes), which stay in memory between tiles. Sums run over
 * heads, queries and keys in ascending order.
 *
 * Launch   2-D: global (blocks, heads of k), local (1, 1); blocks that are not the first of their
 *          text end at once.
 * Defines  LANES (16 or 8), DH: width of a head, TILE: keys at a time, a multiple of 4.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/lanes_of_rows.clh"

#define WIDE ((DH + LANES - 1) / LANES * LANES) /* a row in vectors; zeros beyond DH */
#define TOGETHER 4                              /* keys whose dk and dv grow side by side */

/* Copies `count` rows from token `first` on, times `factor`, to constant distances; the last row repeats. */
static void rows_near(__global const float *from, ulong row, int first, int count, int rows,
                      float factor, float *near)
{
    for (int t = 0; t < rows; ++t) {
        __global const float *token = from + (size_t)min(first + t, count - 1) * row;
        for (int c = 0; c < WIDE; c += LANES)
            lanes_store(columns(token, c, DH) * factor, near + t * WIDE + c);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_attention_back_rows(__global const float *restrict Q, ulong q_offset, ulong q_row, ulong q_head,
                        __global const float *restrict K, ulong k_offset, ulong k_row, ulong k_head,
                        __global const float *restrict V, ulong v_offset, ulong v_row, ulong v_head,
                        __global const float *restrict O, ulong o_offset, ulong o_row, ulong o_head,
                        __global const float *restrict G, ulong g_offset, ulong g_row, ulong g_head,
                        __global float *restrict DQ, ulong dq_offset, ulong dq_row, ulong dq_head,
                        __global float *restrict DK, ulong dk_offset, ulong dk_row, ulong dk_head,
                        __global float *restrict DV, ulong dv_offset, ulong dv_row, ulong dv_head,
                        __global const int4 *restrict blocks, ulong first_block,
                        __global const int *restrict mask, uint has_mask, uint causal, uint group,
                        float scale, __global const float2 *restrict tops, ulong top_head)
{
    const size_t hk = get_global_id(1);
    const int4 where = blocks[2 * (first_block + get_global_id(0))];
    const int4 more = blocks[2 * (first_block + get_global_id(0)) + 1];
    const int queries = where.y, keys = where.w;
    if (more.x != 0) return;
    const size_t qt = (size_t)where.x, kt = (size_t)where.z;
    K += k_offset + kt * k_row + hk * k_head;
    V += v_offset + kt * v_row + hk * v_head;
    DK += dk_offset + kt * dk_row + hk * dk_head;
    DV += dv_offset + kt * dv_row + hk * dv_head;
    mask += more.y;
    for (int j = 0; j < keys; ++j)
        for (int c = 0; c < DH; c += LANES) {
            put_columns((fvec)(0.0f), DK + (size_t)j * dk_row, c, DH);
            put_columns((fvec)(0.0f), DV + (size_t)j * dv_row, c, DH);
        }

    for (uint part = 0; part < group; ++part) {
        const size_t h = hk * group + part;
        __global const float *qs = Q + q_offset + qt * q_row + h * q_head;
        __global const float *gs = G + g_offset + qt * g_row + h * g_head;
        for (int i0 = 0; i0 < queries; i0 += LANES) {
            fvec q[DH], g[DH], dq[DH], own = (fvec)(0.0f), top, inverse;
            float q_rows[LANES * WIDE], g_rows[LANES * WIDE];
            by_columns(O + o_offset + qt * o_row + h * o_head, o_row, i0, queries, 1.0f, dq);
            by_columns(gs, g_row, i0, queries, 1.0f, g);
            by_columns(qs, q_row, i0, queries, scale, q);
            rows_near(qs, q_row, i0, queries, LANES, scale, q_rows);
            rows_near(gs, g_row, i0, queries, LANES, 1.0f, g_rows);
            for (int c = 0; c < DH; ++c) {
                own = fma(g[c], dq[c], own);
                dq[c] = (fvec)(0.0f);
            }
            {
                float high[LANES], share[LANES];
                for (int l = 0; l < LANES; ++l) { /* lanes beyond the last query weigh nothing */
                    const float2 both = tops[h * top_head + qt + min(i0 + l, queries - 1)];
                    high[l] = both.x, share[l] = i0 + l < queries ? both.y : 0.0f;
                }
                top = lanes_load(high), inverse = lanes_load(share);
            }
            const ivec see = causal ? (ivec)(i0 + keys - queries) + lanes_iota() : (ivec)(keys);
            const int end = causal ? min(keys, i0 + LANES + keys - queries) : keys;

            for (int j = 0; j < end; j += TILE) {
                fvec s[TILE], d[TILE];
                float near_k[TILE * WIDE], near_v[TILE * WIDE], p_tile[TILE * LANES],
                    s_tile[TILE * LANES];
                rows_near(K, k_row, j, keys, TILE, 1.0f, near_k);
                rows_near(V, v_row, j, keys, TILE, 1.0f, near_v);
                UNROLL for (int t = 0; t < TILE; ++t) s[t] = d[t] = (fvec)(0.0f);
                for (int c = 0; c < DH; ++c)
                    UNROLL for (int t = 0; t < TILE; ++t)
                        s[t] = fma(q[c], (fvec)(near_k[t * WIDE + c]), s[t]);
                for (int c = 0; c < DH; ++c)
                    UNROLL for (int t = 0; t < TILE; ++t)
                        d[t] = fma(g[c], (fvec)(near_v[t * WIDE + c]), d[t]);
                UNROLL for (int t = 0; t < TILE; ++t) {
                    const bool there = j + t < keys && (!has_mask || mask[min(j + t, keys - 1)] != 0);
                    const ivec hidden = see < (ivec)(there ? j + t : INT_MAX);
                    const fvec p = pick(hidden, (fvec)(0.0f), exp_lanes(s[t] - top) * inverse);
                    s[t] = p * (d[t] - own);
                    lanes_store(p, p_tile + t * LANES);
                    lanes_store(s[t], s_tile + t * LANES);
                }
                for (int c = 0; c < DH; c += PART) {
                    fvec acc[PART];
                    UNROLL for (int i = 0; i < PART; ++i) acc[i] = dq[c + i];
                    UNROLL for (int t = 0; t < TILE; ++t)
                        UNROLL for (int i = 0; i < PART; ++i)
                            acc[i] = fma(s[t], (fvec)(near_k[t * WIDE + c + i]), acc[i]);
                    UNROLL for (int i = 0; i < PART; ++i) dq[c + i] = acc[i];
                }
                for (int t = 0; t < TILE && j + t < keys; t += TOGETHER)
                    for (int c = 0; c < WIDE; c += LANES) {
                        fvec dk[TOGETHER], dv[TOGETHER];
                        UNROLL for (int n = 0; n < TOGETHER; ++n) {
                            const size_t key = (size_t)min(j + t + n, keys - 1);
                            dk[n] = columns(DK + key * dk_row, c, DH);
                            dv[n] = columns(DV + key * dv_row, c, DH);
                        }
                        for (int l = 0; l < LANES; ++l) {
                            const fvec from_q = lanes_load(q_rows + l * WIDE + c);
                            const fvec from_g = lanes_load(g_rows + l * WIDE + c);
                            UNROLL for (int n = 0; n < TOGETHER; ++n) {
                                const int at = (t + n) * LANES + l;
                                dk[n] = fma((fvec)(s_tile[at]), from_q, dk[n]);
                                dv[n] = fma((fvec)(p_tile[at]), from_g, dv[n]);
                            }
                        }
                        UNROLL for (int n = 0; n < TOGETHER; ++n) {
                            const size_t key = (size_t)(j + t + n);
                            if (j + t + n >= keys) continue;
                            put_columns(dk[n], DK + key * dk_row, c, DH);
                            put_columns(dv[n], DV + key * dv_row, c, DH);
                        }
                    }
            }
            for (int c = 0; c < DH; ++c)
                dq[c] *= scale;
            put_rows(dq, DQ + dq_offset + qt * dq_row + h * dq_head, dq_row, i0, queries);
        }
    }
}
