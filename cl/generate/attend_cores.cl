/* generate/attend_cores.cl -- keys, values and attention of a decoder for CPUs.
 *
 * Query head e looks at the keys and values of head e / GROUP; the GROUP query heads that share one are
 * worked on together, so that keys and values are read once. Rotary positions (and the norm of each head,
 * where the model has one) are applied on the way. Keys lie in tiles of 16 tokens, term after term, so that
 * tokens are lanes; values lie token after token.
 *
 *     keys     [kv head][token / 16][DH][16]
 *     values   [kv head][token][DV]              DV: DH in whole vectors of 16
 *
 * Launch   clv_cores_keep    1-D: global (tokens), local (1)
 *          clv_cores_attend  3-D: global (kv heads, blocks of QUERIES tokens, parts of the keys), local (1, 1, 1)
 * Defines  LANES 16, DH: width of a head, ROT: how much of it turns, NEIGHBOURS: pairs are (2t, 2t + 1) in
 *          place of (t, t + ROT / 2), HEAD_NORM, GROUP, QUERIES, HALF: the cache holds halves.
 * Needs    OpenCL C 1.2.
 * Order    a query's sums go over its keys upwards in tiles of 32: its bits depend on `parts`, not on its
 *          block or on the other queries. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"

#define QTYPE 0
#define QLANES 16
#include "common/quants.clh"

#define UNROLL _Pragma("unroll")
#define DV ((DH + 15) / 16 * 16)
#define ROWS (GROUP * QUERIES)
#define STRIP 4 /* rows that are worked on together */
#define PADDED ((ROWS + STRIP - 1) / STRIP * STRIP)
#define KEYS 32 /* two tiles */

#if HALF
typedef half kept;
#define kept_load(p) q_halves_at(p)
#define kept_store(v, p) vstore_half_rte(v, 0, p)
static float16 q_halves_at(__global const half *p)
{
#ifdef Q_CONVERTS
    return q_halves(vload16(0, (__global const ushort *)p));
#else
    return q_half(convert_uint16(vload16(0, (__global const ushort *)p)));
#endif
}
#else
typedef float kept;
#define kept_load(p) lanes_at(p)
#define kept_store(v, p) (*(p) = (v))
#endif

/* A head's DH terms from memory to `to`: its norm, then turned by the angles of its position. */
static void turn(__global const float *from, __global const float *weight, float eps,
                 __global const float2 *angles, float scale, float *to)
{
    float factor = 1.0f;
#if HEAD_NORM
    float sum = 0.0f;
    for (uint c = 0; c < DH; ++c)
        sum = fma(from[c], from[c], sum);
    factor = 1.0f / sqrt(sum / (float)DH + eps);
#endif
    for (uint c = 0; c < DH; ++c) {
        to[c] = from[c] * factor;
#if HEAD_NORM
        to[c] *= weight[c];
#endif
    }
    for (uint t = 0; t < ROT / 2; ++t) {
#if NEIGHBOURS
        const uint i = 2 * t, j = 2 * t + 1;
#else
        const uint i = t, j = t + ROT / 2;
#endif
        const float a = to[i], b = to[j];
        const float2 w = angles[t];
        to[i] = a * w.x - b * w.y;
        to[j] = a * w.y + b * w.x;
    }
    for (uint c = 0; c < DH; ++c)
        to[c] *= scale;
}

/* Where a token's row of `qkv` has what, in floats. */
typedef struct places {
    __global const float *keys, *values, *angles, *weight;
    float eps;
} places;

/* Puts the key and the value of one token and one head into the cache. */
static void keep(const places *p, uint head, uint position, ulong room, __global kept *keys,
                 __global kept *values)
{
    float k[DH];
    turn(p->keys + head * DH, p->weight, p->eps, (__global const float2 *)p->angles, 1.0f, k);
    __global kept *to = keys + ((ulong)head * room + position / 16 * 16) * DH + position % 16;
    for (uint c = 0; c < DH; ++c)
        kept_store(k[c], to + 16 * c);
    __global kept *v = values + ((ulong)head * room + position) * DV;
    for (uint c = 0; c < DV; ++c)
        kept_store(c < DH ? p->values[head * DH + c] : 0.0f, v + c);
}

static places places_of(__global const float *qkv, ulong row, ulong k_at, ulong v_at,
                        __global const float *angles, __global const float *weights,
                        ulong k_norm, float eps)
{
    const places p = { qkv + row + k_at, qkv + row + v_at, angles, weights + k_norm, eps };
    return p;
}

/* `room` is a multiple of 16: tokens that the cache has place for. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_cores_keep(__global const float *restrict qkv, ulong stride, ulong k_at, ulong v_at,
               __global const float *restrict angles, __global const float *restrict weights,
               ulong k_norm, float eps, uint first, uint kv_heads, ulong room,
               __global kept *restrict keys, __global kept *restrict values)
{
    const uint t = get_global_id(0), position = first + t;
    const places p = places_of(qkv, t * stride, k_at, v_at, angles + (size_t)position * ROT,
                               weights, k_norm, eps);
    for (uint h = 0; h < kv_heads; ++h)
        keep(&p, h, position, room, keys, values);
}

static float most(float16 v)
{
    const float8 a = fmax(v.lo, v.hi);
    const float4 b = fmax(a.lo, a.hi);
    return fmax(fmax(b.x, b.y), fmax(b.z, b.w));
}

static float total(float16 v)
{
    const float8 a = v.lo + v.hi;
    const float4 b = a.lo + a.hi;
    return (b.x + b.y) + (b.z + b.w);
}

/* What a work-item knows of its rows; row r is query r / GROUP, head r % GROUP. */
typedef struct rows {
    float q[PADDED][DV];
    float16 o[PADDED][DV / 16];
    float p[PADDED][KEYS];
    float top[PADDED], sum[PADDED], shrink[PADDED];
} rows;

/* Scores of a strip's rows for 32 keys, their weights, and the running maximum and sum. `seen`: for row r
 * the keys below seen + r / GROUP count. */
static void weigh(rows *x, uint r0, __global const kept *tile, int seen)
{
    float16 s[STRIP][2];
    UNROLL for (int r = 0; r < STRIP; ++r) s[r][0] = s[r][1] = (float16)(0.0f);
    for (uint c = 0; c < DH; ++c) {
        const float16 k0 = kept_load(tile + 16 * c), k1 = kept_load(tile + 16 * (DH + c));
        UNROLL for (int r = 0; r < STRIP; ++r) {
            const float16 q = (float16)(x->q[r0 + r][c]);
            s[r][0] = fma(q, k0, s[r][0]);
            s[r][1] = fma(q, k1, s[r][1]);
        }
    }
    UNROLL for (int r = 0; r < STRIP; ++r) {
        const int sees = seen + (int)((r0 + r) / GROUP);
        const int16 number = lanes_iota();
        const float16 a = pick(number < (int16)(sees), s[r][0], (float16)(-INFINITY));
        const float16 b = pick(number + 16 < (int16)(sees), s[r][1], (float16)(-INFINITY));
        const float was = x->top[r0 + r], top = fmax(was, most(fmax(a, b)));
        const float from = top == -INFINITY ? 0.0f : top;
        const float16 pa = exp_lanes(a - from), pb = exp_lanes(b - from);
        const float shrink = was == -INFINITY ? 0.0f : exp(was - from);
        lanes_store(pa, x->p[r0 + r]);
        lanes_store(pb, x->p[r0 + r] + 16);
        x->top[r0 + r] = top;
        x->sum[r0 + r] = fma(x->sum[r0 + r], shrink, total(pa + pb));
        x->shrink[r0 + r] = shrink;
    }
}

#define AT_ONCE 4 /* vectors of a value */

static void mix(rows *x, uint r0, __global const kept *values, uint keys)
{
    for (uint v0 = 0; v0 < DV / 16; v0 += AT_ONCE) {
        float16 o[STRIP][AT_ONCE];
        UNROLL for (int r = 0; r < STRIP; ++r) UNROLL for (int v = 0; v < AT_ONCE; ++v)
            o[r][v] = v0 + v < DV / 16 ? x->o[r0 + r][v0 + v] * x->shrink[r0 + r]
                                       : (float16)(0.0f);
        for (uint j = 0; j < keys; ++j) {
            float16 value[AT_ONCE];
            UNROLL for (int v = 0; v < AT_ONCE; ++v)
                value[v] = v0 + v < DV / 16 ? kept_load(values + (size_t)j * DV + 16 * (v0 + v))
                                            : (float16)(0.0f);
            UNROLL for (int r = 0; r < STRIP; ++r) {
                const float16 p = (float16)(x->p[r0 + r][j]);
                UNROLL for (int v = 0; v < AT_ONCE; ++v) o[r][v] = fma(p, value[v], o[r][v]);
            }
        }
        UNROLL for (int r = 0; r < STRIP; ++r) UNROLL for (int v = 0; v < AT_ONCE; ++v)
            if (v0 + v < DV / 16) x->o[r0 + r][v0 + v] = o[r][v];
    }
}

/* `tokens` queries at positions `first` and following. One part of the keys: `out` [tokens][out_stride] is the
 * mixed values of all heads; several (one token then): `out` [parts][heads][2 + DH] is maximum, sum and
 * what is not divided by the sum. `keeps`: of one token, whose key and value go into the cache first. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_cores_attend(__global const float *restrict qkv, ulong stride, ulong k_at, ulong v_at,
                 __global const float *restrict angles, __global const float *restrict weights,
                 ulong q_norm, ulong k_norm, float eps, uint first, uint tokens, uint keeps,
                 float scale, ulong room, __global kept *keys, __global kept *values,
                 __global float *restrict out, ulong out_stride)
{
    const uint kv = get_global_id(0), t0 = get_global_id(1) * QUERIES;
    const uint parts = get_global_size(2), part = get_global_id(2);
    const uint count = min((uint)QUERIES, tokens - t0), all = first + t0 + count;
    rows x;
    for (uint r = 0; r < PADDED; ++r) {
        const uint t = t0 + min(r / GROUP, count - 1);
        __global const float *q = qkv + t * stride + (size_t)(kv * GROUP + r % GROUP) * DH;
        for (uint c = DH; c < DV; ++c)
            x.q[r][c] = 0.0f;
        turn(q, weights + q_norm, eps,
             (__global const float2 *)(angles + (size_t)(first + t) * ROT), scale, x.q[r]);
        x.top[r] = -INFINITY, x.sum[r] = 0.0f;
        for (uint v = 0; v < DV / 16; ++v)
            x.o[r][v] = (float16)(0.0f);
    }
    if (keeps && part == parts - 1) {
        const places p = places_of(qkv, 0, k_at, v_at, angles + (size_t)first * ROT, weights,
                                   k_norm, eps);
        keep(&p, kv, first, room, keys, values);
    }
    keys += (ulong)kv * room * DH;
    values += (ulong)kv * room * DV;
    const uint tiles = (all + KEYS - 1) / KEYS;
    const uint begin = (uint)((ulong)tiles * part / parts), end = (uint)((ulong)tiles * (part + 1) / parts);
    for (uint tile = begin; tile < end; ++tile) {
        const uint j = tile * KEYS, here = min((uint)KEYS, all - j);
        for (uint r0 = 0; r0 < PADDED; r0 += STRIP) {
            weigh(&x, r0, keys + (size_t)j * DH, (int)(first + t0 + 1) - (int)j);
            mix(&x, r0, values + (size_t)j * DV, here);
        }
    }
    for (uint r = 0; r < count * GROUP; ++r) {
        const uint head = kv * GROUP + r % GROUP;
        const float factor = parts > 1 ? 1.0f : 1.0f / x.sum[r];
        __global float *to = parts > 1
                                 ? out + ((size_t)part * get_global_size(0) * GROUP + head) * (2 + DH)
                                 : out + (t0 + r / GROUP) * out_stride + (size_t)head * DH;
        if (parts > 1) {
            to[0] = x.top[r], to[1] = x.sum[r];
            to += 2;
        }
        float near[DV];
        for (uint v = 0; v < DV / 16; ++v)
            lanes_store(x.o[r][v] * factor, near + 16 * v);
        for (uint c = 0; c < DH; ++c)
            to[c] = near[c];
    }
}
