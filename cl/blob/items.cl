/* cl/blob/items.cl -- responses and their maxima with one work-item per pixel and planes in global memory:
 * for GPUs, and for other devices without long vectors.
 *
 * Planes of a frame, [height][width] each: I, A, B (LoG) or G (DoG), then one for each
 * scale.
 *
 * Launch   3-D: global (width rounded up to WG, height, frames); the last two kernels (.., height,
 *          frames * scales). local (WG, 1, 1). No barrier, no local memory.
 * Defines  LANES (1), PIXEL, DOG, WG.
 * Memory   Neighbouring work-items read neighbouring elements; elements that several pixels use come from caches.
 * Order    The sums and their order are those of rows.cl. */
#pragma OPENCL FP_CONTRACT OFF

#include "blob/blob.clh"

#define PLANE ((size_t)height * width)
#define FRAME(n) ((n) * (size_t)(3 + scales) * PLANE)

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_blob_bring(__global const pixel_t *restrict pixels, ulong offset, ulong frame_stride,
               ulong row_stride, __global const float *restrict pedestals,
               __global float *restrict planes, int height, int width, int scales, float gain,
               uint at)
{
    const int x = get_global_id(0), y = get_global_id(1), n = get_global_id(2);
    if (x >= width) return;
    const pixel_t v = pixels[offset + (at + n) * (size_t)frame_stride + y * (size_t)row_stride + x];
    planes[FRAME(n) + (size_t)y * width + x] = bring(v, pedestals[at + n], gain);
}

/* Filters the rows for one level: A = g * I, and B = q * I for the LoG. */
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_blob_across(__global float *planes, __global const float2 *restrict taps, int first, int radius,
                int height, int width, int scales)
{
    const int x = get_global_id(0), y = get_global_id(1), n = get_global_id(2);
    if (x >= width) return;
    taps += first;
    __global const float *row = planes + FRAME(n) + (size_t)y * width;
    float2 sum = taps[0] * row[x];
    if (x >= radius && x + radius < width) {
        for (int i = 1; i <= radius; ++i) sum = fma(taps[i], (float2)(row[x - i] + row[x + i]), sum);
    } else {
        for (int i = 1; i <= radius; ++i)
            sum = fma(taps[i], (float2)(row[mirror(x - i, width)] + row[mirror(x + i, width)]), sum);
    }
    __global float *out = planes + FRAME(n) + PLANE + (size_t)y * width + x;
    out[0] = sum.x;
#if !DOG
    out[PLANE] = sum.y;
#endif
}

/* Filters the columns for one level, and computes the response of this level (LoG) or of the level before it (DoG). */
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_blob_down(__global float *planes, __global const float2 *restrict taps, int first, int radius, int l,
              __global const float *restrict pedestals, __global const float *restrict leak,
              int height, int width, int scales,
              float gain, float dog, uint at)
{
    const int x = get_global_id(0), y = get_global_id(1), n = get_global_id(2);
    if (x >= width) return;
    taps += first;
    __global const float *A = planes + FRAME(n) + PLANE + x;
    const float2 t = taps[0];
    const size_t here = (size_t)y * width;
#if DOG
    float sum = A[here] * t.x;
#else
    __global const float *B = A + PLANE;
    float sum = fma(t.x, B[here], A[here] * t.y);
#endif
    const bool inner = y >= radius && y + radius < height;
    for (int i = 1; i <= radius; ++i) {
        const float2 w = taps[i];
        const size_t u = (size_t)(inner ? y - i : mirror(y - i, height)) * width;
        const size_t d = (size_t)(inner ? y + i : mirror(y + i, height)) * width;
#if DOG
        sum = fma(w.x, A[u] + A[d], sum);
#else
        sum = fma(w.y, A[u] + A[d], sum);
        sum = fma(w.x, B[u] + B[d], sum);
#endif
    }
    const int k = max(l - DOG, 0);
    __global float *out = planes + FRAME(n) + (size_t)(3 + k) * PLANE + here + x;
    const float bias = leak[l] * pedestals[at + n] * gain;
#if DOG
    __global float *G = planes + FRAME(n) + 2 * PLANE + here + x;
    const float before = G[0];
    G[0] = sum;
    if (l == 0) return;
    *out = (before - sum) * dog + bias;
#else
    *out = sum + bias;
#endif
}

/* Finds the maxima of one scale. */
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_blob_look(__global const float *restrict planes, __global uint *restrict peaks,
              volatile __global uint *counts, __global const float *restrict map,
              __global const float *restrict factor, int height, int width, int scales, uint capacity,
              float relative, int across, int cells, int shift, uint at)
{
    const int x = get_global_id(0), y = get_global_id(1);
    const int n = get_global_id(2) / scales, k = get_global_id(2) % scales;
    if (x >= width) return;
    __global const float *L = planes + FRAME(n) + 3 * PLANE;
    if (!(L[k * PLANE + (size_t)y * width + x] >
          floor_at(map + (size_t)(at + n) * cells, factor, across, shift, k, y, x)))
        return;
    consider(L, y, x, k, height, width, scales, 0.0f, relative,
             peaks + (size_t)(at + n) * capacity * CLV_BLOB_PEAK_WORDS, counts + 2 * (at + n), capacity);
}

/* Counts the sizes of responses in bins: see blob.clh. */
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_blob_count(__global const float *restrict planes, volatile __global uint *bins,
               __global const float *restrict map, __global const float *restrict factor, int height,
               int width, int scales, int step, int across, int cells, int shift, uint at)
{
    const int x = get_global_id(0), y = get_global_id(1) * step;
    const int n = get_global_id(2) / scales, k = get_global_id(2) % scales;
    if (x >= width || y >= height || x % step) return;
    const float value = planes[FRAME(n) + (size_t)(3 + k) * PLANE + (size_t)y * width + x];
    const float size =
        value / floor_at(map + (size_t)(at + n) * cells, factor, across, shift, k, y, x);
    atomic_inc(bins + ((size_t)(at + n) * scales + k) * CLV_BLOB_NOISE_BINS + noise_bin(size));
}
