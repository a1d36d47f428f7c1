/* cl/spectra/smooth.cl -- makes templates from finer spectra: every point is a weighted sum of its neighbourhood.
 *
 * clv_spectra_smooth: out[block][n][lane] = sum over j of weight[start[n] + j] * in[block][from[n] + j][lane], for
 *                     the start[n + 1] - start[n] neighbours of point n, in a block of 16 spectra.
 * Launch   x: points (rounded up), y: blocks of spectra.
 * Memory   All lanes of a neighbour are one cache line; neighbouring points read nearly the same lines.
 * Order    Products are added in sums of 32, and then these sums are added, so that a sum of a thousand terms loses
 *          hardly more digits than one of thirty-two. */
#pragma OPENCL FP_CONTRACT OFF

#define PART 32

__kernel void clv_spectra_smooth(__global const float *restrict in, __global const int *restrict from,
                                 __global const int *restrict start,
                                 __global const float *restrict weight, __global float *restrict out,
                                 uint used, uint points)
{
    const size_t n = get_global_id(0), block = get_global_id(1);
    if (n >= points) return;
    __global const float *x = in + (block * used + (size_t)from[n]) * 16;
    float16 sum = 0.0f;
    int j = start[n];
    const int end = start[n + 1];
    while (j < end) {
        const int stop = min(j + PART, end);
        float16 part = 0.0f;
        for (; j < stop; ++j) {
            part += weight[j] * vload16(0, x);
            x += 16;
        }
        sum += part;
    }
    vstore16(sum, block * points + n, out);
}
