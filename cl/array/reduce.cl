/* array/reduce.cl -- sums and extremes along the middle axis of [outer, len, inner], in a fixed order.
 *
 * clv_reduce_blocks: cuts `len` into blocks. With DENSE (inner is 1), a block has 16 lanes, and lane l takes the
 * elements l, l + 16, ... of the block; otherwise a lane is a column. Partial results are p, q [outer, blocks, lanes]:
 * a sum and its rounding errors, or an extreme value and its index.
 * clv_reduce_join: joins the lanes and blocks of an output, from first to last.
 *
 * Launch   blocks: 3-D (lanes / LANES, blocks, outer / each), rounded up to any local size; join: 1-D, outputs. A
 *          work-item computes LANES lanes (CPUs) or one.
 * Defines  LANES (16 or 1), OP (CLV_REDUCE_OP_...), DENSE.
 * Needs    OpenCL C 1.2.
 * Order    Sums are compensated, in a fixed order, so that every device gives the same bits. */
#pragma OPENCL FP_CONTRACT OFF
#include "array/shared.clh"
#include "common/lanes.clh"

#define NONE 0xFFFFFFFFu
#if OP == CLV_REDUCE_OP_LEAST
#define BETTER(a, b) ((a) < (b))
#elif OP == CLV_REDUCE_OP_LARGEST
#define BETTER(a, b) ((a) > (b))
#endif

/* Adds v to the sum a, and the rounding error of this addition to b (Knuth's two-sum). */
#define ADD(a, b, v)                                 \
    {                                                \
        const fvec sum_ = a + v, part_ = sum_ - a;   \
        b += (a - (sum_ - part_)) + (v - part_);     \
        a = sum_;                                    \
    }

static fvec some(__global const float *p, uint room)
{
#if LANES == 1
    return *p;
#else
    if (room >= LANES) return lanes_load(p);
    float cut[LANES];
    for (uint i = 0; i < LANES; ++i)
        cut[i] = i < room ? p[i] : 0.0f;
    return LANES_JOIN(vload, LANES)(0, cut);
#endif
}

static void put(fvec v, __global float *p, uint room)
{
#if LANES == 1
    *p = v;
#else
    if (room >= LANES) {
        lanes_store(v, p);
        return;
    }
    float cut[LANES];
    LANES_JOIN(vstore, LANES)(v, 0, cut);
    for (uint i = 0; i < room; ++i)
        p[i] = cut[i];
#endif
}

__kernel void clv_reduce_blocks(__global const float *in, __global const float *mean,
                                __global float *p, __global float *q, uint outer, uint len,
                                uint inner, uint block, uint blocks, uint each)
{
    const uint lanes = DENSE ? 16 : inner;
    const uint x = get_global_id(0) * LANES, b = get_global_id(1);
    const uint first = b * block, last = min(len, first + block);
    const uint o_first = get_global_id(2) * each, o_last = min(outer, o_first + each);
    if (x >= lanes || b >= blocks) return;
    const uint room = lanes - x;
    for (uint o = o_first; o < o_last; ++o) {
        __global const float *row = in + (size_t)o * len * inner + (DENSE ? 0 : x);
        fvec a = (fvec)(0.0f), e = (fvec)(0.0f);
#if OP == CLV_REDUCE_OP_SQUARES
        const fvec m = DENSE ? (fvec)(mean[o]) : some(mean + (size_t)o * inner + x, room);
#endif
#if OP >= CLV_REDUCE_OP_LEAST
        ivec place = (ivec)((int)NONE);
#endif
        for (uint j = first; j < last; j += DENSE ? 16 : 1) {
#if DENSE && LANES == 1
            if (j + x >= last) break;
            const fvec v = row[j + x];
            const uint at = j + x;
#elif DENSE
            const fvec v = some(row + j, last - j);
            const ivec at = (int)j + lanes_iota();
#else
            const fvec v = some(row + (size_t)j * inner, room);
            const uint at = j;
#endif
#if DENSE && LANES > 1
            const ivec valid = at < (ivec)((int)last);
#else
            const ivec valid = (ivec)(LANES == 1 ? 1 : -1);
#endif
#if OP == CLV_REDUCE_OP_SUM
            const fvec t = pick(valid, v, (fvec)(0.0f));
            ADD(a, e, t)
#elif OP == CLV_REDUCE_OP_SQUARES
            const fvec d = v - m, t = pick(valid, d * d, (fvec)(0.0f));
            ADD(a, e, t)
#else
            const ivec take = valid & ((place == (ivec)((int)NONE)) | BETTER(v, a) |
                                       ((v != v) & (a == a)));
            a = pick(take, v, a);
            place = pick(take, (ivec)(at), place);
#endif
        }
        const size_t to = ((size_t)o * blocks + b) * lanes + x;
        put(a, p + to, room);
#if OP >= CLV_REDUCE_OP_LEAST
#if LANES == 1
        ((__global uint *)q)[to] = as_uint(place);
#else
        const uint n = min(room, (uint)LANES);
        int cut[LANES];
        LANES_JOIN(vstore, LANES)(place, 0, cut);
        for (uint i = 0; i < n; ++i)
            ((__global int *)q)[to + i] = cut[i];
#endif
#else
        put(e, q + to, room);
#endif
    }
}

/* Joins the partial results of each output, and finishes it as `finish` (CLV_REDUCE_...) says; the scale is high +
 * low. */
__kernel void clv_reduce_join(__global const float *p, __global const float *q,
                              __global float *out, uint outputs, uint inner, uint blocks,
                              float high, float low, uint finish)
{
    const size_t i = get_global_id(0);
    if (i >= outputs) return;
    const uint lanes = DENSE ? 16 : inner, turns = DENSE ? 16 : 1;
    size_t at = i / inner * blocks * lanes + (DENSE ? 0 : i % inner);
    float a = 0.0f, e = 0.0f;
    uint place = NONE;
    for (uint b = 0; b < blocks; ++b, at += lanes)
        for (uint l = 0; l < turns; ++l) {
            const float v = p[at + l];
#if OP < CLV_REDUCE_OP_LEAST
            const float sum = a + v, part = sum - a;
            e += ((a - (sum - part)) + (v - part)) + q[at + l];
            a = sum;
#else
            const uint where = ((__global const uint *)q)[at + l];
            if (where == NONE) continue;
            const bool same = v == a || (v != v && a != a);
            if (place == NONE || (v == v && a == a && BETTER(v, a)) || (v != v && a == a) ||
                (same && where < place)) {
                a = v;
                place = where;
            }
#endif
        }
#if OP < CLV_REDUCE_OP_LEAST
    a = isfinite(a) ? a + e : a;
    if (finish != CLV_REDUCE_AS_IT_IS) a = isfinite(a) ? fma(a, high, a * low) : a;
    if (finish == CLV_REDUCE_ROOT && a > 0.0f && isfinite(a)) { /* sqrt may be 3 ulp off: one Newton step */
        const float root = sqrt(a);
        a = fma(fma(-root, root, a), 0.5f / root, root);
    }
    out[i] = a;
#else
    out[i] = finish == CLV_REDUCE_PLACE ? (float)place : a;
#endif
}
