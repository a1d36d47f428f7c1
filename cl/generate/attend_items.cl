/* generate/attend_items.cl -- keys, values and attention of a decoder for GPUs.
 *
 * Query head e attends to the keys and values of head e / GROUP. Rotary positions (and the norm of each head,
 * if the model has one) are applied first; keys and values then go into the cache, and queries are changed in
 * place.
 *
 *     keys, values     [token][kv head][DH]
 *
 * Launch   clv_items_turn    2-D: global ((heads + kv heads) * LOCAL, tokens), local (LOCAL, 1)
 *          clv_items_attend  3-D: global (kv heads * LOCAL, tokens, parts of the keys), local (LOCAL, 1, 1)
 *          clv_items_join    1-D: global (heads * LOCAL), local (LOCAL)
 * Defines  LOCAL: work-items of a group, DH: width of a head, ROT: terms of it that are rotated, NEIGHBOURS:
 *          pairs are (2t, 2t + 1) instead of (t, t + ROT / 2), HEAD_NORM, GROUP, HALF: the cache holds halves.
 * Needs    OpenCL C 1.2.
 * Order    A query's sums run over its keys in ascending order, in tiles of LOCAL: its bits depend on `parts` alone. */
#pragma OPENCL FP_CONTRACT OFF

#define LANES 1
#include "common/functions.clh"

#define EACH ((DH + LOCAL - 1) / LOCAL) /* terms of a value that a work-item adds up */

#if HALF
typedef half kept;
#define kept_load(p) vload_half(0, p)
#define kept_store(v, p) vstore_half_rte(v, 0, p)
#else
typedef float kept;
#define kept_load(p) (*(p))
#define kept_store(v, p) (*(p) = (v))
#endif

/* Returns the sum of `mine` over all work-items of the group, added in the same order on every device. */
static float total(float mine, __local float *each)
{
    float sum = 0.0f;
    each[get_local_id(0)] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < LOCAL; ++i)
        sum += each[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

/* Rotates queries in place and multiplies them by `scale`; writes keys and values of token t to position first + t of
 * the cache. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_items_turn(__global float *qkv, ulong offset, ulong stride, ulong k_at, ulong v_at,
               __global const float *restrict angles, __global const float *restrict weights,
               ulong q_norm, ulong k_norm, float eps, uint first, uint heads, uint kv_heads,
               float scale, __global kept *restrict keys, __global kept *restrict values)
{
    __local float term[DH], each[LOCAL];
    const uint me = get_local_id(0), h = get_group_id(0), t = get_global_id(1);
    const bool is_key = h >= heads;
    const uint kv = is_key ? h - heads : 0;
    __global float *row = qkv + offset + t * stride;
    __global float *x = row + (is_key ? k_at + kv * DH : (ulong)h * DH);
    float factor = 1.0f;
#if HEAD_NORM
    __global const float *weight = weights + (is_key ? k_norm : q_norm);
    float squares = 0.0f;
    for (uint c = me; c < DH; c += LOCAL)
        squares = fma(x[c], x[c], squares);
    factor = 1.0f / sqrt(total(squares, each) / (float)DH + eps);
    for (uint c = me; c < DH; c += LOCAL)
        term[c] = x[c] * factor * weight[c];
#else
    for (uint c = me; c < DH; c += LOCAL)
        term[c] = x[c];
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    __global const float2 *angle = (__global const float2 *)(angles + (size_t)(first + t) * ROT);
    for (uint p = me; p < ROT / 2; p += LOCAL) {
#if NEIGHBOURS
        const uint i = 2 * p, j = 2 * p + 1;
#else
        const uint i = p, j = p + ROT / 2;
#endif
        const float a = term[i], b = term[j];
        const float2 w = angle[p];
        term[i] = a * w.x - b * w.y;
        term[j] = a * w.y + b * w.x;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const ulong to = ((ulong)(first + t) * kv_heads + kv) * DH;
    for (uint c = me; c < DH; c += LOCAL) {
        if (is_key) {
            kept_store(term[c], keys + to + c);
            kept_store(row[v_at + kv * DH + c], values + to + c);
        } else {
            x[c] = term[c] * scale;
        }
    }
}

/* Computes attention. With one part of the keys, writes the attention output of all heads to `out`
 * [tokens][out_stride]. With several parts (for one token), writes to `out` [parts][heads][2 + DH] the maximum of the
 * scores, the sum of the exponentials, and the sum of the weighted values, which is not divided by the former yet. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_items_attend(__global const float *restrict qkv, ulong offset, ulong stride, uint first, uint kv_heads,
                 __global const kept *restrict keys, __global const kept *restrict values,
                 __global float *restrict out, ulong out_offset, ulong out_stride)
{
    __local float q[GROUP * DH], p[GROUP * LOCAL];
    const uint me = get_local_id(0), kv = get_group_id(0), t = get_global_id(1);
    const uint parts = get_global_size(2), part = get_global_id(2), all = first + t + 1;
    const uint tiles = (all + LOCAL - 1) / LOCAL;
    const uint begin = (uint)((ulong)tiles * part / parts);
    const uint end = (uint)((ulong)tiles * (part + 1) / parts);
    float o[GROUP][EACH], top[GROUP], sum[GROUP];
    qkv += offset, out += out_offset;
    for (uint i = me; i < GROUP * DH; i += LOCAL)
        q[i] = qkv[t * stride + (ulong)kv * GROUP * DH + i];
    for (uint g = 0; g < GROUP; ++g) {
        top[g] = -INFINITY, sum[g] = 0.0f;
        for (uint e = 0; e < EACH; ++e)
            o[g][e] = 0.0f;
    }
    for (uint tile = begin; tile < end; ++tile) {
        const uint j = tile * LOCAL + me, here = min((uint)LOCAL, all - tile * LOCAL);
        __global const kept *key = keys + ((ulong)min(j, all - 1) * kv_heads + kv) * DH;
        float s[GROUP];
        barrier(CLK_LOCAL_MEM_FENCE); /* q is complete, and all have read the last tile's weights */
        for (uint g = 0; g < GROUP; ++g)
            s[g] = 0.0f;
        for (uint c = 0; c < DH; ++c) {
            const float k = kept_load(key + c);
            for (uint g = 0; g < GROUP; ++g)
                s[g] = fma(q[g * DH + c], k, s[g]);
        }
        for (uint g = 0; g < GROUP; ++g)
            p[g * LOCAL + me] = me < here ? s[g] : -INFINITY;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint g = 0; g < GROUP; ++g) {
            float most = top[g];
            for (uint i = 0; i < here; ++i)
                most = fmax(most, p[g * LOCAL + i]);
            const float shrink = top[g] == -INFINITY ? 0.0f : exp(top[g] - most);
            top[g] = most, sum[g] *= shrink;
            for (uint e = 0; e < EACH; ++e)
                o[g][e] *= shrink;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint g = 0; g < GROUP; ++g)
            p[g * LOCAL + me] = me < here ? exp(s[g] - top[g]) : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        __global const kept *value = values + ((ulong)tile * LOCAL * kv_heads + kv) * DH;
        for (uint i = 0; i < here; ++i)
            for (uint g = 0; g < GROUP; ++g)
                sum[g] += p[g * LOCAL + i];
        for (uint e = 0; e < EACH; ++e) {
            const uint c = e * LOCAL + me;
            if (c >= DH) continue;
            for (uint i = 0; i < here; ++i) {
                const float v = kept_load(value + (ulong)i * kv_heads * DH + c);
                for (uint g = 0; g < GROUP; ++g)
                    o[g][e] = fma(p[g * LOCAL + i], v, o[g][e]);
            }
        }
    }
    for (uint g = 0; g < GROUP; ++g) {
        const uint head = kv * GROUP + g;
        __global float *to =
            parts > 1 ? out + ((size_t)part * kv_heads * GROUP + head) * (2 + DH)
                      : out + t * out_stride + (size_t)head * DH;
        if (parts > 1) {
            if (!me) to[0] = top[g], to[1] = sum[g];
            to += 2;
        }
        const float factor = parts > 1 ? 1.0f : 1.0f / sum[g];
        for (uint e = 0; e < EACH; ++e)
            if (e * LOCAL + me < DH) to[e * LOCAL + me] = o[g][e] * factor;
    }
}

/* Joins the results of the parts of the keys for every head. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_items_join(__global const float *restrict in, uint parts, uint heads,
               __global float *restrict out, ulong out_offset)
{
    const uint h = get_group_id(0);
    const size_t all = (size_t)heads * (2 + DH);
    in += (size_t)h * (2 + DH), out += out_offset + (size_t)h * DH;
    float top = -INFINITY, sum = 0.0f;
    for (uint p = 0; p < parts; ++p)
        top = fmax(top, in[p * all]);
    for (uint p = 0; p < parts; ++p)
        sum += in[p * all + 1] * exp(in[p * all] - top);
    for (uint c = get_local_id(0); c < DH; c += LOCAL) {
        float v = 0.0f;
        for (uint p = 0; p < parts; ++p)
            v = fma(exp(in[p * all] - top) / sum, in[p * all + 2 + c], v);
        out[c] = v;
    }
}
