/* cl/blob/rows.cl -- responses and their maxima in a band of rows, by explicit vectors along x.
 *
 * A work-item walks down a band of a frame. For every level of the ladder it keeps the last rows of
 * the horizontal pass in a ring, makes two rows of responses from it at a time, and looks for
 * maxima in the last four rows of responses of all scales: what it touches stays in the cache.
 *
 * Launch   3-D: global (tiles in x, bands, frames), local (1, 1, 1).
 * Defines  LANES (8 or 16), PIXEL, DOG.
 * Scratch  a work-item: ITEM_FLOATS(...) floats.
 * Needs    OpenCL C 1.2; int32 global atomics.
 * Order    taps from the middle outwards, each by one fma: bits do not depend on bands or tiles. */
#pragma OPENCL FP_CONTRACT OFF

#include "blob/blob.clh"

#define PLANES (DOG ? 1 : 2)
#define SLACK (4 * LANES)

/* Where things lie in a work-item's scratch. */
typedef struct place_t {
    int x0, tile;          /* columns of the tile */
    int width, height;
    int first, last;       /* vectors [first, last) of a row that hold columns of the frame */
    int pad;               /* columns beside a row of pixels */
    int length;            /* of a row of responses: tile and a vector on both sides */
    int ring, levels, scales;
    __global float *row;   /* pixels: pad + length + pad */
    __global float *rings; /* [level][plane][ring][length] */
    __global float *L;     /* [scale][4][length] */
    __global float *G;     /* DoG: [2][length] */
    __global const int2 *level;
    __global const float2 *taps;
} place_t;

static __global float *ring_row(const place_t *p, int l, int plane, int y)
{
    return p->rings + (((size_t)l * PLANES + plane) * p->ring + (y & (p->ring - 1))) * p->length;
}

static __global float *response_row(const place_t *p, int k, int y)
{
    return p->L + ((size_t)k * 4 + (y & 3)) * p->length;
}

/* A row of the frame as floats, mirrored at its ends. */
static void bring_row(const place_t *p, __global const pixel_t *pixels, float pedestal, float gain)
{
    const int from = p->x0 - LANES - p->pad, count = p->length + 2 * p->pad;
    const int low = max(from, 0), high = min(from + count, p->width);
    for (int x = from; x < min(low, from + count); ++x)
        p->row[x - from] = bring(pixels[mirror(x, p->width)], pedestal, gain);
    int x = low;
    for (; x + LANES <= high; x += LANES) {
        const fvec v = LANES_JOIN(convert_float, LANES)(lanes_load(pixels + x));
#if PIXEL == 3
        const ivec good = isfinite(v);
        lanes_store(pick(good, (v - pedestal) * gain, (fvec)0.0f), p->row + (x - from));
#else
        lanes_store((v - pedestal) * gain, p->row + (x - from));
#endif
    }
    for (; x < from + count; ++x)
        p->row[x - from] = bring(pixels[mirror(x, p->width)], pedestal, gain);
}

/* The horizontal pass of one level over that row; two vectors at a time. */
static void across(const place_t *p, int l, int y)
{
    const int radius = p->level[l].x;
    __global const float2 *restrict taps = p->taps + p->level[l].y;
    __global float *restrict a = ring_row(p, l, 0, y);
#if !DOG
    __global float *restrict b = ring_row(p, l, 1, y);
#endif
    for (int v = p->first; v < p->last; v += 2) {
        __global const float *restrict in = p->row + p->pad + v * LANES;
        const float2 t = taps[0];
        const fvec c0 = lanes_load(in), c1 = lanes_load(in + LANES);
        fvec a0 = c0 * t.x, a1 = c1 * t.x;
#if !DOG
        fvec b0 = c0 * t.y, b1 = c1 * t.y;
#endif
        for (int i = 1; i <= radius; ++i) {
            const float2 w = taps[i];
            const fvec s0 = lanes_load(in - i) + lanes_load(in + i);
            const fvec s1 = lanes_load(in + LANES - i) + lanes_load(in + LANES + i);
            a0 = fma((fvec)w.x, s0, a0);
            a1 = fma((fvec)w.x, s1, a1);
#if !DOG
            b0 = fma((fvec)w.y, s0, b0);
            b1 = fma((fvec)w.y, s1, b1);
#endif
        }
        lanes_store(a0, a + v * LANES);
        lanes_store(a1, a + (v + 1) * LANES);
#if !DOG
        lanes_store(b0, b + v * LANES);
        lanes_store(b1, b + (v + 1) * LANES);
#endif
    }
}

/* Columns outside the frame become NOTHING. */
static fvec inside(const place_t *p, int v, fvec value)
{
    const ivec x = p->x0 - LANES + v * LANES + lanes_iota();
    return pick(x >= 0 && x < p->width, value, (fvec)NOTHING);
}

/* The vertical pass of one level for rows y and y + 1: `up` and `down` walk away from the middle,
 * and what one row has loaded the other uses in the next turn. */
static void down(const place_t *p, int l, int y, float bias, float scale, float dog)
{
    const int radius = p->level[l].x, mask = p->ring - 1;
    __global const float2 *restrict taps = p->taps + p->level[l].y;
    __global const float *restrict A = ring_row(p, l, 0, 0);
#if DOG
    __global float *restrict out0 = response_row(p, max(l - 1, 0), y);
    __global float *restrict out1 = response_row(p, max(l - 1, 0), y + 1);
#else
    __global const float *restrict B = ring_row(p, l, 1, 0);
    __global float *restrict out0 = response_row(p, l, y), *restrict out1 = response_row(p, l, y + 1);
#endif
    const bool row0 = y >= 0 && y < p->height, row1 = y + 1 >= 0 && y + 1 < p->height;
    for (int v = p->first; v < p->last; v += 2) {
        const size_t x = (size_t)v * LANES, n = p->length;
        const float2 t = taps[0];
        const size_t m0 = (y & mask) * n + x, m1 = ((y + 1) & mask) * n + x;
        fvec lowA0 = lanes_load(A + m0), lowA1 = lanes_load(A + m0 + LANES);
        fvec highA0 = lanes_load(A + m1), highA1 = lanes_load(A + m1 + LANES);
#if DOG
        fvec r00 = lowA0 * t.x, r01 = lowA1 * t.x, r10 = highA0 * t.x, r11 = highA1 * t.x;
#else
        fvec lowB0 = lanes_load(B + m0), lowB1 = lanes_load(B + m0 + LANES);
        fvec highB0 = lanes_load(B + m1), highB1 = lanes_load(B + m1 + LANES);
        fvec r00 = fma((fvec)t.x, lowB0, lowA0 * t.y), r01 = fma((fvec)t.x, lowB1, lowA1 * t.y);
        fvec r10 = fma((fvec)t.x, highB0, highA0 * t.y), r11 = fma((fvec)t.x, highB1, highA1 * t.y);
#endif
        for (int i = 1; i <= radius; ++i) {
            const float2 w = taps[i];
            const size_t u = ((y - i) & mask) * n + x, d = ((y + 1 + i) & mask) * n + x;
            fvec up0 = lanes_load(A + u), up1 = lanes_load(A + u + LANES);
            fvec dn0 = lanes_load(A + d), dn1 = lanes_load(A + d + LANES);
#if DOG
            r00 = fma((fvec)w.x, up0 + highA0, r00);
            r01 = fma((fvec)w.x, up1 + highA1, r01);
            r10 = fma((fvec)w.x, lowA0 + dn0, r10);
            r11 = fma((fvec)w.x, lowA1 + dn1, r11);
#else
            r00 = fma((fvec)w.y, up0 + highA0, r00);
            r01 = fma((fvec)w.y, up1 + highA1, r01);
            r10 = fma((fvec)w.y, lowA0 + dn0, r10);
            r11 = fma((fvec)w.y, lowA1 + dn1, r11);
#endif
            lowA0 = up0, lowA1 = up1, highA0 = dn0, highA1 = dn1;
#if !DOG
            up0 = lanes_load(B + u), up1 = lanes_load(B + u + LANES);
            dn0 = lanes_load(B + d), dn1 = lanes_load(B + d + LANES);
            r00 = fma((fvec)w.x, up0 + highB0, r00);
            r01 = fma((fvec)w.x, up1 + highB1, r01);
            r10 = fma((fvec)w.x, lowB0 + dn0, r10);
            r11 = fma((fvec)w.x, lowB1 + dn1, r11);
            lowB0 = up0, lowB1 = up1, highB0 = dn0, highB1 = dn1;
#endif
        }
#if DOG
        __global float *restrict g0 = p->G + x, *restrict g1 = p->G + n + x;
        const fvec d00 = (lanes_load(g0) - r00) * dog, d01 = (lanes_load(g0 + LANES) - r01) * dog;
        const fvec d10 = (lanes_load(g1) - r10) * dog, d11 = (lanes_load(g1 + LANES) - r11) * dog;
        lanes_store(r00, g0), lanes_store(r01, g0 + LANES);
        lanes_store(r10, g1), lanes_store(r11, g1 + LANES);
        if (l == 0) continue;
        r00 = d00, r01 = d01, r10 = d10, r11 = d11;
#endif
        r00 = (r00 + bias) * scale, r01 = (r01 + bias) * scale;
        r10 = (r10 + bias) * scale, r11 = (r11 + bias) * scale;
        lanes_store(row0 ? inside(p, v, r00) : (fvec)NOTHING, out0 + x);
        lanes_store(row0 ? inside(p, v + 1, r01) : (fvec)NOTHING, out0 + x + LANES);
        lanes_store(row1 ? inside(p, v, r10) : (fvec)NOTHING, out1 + x);
        lanes_store(row1 ? inside(p, v + 1, r11) : (fvec)NOTHING, out1 + x + LANES);
    }
}

/* value > the three neighbours of an earlier row, or >= those of a later one. */
#define beats(c, row) \
    ((c) > lanes_load((row) - 1) && (c) > lanes_load(row) && (c) > lanes_load((row) + 1))
#define holds(c, row) \
    ((c) >= lanes_load((row) - 1) && (c) >= lanes_load(row) && (c) >= lanes_load((row) + 1))

static void hand_over(const place_t *p, int y, int k, int at, __global uint *peaks,
                      volatile __global uint *counts, uint capacity)
{
    const float value = response_row(p, k, y)[at];
    atomic_max(counts + 1, as_uint(value));
    const uint index = atomic_inc(counts);
    if (index >= capacity) return;
    __global uint *out = peaks + (size_t)index * PEAK_WORDS;
    out[0] = y, out[1] = p->x0 - LANES + at, out[2] = k, out[3] = 0;
    for (int j = -1; j <= 1; ++j)
        for (int i = -1; i <= 1; ++i)
            out[4 + 3 * (j + 1) + i + 1] = as_uint(response_row(p, k, y + j)[at + i]);
    out[13] = as_uint(k > 0 ? response_row(p, k - 1, y)[at] : NOTHING);
    out[14] = as_uint(k + 1 < p->scales ? response_row(p, k + 1, y)[at] : NOTHING);
    out[15] = 0;
}

/* Maxima of row y in all scales: of equal neighbours the first in (k, y, x) wins. */
static void look(const place_t *p, int y, __global uint *peaks, volatile __global uint *counts,
                 uint capacity, float low, float relative)
{
    const float bound = relative > 0.0f ? fmax(low, relative * largest_of(counts)) : low;
    for (int k = 0; k < p->scales; ++k) {
        __global const float *up = response_row(p, k, y - 1), *here = response_row(p, k, y),
                             *dn = response_row(p, k, y + 1);
        for (int at = LANES; at <= p->tile && p->x0 - LANES + at < p->width; at += LANES) {
            const fvec c = lanes_load(here + at);
            ivec top = c > bound;
            if (!lanes_any(top)) continue;
            top = top && c > lanes_load(here + at - 1) && c >= lanes_load(here + at + 1) &&
                  beats(c, up + at) && holds(c, dn + at);
            if (!lanes_any(top)) continue;
            if (k > 0)
                top = top && beats(c, response_row(p, k - 1, y - 1) + at) &&
                      beats(c, response_row(p, k - 1, y) + at) &&
                      beats(c, response_row(p, k - 1, y + 1) + at);
            if (k + 1 < p->scales)
                top = top && holds(c, response_row(p, k + 1, y - 1) + at) &&
                      holds(c, response_row(p, k + 1, y) + at) &&
                      holds(c, response_row(p, k + 1, y + 1) + at);
            if (!lanes_any(top)) continue;
            int lane[LANES];
            LANES_JOIN(vstore, LANES)(top, 0, lane);
            for (int i = 0; i < LANES; ++i)
                if (lane[i]) hand_over(p, y, k, at + i, peaks, counts, capacity);
        }
    }
}

static place_t place_of(__global float *scratch, int width, int height, int tile, int pad, int ring,
                        int levels, __global const int2 *level, __global const float2 *taps)
{
    place_t p;
    p.x0 = (int)get_global_id(0) * tile;
    p.tile = tile, p.width = width, p.height = height;
    p.first = p.x0 ? 0 : 1;
    p.last = (min(p.x0 + tile + LANES, width) - p.x0 + LANES + LANES - 1) / LANES;
    p.pad = pad, p.length = tile + SLACK, p.ring = ring, p.levels = levels;
    p.scales = levels - DOG;
    p.level = level, p.taps = taps;
    const size_t row = p.length + 2 * pad;
    const size_t item = row + (size_t)p.length * (levels * (PLANES * ring + 4) + 2);
    const size_t number = get_global_id(0) +
        get_global_size(0) * (get_global_id(1) + get_global_size(1) * (size_t)get_global_id(2));
    p.row = scratch + number * item;
    p.rings = p.row + row;
    p.L = p.rings + (size_t)p.length * levels * PLANES * ring;
    p.G = p.L + (size_t)p.length * levels * 4;
    return p;
}

/* Rows of the horizontal pass up to `last`, from `*next` on. */
static void advance(const place_t *p, int *next, int last, int from, int to,
                    __global const pixel_t *pixels, ulong row_stride, float pedestal, float gain)
{
    for (; *next <= last; ++*next) {
        bring_row(p, pixels + mirror(*next, p->height) * (size_t)row_stride, pedestal, gain);
        for (int l = 0; l < p->levels; ++l)
            if (*next >= from - p->level[l].x && *next <= to + p->level[l].x) across(p, l, *next);
    }
}

__kernel void clv_blob_rows(__global const pixel_t *restrict pixels, ulong offset,
                            ulong frame_stride, ulong row_stride,
                            __global const float *restrict pedestals,
                            __global const float2 *restrict taps,
                            __global const int2 *restrict level, __global const float *restrict leak,
                            __global const float *restrict inverse, __global float *restrict scratch,
                            __global uint *restrict peaks, volatile __global uint *counts,
                            int height, int width, int tile, int band, int levels, int pad,
                            int ring, uint capacity, float gain, float dog, float low,
                            float relative, uint at)
{
    const uint frame = at + get_global_id(2);
    const int y0 = (int)get_global_id(1) * band, y1 = min(y0 + band, height);
    const place_t p = place_of(scratch, width, height, tile, pad, ring, levels, level, taps);
    if (p.x0 >= width || y0 >= height) return;

    pixels += offset + frame * (size_t)frame_stride;
    peaks += (size_t)frame * capacity * PEAK_WORDS;
    counts += 2 * frame;
    const float pedestal = pedestals[frame];
    for (int i = 0; i < 4 * p.scales; ++i) /* columns that no vector will write */
        for (int x = 0; x < p.length; x += LANES)
            lanes_store((fvec)NOTHING, p.L + (size_t)i * p.length + x);

    int reach = 0;
    for (int l = 0; l < levels; ++l) reach = max(reach, level[l].x);
    int next = y0 - 1 - reach;
    for (int y = y0 - 1; y <= y1; y += 2) {
        advance(&p, &next, y + 1 + reach, y0 - 1, y1 + 1, pixels, row_stride, pedestal, gain);
        for (int l = 0; l < levels; ++l) {
            const int k = max(l - DOG, 0);
            down(&p, l, y, leak[l] * pedestal * gain, inverse[frame * p.scales + k], dog);
        }
        for (int row = y - 1; row <= y; ++row)
            if (row >= y0 && row < y1)
                look(&p, row, peaks, counts, capacity, low, relative);
    }
}

/* The sizes of the responses of every `step`-th row, in bins: [frame][scale][NOISE_BINS]. */
__kernel void clv_blob_noise_rows(__global const pixel_t *restrict pixels, ulong offset,
                                  ulong frame_stride, ulong row_stride,
                                  __global const float *restrict pedestals,
                                  __global const float2 *restrict taps,
                                  __global const int2 *restrict level,
                                  __global const float *restrict leak,
                                  __global float *restrict scratch, volatile __global uint *bins,
                                  int height, int width, int tile, int band, int levels, int pad,
                                  int ring, float gain, float dog, int step, uint at)
{
    const uint frame = at + get_global_id(2);
    const int y0 = (int)get_global_id(1) * band, y1 = min(y0 + band, height);
    const place_t p = place_of(scratch, width, height, tile, pad, ring, levels, level, taps);
    if (p.x0 >= width || y0 >= height) return;

    pixels += offset + frame * (size_t)frame_stride;
    const float pedestal = pedestals[frame];
    int reach = 0;
    for (int l = 0; l < levels; ++l) reach = max(reach, level[l].x);
    int next = y0 - reach;
    for (int y = y0; y < y1; ++y) {
        if (y % step) continue;
        next = max(next, y - reach);
        advance(&p, &next, y + 1 + reach, y0, y1, pixels, row_stride, pedestal, gain);
        for (int l = 0; l < levels; ++l) {
            const int k = max(l - DOG, 0);
            down(&p, l, y, leak[l] * pedestal * gain, 1.0f, dog);
            if (DOG && l == 0) continue;
            __global const float *here = response_row(&p, k, y);
            volatile __global uint *bin = bins + ((size_t)frame * p.scales + k) * NOISE_BINS;
            for (int x = LANES; x < tile + LANES && p.x0 - LANES + x < width; ++x)
                atomic_inc(bin + noise_bin(here[x]));
        }
    }
}
