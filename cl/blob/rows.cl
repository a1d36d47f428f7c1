/* cl/blob/rows.cl -- responses and their maxima in a band of rows, by explicit vectors along x.
 *
 * A work-item walks down a band of a frame. For every level it keeps the last rows of the horizontal
 * pass in a ring, computes four rows of responses from it at a time, and searches for maxima in the
 * last eight rows of responses of all scales, so that its data stay in the cache.
 *
 * Launch   3-D: global (tiles in x, bands, frames), local (1, 1, 1).
 * Defines  LANES (8 or 16), PIXEL, DOG, GROUP (levels of one horizontal pass, at most all).
 * Scratch  Each work-item has ITEM_FLOATS(...) floats, the last of which are its own bins.
 * Needs    OpenCL C 1.2; int32 global atomics. A vector may begin at the address of any float.
 * Order    Sums take the kernel's coefficients from the middle outwards, each by one fma: bits do not depend on bands
 *          or tiles. */
#pragma OPENCL FP_CONTRACT OFF

#include "blob/blob.clh"

#define PLANES (DOG ? 1 : 2)
#define SLACK (CLV_BLOB_SLACK * LANES)

/* A vector at any address of a float. It replaces vloadN, because some compilers split the sum of two vloadN into
 * single floats. */
typedef fvec __attribute__((aligned(4))) loose_t;
#define loose(p) (*(__global const loose_t *)(p))

/* Returns whether any lane is set. Narrowing the lanes to bytes first takes two instructions. With PoCL 3.1, `any` and
 * a chain of ORs over wide lanes take a dozen. */
static bool any_of(ivec mask)
{
#if LANES == 16
    const long2 m = as_long2(convert_char16(mask));
    return (m.x | m.y) != 0;
#else
    return as_long(convert_char8(mask)) != 0;
#endif
}

/* The parts of a work-item's scratch, and its place in the frame. */
typedef struct place_t {
    int x0, tile;          /* columns of the tile */
    int width, height;
    int first, last;       /* vectors [first, last) of a row that hold columns of the frame */
    int pad;               /* columns beside a row of pixels */
    int length;            /* of a row of responses: tile and a vector on both sides */
    int ring, levels, scales;
    __global float *row;   /* pixels: pad + length + pad */
    __global float *rings; /* [level][plane][ring][length] */
    __global float *L;     /* [scale][CLV_BLOB_KEPT_ROWS][length] */
    __global float *G;     /* DoG: [CLV_BLOB_STEP_ROWS][length] */
    __global const int2 *level;
    __global const float2 *taps;
    __global const float *map, *factor; /* the frame's noise: see blob.clh */
    int across, shift;
} place_t;

static __global float *ring_row(const place_t *p, int l, int plane, int y)
{
    return p->rings + (((size_t)l * PLANES + plane) * p->ring + (y & (p->ring - 1))) * p->length;
}

static __global float *response_row(const place_t *p, int k, int y)
{
    return p->L + ((size_t)k * CLV_BLOB_KEPT_ROWS + (y & (CLV_BLOB_KEPT_ROWS - 1))) * p->length;
}

/* Loads a row of the frame as floats, mirrored at its ends. */
static void bring_row(const place_t *p, __global const pixel_t *pixels, float pedestal, float gain)
{
    const int from = p->x0 - LANES - p->pad, count = p->length + 2 * p->pad;
    const int low = max(from, 0), high = min(from + count, p->width);
    for (int x = from; x < min(low, from + count); ++x)
        p->row[x - from] = bring(pixels[mirror(x, p->width)], pedestal, gain);
    int x = low;
    for (; x + LANES <= high; x += LANES) {
        const fvec v = LANES_JOIN(convert_float, LANES)(lanes_load(pixels + x));
#if PIXEL == CLV_BLOB_PIXEL_F32
        const ivec good = isfinite(v);
        lanes_store(pick(good, (v - pedestal) * gain, (fvec)0.0f), p->row + (x - from));
#else
        lanes_store((v - pedestal) * gain, p->row + (x - from));
#endif
    }
    for (; x < from + count; ++x)
        p->row[x - from] = bring(pixels[mirror(x, p->width)], pedestal, gain);
}

/* Does the horizontal pass over the row of pixels for the levels [l, l + GROUP), two vectors at a time: adds the two
 * pixels at a distance of i columns on both sides once for all levels. Radii grow with the level. */
static void across(const place_t *p, int l, int y)
{
    for (int v = p->first; v < p->last; v += 2) {
        __global const float *in = p->row + p->pad + v * LANES;
        const fvec c0 = loose(in), c1 = loose(in + LANES);
        fvec a0[GROUP], a1[GROUP], b0[GROUP], b1[GROUP];
        __global const float2 *taps[GROUP];
#pragma unroll
        for (int g = 0; g < GROUP; ++g) {
            taps[g] = p->taps + p->level[l + g].y;
            const float2 t = taps[g][0];
            a0[g] = c0 * t.x, a1[g] = c1 * t.x;
            b0[g] = c0 * t.y, b1[g] = c1 * t.y;
        }
        int i = 1;
#pragma unroll
        for (int from = 0; from < GROUP; ++from)
#pragma unroll 1
            for (const int radius = p->level[l + from].x; i <= radius; ++i) {
                const fvec s0 = loose(in - i) + loose(in + i);
                const fvec s1 = loose(in + LANES - i) + loose(in + LANES + i);
#pragma unroll
                for (int g = from; g < GROUP; ++g) {
                    const fvec wg = taps[g][i].x;
                    a0[g] = fma(wg, s0, a0[g]), a1[g] = fma(wg, s1, a1[g]);
#if !DOG
                    const fvec wq = taps[g][i].y;
                    b0[g] = fma(wq, s0, b0[g]), b1[g] = fma(wq, s1, b1[g]);
#endif
                }
            }
#pragma unroll
        for (int g = 0; g < GROUP; ++g) {
            __global float *a = ring_row(p, l + g, 0, y) + v * LANES;
            lanes_store(a0[g], a), lanes_store(a1[g], a + LANES);
#if !DOG
            __global float *b = ring_row(p, l + g, 1, y) + v * LANES;
            lanes_store(b0[g], b), lanes_store(b1[g], b + LANES);
#endif
        }
    }
}

/* Sets columns outside the frame to NOTHING. */
static fvec inside(const place_t *p, int v, fvec value)
{
    const ivec x = p->x0 - LANES + v * LANES + lanes_iota();
    return pick(x >= 0 && x < p->width, value, (fvec)NOTHING);
}

/* Does the vertical pass of one level for rows [y, y + rows), at most CLV_BLOB_STEP_ROWS, one vector at a time. `up`
 * and `dn` move away from the middle row, and the vector that one output row loads serves the next one in the next
 * turn. */
static inline __attribute__((always_inline)) void
down(const place_t *p, int l, int y, const int rows, float bias, float dog)
{
    const int radius = p->level[l].x, mask = p->ring - 1, k = max(l - DOG, 0);
    const size_t n = p->length;
    __global const float2 *taps = p->taps + p->level[l].y;
    for (int v = p->first; v < p->last; ++v) {
        __global const float *A = ring_row(p, l, 0, 0) + (size_t)v * LANES;
        fvec upA[CLV_BLOB_STEP_ROWS], dnA[CLV_BLOB_STEP_ROWS], sum[CLV_BLOB_STEP_ROWS];
#if !DOG
        __global const float *B = ring_row(p, l, 1, 0) + (size_t)v * LANES;
        fvec upB[CLV_BLOB_STEP_ROWS], dnB[CLV_BLOB_STEP_ROWS];
#endif
        const float2 t = taps[0];
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            const size_t at = ((y + r) & mask) * n;
            upA[r] = dnA[r] = loose(A + at);
#if DOG
            sum[r] = upA[r] * t.x;
#else
            upB[r] = dnB[r] = loose(B + at);
            sum[r] = fma((fvec)t.x, upB[r], upA[r] * t.y);
#endif
        }
#pragma unroll 1
        for (int i = 1; i <= radius; ++i) {
            const float2 w = taps[i];
            const size_t u = ((y - i) & mask) * n, d = ((y + rows - 1 + i) & mask) * n;
#pragma unroll
            for (int r = rows - 1; r > 0; --r) {
                upA[r] = upA[r - 1], dnA[rows - 1 - r] = dnA[rows - r];
#if !DOG
                upB[r] = upB[r - 1], dnB[rows - 1 - r] = dnB[rows - r];
#endif
            }
            upA[0] = loose(A + u), dnA[rows - 1] = loose(A + d);
#if !DOG
            upB[0] = loose(B + u), dnB[rows - 1] = loose(B + d);
#endif
#pragma unroll
            for (int r = 0; r < rows; ++r) {
#if DOG
                sum[r] = fma((fvec)w.x, upA[r] + dnA[r], sum[r]);
#else
                sum[r] = fma((fvec)w.y, upA[r] + dnA[r], sum[r]);
                sum[r] = fma((fvec)w.x, upB[r] + dnB[r], sum[r]);
#endif
            }
        }
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            fvec value = sum[r];
#if DOG
            __global float *G = p->G + r * n + (size_t)v * LANES;
            value = (loose(G) - sum[r]) * dog;
            lanes_store(sum[r], G);
            if (l == 0) continue;
#endif
            value += bias;
            const bool there = y + r >= 0 && y + r < p->height;
            lanes_store(there ? inside(p, v, value) : (fvec)NOTHING,
                        response_row(p, k, y + r) + v * LANES);
        }
    }
}

/* Tests whether a value is above the three neighbours in an earlier row, or not below those in a later one. */
#define beats(c, row) \
    ((c) > lanes_load((row) - 1) && (c) > lanes_load(row) && (c) > lanes_load((row) + 1))
#define holds(c, row) \
    ((c) >= lanes_load((row) - 1) && (c) >= lanes_load(row) && (c) >= lanes_load((row) + 1))

static void hand_over(const place_t *p, int y, int k, int at, __global uint *peaks,
                      volatile __global uint *counts, uint capacity)
{
    const float value = response_row(p, k, y)[at];
    /* `look` has compared the maximum with the frame's largest response */
    __global uint *out =
        new_peak(value, y, p->x0 - LANES + at, k, 0.0f, peaks, counts, capacity);
    if (!out) return;
    for (int j = -1; j <= 1; ++j)
        for (int i = -1; i <= 1; ++i)
            out[4 + 3 * (j + 1) + i + 1] = as_uint(response_row(p, k, y + j)[at + i]);
    out[13] = as_uint(k > 0 ? response_row(p, k - 1, y)[at] : NOTHING);
    out[14] = as_uint(k + 1 < p->scales ? response_row(p, k + 1, y)[at] : NOTHING);
}

/* Returns the lanes that are above `least` and above the four nearest neighbours of their own scale. */
static ivec stands_out(__global const float *here, __global const float *up,
                       __global const float *dn, const float least)
{
    const fvec c = lanes_load(here);
    return c > least && c > lanes_load(here - 1) && c >= lanes_load(here + 1) && c > lanes_load(up) &&
        c >= lanes_load(dn);
}

/* Finds the maxima of row y in all scales; of equal neighbours, the first in (k, y, x) wins. */
static void look(const place_t *p, int y, __global uint *peaks, volatile __global uint *counts,
                 uint capacity, float relative)
{
    const float least = relative > 0.0f ? relative * largest_of(counts) : 0.0f;
    const int end = min(p->tile, p->width - p->x0) + LANES;
    __global const float *cells = p->map + (size_t)(y >> p->shift) * p->across;
    for (int k = 0; k < p->scales; ++k) {
        const float factor = p->factor[k];
        __global const float *up = response_row(p, k, y - 1), *here = response_row(p, k, y),
                             *dn = response_row(p, k, y + 1);
        for (int at = LANES; at < end; at += LANES) {
            const int x = p->x0 + at - LANES; /* a vector lies in one cell, four lie in at most three */
            const float lowest = max(least, factor * cells[x >> p->shift]);
            /* tests four at once, because most groups have no maximum */
            if ((at / LANES) % 4 == 1 && at + 3 * LANES < end) {
                const float third = max(least, factor * cells[(x + 2 * LANES) >> p->shift]),
                            last = max(least, factor * cells[(x + 3 * LANES) >> p->shift]);
                const fvec a = max(lanes_load(here + at), lanes_load(here + at + LANES));
                const fvec b =
                    max(lanes_load(here + at + 2 * LANES), lanes_load(here + at + 3 * LANES));
                if (!any_of(max(a, b) > min(lowest, min(third, last)))) {
                    at += 3 * LANES;
                    continue;
                }
                const float second = max(least, factor * cells[(x + LANES) >> p->shift]);
                if (!any_of(stands_out(here + at, up + at, dn + at, lowest) |
                            stands_out(here + at + LANES, up + at + LANES, dn + at + LANES, second) |
                            stands_out(here + at + 2 * LANES, up + at + 2 * LANES, dn + at + 2 * LANES, third) |
                            stands_out(here + at + 3 * LANES, up + at + 3 * LANES, dn + at + 3 * LANES, last))) {
                    at += 3 * LANES;
                    continue;
                }
            }
            ivec top = stands_out(here + at, up + at, dn + at, lowest);
            if (!any_of(top)) continue;
            const fvec c = lanes_load(here + at);
            top = top && beats(c, up + at) && holds(c, dn + at);
            if (!any_of(top)) continue;
            if (k > 0)
                top = top && beats(c, response_row(p, k - 1, y - 1) + at) &&
                      beats(c, response_row(p, k - 1, y) + at) &&
                      beats(c, response_row(p, k - 1, y + 1) + at);
            if (k + 1 < p->scales)
                top = top && holds(c, response_row(p, k + 1, y - 1) + at) &&
                      holds(c, response_row(p, k + 1, y) + at) &&
                      holds(c, response_row(p, k + 1, y + 1) + at);
            if (!any_of(top)) continue;
            int lane[LANES];
            LANES_JOIN(vstore, LANES)(top, 0, lane);
            for (int i = 0; i < LANES; ++i)
                if (lane[i]) hand_over(p, y, k, at + i, peaks, counts, capacity);
        }
    }
}

/* Counts the sizes of the responses of row y, divided by their thresholds, in the work-item's own bins. */
static void count_sizes(const place_t *p, int y, int step, __global uint *own)
{
    const int end = min(p->x0 + p->tile, p->width), cell = 1 << p->shift;
    __global const float *cells = p->map + (size_t)(y >> p->shift) * p->across;
    for (int k = 0; k < p->scales; ++k, own += CLV_BLOB_NOISE_BINS) {
        __global const float *here = response_row(p, k, y) + LANES - p->x0;
        for (int x = (p->x0 + step - 1) / step * step; x < end;) {
            const float turned = 1.0f / (p->factor[k] * cells[x >> p->shift]);
            for (const int last = min(end, (x & ~(cell - 1)) + cell); x < last; x += step)
                ++own[noise_bin(here[x] * turned)];
        }
    }
}

/* Returns a work-item's place_t. Sets all fields here: with PoCL 3.1, the kernel took 1.3 times as long when it set
 * some fields later, because the compiler then kept the struct in memory. */
static place_t place_of(__global float *scratch, int width, int height, int tile, int pad, int ring,
                        int levels, __global const int2 *level, __global const float2 *taps,
                        __global const float *map, __global const float *factor, int across,
                        int shift, int counters)
{
    place_t p;
    p.x0 = (int)get_global_id(0) * tile;
    p.tile = tile, p.width = width, p.height = height;
    p.first = p.x0 ? 0 : 1;
    p.last = (min(p.x0 + tile + LANES, width) - p.x0 + LANES + LANES - 1) / LANES;
    p.pad = pad, p.length = tile + SLACK, p.ring = ring, p.levels = levels;
    p.scales = levels - DOG;
    p.level = level, p.taps = taps;
    p.map = map, p.factor = factor, p.across = across, p.shift = shift;
    const size_t row = p.length + 2 * pad;
    const size_t item = row + (size_t)p.length * (levels * (PLANES * ring + CLV_BLOB_KEPT_ROWS) + CLV_BLOB_STEP_ROWS) +
        counters;
    const size_t number = get_global_id(0) +
        get_global_size(0) * (get_global_id(1) + get_global_size(1) * (size_t)get_global_id(2));
    p.row = scratch + number * item;
    p.rings = p.row + row;
    p.L = p.rings + (size_t)p.length * levels * PLANES * ring;
    p.G = p.L + (size_t)p.length * levels * CLV_BLOB_KEPT_ROWS;
    return p;
}

/* Does the horizontal pass for the rows from `*next` up to `last` on which responses in rows [from, to] depend. */
static void advance(const place_t *p, int *next, int last, int from, int to,
                    __global const pixel_t *pixels, ulong row_stride, float pedestal, float gain)
{
    for (; *next <= last; ++*next) {
        bring_row(p, pixels + mirror(*next, p->height) * (size_t)row_stride, pedestal, gain);
        for (int l = 0; l < p->levels; l += GROUP) {
            const int first = min(l, p->levels - GROUP); /* the last group may overlap another */
            const int radius = p->level[first + GROUP - 1].x;
            if (*next >= from - radius && *next <= to + radius) across(p, first, *next);
        }
    }
}

__kernel void clv_blob_rows(__global const pixel_t *restrict pixels, ulong offset,
                            ulong frame_stride, ulong row_stride,
                            __global const float *restrict pedestals,
                            __global const float2 *restrict taps,
                            __global const int2 *restrict level, __global const float *restrict leak,
                            __global const float *restrict map, __global const float *restrict factor,
                            __global float *restrict scratch, __global uint *restrict peaks,
                            volatile __global uint *counts, volatile __global uint *bins,
                            int height, int width, int tile, int band, int levels, int pad,
                            int ring, uint capacity, float gain, float dog, float relative, int step,
                            int across, int cells, int shift, uint at)
{
    const uint frame = at + get_global_id(2);
    const int y0 = (int)get_global_id(1) * band, y1 = min(y0 + band, height);
    const int all = step ? (levels - DOG) * CLV_BLOB_NOISE_BINS : 0;
    const place_t p = place_of(scratch, width, height, tile, pad, ring, levels, level, taps,
                               map + (size_t)frame * cells, factor, across, shift, all);
    if (p.x0 >= width || y0 >= height) return;
    __global uint *own = (__global uint *)(p.G + CLV_BLOB_STEP_ROWS * p.length);
    for (int i = 0; i < all; ++i) own[i] = 0;

    pixels += offset + frame * (size_t)frame_stride;
    peaks += (size_t)frame * capacity * CLV_BLOB_PEAK_WORDS;
    counts += 2 * frame;
    const float pedestal = pedestals[frame];
    for (int i = 0; i < CLV_BLOB_KEPT_ROWS * p.scales; ++i) /* columns that no vector will write */
        for (int x = 0; x < p.length; x += LANES)
            lanes_store((fvec)NOTHING, p.L + (size_t)i * p.length + x);

    int reach = 0;
    for (int l = 0; l < levels; ++l) reach = max(reach, level[l].x);
    int next = y0 - 1 - reach;
    for (int y = y0 - 1; y <= y1; y += CLV_BLOB_STEP_ROWS) {
        advance(&p, &next, y + CLV_BLOB_STEP_ROWS - 1 + reach, y0 - 1, y1, pixels, row_stride, pedestal, gain);
        for (int l = 0; l < levels; ++l) {
            down(&p, l, y, CLV_BLOB_STEP_ROWS, leak[l] * pedestal * gain, dog);
        }
        for (int row = y; step && row < y + CLV_BLOB_STEP_ROWS; ++row)
            if (row >= y0 && row < y1 && row % step == 0) count_sizes(&p, row, step, own);
        for (int row = y - 1; row < y + CLV_BLOB_STEP_ROWS - 1; ++row)
            if (row >= y0 && row < y1)
                look(&p, row, peaks, counts, capacity, relative);
    }
    bins += (size_t)frame * all;
    for (int i = 0; i < all; ++i)
        if (own[i]) atomic_add(bins + i, own[i]);
}
