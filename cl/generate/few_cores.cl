/* generate/few_cores.cl -- products of a few tokens for CPUs: y[t] = W x[t], each with the bits of cores.cl.
 *
 * clv_cores_ready prepares each token's x and its sums, as clv_cores_product does for a single token. clv_cores_few
 * passes over groups of 16 rows of W: it unpacks a group's weights once for TOKENS tokens, and reads the group's bytes
 * from the first-level cache for further tokens. Where generate/rows.clh multiplies bytes, it unpacks the weights for
 * each token again, which costs little. The sums of every token run in the order of the sums of a single token.
 *
 * Launch   clv_cores_ready  1-D: global (tokens), local (1)
 *          clv_cores_few    1-D: global (work-items), local (1)
 * Defines  LANES (16 or 8), QTYPE as in common/quants.clh, TOKENS that are processed together,
 *          INT8 as in generate/rows.clh.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"

#define QLANES LANES
#include "common/quants.clh"
#include "generate/shared.clh"

#define UNROLL _Pragma("unroll")
#include "generate/rows.clh"

/* Writes x[t] to scratch [t][item]. PARTS: if token t has several parts of the keys, their results are at parted
 * [t][parted_stride]; otherwise x[t] is in `in`. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_cores_ready(__global const float *in, ulong in_offset, ulong stride, uint kind,
                __global const float *parted, ulong parted_stride, __global const uint *parts,
                uint heads, __global const float *restrict weight, ulong weight_offset, float eps,
                uint blocks, uint columns, __global float *scratch, ulong item)
{
    const uint t = get_global_id(0), padded = blocks * QBLOCK;
    const uint of_keys = kind == CLV_LM_PARTS ? parts[t] : 1;
    __global float *x = scratch + t * item;
    in += in_offset + t * stride;
    if (kind == CLV_LM_NORM) {
        make_norm(in, weight + weight_offset, eps, columns, padded, x);
    } else if (of_keys > 1) {
        make_parts(parted + t * parted_stride, of_keys, heads, columns / heads, x);
        for (uint k = columns; k < padded; ++k)
            x[k] = 0.0f;
    } else {
        for (uint k = 0; k < padded; k += LANES)
            lanes_put(x_at(in, k, columns), x + k);
    }
    make_sums(x, padded, x + padded);
}

#if INT8 || defined(BYTES)
/* Computes the products token by token: sums of bytes gain nothing from another form, and the group's bytes stay in the
 * first-level cache. */
static void dot_few(__global const uchar *b, uint lane, uint blocks, __global const float *x, ulong item,
                    uint tokens, qf sum[TOKENS])
{
    for (uint t = 0; t < TOKENS; ++t) {
        __global const float *one = x + t * item;
        sum[t] = t < tokens ? dot_rows(b, lane, blocks, one, one + blocks * QBLOCK) : (qf)(0.0f);
    }
}
#else
#undef Q_BEGIN
#undef Q_USE
#undef Q_END
#if QUNIT == QGROUP
/* Computes the four sums of all tokens one after the other, so that few registers suffice. */
#define TURNS 4
#define Q_BEGIN(k, d, m)                                                        \
    {                                                                           \
        const qf scale = (d), least = (m);                                      \
        qf acc[TOKENS];                                                         \
        UNROLL for (int t_ = 0; t_ < TOKENS; ++t_) acc[t_] = (qf)(0.0f);
#define Q_USE(k, v)                                                             \
    do {                                                                        \
        if ((k) % 4 != turn) continue;                                          \
        const qf value_ = v;                                                    \
        UNROLL for (int t_ = 0; t_ < TOKENS; ++t_)                              \
            acc[t_] = fma(value_, (qf)(part[t_][k]), acc[t_]);                  \
    } while (0)
#define Q_END(k)                                                                \
        UNROLL for (int t_ = 0; t_ < TOKENS; ++t_) {                            \
            if (turn == 0 || turn == 2) half_of[turn / 2][t_] = acc[t_];        \
            if (turn == 1 || turn == 3) half_of[turn / 2][t_] += acc[t_];       \
            if (turn < 3) continue;                                             \
            const qf all = half_of[0][t_] + half_of[1][t_];                     \
            Q_LEAST(k, t_);                                                     \
        }                                                                       \
    }
#else
#define TURNS 1
#define Q_BEGIN(k, d, m)                                                        \
    {                                                                           \
        const qf scale = (d), least = (m);                                      \
        qf acc[TOKENS][4];                                                      \
        UNROLL for (int t_ = 0; t_ < TOKENS; ++t_)                              \
            UNROLL for (int a_ = 0; a_ < 4; ++a_) acc[t_][a_] = (qf)(0.0f);
#define Q_USE(k, v)                                                             \
    do {                                                                        \
        const qf value_ = v;                                                    \
        UNROLL for (int t_ = 0; t_ < TOKENS; ++t_)                              \
            acc[t_][(k) % 4] = fma(value_, (qf)(part[t_][k]), acc[t_][(k) % 4]); \
    } while (0)
#define Q_END(k)                                                                \
        UNROLL for (int t_ = 0; t_ < TOKENS; ++t_) {                            \
            const qf all =                                                      \
                (acc[t_][0] + acc[t_][1]) + (acc[t_][2] + acc[t_][3]);          \
            Q_LEAST(k, t_);                                                     \
        }                                                                       \
    }

#endif
#if QM
#define Q_LEAST(k, t) sum[t] = fma(least, (qf)(sums[t][(k) / QGROUP]), fma(scale, all, sum[t]))
#else
#define Q_LEAST(k, t) sum[t] = fma(scale, all, sum[t])
#endif

/* Computes the products of the rows from `lane` on of the group at `b` with TOKENS vectors x, `item` floats apart. */
static void dot_few(__global const uchar *b, uint lane, uint blocks, __global const float *x, ulong item,
                    uint tokens, qf sum[TOKENS])
{
    __global const float *part[TOKENS], *sums[TOKENS];
    UNROLL for (int t = 0; t < TOKENS; ++t) {
        sum[t] = (qf)(0.0f);
        part[t] = x + min((uint)t, tokens - 1) * item;
        sums[t] = part[t] + blocks * QBLOCK;
    }
    for (uint i = 0; i < blocks; ++i, b += QBYTES)
        for (uint u = 0; u < QBLOCK / QUNIT; ++u) {
            qf half_of[2][TOKENS];
            UNROLL for (int turn = 0; turn < TURNS; ++turn) {
                Q_UNIT(b, u)
            }
            UNROLL for (int t = 0; t < TOKENS; ++t) part[t] += QUNIT, sums[t] += QUNIT / QGROUP;
        }
}
#endif

/* Computes y[t] = W x[t] for all tokens; y[t] begins out_stride floats after y[t - 1]. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_cores_few(__global const uchar *restrict w, ulong w_offset, ulong second, uint groups,
              uint blocks, __global const float *restrict scratch, ulong item, uint tokens,
              __global const float *restrict bias, ulong bias_offset, uint has_bias,
              __global float *out, ulong out_offset, ulong out_stride, uint finish)
{
    const uint items = get_global_size(0), me = get_global_id(0);
    const uint first = (uint)((ulong)groups * me / items);
    const uint end = (uint)((ulong)groups * (me + 1) / items);
    const size_t step = (size_t)blocks * QBYTES;
    const uint passes = finish == CLV_LM_GATES ? 2 : 1;
    __global const uchar *b = w + w_offset + first * step;
    bias += bias_offset, out += out_offset;
    for (uint g = first; g < end; ++g, b += step)
        for (uint lane = 0; lane < 16; lane += LANES)
            for (uint t0 = 0; t0 < tokens; t0 += TOKENS) {
                const uint here = min((uint)TOKENS, tokens - t0), row = g * 16 + lane;
                __global const float *x = scratch + t0 * item;
                qf v[TOKENS], d[TOKENS];
                for (uint pass = 0; pass < passes; ++pass) {
                    dot_few(b + pass * second, lane, blocks, x, item, here, d);
                    UNROLL for (int t = 0; t < TOKENS; ++t)
                        v[t] = pass ? activate(v[t], CLV_ACT_SILU) * d[t] : d[t];
                }
                UNROLL for (uint t = 0; t < TOKENS; ++t) {
                    if (t >= here) continue;
                    __global float *y = out + (t0 + t) * out_stride + row;
                    qf one = v[t];
                    if (has_bias) one += lanes_at(bias + row);
                    if (finish == CLV_LM_ADDS)
                        one += lanes_at(y);
                    else if (finish == CLV_LM_GATED)
                        one = activate(lanes_at(y), CLV_ACT_SILU) * one;
                    lanes_put(one, y);
                }
            }
}
