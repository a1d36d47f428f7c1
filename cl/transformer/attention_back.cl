/* transformer/attention_back.cl -- the backward pass of o = softmax(q k^T * scale + mask) v.
 *
 * P is recomputed from the maximum and 1 / sum of every row, which transformer/attention.cl kept. With
 * G = dL/do and delta = sum of G o over a row:
 *
 *     dv = P^T G,   S = P (G v^T - delta),   dq = scale S k,   dk = scale S^T q
 *
 * For GPUs; cores use transformer/attention_back_rows.cl. A work-item of clv_attention_back_q has one
 * query and walks over the keys; it writes dq and delta. clv_attention_back_kv runs second: a work-item
 * has one key, walks over the queries of all heads that share it, and writes dk and dv. Every number is
 * written by one work-item, and sums run in a fixed order.
 *
 * Element (token t, head h, i) of q, o, G and dq lies at offset + t * row + h * head + i; k, v and
 * their gradients likewise by heads of keys. Blocks, mask and causality are as in
 * transformer/attention.cl; in the second kernel, the number of the first query of a block is that of the first key.
 *
 * Launch   2-D: global (blocks * LOCAL, heads of q, or of k), local (LOCAL, 1).
 * Defines  LANES 1, LOCAL, DH: width of a head, TILE: keys or queries at a time.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/lanes_of_rows.clh"

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_attention_back_q(__global const float *restrict Q, ulong q_offset, ulong q_row, ulong q_head,
                     __global const float *restrict K, ulong k_offset, ulong k_row, ulong k_head,
                     __global const float *restrict V, ulong v_offset, ulong v_row, ulong v_head,
                     __global const float *restrict O, ulong o_offset, ulong o_row, ulong o_head,
                     __global const float *restrict G, ulong g_offset, ulong g_row, ulong g_head,
                     __global float *restrict DQ, ulong dq_offset, ulong dq_row, ulong dq_head,
                     __global const int4 *restrict blocks, ulong first_block,
                     __global const int *restrict mask, uint has_mask, uint causal, uint group,
                     float scale, __global const float2 *restrict tops, __global float *restrict delta,
                     ulong top_head)
{
    const size_t h = get_global_id(1);
    const int4 where = blocks[2 * (first_block + get_group_id(0))];
    const int4 more = blocks[2 * (first_block + get_group_id(0)) + 1];
    const int queries = where.y, keys = where.w;
    const int i0 = more.x + (int)get_local_id(0) * LANES;
    if (i0 >= queries) return;
    const size_t qt = (size_t)where.x, kt = (size_t)where.z;
    K += k_offset + kt * k_row + h / group * k_head;
    V += v_offset + kt * v_row + h / group * v_head;
    mask += more.y;
    tops += h * top_head + qt, delta += h * top_head + qt;

    fvec q[DH], g[DH], dq[DH], own = (fvec)(0.0f), top, inverse;
    by_columns(O + o_offset + qt * o_row + h * o_head, o_row, i0, queries, 1.0f, dq);
    by_columns(G + g_offset + qt * g_row + h * g_head, g_row, i0, queries, 1.0f, g);
    by_columns(Q + q_offset + qt * q_row + h * q_head, q_row, i0, queries, scale, q);
    for (int c = 0; c < DH; ++c) {
        own = fma(g[c], dq[c], own);
        dq[c] = (fvec)(0.0f);
    }
    {
        float high[LANES], share[LANES];
        for (int l = 0; l < LANES; ++l) {
            const float2 both = tops[min(i0 + l, queries - 1)];
            high[l] = both.x, share[l] = both.y;
        }
        top = lanes_load(high), inverse = lanes_load(share);
        lanes_store(own, high);
        for (int l = 0; l < LANES && i0 + l < queries; ++l)
            delta[i0 + l] = high[l];
    }
    const ivec see = causal ? (ivec)(i0 + keys - queries) : (ivec)(keys);
    const int end = causal ? min(keys, i0 + LANES + keys - queries) : keys;

    for (int j = 0; j < end; j += TILE) {
        fvec s[TILE], d[TILE];
        UNROLL for (int t = 0; t < TILE; ++t) s[t] = d[t] = (fvec)(0.0f);
        UNROLL for (int c = 0; c < DH; c += PART)
            UNROLL for (int t = 0; t < TILE; ++t) {
                __global const float *at = K + (size_t)min(j + t, keys - 1) * k_row + c;
#define TERM(i) s[t] = fma(q[c + i], (fvec)(at[i]), s[t]);
                OF_PART(TERM)
#undef TERM
            }
        UNROLL for (int c = 0; c < DH; c += PART)
            UNROLL for (int t = 0; t < TILE; ++t) {
                __global const float *at = V + (size_t)min(j + t, keys - 1) * v_row + c;
#define TERM(i) d[t] = fma(g[c + i], (fvec)(at[i]), d[t]);
                OF_PART(TERM)
#undef TERM
            }
        UNROLL for (int t = 0; t < TILE; ++t) {
            const bool there = j + t < keys && (!has_mask || mask[min(j + t, keys - 1)] != 0);
            const fvec p = exp_lanes(s[t] - top) * inverse;
            s[t] = pick(see < (ivec)(there ? j + t : INT_MAX), (fvec)(0.0f), p * (d[t] - own));
        }
        UNROLL for (int c = 0; c < DH; c += PART) {
            UNROLL for (int t = 0; t < TILE; ++t) {
                __global const float *at = K + (size_t)min(j + t, keys - 1) * k_row + c;
#define TERM(n) dq[c + n] = fma(s[t], (fvec)(at[n]), dq[c + n]);
                OF_PART(TERM)
#undef TERM
            }
        }
    }
    for (int c = 0; c < DH; ++c)
        dq[c] *= scale;
    put_rows(dq, DQ + dq_offset + qt * dq_row + h * dq_head, dq_row, i0, queries);
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_attention_back_kv(__global const float *restrict Q, ulong q_offset, ulong q_row, ulong q_head,
                      __global const float *restrict K, ulong k_offset, ulong k_row, ulong k_head,
                      __global const float *restrict V, ulong v_offset, ulong v_row, ulong v_head,
                      __global const float *restrict G, ulong g_offset, ulong g_row, ulong g_head,
                      __global float *restrict DK, ulong dk_offset, ulong dk_row, ulong dk_head,
                      __global float *restrict DV, ulong dv_offset, ulong dv_row, ulong dv_head,
                      __global const int4 *restrict blocks, ulong first_block,
                      __global const int *restrict mask, uint has_mask, uint causal, uint group,
                      float scale, __global const float2 *restrict tops,
                      __global const float *restrict delta, ulong top_head)
{
    const size_t hk = get_global_id(1);
    const int4 where = blocks[2 * (first_block + get_group_id(0))];
    const int4 more = blocks[2 * (first_block + get_group_id(0)) + 1];
    const int queries = where.y, keys = where.w;
    const int j0 = more.x + (int)get_local_id(0) * LANES;
    if (j0 >= keys) return;
    const size_t qt = (size_t)where.x, kt = (size_t)where.z;
    mask += more.y;

    fvec k[DH], v[DH], dk[DH], dv[DH];
    by_columns(K + k_offset + kt * k_row + hk * k_head, k_row, j0, keys, scale, k);
    by_columns(V + v_offset + kt * v_row + hk * v_head, v_row, j0, keys, 1.0f, v);
    for (int c = 0; c < DH; ++c)
        dk[c] = dv[c] = (fvec)(0.0f);
    /* the first query that sees a key; `queries` if none does */
    ivec from;
    {
        float first[LANES];
        for (int l = 0; l < LANES; ++l) {
            const int j = min(j0 + l, keys - 1);
            const bool seen = !has_mask || mask[j] != 0;
            first[l] = (float)(seen ? (causal ? max(j - (keys - queries), 0) : 0) : queries);
        }
        from = to_ivec(lanes_load(first));
    }
    const int start = causal ? max(j0 - (keys - queries), 0) : 0;

    for (uint part = 0; part < group; ++part) {
        const size_t h = hk * group + part;
        __global const float *qs = Q + q_offset + qt * q_row + h * q_head;
        __global const float *gs = G + g_offset + qt * g_row + h * g_head;
        __global const float2 *top = tops + h * top_head + qt;
        __global const float *own = delta + h * top_head + qt;
        for (int i = start; i < queries; i += TILE) {
            fvec s[TILE], d[TILE];
            UNROLL for (int t = 0; t < TILE; ++t) s[t] = d[t] = (fvec)(0.0f);
            UNROLL for (int c = 0; c < DH; c += PART)
                UNROLL for (int t = 0; t < TILE; ++t) {
                    __global const float *at = qs + (size_t)min(i + t, queries - 1) * q_row + c;
#define TERM(i) s[t] = fma(k[c + i], (fvec)(at[i]), s[t]);
                    OF_PART(TERM)
#undef TERM
                }
            UNROLL for (int c = 0; c < DH; c += PART)
                UNROLL for (int t = 0; t < TILE; ++t) {
                    __global const float *at = gs + (size_t)min(i + t, queries - 1) * g_row + c;
#define TERM(i) d[t] = fma(v[c + i], (fvec)(at[i]), d[t]);
                    OF_PART(TERM)
#undef TERM
                }
            UNROLL for (int t = 0; t < TILE; ++t) {
                const int it = min(i + t, queries - 1);
                const ivec sees = from <= (ivec)(i + t < queries ? it : -1);
                const fvec p = exp_lanes(s[t] - top[it].x) * top[it].y;
                s[t] = pick(sees, p, (fvec)(0.0f));
                d[t] = s[t] * (d[t] - own[it]);
            }
            UNROLL for (int c = 0; c < DH; c += PART) {
                    UNROLL for (int t = 0; t < TILE; ++t) {
                    __global const float *at = gs + (size_t)min(i + t, queries - 1) * g_row + c;
#define TERM(n) dv[c + n] = fma(s[t], (fvec)(at[n]), dv[c + n]);
                    OF_PART(TERM)
#undef TERM
                }
                UNROLL for (int t = 0; t < TILE; ++t) {
                    __global const float *at = qs + (size_t)min(i + t, queries - 1) * q_row + c;
#define TERM(n) dk[c + n] = fma(d[t], (fvec)(at[n]), dk[c + n]);
                    OF_PART(TERM)
#undef TERM
                }
            }
        }
    }
    for (int c = 0; c < DH; ++c)
        dk[c] *= scale;
    put_rows(dk, DK + dk_offset + kt * dk_row + hk * dk_head, dk_row, j0, keys);
    put_rows(dv, DV + dv_offset + kt * dv_row + hk * dv_head, dv_row, j0, keys);
}
