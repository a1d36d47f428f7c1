/* cl/blob/volume_rows.cl -- responses of a slab of a volume and their maxima, by explicit vectors along x:
 * for cores. One level at a time; see volume.clh for the arrays.
 *
 * Launch   clv_volume_flat: 2-D: global (bands of rows, planes [low, high)), local (1, 1).
 *          clv_volume_deep: 1-D: global (rows), local (1).
 *          clv_volume_look: 2-D: global (rows, planes [z0, z1)), local (1, 1).
 * Defines  LANES (8 or 16), PIXEL, DOG.
 * Scratch  of clv_volume_flat, for each work-item: a row of pixels of pitch + 2 pad, and a ring of `ring` rows
 *          of pitch for each plane (LoG 2, DoG 1), so that its data stay in the cache.
 * Needs    OpenCL C 1.2; int32 global atomics. No barrier, no local memory.
 * Order    Sums take the kernel's coefficients from the middle outwards, each by one fma: bits do not depend on slabs
 *          or bands. */
#pragma OPENCL FP_CONTRACT OFF

#include "blob/volume.clh"

#define PLANES (DOG ? 1 : 2)
#define STEP CLV_BLOB_STEP_ROWS

/* Loads a row of pixels as floats, mirrored at its ends, to out[pad + x], 0 <= x < pitch. */
static void bring_line(__global const pixel_t *pixels, __global float *out, int width, int pitch,
                       int pad, float pedestal, float gain)
{
    for (int x = -pad; x < 0; ++x) out[pad + x] = bring(pixels[mirror(x, width)], pedestal, gain);
    int x = 0;
    for (; x + LANES <= width; x += LANES) {
        const fvec v = LANES_JOIN(convert_float, LANES)(lanes_load(pixels + x));
#if PIXEL == CLV_BLOB_PIXEL_F32
        const ivec good = isfinite(v);
        lanes_store(pick(good, (v - pedestal) * gain, (fvec)0.0f), out + pad + x);
#else
        lanes_store((v - pedestal) * gain, out + pad + x);
#endif
    }
    for (; x < pitch + pad; ++x) out[pad + x] = bring(pixels[mirror(x, width)], pedestal, gain);
}

/* Computes A = g I and B = q I along x. */
static void across(__global const float *in, __global float *A, __global float *B,
                   __global const float2 *taps, int radius, int pitch)
{
    for (int x = 0; x < pitch; x += 2 * LANES) {
        const fvec c0 = lanes_load(in + x), c1 = lanes_load(in + x + LANES);
        const float2 t = taps[0];
        fvec a0 = c0 * t.x, a1 = c1 * t.x;
        fvec b0 = c0 * t.y, b1 = c1 * t.y;
#pragma unroll 1
        for (int i = 1; i <= radius; ++i) {
            const float2 w = taps[i];
            const fvec s0 = lanes_load(in + x - i) + lanes_load(in + x + i);
            const fvec s1 = lanes_load(in + x + LANES - i) + lanes_load(in + x + LANES + i);
            a0 = fma((fvec)w.x, s0, a0), a1 = fma((fvec)w.x, s1, a1);
#if !DOG
            b0 = fma((fvec)w.y, s0, b0), b1 = fma((fvec)w.y, s1, b1);
#endif
        }
        lanes_store(a0, A + x), lanes_store(a1, A + x + LANES);
#if !DOG
        lanes_store(b0, B + x), lanes_store(b1, B + x + LANES);
#endif
    }
}

/* Filters rows [y, y + STEP) along y, from the ring: A = g A, and C = q A + g B. The vector that one output row loads
 * serves the next one in the next turn. */
static void down(__global const float *rings, int ring, int pitch, int y, int last,
                 __global const float2 *taps, int radius, __global float *outA, __global float *outC,
                 size_t row)
{
    const int mask = ring - 1;
    for (int x = 0; x < pitch; x += LANES) {
        __global const float *A = rings + x;
        fvec upA[STEP], dnA[STEP], sum[STEP];
#if !DOG
        __global const float *B = A + (size_t)ring * pitch;
        fvec upB[STEP], dnB[STEP], both[STEP];
#endif
        const float2 t = taps[0];
#pragma unroll
        for (int r = 0; r < STEP; ++r) {
            const size_t at = (size_t)((y + r) & mask) * pitch;
            upA[r] = dnA[r] = lanes_load(A + at);
            sum[r] = upA[r] * t.x;
#if !DOG
            upB[r] = dnB[r] = lanes_load(B + at);
            both[r] = fma((fvec)t.x, upB[r], upA[r] * t.y);
#endif
        }
#pragma unroll 1
        for (int i = 1; i <= radius; ++i) {
            const float2 w = taps[i];
            const size_t u = (size_t)((y - i) & mask) * pitch,
                         d = (size_t)((y + STEP - 1 + i) & mask) * pitch;
#pragma unroll
            for (int r = STEP - 1; r > 0; --r) {
                upA[r] = upA[r - 1], dnA[STEP - 1 - r] = dnA[STEP - r];
#if !DOG
                upB[r] = upB[r - 1], dnB[STEP - 1 - r] = dnB[STEP - r];
#endif
            }
            upA[0] = lanes_load(A + u), dnA[STEP - 1] = lanes_load(A + d);
#if !DOG
            upB[0] = lanes_load(B + u), dnB[STEP - 1] = lanes_load(B + d);
#endif
#pragma unroll
            for (int r = 0; r < STEP; ++r) {
                const fvec s = upA[r] + dnA[r];
                sum[r] = fma((fvec)w.x, s, sum[r]);
#if !DOG
                both[r] = fma((fvec)w.y, s, both[r]);
                both[r] = fma((fvec)w.x, upB[r] + dnB[r], both[r]);
#endif
            }
        }
#pragma unroll
        for (int r = 0; r < STEP; ++r) {
            if (y + r >= last) continue;
            lanes_store(sum[r], outA + (size_t)(y + r) * row + x);
#if !DOG
            lanes_store(both[r], outC + (size_t)(y + r) * row + x);
#endif
        }
    }
}

__kernel void clv_volume_flat(__global const pixel_t *restrict pixels, ulong offset,
                              ulong plane_stride, ulong row_stride,
                              __global const float2 *restrict taps, int first_y, int radius_y,
                              int first_x, int radius_x, __global float *restrict A,
                              __global float *restrict C, __global float *restrict scratch, int band,
                              int pad, int ring, int height, int width, int pitch, int planes,
                              float pedestal, float gain)
{
    const int z = (int)get_global_id(1), y0 = (int)get_global_id(0) * band,
              y1 = min(y0 + band, height);
    if (y0 >= height) return;
    const size_t number = get_global_id(0) + get_global_size(0) * get_global_id(1);
    __global float *line = scratch + number * ((size_t)pitch + 2 * pad + (size_t)PLANES * ring * pitch);
    __global float *rings = line + pitch + 2 * pad;
    pixels += offset + z * (size_t)plane_stride;
    const size_t row = (size_t)planes * pitch;
    int next = y0 - radius_y;
    for (int y = y0; y < y1; y += STEP) {
        for (; next < y + STEP + radius_y; ++next) {
            bring_line(pixels + mirror(next, height) * (size_t)row_stride, line, width, pitch, pad,
                       pedestal, gain);
            __global float *a = rings + (size_t)(next & (ring - 1)) * pitch;
            across(line + pad, a, a + (size_t)ring * pitch * (PLANES - 1), taps + first_x, radius_x,
                   pitch);
        }
        down(rings, ring, pitch, y, y1, taps + first_y, radius_y, A + (size_t)z * pitch,
             C + (size_t)z * pitch, row);
    }
}

/* Filters along z, STEP planes of a row at a time. Level l gives the responses of scale l - DOG. */
__kernel void clv_volume_deep(__global const float *restrict A, __global const float *restrict C,
                              __global float *restrict L, __global float *restrict G,
                              __global const float2 *restrict taps, int first, int radius, int l,
                              int z0, int z1, int low, int high, int depth, int height, int width,
                              int pitch, float bias, float dog)
{
    const int y = (int)get_global_id(0), out_planes = z1 - z0 + 2, k = max(l - DOG, 0);
    if (y >= height) return;
    const size_t in_row = (size_t)y * (high - low);
    A += in_row * pitch, C += in_row * pitch, taps += first;
    L += (((size_t)(k % CLV_VOLUME_KEPT) * height + y) * out_planes) * pitch;
    G += (size_t)y * out_planes * pitch;
    const int begin = max(z0 - 1, 0), end = min(z1 + 1, depth);
    for (int x = 0; x < pitch; x += LANES)
        for (int z = begin; z < end; z += STEP) {
            /* the last step's sums beyond `end` are computed from arbitrary planes and dropped */
            fvec upA[STEP], dnA[STEP], sum[STEP];
#if !DOG
            fvec upC[STEP], dnC[STEP];
#endif
            const float2 t = taps[0];
#pragma unroll
            for (int r = 0; r < STEP; ++r) {
                const size_t at = (size_t)(clamp(mirror(z + r, depth), low, high - 1) - low) * pitch + x;
                upA[r] = dnA[r] = lanes_load(A + at);
#if DOG
                sum[r] = upA[r] * t.x;
#else
                upC[r] = dnC[r] = lanes_load(C + at);
                sum[r] = fma((fvec)t.x, upC[r], upA[r] * t.y);
#endif
            }
#pragma unroll 1
            for (int i = 1; i <= radius; ++i) {
                const float2 w = taps[i];
                const size_t u = (size_t)(mirror(z - i, depth) - low) * pitch + x,
                             d = (size_t)(clamp(mirror(z + STEP - 1 + i, depth), low, high - 1) - low) * pitch + x;
#pragma unroll
                for (int r = STEP - 1; r > 0; --r) {
                    upA[r] = upA[r - 1], dnA[STEP - 1 - r] = dnA[STEP - r];
#if !DOG
                    upC[r] = upC[r - 1], dnC[STEP - 1 - r] = dnC[STEP - r];
#endif
                }
                upA[0] = lanes_load(A + u), dnA[STEP - 1] = lanes_load(A + d);
#if !DOG
                upC[0] = lanes_load(C + u), dnC[STEP - 1] = lanes_load(C + d);
#endif
#pragma unroll
                for (int r = 0; r < STEP; ++r) {
#if DOG
                    sum[r] = fma((fvec)w.x, upA[r] + dnA[r], sum[r]);
#else
                    sum[r] = fma((fvec)w.y, upA[r] + dnA[r], sum[r]);
                    sum[r] = fma((fvec)w.x, upC[r] + dnC[r], sum[r]);
#endif
                }
            }
#pragma unroll
            for (int r = 0; r < STEP; ++r) {
                if (z + r >= end) continue;
                const size_t at = (size_t)(z + r - z0 + 1) * pitch + x;
#if DOG
                const fvec before = lanes_load(G + at);
                lanes_store(sum[r], G + at);
                if (l) lanes_store((before - sum[r]) * dog + bias, L + at);
#else
                lanes_store(sum[r] + bias, L + at);
#endif
            }
        }
}

/* Finds the maxima of scale k in a row of a plane, and counts the sizes of its responses. */
__kernel void clv_volume_look(__global const float *restrict L, __global const float *restrict map,
                              __global const float *restrict factor, __global uint *restrict peaks,
                              volatile __global uint *counts, volatile __global uint *bins, int k,
                              int z0, int z1, int depth, int height, int width, int pitch, int scales,
                              uint capacity, float relative, int step, int cells_across, int cells,
                              int shift, uint at)
{
    const slab_t s = { z0, z1, 0, 0, depth, height, width, pitch, scales };
    const int y = (int)get_global_id(0), z = z0 + (int)get_global_id(1);
    if (y >= height || z >= z1) return;
    peaks += (size_t)at * capacity * CLV_VOLUME_PEAK_WORDS, counts += 2 * at;
    __global const float *here = L +
        (((size_t)(k % CLV_VOLUME_KEPT) * height + y) * (z1 - z0 + 2) + (z - z0 + 1)) * pitch;
    __global const float *row = map + (size_t)z * cells + (size_t)(y >> shift) * cells_across;
    const float f = factor[k], least = relative > 0.0f ? relative * largest_of(counts) : 0.0f;
    for (int x = 0; x < width; x += LANES) { /* a vector lies in one cell */
        const float floor = fmax(f * row[x >> shift], least);
        const fvec c = lanes_load(here + x);
        if (!any(c > floor)) continue;
        for (int i = x; i < min(x + LANES, width); ++i) {
            const float v = here[i];
            if (!(v > floor) || (i > 0 && !(v > here[i - 1])) || (i + 1 < width && !(v >= here[i + 1])))
                continue;
            consider_place(&s, L, k, z, y, i, relative, peaks, counts, capacity);
        }
    }
    if (!step || y % step || z % step) return;
    bins += (size_t)k * CLV_BLOB_NOISE_BINS;
    for (int x = 0; x < width; x += step)
        atomic_inc(bins + noise_bin(here[x] * (1.0f / (f * row[x >> shift]))));
}
