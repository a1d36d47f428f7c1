/* generate/cores.cl -- a token's products for CPUs: y = W x with W in blocks, and rows of W as they are.
 *
 *     y = W x                  PLUS    + bias, where there is one
 *                              ADDS    y += W x
 *                              GATES   y = silu(W x) * (W' x), W' the same number of bytes further on
 *                              GATED   y = silu(y) * (W x)
 *     x                        PLAIN   as it is
 *                              NORM    x / sqrt(mean(x^2) + eps) * weight
 *                              PARTS   what generate/attend_cores.cl left of each part of the keys
 *
 * A work-item makes x in memory of its own, with the sums that minima are multiplied with, and goes through
 * its groups of 16 rows: rows are lanes, x is broadcast, four sums a row run side by side. W is read once.
 * A row's bits do not depend on the number of items.
 *
 * Launch   1-D: global (work-items), local (1).
 * Defines  LANES (16 or 8), QTYPE as in common/quants.clh.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"

#define QLANES LANES
#include "common/quants.clh"
#include "generate/shared.clh"

#define UNROLL _Pragma("unroll")

/* ---- rows of W as they are ------------------------------------------------------------------------ */

#define Q_BEGIN(k, d, m) \
    {                    \
        const qf scale = (d), least = (m);
/* blocks of floats may go beyond the row */
#if QM
#define Q_USE(k, v) if (from + (k) < columns) vstoren(fma(scale, v, least), column, to + from + (k))
#else
#define Q_USE(k, v) if (from + (k) < columns) vstoren(scale * (v), column, to + from + (k))
#endif
#define Q_END(k) }

/* Element `column` of the lanes to one place of a row. */
static void vstoren(qf all, uint column, __global float *to)
{
    float each[LANES];
    lanes_store(all, each);
    *to = each[column];
}

/* x[t] = row ids[t] of W. Launch 1-D: global (tokens), local (1). */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_cores_embed(__global const uchar *restrict w, ulong w_offset, __global const int *restrict ids,
                uint blocks, uint columns, __global float *restrict x, ulong stride)
{
    const uint row = (uint)ids[get_global_id(0)];
    const uint lane = row % 16 / LANES * LANES, column = row % LANES;
    __global const uchar *b = w + w_offset + (ulong)(row / 16) * blocks * QBYTES;
    __global float *to = x + get_global_id(0) * stride;
    for (uint i = 0; i < blocks; ++i, b += QBYTES)
        for (uint u = 0; u < QBLOCK / QUNIT; ++u) {
            const uint from = i * QBLOCK + u * QUNIT;
            Q_UNIT(b, u)
        }
}
#undef Q_BEGIN
#undef Q_USE
#undef Q_END

/* ---- products ------------------------------------------------------------------------------------- */

#define Q_BEGIN(k, d, m)                                                        \
    {                                                                           \
        const qf scale = (d), least = (m);                                      \
        qf acc[4];                                                              \
        UNROLL for (int a_ = 0; a_ < 4; ++a_) acc[a_] = (qf)(0.0f);
#define Q_USE(k, v) acc[(k) % 4] = fma(v, (qf)(part[k]), acc[(k) % 4])
#if QM
#define Q_END(k)                                                                \
        const qf all = (acc[0] + acc[1]) + (acc[2] + acc[3]);                   \
        sum = fma(least, (qf)(sums[(k) / QGROUP]), fma(scale, all, sum));       \
    }
#else
#define Q_END(k)                                                                \
        const qf all = (acc[0] + acc[1]) + (acc[2] + acc[3]);                   \
        sum = fma(scale, all, sum);                                             \
    }
#endif

/* Rows from `lane` on of the group at `b`. */
static qf dot_rows(__global const uchar *b, uint lane, uint blocks, __global const float *x,
                   __global const float *sums)
{
    qf sum = (qf)(0.0f);
    for (uint i = 0; i < blocks; ++i, b += QBYTES)
        for (uint u = 0; u < QBLOCK / QUNIT; ++u, x += QUNIT, sums += QUNIT / QGROUP) {
            __global const float *part = x;
            Q_UNIT(b, u)
        }
    return sum;
}

static float across(fvec v)
{
#if LANES == 16
    const float8 a = v.lo + v.hi;
#else
    const float8 a = v;
#endif
    const float4 b = a.lo + a.hi;
    const float2 c = b.lo + b.hi;
    return c.x + c.y;
}

/* x of `columns` in whole vectors; zeros beyond. */
static fvec x_at(__global const float *in, uint k, uint columns)
{
    float part[LANES];
    if (k + LANES <= columns) return lanes_at(in + k);
    for (uint l = 0; l < LANES; ++l)
        part[l] = k + l < columns ? in[k + l] : 0.0f;
    return lanes_load(part);
}

static void make_norm(__global const float *in, __global const float *weight, float eps,
                      uint columns, uint padded, __global float *to)
{
    fvec all = (fvec)(0.0f);
    for (uint k = 0; k < padded; k += LANES) {
        const fvec v = x_at(in, k, columns);
        all = fma(v, v, all);
    }
    const float factor = 1.0f / sqrt(across(all) / (float)columns + eps);
    for (uint k = 0; k < padded; k += LANES)
        lanes_put(x_at(in, k, columns) * factor * x_at(weight, k, columns), to + k);
}

/* Parts of the keys [parts][heads] with maximum, sum and `head` terms each. */
static void make_parts(__global const float *in, uint parts, uint heads, uint head,
                       __global float *to)
{
    const size_t one = 2 + head, all = heads * one;
    for (uint h = 0; h < heads; ++h, in += one, to += head) {
        float top = -INFINITY, sum = 0.0f;
        for (uint p = 0; p < parts; ++p)
            top = fmax(top, in[p * all]);
        for (uint p = 0; p < parts; ++p)
            sum += in[p * all + 1] * exp(in[p * all] - top);
        for (uint c = 0; c < head; ++c)
            to[c] = 0.0f;
        for (uint p = 0; p < parts; ++p) {
            const float share = exp(in[p * all] - top) / sum;
            for (uint c = 0; c < head; ++c)
                to[c] = fma(share, in[p * all + 2 + c], to[c]);
        }
    }
}

static void make_sums(__global const float *x, uint padded, __global float *sums)
{
#if QM
    for (uint k = 0; k < padded; k += QGROUP) {
        fvec all = lanes_at(x + k);
        for (uint l = LANES; l < QGROUP; l += LANES)
            all += lanes_at(x + k + l);
        sums[k / QGROUP] = across(all);
    }
#endif
}

/* `scratch` has `item` floats for every work-item: padded x and its sums. For PARTS `columns` are heads *
 * head. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_cores_product(__global const uchar *restrict w, ulong w_offset, ulong second, uint groups,
                  uint blocks, uint columns, __global const float *in, ulong in_offset, uint kind,
                  __global const float *restrict weight, ulong weight_offset, float eps,
                  uint parts, uint heads, __global float *scratch, ulong item,
                  __global const float *restrict bias, ulong bias_offset, uint has_bias,
                  __global float *out, ulong out_offset, uint finish)
{
    const uint items = get_global_size(0), me = get_global_id(0), padded = blocks * QBLOCK;
    const uint first = (uint)((ulong)groups * me / items);
    const uint end = (uint)((ulong)groups * (me + 1) / items);
    __global float *x = scratch + me * item, *sums = x + padded;
    in += in_offset, bias += bias_offset, out += out_offset;
    if (first == end) return;
    if (kind == CLV_LM_NORM)
        make_norm(in, weight + weight_offset, eps, columns, padded, x);
    else if (kind == CLV_LM_PARTS)
        make_parts(in, parts, heads, columns / heads, x);
    else
        for (uint k = 0; k < padded; k += LANES)
            lanes_put(x_at(in, k, columns), x + k);
    if (kind == CLV_LM_PARTS)
        for (uint k = columns; k < padded; ++k)
            x[k] = 0.0f;
    make_sums(x, padded, sums);

    const size_t step = (size_t)blocks * QBYTES;
    __global const uchar *b = w + w_offset + first * step;
    for (uint g = first; g < end; ++g, b += step)
        for (uint lane = 0; lane < 16; lane += LANES) {
            __global float *y = out + (size_t)g * 16 + lane;
            fvec v = dot_rows(b, lane, blocks, x, sums);
            if (has_bias) v += lanes_at(bias + (size_t)g * 16 + lane);
            if (finish == CLV_LM_ADDS)
                v += lanes_at(y);
            else if (finish == CLV_LM_GATES)
                v = activate(v, CLV_ACT_SILU) * dot_rows(b + second, lane, blocks, x, sums);
            else if (finish == CLV_LM_GATED)
                v = activate(lanes_at(y), CLV_ACT_SILU) * v;
            lanes_put(v, y);
        }
}
