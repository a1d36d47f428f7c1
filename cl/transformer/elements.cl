/* transformer/elements.cl -- operations on single numbers or rows: gates, rotary positions, the loss
 * of a classifier.
 *
 * Defines  LANES, LOCAL.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/rope.clh"
#include "transformer/rows.clh"

/* Computes y = act(gate) * up: the gate of row r begins at r * row, and its up `width` columns further.
 * Launch   1-D: global (rows rounded up to LOCAL), local (LOCAL). */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_gate(__global const float *restrict x, ulong row, __global float *restrict y, uint rows,
         uint width, uint act)
{
    const size_t r = get_global_id(0);
    if (r >= rows) return;
    __global const float *from = x + r * row;
    for (uint c = 0; c < width; c += LANES)
        put_columns(activate(columns(from, c, width), act) * columns(from + width, c, width),
                    y + r * width, c, width);
}

/* Rotates the heads of row r by the angles of position first + r, in place: turns [position][pairs].
 * Launch   1-D: global (rows rounded up to LOCAL), local (LOCAL). */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_rope(__global float *x, ulong offset, ulong row, __global const float2 *restrict turns,
         uint first, uint rows, uint heads, uint pairs)
{
    const size_t r = get_global_id(0);
    if (r >= rows) return;
    turn_heads(x + offset + r * row, turns + (first + r) * pairs, heads, pairs, 1.0f);
}

static float eight_max(float8 x)
{
    const float4 a = fmax(x.lo, x.hi);
    return fmax(fmax(a.x, a.z), fmax(a.y, a.w));
}

static float eight_sum(float8 x)
{
    const float4 a = x.lo + x.hi;
    return (a.x + a.z) + (a.y + a.w);
}

/* loss[r] = log(sum of exp(x)) - x[label], and its gradient times `scale`; rows with the label
 * `ignored` give 0 and 0. The gradient may overwrite x. Loops take eight classes per turn, as some
 * devices end loops of many turns: up to 170,000 classes are correct there.
 * Launch   1-D: global (rows rounded up to LOCAL), local (LOCAL). */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_cross_entropy(__global const float *x, __global const int *restrict labels, int ignored,
                  __global float *restrict loss, __global float *gradient, uint has_gradient,
                  float scale, uint rows, uint classes)
{
    const size_t r = get_global_id(0);
    if (r >= rows) return;
    const int label = labels[r];
    const bool counts = label != ignored;
    __global const float *row = x + r * classes;
    const float own = counts ? row[label] : 0.0f;
    float8 tops = (float8)(row[0]), sums = (float8)(0.0f);
    const uint whole = classes / 8 * 8;
    for (uint c = 0; c < whole; c += 8)
        tops = fmax(tops, vload8(0, row + c));
    float top = eight_max(tops), sum = 0.0f;
    for (uint c = whole; c < classes; ++c)
        top = fmax(top, row[c]);
    for (uint c = 0; c < whole; c += 8)
        sums += exp(vload8(0, row + c) - top);
    for (uint c = whole; c < classes; ++c)
        sum += exp(row[c] - top);
    sum += eight_sum(sums);
    loss[r] = counts ? log(sum) + (top - own) : 0.0f;
    if (!has_gradient) return;
    __global float *to = gradient + r * classes;
    for (uint c = 0; c < whole; c += 8)
        vstore8(counts ? exp(vload8(0, row + c) - top) / sum * scale : (float8)(0.0f), 0, to + c);
    for (uint c = whole; c < classes; ++c)
        to[c] = counts ? exp(row[c] - top) / sum * scale : 0.0f;
    if (counts) to[label] = (exp(own - top) / sum - 1.0f) * scale;
}
