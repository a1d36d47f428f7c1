/* array/linear.cl -- a step of linear regression: residuals, loss, gradient, new weights.
 *
 * Rows are grouped in blocks. A row's residual is made of 16 sums by fma: sum l runs over the columns l, l + 16, ...;
 * the 16 sums are added one after the other. A block's parts of loss and gradient are sums over its rows. The parts of
 * all blocks are added from first to last by compensated summation, so that the bits are the same on every device and
 * on the host.
 *
 * Launch   Cores: clv_linear_block, 1-D, global (blocks), local (1).
 *          Other devices: clv_linear_residual, 1-D, global (rows); then clv_linear_gradient, 2-D, global (columns,
 *          blocks). Last, on all devices: clv_linear_join, 1-D, global (columns). These are rounded up to any
 *          local size.
 * Defines  LANES (16 or 1).
 * Needs    OpenCL C 1.2. Memory bound: x is read once on cores, and twice on other devices. */
#pragma OPENCL FP_CONTRACT OFF
#include "common/lanes.clh"

#define ADD(a, e, v)                                  \
    {                                                 \
        const float sum_ = a + (v), part_ = sum_ - a; \
        e += (a - (sum_ - part_)) + ((v) - part_);    \
        a = sum_;                                     \
    }

static float residual(__global const float *row, __global const float *w, float y, uint width)
{
    float lane[16];
    uint j = 0;
#if LANES == 16
    float16 sums = (float16)(0.0f);
    for (; j + 16 <= width; j += 16)
        sums = fma(vload16(0, row + j), vload16(0, w + j), sums);
    vstore16(sums, 0, lane);
#else
    for (uint l = 0; l < 16; ++l)
        lane[l] = 0.0f;
    for (; j + 16 <= width; j += 16)
        for (uint l = 0; l < 16; ++l)
            lane[l] = fma(row[j + l], w[j + l], lane[l]);
#endif
    for (uint l = 0; j + l < width; ++l)
        lane[l] = fma(row[j + l], w[j + l], lane[l]);
    float sum = lane[0];
    for (uint l = 1; l < 16; ++l)
        sum += lane[l];
    return sum - y;
}

static float square_sum(__global const float *r, uint first, uint last)
{
    float loss = 0.0f;
    for (uint i = first; i < last; ++i)
        loss = fma(r[i], r[i], loss);
    return loss;
}

#if LANES == 16

__kernel void clv_linear_block(__global const float *x, __global const float *y,
                               __global const float *w, __global float *r, __global float *parts,
                               __global float *losses, uint rows, uint width, uint each)
{
    const uint block = get_global_id(0), first = block * each, last = min(rows, first + each);
    for (uint i = first; i < last; ++i)
        r[i] = residual(x + (size_t)i * width, w, y[i], width);
    losses[block] = square_sum(r, first, last);
    __global float *part = parts + (size_t)block * width;
    uint j = 0;
    for (; j + 64 <= width; j += 64) {
        float16 a = (float16)(0.0f), b = a, c = a, d = a;
        for (uint i = first; i < last; ++i) {
            __global const float *at = x + (size_t)i * width + j;
            const float16 ri = (float16)(r[i]);
            a = fma(vload16(0, at), ri, a);
            b = fma(vload16(1, at), ri, b);
            c = fma(vload16(2, at), ri, c);
            d = fma(vload16(3, at), ri, d);
        }
        vstore16(a, 0, part + j), vstore16(b, 1, part + j);
        vstore16(c, 2, part + j), vstore16(d, 3, part + j);
    }
    for (; j + 16 <= width; j += 16) {
        float16 a = (float16)(0.0f);
        for (uint i = first; i < last; ++i)
            a = fma(vload16(0, x + (size_t)i * width + j), (float16)(r[i]), a);
        vstore16(a, 0, part + j);
    }
    for (; j < width; ++j) {
        float a = 0.0f;
        for (uint i = first; i < last; ++i)
            a = fma(x[(size_t)i * width + j], r[i], a);
        part[j] = a;
    }
}

#else

__kernel void clv_linear_residual(__global const float *x, __global const float *y,
                                  __global const float *w, __global float *r, uint rows, uint width)
{
    const size_t i = get_global_id(0);
    if (i < rows) r[i] = residual(x + i * width, w, y[i], width);
}

__kernel void clv_linear_gradient(__global const float *x, __global const float *r,
                                  __global float *parts, __global float *losses, uint rows,
                                  uint width, uint each)
{
    const uint j = get_global_id(0), block = get_global_id(1);
    const uint first = block * each, last = min(rows, first + each);
    if (first >= rows) return;
    if (j == 0) losses[block] = square_sum(r, first, last);
    if (j >= width) return;
    float a = 0.0f;
    for (uint i = first; i < last; ++i)
        a = fma(x[(size_t)i * width + j], r[i], a);
    parts[(size_t)block * width + j] = a;
}

#endif

/* Computes gradient = 2 (high + low) * sum of parts, and w -= rate * gradient; sums loss[at] in the same way. */
__kernel void clv_linear_join(__global const float *parts, __global const float *losses,
                              __global float *gradient, __global float *w, __global float *loss,
                              uint width, uint blocks, float high, float low, float rate, uint at)
{
    const uint j = get_global_id(0);
    if (j >= width) return;
    float a = 0.0f, e = 0.0f;
    for (uint b = 0; b < blocks; ++b)
        ADD(a, e, parts[(size_t)b * width + j])
    const float sum = 2.0f * (a + e), g = fma(sum, high, sum * low);
    gradient[j] = g;
    if (rate != 0.0f) w[j] = fma(-rate, g, w[j]);
    if (j > 0) return;
    a = e = 0.0f;
    for (uint b = 0; b < blocks; ++b)
        ADD(a, e, losses[b])
    a += e;
    loss[at] = fma(a, high, a * low);
}
