/* transformer/sums.cl -- sums over rows, in an order that depends on the sizes alone: for the gradients of biases, of
 * the parameters of norms and of tables of embeddings, and for products whose terms were split.
 *
 * Needs    OpenCL C 1.2. No atomics: every number is written by one work-item.
 * Defines  LANES, LOCAL. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/rows.clh"

/* For rows [b * block, (b + 1) * block) and a column c:
 *     P[b][0][c] = sum of G[r][c],   P[b][1][c] = sum of G[r][c] t[r][c]  (has_norm)
 * with t = (X - mean) / sqrt(var + eps) of the norm whose moments are given.
 * Launch   2-D: global (columns / LANES, rounded up to LOCAL; blocks), local (LOCAL, 1). */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_column_sums(__global const float *restrict G, ulong g_offset, ulong g_row,
                __global const float *restrict X, ulong x_offset, ulong x_row,
                __global const float2 *restrict moments, uint has_norm, __global float *restrict P,
                uint rows, uint width, uint block)
{
    const uint c = get_global_id(0) * LANES, b = get_global_id(1);
    if (c >= width) return;
    const uint last = min((b + 1) * block, rows);
    fvec sum = (fvec)(0.0f), along = (fvec)(0.0f);
    for (uint r = b * block; r < last; ++r) {
        const fvec g = columns(G + g_offset + r * g_row, c, width);
        sum += g;
        if (has_norm) {
            const fvec x = columns(X + x_offset + r * x_row, c, width);
            along = fma(g, (x - moments[r].x) * moments[r].y, along);
        }
    }
    put_columns(sum, P + (size_t)b * 2 * width, c, width);
    if (has_norm) put_columns(along, P + ((size_t)b * 2 + 1) * width, c, width);
}

/* out[c] = sum over b of P[offset + b * stride + c], in rising order of b.
 * Launch   1-D: global (columns / LANES, rounded up to LOCAL), local (LOCAL). */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_sum_blocks(__global const float *restrict P, ulong offset, ulong stride, uint blocks,
               __global float *restrict out, ulong out_offset, uint width)
{
    const uint c = get_global_id(0) * LANES;
    if (c >= width) return;
    fvec sum = (fvec)(0.0f);
    for (uint b = 0; b < blocks; ++b)
        sum += columns(P + offset + b * stride, c, width);
    put_columns(sum, out + out_offset, c, width);
}

/* Computes the gradient of a lookup in a table. For a segment (x, y, z) = segments[s], sets row z of `out` to the sum
 * of the y rows of G that `list` names from entry x on, added in the order of the list. With `clear`, sets row z to 0.
 * Launch   2-D: global (work-items that share the columns, a multiple of LOCAL; segments), local (LOCAL, 1). */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_segment_sums(__global const float *G, __global const int *restrict list,
                 __global const int4 *restrict segments, ulong first, __global float *out,
                 ulong out_offset, uint width, uint clear)
{
    const int4 s = segments[first + get_global_id(1)];
    for (uint c = get_global_id(0) * LANES; c < width; c += get_global_size(0) * LANES) {
        fvec sum = (fvec)(0.0f);
        for (int i = 0; i < (clear ? 0 : s.y); ++i)
            sum += columns(G + (size_t)list[s.x + i] * width, c, width);
        put_columns(sum, out + out_offset + (size_t)s.z * width, c, width);
    }
}
