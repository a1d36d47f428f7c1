/* cl/blob/sweep.cl -- the responses of a strip of a frame and their maxima, by sliding windows in registers. Pixels are
 * read once, and only the list of maxima is written.
 *
 * A work-group processes a strip of COLS - 2 columns with a rim of one column on either side, and goes down a band of
 * rows. Work-item (i, l) computes level l in a number of neighbouring columns, EACH. It filters along every row of
 * pixels, which is in local memory, and adds the two results to the 2 RADIUS + 1 sums to which they contribute. Each
 * sum moves on by one place per row and is complete when it reaches the last place. All levels have the same number of
 * places, so that their responses are complete in the same row. Coefficients beyond a level's own radius are 0 and are
 * skipped four at a time.
 *
 * Launch   3-D: global (strips * COLS / EACH, LEVELS * bands, frames), local (COLS / EACH, LEVELS, 1).
 * Defines  LANES (1), PIXEL, DOG, COLS, EACH, LEVELS, RADIUS (the largest, rounded up to a multiple of 4).
 * Order    Sums along a row run as in rows.cl; those down a column from the first row to the last, starting with 0. */
#pragma OPENCL FP_CONTRACT OFF

#include "blob/blob.clh"
#include "common/waves.clh"

#define LINE (COLS + 2 * RADIUS)
#define WG (COLS / EACH * LEVELS)
#define LOADS ((LINE + WG - 1) / WG)
#define SCALES (LEVELS - DOG)
#define KEPT 4 /* rows of responses: three are compared while the next one is written */
#define AT(y, k, column) ((((y) & (KEPT - 1)) * SCALES + (k)) * COLS + (column))
#define EACH_ONE for (int c = 0; c < EACH; ++c)

/* Returns whether mirror(at, size) falls while `at` rises. */
static bool falls(int at, int size)
{
    at %= 2 * size;
    return (at < 0 ? at + 2 * size : at) >= size;
}

/* Records (y, x) of scale k, in a column of the strip, if it is a maximum. Of equal neighbours, the first one in the
 * order (k, y, x) is recorded. */
static void record(__local const float *L, float value, int y, int x, int k, int column,
                   __global uint *peaks, volatile __global uint *counts, uint capacity,
                   float relative)
{
#pragma unroll 1
    for (int j = 0; j < 27; ++j) {
        const int kk = k + j / 9 - 1;
        if (j == 13 || kk < 0 || kk >= SCALES) continue;
        const float other = L[AT(y + j / 3 % 3 - 1, kk, column + j % 3 - 1)];
        if (j < 13 ? !(value > other) : !(value >= other)) return;
    }
    __global uint *out = new_peak(value, y, x, k, relative, peaks, counts, capacity);
    if (!out) return;
#pragma unroll 1
    for (int j = 0; j < 9; ++j) out[4 + j] = as_uint(L[AT(y + j / 3 - 1, k, column + j % 3 - 1)]);
    out[13] = as_uint(k > 0 ? L[AT(y, k - 1, column)] : NOTHING);
    out[14] = as_uint(k + 1 < SCALES ? L[AT(y, k + 1, column)] : NOTHING);
}

__kernel __attribute__((reqd_work_group_size(COLS / EACH, LEVELS, 1)))
WAVES((RADIUS > 12 && !DOG) || EACH > 1 ? 2 : 3) void
clv_blob_sweep(__global const pixel_t *restrict pixels, ulong offset, ulong frame_stride,
               ulong row_stride, __global const float *restrict pedestals,
               __global const float2 *restrict taps, __global const int2 *restrict level,
               __global const float *restrict leak, __global const float *restrict map,
               __global const float *restrict factor, __global uint *restrict peaks,
               volatile __global uint *counts, volatile __global uint *bins, int height, int width,
               int rows, uint capacity, float gain, float dog, float relative, int step,
               int cells_across, int cells, int shift, uint at)
{
    __local float lines[2 * LINE], L[KEPT * SCALES * COLS];
#if DOG
    __local float G[LEVELS * COLS];
#endif
    const uint frame = at + get_global_id(2);
    const int column = get_local_id(0) * EACH, l = get_local_id(1), k = l - DOG;
    const int item = l * (COLS / EACH) + get_local_id(0);
    const int left = (int)get_group_id(0) * (COLS - 2) - 1, x = left + column;
    const int first = (int)get_group_id(1) * rows, end = min(first + rows, height);
    const int radius = level[l].x;
    const float pedestal = pedestals[frame], bias = leak[l] * pedestal * gain;
    taps += level[l].y;
    pixels += offset + frame * (size_t)frame_stride;
    peaks += (size_t)frame * capacity * CLV_BLOB_PEAK_WORDS;
    counts += 2 * frame;
    bins += ((size_t)frame * SCALES + max(k, 0)) * CLV_BLOB_NOISE_BINS;
    map += (size_t)frame * cells;

    float g[RADIUS + 1], q[RADIUS + 1], sums[2 * RADIUS + 1][EACH], before[EACH], threshold[EACH];
    bool mine[EACH], inside[EACH];
#pragma unroll
    for (int j = 0; j <= RADIUS; ++j) {
        const float2 w = j <= radius ? taps[j] : (float2)(0.0f);
        g[j] = w.x, q[j] = w.y;
    }
#pragma unroll
    EACH_ONE {
#pragma unroll
        for (int i = 0; i < 2 * RADIUS + 1; ++i) sums[i][c] = 0.0f;
        before[c] = NOTHING, threshold[c] = INFINITY; /* until the first row that counts */
        inside[c] = x + c >= 0 && x + c < width;
        mine[c] = k >= 0 && column + c > 0 && column + c < COLS - 1 && x + c < width;
    }
    int place[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; ++i) place[i] = mirror(left - RADIUS + item + i * WG, width);

    const int from = first - 1 - RADIUS, to = end + RADIUS; /* rows of pixels, the last one included */
    int source = mirror(from, height), way = falls(from, height) ? -1 : 1;
    {
        __global const pixel_t *row = pixels + source * (size_t)row_stride;
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            if (item + i * WG < LINE)
                lines[(from & 1) * LINE + item + i * WG] = bring(row[place[i]], pedestal, gain);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int turn = first + 1;                                      /* the next row with other thresholds */
    int sample = step ? (first + step - 1) / step * step : end; /* the next row of samples */
    for (int here = from; here <= to; ++here) {
        const int next = source + way;
        const bool turns = next < 0 || next >= height; /* the row at a border is read twice */
        source = turns ? source : next, way = turns ? -way : way;
        __global const pixel_t *row = pixels + source * (size_t)row_stride;
        float coming[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            coming[i] = item + i * WG < LINE ? bring(row[place[i]], pedestal, gain) : 0.0f;

        /* along the row */
        __local const float *p = lines + (here & 1) * LINE + column + RADIUS;
        float a[EACH], b[EACH];
#pragma unroll
        EACH_ONE a[c] = g[0] * p[c], b[c] = q[0] * p[c];
#pragma unroll
        for (int block = 0; block < RADIUS; block += 4) {
            if (block && radius <= block) continue;
#pragma unroll
            for (int j = block + 1; j <= block + 4; ++j)
#pragma unroll
                EACH_ONE {
                    const float pair = p[c - j] + p[c + j];
                    a[c] = fma(g[j], pair, a[c]);
                    b[c] = fma(q[j], pair, b[c]);
                }
        }
        /* down the columns */
#if DOG
#define ADD(i, j) sums[i][c] = fma(g[j], a[c], sums[(i) + 1][c])
#define START(i, j) sums[i][c] = g[j] * a[c]
#else
#define ADD(i, j) sums[i][c] = fma(q[j], a[c], fma(g[j], b[c], sums[(i) + 1][c]))
#define START(i, j) sums[i][c] = fma(q[j], a[c], g[j] * b[c])
#endif
#pragma unroll
        for (int block = 0; block < RADIUS; block += 4) {
#pragma unroll
            for (int i = block; i < block + 4; ++i)
#pragma unroll
                EACH_ONE ADD(i, RADIUS - i);
        }
#pragma unroll
        EACH_ONE ADD(RADIUS, 0);
#pragma unroll
        for (int block = 0; block < RADIUS; block += 4) {
            if (block && radius <= block) continue;
#pragma unroll
            for (int j = block + 1; j <= block + 4; ++j)
#pragma unroll
                EACH_ONE {
                    if (j < RADIUS)
                        ADD(RADIUS + j, j);
                    else
                        START(RADIUS + j, j);
                }
        }

        /* the row whose sums are complete; rows above the band's rim are incomplete and are not used */
        const int y = here - RADIUS;
        const bool there = (uint)y < (uint)height;
        float value[EACH];
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            if (item + i * WG < LINE) lines[(~here & 1) * LINE + item + i * WG] = coming[i];
#if DOG
#pragma unroll
        EACH_ONE G[l * COLS + column + c] = sums[0][c];
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
#pragma unroll
        EACH_ONE {
            value[c] = sums[0][c];
#if DOG
            if (k >= 0) value[c] = (G[k * COLS + column + c] - value[c]) * dog;
#endif
            value[c] = there && inside[c] ? value[c] + bias : NOTHING;
            if (k >= 0) L[AT(y, k, column + c)] = value[c];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (y == sample && y < end) {
            sample += step;
#pragma unroll
            EACH_ONE if (mine[c] && (x + c) % step == 0)
                atomic_inc(bins + noise_bin(value[c] / floor_at(map, factor, cells_across, shift, k,
                                                                y, x + c)));
        }
        if (y == turn) {
            turn = ((((y - 1) >> shift) + 1) << shift) + 1;
#pragma unroll
            EACH_ONE if (mine[c]) threshold[c] =
                floor_at(map, factor, cells_across, shift, k, y - 1, x + c);
        }
#pragma unroll
        EACH_ONE {
            if (before[c] > threshold[c])
                record(L, before[c], y - 1, x + c, k, column + c, peaks, counts, capacity, relative);
            before[c] = value[c];
        }
    }
}
