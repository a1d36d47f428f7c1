/* array/normalize.cl -- computes z = (x - mean) / std for every column of x [rows, width].
 *
 * Launch   2-D: (blocks of `cols` columns, rows / each), local (1, 1) on cores with vectors; else one column per
 *          work-item, rounded up to any local size.
 * Defines  LANES (16 or 1).
 * Needs    OpenCL C 1.2. Memory: x is read once, and z is written once. */
#include "array/map.clh"

__kernel void clv_normalize(__global const float *x, __global const float *mean,
                            __global const float *std, __global float *z, uint rows, uint width,
                            uint cols, uint each)
{
    const uint from = get_global_id(0) * cols, to = min(width, from + cols);
    const uint first = get_global_id(1) * each, last = min(rows, first + each);
    for (uint r = first; r < last; ++r)
        for (uint c = from; c < to; c += LANES) {
            const uint room = to - c;
            const size_t at = (size_t)r * width + c;
            (void)room;
            const fvec v = (LOAD(x, at, room) - LOAD(mean, c, room)) / LOAD(std, c, room);
            STORE(v, z, at, room);
        }
}
