/* cl/blob/volume_items.cl -- responses of a slab of a volume and their maxima, with one work-item per voxel, for
 * GPUs. One level at a time; see volume.clh for the arrays.
 *
 * clv_volume_tile computes A and C of a tile of a plane in local memory, so that pixels are read once. If a tile
 * does not fit, clv_volume_across and clv_volume_down do the same in global memory, without barriers.
 *
 * Launch   3-D: global (width rounded up to WG, height, planes), local (WG, 1, 1); clv_volume_tile:
 *          global (tiles in x * WG, tiles in y, planes). Planes are [low, high) before clv_volume_deep,
 *          [z0 - 1, z1 + 1) in it, and [z0, z1) in clv_volume_look.
 * Defines  LANES (1), PIXEL, DOG, WG, TX, TY (of a tile).
 * Needs    clv_volume_tile: local memory of clv_volume_tile_floats floats, given as an argument.
 * Order    The sums and their order are those of volume_rows.cl. */
#pragma OPENCL FP_CONTRACT OFF

#include "blob/volume.clh"

#define GROUP_OF_ITEMS __attribute__((reqd_work_group_size(WG, 1, 1)))

/* Filters the rows of a plane along x: AX = g I and, after all planes of AX, BX = q I; both are
 * [planes][height][pitch]. */
__kernel GROUP_OF_ITEMS void
clv_volume_across(__global const pixel_t *restrict pixels, ulong offset, ulong plane_stride,
                  ulong row_stride, __global const float2 *restrict taps, int first, int radius,
                  __global float *restrict AX, int height, int width, int pitch, int planes,
                  float pedestal, float gain)
{
    const int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x >= width) return;
    __global const pixel_t *row = pixels + offset + z * (size_t)plane_stride + y * (size_t)row_stride;
    taps += first;
    float2 sum = taps[0] * bring(row[x], pedestal, gain);
    for (int i = 1; i <= radius; ++i) {
        const pixel_t a = row[mirror(x - i, width)], b = row[mirror(x + i, width)];
        const float both = bring(a, pedestal, gain) + bring(b, pedestal, gain);
        sum = fma(taps[i], (float2)(both), sum);
    }
    const size_t at = ((size_t)z * height + y) * pitch + x;
    AX[at] = sum.x;
#if !DOG
    AX[(size_t)planes * height * pitch + at] = sum.y;
#endif
}

__kernel GROUP_OF_ITEMS void
clv_volume_down(__global const float *restrict AX, __global const float2 *restrict taps, int first,
                int radius, __global float *restrict A, __global float *restrict C, int height, int width,
                int pitch, int planes)
{
    const int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x >= width) return;
    AX += (size_t)z * height * pitch + x, taps += first;
    const size_t here = (size_t)y * pitch, out = ((size_t)y * planes + z) * pitch + x;
    float sum = AX[here] * taps[0].x;
#if !DOG
    __global const float *BX = AX + (size_t)planes * height * pitch;
    float both = fma(taps[0].x, BX[here], AX[here] * taps[0].y);
#endif
    for (int i = 1; i <= radius; ++i) {
        const size_t u = (size_t)mirror(y - i, height) * pitch, d = (size_t)mirror(y + i, height) * pitch;
        const float a = AX[u] + AX[d];
        sum = fma(taps[i].x, a, sum);
#if !DOG
        both = fma(taps[i].y, a, both);
        both = fma(taps[i].x, BX[u] + BX[d], both);
#endif
    }
    A[out] = sum;
#if !DOG
    C[out] = both;
#endif
}

/* Computes A and C for a tile of TX x TY pixels, in local memory. */
__kernel GROUP_OF_ITEMS void
clv_volume_tile(__global const pixel_t *restrict pixels, ulong offset, ulong plane_stride,
                ulong row_stride, __global const float2 *restrict taps, int first_y, int radius_y,
                int first_x, int radius_x, __local float *memory, __global float *restrict A,
                __global float *restrict C, int height, int width, int pitch, int planes,
                float pedestal, float gain)
{
    const int x0 = (int)get_group_id(0) * TX, y0 = (int)get_group_id(1) * TY, z = get_global_id(2);
    const int rows = TY + 2 * radius_y, columns = TX + 2 * radius_x;
    if (!height || !width) return; /* a rehearsal */
    __local float *in = memory;           /* [rows][columns] */
    __local float *a = in + rows * columns; /* [rows][TX] */
    __local float *b = a + rows * TX;
    pixels += offset + z * (size_t)plane_stride;
    for (int i = get_local_id(0); i < rows * columns; i += WG) {
        const int y = mirror(y0 - radius_y + i / columns, height),
                  x = mirror(x0 - radius_x + i % columns, width);
        const pixel_t v = pixels[y * (size_t)row_stride + x];
        in[i] = bring(v, pedestal, gain);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_local_id(0); i < rows * TX; i += WG) {
        __local const float *p = in + i / TX * columns + i % TX + radius_x;
        float2 sum = taps[first_x] * p[0];
        for (int j = 1; j <= radius_x; ++j) sum = fma(taps[first_x + j], (float2)(p[-j] + p[j]), sum);
        a[i] = sum.x;
#if !DOG
        b[i] = sum.y;
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_local_id(0); i < TX * TY; i += WG) {
        const int y = y0 + i / TX, x = x0 + i % TX;
        if (y >= height || x >= width) continue;
        __local const float *p = a + (i / TX + radius_y) * TX + i % TX;
        float sum = p[0] * taps[first_y].x;
#if !DOG
        __local const float *q = b + (i / TX + radius_y) * TX + i % TX;
        float both = fma(taps[first_y].x, q[0], p[0] * taps[first_y].y);
#endif
        for (int j = 1; j <= radius_y; ++j) {
            const float2 w = taps[first_y + j];
            const float s = p[-j * TX] + p[j * TX];
            sum = fma(w.x, s, sum);
#if !DOG
            both = fma(w.y, s, both);
            both = fma(w.x, q[-j * TX] + q[j * TX], both);
#endif
        }
        const size_t out = ((size_t)y * planes + z) * pitch + x;
        A[out] = sum;
#if !DOG
        C[out] = both;
#endif
    }
}

__kernel GROUP_OF_ITEMS void
clv_volume_deep(__global const float *restrict A, __global const float *restrict C,
                __global float *restrict L, __global float *restrict G,
                __global const float2 *restrict taps, int first, int radius, int l, int z0, int z1,
                int low, int high, int depth, int height, int width, int pitch, float bias, float dog)
{
    const int x = get_global_id(0), y = get_global_id(1), z = z0 - 1 + (int)get_global_id(2);
    if (x >= width || z < 0 || z >= depth) return;
    const size_t row = (size_t)y * (high - low);
    const int out_planes = z1 - z0 + 2, k = max(l - DOG, 0);
    A += row * pitch + x, taps += first;
    const size_t here = (size_t)(z - low) * pitch;
#if DOG
    float sum = A[here] * taps[0].x;
#else
    C += row * pitch + x;
    float sum = fma(taps[0].x, C[here], A[here] * taps[0].y);
#endif
    for (int i = 1; i <= radius; ++i) {
        const size_t u = (size_t)(mirror(z - i, depth) - low) * pitch,
                     d = (size_t)(mirror(z + i, depth) - low) * pitch;
#if DOG
        sum = fma(taps[i].x, A[u] + A[d], sum);
#else
        sum = fma(taps[i].y, A[u] + A[d], sum);
        sum = fma(taps[i].x, C[u] + C[d], sum);
#endif
    }
    const size_t at = ((size_t)y * out_planes + (z - z0 + 1)) * pitch + x;
    L += (size_t)(k % CLV_VOLUME_KEPT) * height * out_planes * pitch;
#if DOG
    const float before = G[at];
    G[at] = sum;
    if (l) L[at] = (before - sum) * dog + bias;
#else
    L[at] = sum + bias;
#endif
}

__kernel GROUP_OF_ITEMS void
clv_volume_look(__global const float *restrict L, __global const float *restrict map,
                __global const float *restrict factor, __global uint *restrict peaks,
                volatile __global uint *counts, volatile __global uint *bins, int k, int z0, int z1,
                int depth, int height, int width, int pitch, int scales, uint capacity, float relative,
                int step, int cells_across, int cells, int shift, uint at)
{
    const slab_t s = { z0, z1, 0, 0, depth, height, width, pitch, scales };
    const int x = get_global_id(0), y = get_global_id(1), z = z0 + (int)get_global_id(2);
    if (x >= width) return;
    peaks += (size_t)at * capacity * CLV_VOLUME_PEAK_WORDS, counts += 2 * at;
    const float floor = factor[k] *
        map[(size_t)z * cells + (size_t)(y >> shift) * cells_across + (x >> shift)];
    const float value = response_at(&s, L, k, z, y, x);
    if (value > floor) consider_place(&s, L, k, z, y, x, relative, peaks, counts, capacity);
    if (!step || x % step || y % step || z % step) return;
    atomic_inc(bins + (size_t)k * CLV_BLOB_NOISE_BINS + noise_bin(value * (1.0f / floor)));
}
