/* generate/items.cl -- products with W in blocks for GPUs: y = W x for a few x, rows of W, and W as floats.
 *
 *     y = W x                  PLUS    + bias, if there is one
 *                              ADDS    y += W x
 *                              GATED   y = silu(y) * (W x)
 *
 * A work-group computes 16 rows of W. A work-item computes 4 of these rows, for every SLICES-th unit of blocks, so that
 * four neighbouring work-items read 64 adjacent bytes. The sums of a row's slices are added in local memory, in order.
 * The bits of a token's results do not depend on the other tokens.
 *
 * Defines  QTYPE as in common/quants.clh, LOCAL: work-items of a group, a multiple of 4, TOKENS: most x of a
 *          launch.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#define LANES 1
#include "common/functions.clh"

#define QLANES 4
#include "common/quants.clh"
#include "generate/shared.clh"

#define SLICES (LOCAL / 4)
#define UNITS (QBLOCK / QUNIT) /* units of a block */
#define UNROLL _Pragma("unroll")

/* A row consists of whole blocks of quantised weights; the last block of floats may extend beyond it. */
#if QTYPE == Q_F32 || QTYPE == Q_F16 || QTYPE == Q_BF16
#define IS_THERE(k) ((k) < columns)
#else
#define IS_THERE(k) true
#endif

/* ---- rows of W, and W as floats ------------------------------------------------------------------- */

#define Q_BEGIN(k, d, m)                   \
    {                                      \
        const qf scale = (d), least = (m);
#if QM
#define Q_VALUE(v) fma(scale, v, least)
#else
#define Q_VALUE(v) (scale * (v))
#endif
#define Q_USE(k, v) TAKE(from + (k), Q_VALUE(v))
#define Q_END(k) }

/* Sets x[t] to row ids[t] of W. Launch 2-D: global (units rounded up to LOCAL, tokens), local (LOCAL, 1). */
#define TAKE(k, v)                                                                   \
    do {                                                                             \
        const float4 taken = v;                                                      \
        const float one = column < 2 ? (column ? taken.y : taken.x)                  \
                                     : (column < 3 ? taken.z : taken.w);             \
        if (IS_THERE(k)) to[k] = one;                                                \
    } while (0)
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_items_embed(__global const uchar *restrict w, ulong w_offset, __global const int *restrict ids,
                uint blocks, uint columns, __global float *restrict x, ulong stride)
{
    const uint row = (uint)ids[get_global_id(1)], unit = get_global_id(0);
    const uint lane = row % 16 / 4 * 4, column = row % 4;
    if (unit >= blocks * UNITS) return;
    __global const uchar *b =
        w + w_offset + ((ulong)(row / 16) * blocks + unit / UNITS) * QBYTES;
    __global float *to = x + get_global_id(1) * stride;
    const uint from = unit * QUNIT;
    Q_UNIT(b, unit % UNITS)
}
#undef TAKE

/* Widens rows [16 first, 16 (first + groups)) of W to floats, transposed: out[k][16 groups].
 * Launch 2-D: global (4 groups rounded up to LOCAL, units), local (LOCAL, 1). */
#define TAKE(k, v) do { if (IS_THERE(k)) vstore4(v, 0, to + (size_t)(k) * width); } while (0)
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_items_widen(__global const uchar *restrict w, ulong w_offset, uint first, uint groups,
                uint blocks, uint columns, __global float *restrict out)
{
    const uint group = get_global_id(0) / 4, lane = get_global_id(0) % 4 * 4;
    const uint unit = get_global_id(1);
    if (group >= groups) return;
    __global const uchar *b =
        w + w_offset + ((ulong)(first + group) * blocks + unit / UNITS) * QBYTES;
    const uint from = unit * QUNIT;
    const size_t width = (size_t)groups * 16;
    __global float *to = out + group * 16 + lane;
    Q_UNIT(b, unit % UNITS)
}
#undef TAKE
#undef Q_BEGIN
#undef Q_USE
#undef Q_END

/* ---- products ------------------------------------------------------------------------------------- */

#define Q_BEGIN(k, d, m)                                          \
    {                                                             \
        const qf scale = (d), least = (m);                        \
        float4 acc[TOKENS];                                       \
        float all[TOKENS];                                        \
        UNROLL for (int t_ = 0; t_ < TOKENS; ++t_)                \
            acc[t_] = (float4)(0.0f), all[t_] = 0.0f;
#if QM
#define Q_COUNT(t, one) all[t] += one;
#define Q_LEAST(t) fma(least, (float4)(all[t]), sum[t])
#else
#define Q_COUNT(t, one)
#define Q_LEAST(t) sum[t]
#endif
#define Q_USE(k, v)                                                     \
    do {                                                                \
        const float4 value = v;                                         \
        UNROLL for (int t_ = 0; t_ < TOKENS; ++t_) {                    \
            const float one = IS_THERE(from + (k)) ? in[t_][k] : 0.0f;  \
            acc[t_] = fma(value, (float4)(one), acc[t_]);               \
            Q_COUNT(t_, one)                                            \
        }                                                               \
    } while (0)
#define Q_END(k)                                          \
        UNROLL for (int t_ = 0; t_ < TOKENS; ++t_)        \
            sum[t_] = fma(scale, acc[t_], Q_LEAST(t_));   \
    }

/* Computes y = W x for `tokens` vectors x, at most TOKENS. Launch 1-D: global (groups * LOCAL), local (LOCAL). */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_items_product(__global const uchar *restrict w, ulong w_offset, uint blocks, uint columns,
                  __global const float *x, ulong x_offset, ulong x_stride, uint tokens,
                  __global const float *restrict bias, ulong bias_offset, uint has_bias,
                  __global float *y, ulong y_offset, ulong y_stride, uint finish)
{
    __local float part[TOKENS * SLICES * 16];
    const uint me = get_local_id(0), group = get_group_id(0), slice = me / 4, lane = me % 4 * 4;
    float4 sum[TOKENS];
    w += w_offset + (ulong)group * blocks * QBYTES;
    x += x_offset;
    for (int t = 0; t < TOKENS; ++t)
        sum[t] = (float4)(0.0f);
    for (uint unit = slice; unit < blocks * UNITS; unit += SLICES) {
        const uint from = unit * QUNIT;
        __global const uchar *b = w + (ulong)(unit / UNITS) * QBYTES;
        __global const float *in[TOKENS];
        for (uint t = 0; t < TOKENS; ++t)
            in[t] = x + min(t, tokens - 1) * x_stride + from;
        Q_UNIT(b, unit % UNITS)
    }
    for (uint t = 0; t < TOKENS; ++t)
        vstore4(sum[t], 0, part + (t * SLICES + slice) * 16 + lane);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = me; i < tokens * 16; i += LOCAL) {
        const uint t = i / 16, row = group * 16 + i % 16;
        __global float *to = y + y_offset + t * y_stride + row;
        float v = 0.0f;
        for (uint s = 0; s < SLICES; ++s)
            v += part[(t * SLICES + s) * 16 + i % 16];
        if (has_bias) v += bias[bias_offset + row];
        if (finish == CLV_LM_ADDS)
            v += *to;
        else if (finish == CLV_LM_GATED)
            v = activate(*to, CLV_ACT_SILU) * v;
        *to = v;
    }
}
