/* cl/blob/tile.cl -- responses and their maxima of a tile of a frame, all in local memory: pixels are
 * read once, and only the list of maxima is written.
 *
 * A work-group takes TX x TY pixels and a rim of one pixel; all pixels that their kernels reach are loaded
 * once. Three planes of responses rotate: while scale k is computed, those of k - 2 and k - 1 are kept.
 *
 * Launch   3-D: global (tiles in x * WG, tiles in y, frames), local (WG, 1, 1).
 * Defines  LANES (1), PIXEL, DOG, WG, TX, TY.
 * Needs    local memory of clv_blob_tile_floats floats, given as an argument.
 * Order    The sums and their order are those of rows.cl. */
#pragma OPENCL FP_CONTRACT OFF

#include "blob/blob.clh"

#define RX (TX + 2)
#define RY (TY + 2)
#define RIM (RX * RY)

/* A work-group's place in the frame, and the parts of its local memory. */
typedef struct tile_t {
    int x0, y0, width, height, reach, pitch; /* pitch: of the pixels */
    __local float *pixels; /* [RY + 2 reach][pitch] */
    __local float *A, *B;  /* [RY + 2 reach][RX] */
    __local float *L;      /* [3][RY][RX] */
    __local float *G;      /* DoG: [RY][RX] */
    __global const float *map, *factor; /* the frame's noise: see blob.clh */
    int across, shift;
} tile_t;

static void bring_tile(const tile_t *t, __global const pixel_t *pixels, ulong row_stride,
                       float pedestal, float gain)
{
    const int rows = RY + 2 * t->reach, columns = RX + 2 * t->reach;
    for (int i = get_local_id(0); i < rows * columns; i += WG) {
        const int y = mirror(t->y0 - 1 - t->reach + i / columns, t->height);
        const int x = mirror(t->x0 - 1 - t->reach + i % columns, t->width);
        const pixel_t v = pixels[y * (size_t)row_stride + x];
        t->pixels[i / columns * t->pitch + i % columns] = bring(v, pedestal, gain);
    }
}

static void across(const tile_t *t, __global const float2 *taps, int radius)
{
    const int first = t->reach - radius, rows = RY + 2 * radius;
    for (int i = get_local_id(0); i < rows * RX; i += WG) {
        const int row = first + i / RX;
        __local const float *p = t->pixels + row * t->pitch + i % RX + t->reach;
        float2 sum = taps[0] * p[0];
        for (int j = 1; j <= radius; ++j) sum = fma(taps[j], (float2)(p[-j] + p[j]), sum);
        t->A[row * RX + i % RX] = sum.x;
#if !DOG
        t->B[row * RX + i % RX] = sum.y;
#endif
    }
}

static void down(const tile_t *t, __global const float2 *taps, int radius, int l, float bias,
                 float dog)
{
    __local float *out = t->L + max(l - DOG, 0) % 3 * RIM;
    for (int i = get_local_id(0); i < RIM; i += WG) {
        const int y = t->y0 - 1 + i / RX, x = t->x0 - 1 + i % RX;
        __local const float *a = t->A + t->reach * RX + i;
        const float2 w0 = taps[0];
#if DOG
        float sum = a[0] * w0.x;
        for (int j = 1; j <= radius; ++j)
            sum = fma(taps[j].x, a[-j * RX] + a[j * RX], sum);
        const float before = t->G[i];
        t->G[i] = sum;
        if (l == 0) continue;
        sum = (before - sum) * dog;
#else
        __local const float *b = t->B + t->reach * RX + i;
        float sum = fma(w0.x, b[0], a[0] * w0.y);
        for (int j = 1; j <= radius; ++j) {
            const float2 w = taps[j];
            sum = fma(w.y, a[-j * RX] + a[j * RX], sum);
            sum = fma(w.x, b[-j * RX] + b[j * RX], sum);
        }
#endif
        const bool inside = x >= 0 && y >= 0 && x < t->width && y < t->height;
        out[i] = inside ? sum + bias : NOTHING;
    }
}

/* Finds the maxima of scale k; of equal neighbours, the first in (k, y, x) wins. */
static void look(const tile_t *t, int k, int scales, __global uint *peaks,
                 volatile __global uint *counts, uint capacity, float relative)
{
    for (int i = get_local_id(0); i < TX * TY; i += WG) {
        const int at = (i / TX + 1) * RX + i % TX + 1;
        const int y = t->y0 + i / TX, x = t->x0 + i % TX;
        const float value = t->L[k % 3 * RIM + at];
        if (x >= t->width || y >= t->height ||
            !(value > floor_at(t->map, t->factor, t->across, t->shift, k, y, x)))
            continue;
        __local const float *near = t->L + at; /* read twice: an array of neighbours would be in private memory */
        bool top = true;
#pragma unroll 1
        for (int j = 0; top && j < 27; ++j) {
            const int kk = k + j / 9 - 1;
            if (j == 13 || kk < 0 || kk >= scales) continue;
            const float other = near[kk % 3 * RIM + (j / 3 % 3 - 1) * RX + j % 3 - 1];
            top = j < 13 ? value > other : value >= other;
        }
        if (!top) continue;
        __global uint *out = new_peak(value, y, x, k, relative, peaks, counts, capacity);
        if (!out) continue;
#pragma unroll 1
        for (int j = 0; j < 9; ++j)
            out[4 + j] = as_uint(near[k % 3 * RIM + (j / 3 - 1) * RX + j % 3 - 1]);
        out[13] = as_uint(k > 0 ? near[(k - 1) % 3 * RIM] : NOTHING);
        out[14] = as_uint(k + 1 < scales ? near[(k + 1) % 3 * RIM] : NOTHING);
    }
}

/* Counts the sizes of scale k's responses in bins. */
static void count_sizes(const tile_t *t, int k, volatile __global uint *bins, int step)
{
    for (int i = get_local_id(0); i < TX * TY; i += WG) {
        const int y = t->y0 + i / TX, x = t->x0 + i % TX;
        if (x >= t->width || y >= t->height || y % step || x % step) continue;
        const float value = t->L[k % 3 * RIM + (i / TX + 1) * RX + i % TX + 1] /
            floor_at(t->map, t->factor, t->across, t->shift, k, y, x);
        atomic_inc(bins + (size_t)k * CLV_BLOB_NOISE_BINS + noise_bin(value));
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_blob_tile(__global const pixel_t *restrict pixels, ulong offset, ulong frame_stride,
              ulong row_stride, __global const float *restrict pedestals,
              __global const float2 *restrict taps, __global const int2 *restrict level,
              __global const float *restrict leak, __global const float *restrict map,
              __global const float *restrict factor, __local float *memory,
              __global uint *restrict peaks, volatile __global uint *counts,
              volatile __global uint *bins, int height, int width, int levels, int reach,
              uint capacity, float gain, float dog, float relative, int step, int cells_across,
              int cells, int shift, uint at)
{
    const uint frame = at + get_global_id(2);
    const int scales = levels - DOG;
    const float pedestal = pedestals[frame];
    tile_t t;
    t.x0 = (int)get_group_id(0) * TX, t.y0 = (int)get_group_id(1) * TY;
    t.width = width, t.height = height, t.reach = reach, t.pitch = RX + 2 * reach + 1;
    t.pixels = memory;
    t.A = t.pixels + (RY + 2 * reach) * t.pitch;
    t.B = t.A + (RY + 2 * reach) * RX;
    t.L = DOG ? t.B : t.B + (RY + 2 * reach) * RX;
    t.G = t.L + 3 * RIM;
    pixels += offset + frame * (size_t)frame_stride;
    peaks += (size_t)frame * capacity * CLV_BLOB_PEAK_WORDS;
    counts += 2 * frame;
    bins += (size_t)frame * scales * CLV_BLOB_NOISE_BINS;
    t.map = map + (size_t)frame * cells, t.factor = factor, t.across = cells_across, t.shift = shift;
    bring_tile(&t, pixels, row_stride, pedestal, gain);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int l = 0; l < levels; ++l) {
        const int k = l - DOG, radius = level[l].x;
        across(&t, taps + level[l].y, radius);
        barrier(CLK_LOCAL_MEM_FENCE);
        down(&t, taps + level[l].y, radius, l, leak[l] * pedestal * gain, dog);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k >= 0 && step) count_sizes(&t, k, bins, step);
        if (k >= 1) look(&t, k - 1, scales, peaks, counts, capacity, relative);
        if (k == scales - 1) look(&t, k, scales, peaks, counts, capacity, relative);
    }
}
