/* cl/array/convolve.cl -- convolution of an image that already has its borders.
 *
 * Buffers: in float [rows + KH - 1, pitch], the padded band; weights float [KH*KW], the kernel rotated by
 * 180 degrees; out float [rows, width].
 * A work-item computes ROWS rows of 2 * LANES columns (CPUs) or a pixel of one or a few rows (LANES 1, any global and
 * local size): on CPUs, an input row is loaded once for the ROWS outputs that it contributes to. Rows of `pitch`
 * floats are long enough for the last block of columns.
 *
 * Defines: LANES, KH, KW. Roofline: 2 * KH * KW flop per pixel and 8 bytes: bound by arithmetic from 3x3 on. */
#include "array/shared.clh"
#include "common/lanes.clh"

#if LANES == 1

__kernel void clv_array_convolve(__global const float *in, ulong offset, ulong pitch,
                                 __global const float *weights, __global float *out, uint rows,
                                 uint width)
{
    const size_t x = get_global_id(0);
    if (x >= width) return;
    for (size_t y = get_global_id(1); y < rows; y += get_global_size(1)) {
        __global const float *at = in + offset + y * pitch + x;
        float sum = 0.0f;
        for (uint i = 0; i < KH; ++i, at += pitch)
            for (uint j = 0; j < KW; ++j)
                sum = fma(weights[i * KW + j], at[j], sum);
        out[y * width + x] = sum;
    }
}

#else

enum { ROWS = CLV_CONVOLVE_ROWS, BLOCK = 2 * LANES };

/* Stores the first `room` columns of a block, those that lie within the row. */
static void put(__global float *to, fvec a, fvec b, uint room)
{
    if (room >= BLOCK) {
        lanes_store(a, to);
        lanes_store(b, to + LANES);
        return;
    }
    float cut[BLOCK];
    LANES_JOIN(vstore, LANES)(a, 0, cut);
    LANES_JOIN(vstore, LANES)(b, 0, cut + LANES);
    for (uint x = 0; x < room; ++x)
        to[x] = cut[x];
}

#define TERM(r)                                    \
    {                                              \
        const float w = weights[(i - r) * KW + j]; \
        a##r = fma((fvec)(w), va, a##r);           \
        b##r = fma((fvec)(w), vb, b##r);           \
    }
#define TERM_IF(r) \
    if (i - r >= 0 && i - r < KH) TERM(r)

__kernel void clv_array_convolve(__global const float *in, ulong offset, ulong pitch,
                                 __global const float *weights, __global float *out, uint rows,
                                 uint width)
{
    const size_t y = get_global_id(1) * ROWS;
    const int last = (int)min((ulong)(KH + ROWS - 1), (ulong)(rows - y + KH - 1));
    for (size_t x = get_global_id(0) * BLOCK; x < width; x += get_global_size(0) * BLOCK) {
        fvec a0 = (fvec)(0.0f), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
        __global const float *at = in + offset + y * pitch + x;
        for (int i = 0; i < last; ++i, at += pitch) {
            if (i >= ROWS - 1 && i < KH) /* the input row contributes to all ROWS outputs */
                for (int j = 0; j < KW; ++j) {
                    const fvec va = lanes_load(at + j), vb = lanes_load(at + j + LANES);
                    TERM(0) TERM(1) TERM(2) TERM(3)
                }
            else
                for (int j = 0; j < KW; ++j) {
                    const fvec va = lanes_load(at + j), vb = lanes_load(at + j + LANES);
                    TERM_IF(0) TERM_IF(1) TERM_IF(2) TERM_IF(3)
                }
        }
        const uint room = width - (uint)x;
        __global float *to = out + y * width + x;
        put(to, a0, b0, room);
        if (y + 1 < rows) put(to + width, a1, b1, room);
        if (y + 2 < rows) put(to + 2 * (size_t)width, a2, b2, room);
        if (y + 3 < rows) put(to + 3 * (size_t)width, a3, b3, room);
    }
}

#endif
