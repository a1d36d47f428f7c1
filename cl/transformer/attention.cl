/* transformer/attention.cl -- o = softmax(q k^T * scale + mask) v, one pass over the keys.
 *
 * A work-group has LOCAL queries of one sequence and head, one per work-item. Keys are processed in
 * tiles; the running maximum and sum of every query are corrected tile by tile (online softmax). A
 * query without any key gives 0. Cores use transformer/attention_rows.cl instead.
 *
 * Element (token t, head h, i) of q lies at offset + t * row + h * head + i; k, v, o likewise.
 * A block is two int4: first token of the queries, their number, first token of the keys, their
 * number; first query of the block within its sequence, first element of the mask, -, -.
 * With BIAS, bias[bias_at + h * bias_head + i - j] is added to the score of query i and key j.
 * Query i may see key j if mask[j] is not 0 (has_mask) and j <= i + keys - queries (causal).
 *
 * Launch   2-D: global (blocks * LOCAL, heads), local (LOCAL, 1).
 * Defines  LANES 1, LOCAL, DH: width of a head, TILE keys at a time; BIAS or not.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/parts.clh"
#include "transformer/rows.clh"
#include "transformer/bias.clh"

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_attention(__global const float *restrict Q, ulong q_offset, ulong q_row, ulong q_head,
              __global const float *restrict K, ulong k_offset, ulong k_row, ulong k_head,
              __global const float *restrict V, ulong v_offset, ulong v_row, ulong v_head,
              __global float *restrict O, ulong o_offset, ulong o_row, ulong o_head,
              __global const int4 *restrict blocks, ulong first_block, int base,
              __global const int *restrict mask, uint has_mask, uint causal, uint group,
              float scale, __global float2 *restrict tops, ulong top_head, uint keep BIAS_ARGUMENTS)
{
    const size_t h = get_global_id(1);
    const int4 where = blocks[2 * (first_block + get_group_id(0))];
    const int4 more = blocks[2 * (first_block + get_group_id(0)) + 1];
    const int queries = where.y, keys = where.w;
    const int i0 = more.x + (int)get_local_id(0);
    if (i0 >= queries) return;
    const size_t qt = (size_t)(where.x - base), kt = (size_t)(where.z - base);
    K += k_offset + kt * k_row + h / group * k_head;
    V += v_offset + kt * v_row + h / group * v_head;
    mask += more.y;
#ifdef BIAS
    bias += bias_at + h * bias_head;
#endif

    float q[DH], o[DH];
    __global const float *own = Q + q_offset + (qt + i0) * q_row + h * q_head;
    for (int c = 0; c < DH; ++c)
        q[c] = own[c] * scale, o[c] = 0.0f;
    const int see = causal ? i0 + keys - queries : keys;
    float top = -INFINITY, sum = 0.0f;
    const int end = causal ? min(keys, i0 + 1 + keys - queries) : keys;

    for (int j = 0; j < end; j += TILE) {
        float s[TILE];
        UNROLL for (int t = 0; t < TILE; ++t) s[t] = 0.0f;
        UNROLL for (int c = 0; c < DH; c += PART)
            UNROLL for (int t = 0; t < TILE; ++t) {
                __global const float *key = K + (size_t)min(j + t, keys - 1) * k_row + c;
#define TERM(i) s[t] = fma(q[c + i], key[i], s[t]);
                OF_PART(TERM)
#undef TERM
            }

        float high = top;
        UNROLL for (int t = 0; t < TILE; ++t) {
            const bool there = j + t < keys && (!has_mask || mask[min(j + t, keys - 1)] != 0);
#ifdef BIAS
            s[t] += bias[i0 - j - t];
#endif
            s[t] = there && j + t <= see ? s[t] : -INFINITY;
            high = fmax(high, s[t]);
        }
        /* no key seen yet: any finite number may replace the maximum */
        const float from = high == -INFINITY ? 0.0f : high;
        const float shrink = exp_lanes(top - from);
        top = high;
        sum = sum * shrink;
        UNROLL for (int t = 0; t < TILE; ++t) {
            s[t] = exp_lanes(s[t] - from);
            sum += s[t];
        }
        UNROLL for (int c = 0; c < DH; c += PART) {
#define SHRINK(i) o[c + i] *= shrink;
            OF_PART(SHRINK)
            UNROLL for (int t = 0; t < TILE; ++t) {
                __global const float *value = V + (size_t)min(j + t, keys - 1) * v_row + c;
#define TERM(i) o[c + i] = fma(s[t], value[i], o[c + i]);
                OF_PART(TERM)
#undef TERM
            }
        }
    }

    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
    __global float *to = O + o_offset + (qt + i0) * o_row + h * o_head;
    for (int c = 0; c < DH; ++c)
        to[c] = o[c] * inverse;
    /* the backward pass needs the maximum and 1 / sum of each row's exponentials */
    if (keep) tops[h * top_head + qt + i0] = (float2)(sum > 0.0f ? top : 0.0f, inverse);
}
