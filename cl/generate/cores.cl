/* generate/cores.cl -- the products of one token for CPUs: y = W x with W in blocks, and rows of W as embeddings.
 *
 *     y = W x                  PLUS    + bias, if there is one
 *                              ADDS    y += W x
 *                              GATES   y = silu(W x) * (W' x), with W' `second` bytes after W
 *                              GATED   y = silu(y) * (W x)
 *     x                        PLAIN   unchanged
 *                              NORM    x / sqrt(mean(x^2) + eps) * weight
 *                              PARTS   joined from the parts of the keys that generate/attend_cores.cl wrote
 *
 * A work-item prepares x in memory of its own, with the sums of x that are multiplied by the blocks' minima. It then
 * passes over its groups of 16 rows: rows are lanes, x is broadcast, and each row has four independent sums. W is read
 * once. A row's bits do not depend on the number of work-items.
 *
 * Launch   1-D: global (work-items), local (1).
 * Defines  LANES (16 or 8), QTYPE as in common/quants.clh, INT8 as in generate/rows.clh.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"

#define QLANES LANES
#include "common/quants.clh"
#include "generate/shared.clh"

#define UNROLL _Pragma("unroll")

/* ---- rows of W ------------------------------------------------------------------------------------ */

#define Q_BEGIN(k, d, m) \
    {                    \
        const qf scale = (d), least = (m);
/* the last block of floats may extend beyond the row */
#if QM
#define Q_USE(k, v) if (from + (k) < columns) vstoren(fma(scale, v, least), column, to + from + (k))
#else
#define Q_USE(k, v) if (from + (k) < columns) vstoren(scale * (v), column, to + from + (k))
#endif
#define Q_END(k) }

/* Stores lane `column` of `all` to `to`. */
static void vstoren(qf all, uint column, __global float *to)
{
    float each[LANES];
    lanes_store(all, each);
    *to = each[column];
}

/* Sets x[t] to row ids[t] of W. Launch 1-D: global (tokens), local (1). */
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

#include "generate/rows.clh"

/* Computes y = W x. `scratch` has `item` floats for every work-item, for the padded x and its sums. For PARTS,
 * `columns` is heads * head width. */
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

    const product p = { blocks, second, bias, has_bias, finish };
    product_rows(&p, w + w_offset, first, end, x, sums, out);
}
