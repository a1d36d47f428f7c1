/* cl/patch/accumulate.cl -- adds up the terms a and b of every map position over the frames whose patch lies in this
 * chunk, exactly: a float becomes a multiple of 2^-10 plus a multiple of 2^-62, both as integers, so that the sums do
 * not depend on the order, the chunks or the devices. Each frame is multiplied by its weight.
 *
 * Launch   2-D: global (tiles of positions, map rows / MAP_ROWS), local (1, 1) on CPUs.
 * Defines  LANES, SHIFTED, MAP_ROWS: a work-item takes this many positions below each other, because the rotation maps
 *          a block of positions to a block of patches, whose hits share cache lines.
 * Memory   Hits are read from scattered places. The first launch of a chunk writes sums [a high, a low, b high,
 *          b low][map row][map pitch] and count [map row][map pitch]; launches for later frames or rows `add` to
 *          them. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/paco.clh"

#if LANES == 8 && defined(cl_khr_fp64)
/* AVX2 converts no vectors to 64-bit integers. A float64 of at most 2^51, added to BIAS, is rounded to an integer, ties
 * to even. The bits of this sum are that integer plus the bits of BIAS. */
#define BY_DOUBLES 1
#define BIAS 0x1.8p52
#else
#define BY_DOUBLES 0
#endif

typedef struct sum {
    lvec a_high, a_low, b_high, b_low;
    ivec found;
} sum;

/* Rounds to an integer, ties to even. With vectors, PoCL's rint takes a third of this kernel's time. */
static fvec nearest(fvec value)
{
#if LANES == 1
    return rint(value);
#else
    const ivec bits = as_ivec(value), two_to_23 = 0x4b000000; /* from there on, floats are integers */
    const fvec shift = as_fvec((bits & (int)0x80000000) | two_to_23);
    return pick((bits & 0x7fffffff) < two_to_23, (value + shift) - shift, value);
#endif
}

static void add_exactly(fvec value, lvec *high, lvec *low)
{
#if BY_DOUBLES
    if (all(fabs(value) < 0x1p41f)) {
        const double8 wide = convert_double8(value);
        const double8 coarse_sum = fma(wide, (double8)0x1p10, (double8)BIAS);
        const double8 fine = fma(coarse_sum - BIAS, (double8)-0x1p-10, wide);
        *high += as_long8(coarse_sum) - as_long(BIAS);
        *low += as_long8(fma(fine, (double8)0x1p62, (double8)BIAS)) - as_long(BIAS);
        return;
    }
#endif
    const fvec coarse = nearest(value * 0x1p10f);
    const fvec rest = nearest(fma(coarse, (fvec)-0x1p-10f, value) * 0x1p62f);
    *high += to_lvec(coarse);
    *low += to_lvec(rest);
}

/* Loads (a, b) of one frame at `at` (in pairs) for the lanes set in `here`; zeros elsewhere. */
static void gather(__global const float *hits, ivec at, ivec here, fvec *a, fvec *b)
{
#if LANES == 1
    const float2 pair = here ? vload2(at, hits) : (float2)NAN;
    *a = pair.x, *b = pair.y;
#else
    int place[LANES];
    float lane_a[LANES], lane_b[LANES];
    LANES_JOIN(vstore, LANES)(pick(here, at, (ivec)0), 0, place);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
        const float2 pair = vload2(place[i], hits);
        lane_a[i] = pair.x, lane_b[i] = pair.y;
    }
    *a = LANES_JOIN(vload, LANES)(0, lane_a);
    *b = LANES_JOIN(vload, LANES)(0, lane_b);
#endif
}

__kernel void clv_paco_accumulate(__global const float *restrict hits, __global long *restrict sums,
                                  __global uint *restrict count, __global const rotation *restrict turn,
                                  uint rows, uint row0, uint frames, uint first_frame, uint last_frame,
                                  uint width, uint pitch, uint margin, uint map_row0, uint map_rows,
                                  uint map_pitch, uint add)
{
    const uint x = get_global_id(0) * LANES, block = get_global_id(1) * MAP_ROWS;
    if (x >= map_pitch || block >= map_rows) return;

    const uint hit_width = pitch - 2 * CLV_PACO_PAD, slots = SHIFTED ? 2 : 1;
    const ivec lane = lanes_iota();
    sum total[MAP_ROWS];
#pragma unroll
    for (int i = 0; i < MAP_ROWS; ++i)
        total[i].a_high = total[i].a_low = total[i].b_high = total[i].b_low = 0, total[i].found = 0;

    bool touched = !add;
    for (uint l = first_frame; l < last_frame; ++l) {
        const rotation r = turn[l];
        /* the rows of the block's corners bound all others: skip blocks outside the chunk */
        const long corner = (long)(map_row0 + block) * r.c - (long)x * r.s + r.row0;
        const long across = -(LANES - 1) * r.s, down = (MAP_ROWS - 1) * r.c;
        if ((corner + max(across, 0L) + max(down, 0L)) >> 32 < (long)row0 ||
            (corner + min(across, 0L) + min(down, 0L)) >> 32 >= (long)(row0 + rows))
            continue;
        touched = true;

        const lvec px = (long)x + to_lvec(lane);
        const lvec row_part = r.row0 - px * r.s - ((long)row0 << 32), col_part = px * r.c + r.col0;
        __global const float *frame_hits = hits + (size_t)l * slots * hit_width * 2;
        ivec here[MAP_ROWS];
        fvec a[MAP_ROWS], b[MAP_ROWS];
        for (int i = 0; i < MAP_ROWS; ++i) {
            const long y = map_row0 + block + i;
            const ivec k_row = to_ivec((row_part + y * r.c) >> 32);
            const ivec k_col = to_ivec((col_part + y * r.s) >> 32);
            here[i] = k_row >= 0 && k_row < (int)rows && k_col >= (int)margin && k_col < (int)(width - margin);
            if (!lanes_any(here[i])) continue;
            ivec at = k_row * (int)(frames * slots * hit_width) + k_col;
#if SHIFTED
            at += (((int)y + (int)x + lane) & 1) * (int)hit_width;
#endif
            gather(frame_hits, at, here[i], &a[i], &b[i]);
        }
        for (int i = 0; i < MAP_ROWS; ++i) {
            if (!lanes_any(here[i])) continue;
            const ivec good = here[i] && isfinite(a[i]);
            const fvec weighted_a = a[i] * r.weight, weighted_b = b[i] * r.gain; /* D has the gain already */
            add_exactly(pick(good, weighted_a, (fvec)0.0f), &total[i].a_high, &total[i].a_low);
            add_exactly(pick(good, weighted_b, (fvec)0.0f), &total[i].b_high, &total[i].b_low);
            total[i].found += pick(good, (ivec)1, (ivec)0);
        }
    }
    if (!touched) return;
    const size_t plane = (size_t)map_rows * map_pitch;
    for (int i = 0; i < MAP_ROWS && block + i < map_rows; ++i) {
        const size_t out = (size_t)(block + i) * map_pitch + x;
        __global int *counter = (__global int *)count + out;
        if (add) {
            total[i].a_high += lanes_load(sums + out), total[i].a_low += lanes_load(sums + plane + out);
            total[i].b_high += lanes_load(sums + 2 * plane + out), total[i].b_low += lanes_load(sums + 3 * plane + out);
            total[i].found += lanes_load(counter);
        }
        lanes_store(total[i].a_high, sums + out), lanes_store(total[i].a_low, sums + plane + out);
        lanes_store(total[i].b_high, sums + 2 * plane + out), lanes_store(total[i].b_low, sums + 3 * plane + out);
        lanes_store(total[i].found, counter);
    }
}
