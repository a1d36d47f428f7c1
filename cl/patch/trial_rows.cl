/* cl/patch/trial_rows.cl -- trials for CPUs: vectors hold pixels of the patch, and a work-item computes one frame of
 * one trial after another. See trial.clh for the formula.
 *
 * The right-hand sides h, r, c and z are four more columns of C: the Cholesky elimination multiplies them by
 * L^-1, and the sums are their inner products. Consecutive frames with the same patch k(l) have the same m and C.
 * These are therefore computed once for up to CLV_TRIAL_TOGETHER such frames, and C has four columns for each of the
 * frames. Close to the star, a planet stays in a patch for two or three frames.
 *
 * Launch   1-D: global = workers, local (1); a worker takes consecutive frames, since they read almost the same part
 *          of the spots: when it took every n-th frame, it spent half of its time waiting for the spots. The launch
 *          computes `trials` trials, beginning with number `first` + `before`. `out`, spots and templates begin with
 *          trial number `first`.
 * Defines  LANES 8 or 16; P pixels of the patch, RADIUS; SCRATCH floats of a worker for q, beside frames * ROW.
 * Needs    `data` must be readable for 16 elements beyond its end. No barrier, no local memory.
 * Memory   data, spots and templates are read from the cache; each worker has a scratch of
 *          frames * ROW + SCRATCH floats. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/trial.clh"

#define VECS ((P + 4 * CLV_TRIAL_TOGETHER + LANES - 1) / LANES)
#define ROW (VECS * LANES)
#define SIDE (2 * RADIUS + 1)

/* Stores q_t, its pixels in the order of the disc, followed by zeros. */
static void take_frame(__global float *q, __global const float *data, uint width, __global const float *spot,
                       int size, uint stride, __global const int *run, int2 to_spot)
{
    for (int j = 0; j < SIDE; ++j) {
        const int half_width = run[2 * j], start = run[2 * j + 1], row = to_spot.x + j - RADIUS;
        for (int x = 0; x <= 2 * half_width; x += LANES) {
            fvec value = lanes_load(data + (int)((j - RADIUS) * (int)width) + x - half_width);
            const int col = to_spot.y + x - half_width;
            if (row >= 0 && row < size && col > -LANES && col < size)
                value -= lanes_load(spot + row * (int)stride + CLV_TRIAL_PAD + col);
            lanes_store(value, q + start + x); /* the next row of the disc overwrites the excess */
        }
    }
    lanes_store((fvec)0.0f, q + P);
#if ROW - P > LANES
    lanes_store((fvec)0.0f, q + ROW - LANES);
#endif
#if ROW - P > 2 * LANES
    lanes_store((fvec)0.0f, q + P + LANES);
#endif
}

/* Computes four rows of sum_t q_t q_t', WIDTH vectors from column v * LANES on: as much as fits into registers. */
#define TILE(WIDTH)                                                                                          \
    static void tile##WIDTH(__global const float *Q, __global float *S, uint frames, float weight, int i0, int v) \
    {                                                                                                        \
        fvec acc[4][WIDTH];                                                                                  \
        _Pragma("unroll") for (int r = 0; r < 4; ++r)                                                        \
            _Pragma("unroll") for (int k = 0; k < WIDTH; ++k) acc[r][k] = (fvec)0.0f;                        \
        for (uint t = 0; t < frames; ++t) {                                                                  \
            __global const float *row = Q + (size_t)t * ROW, *right = row + v * LANES;                       \
            fvec mine[WIDTH];                                                                                \
            _Pragma("unroll") for (int k = 0; k < WIDTH; ++k) mine[k] = lanes_load(right + k * LANES);       \
            _Pragma("unroll") for (int r = 0; r < 4; ++r)                                                    \
                _Pragma("unroll") for (int k = 0; k < WIDTH; ++k)                                            \
                    acc[r][k] = fma((fvec)row[i0 + r], mine[k], acc[r][k]);                                  \
        }                                                                                                    \
        _Pragma("unroll") for (int r = 0; r < 4; ++r)                                                        \
            _Pragma("unroll") for (int k = 0; k < WIDTH; ++k)                                                \
                lanes_store(acc[r][k] * weight, S + (i0 + r) * ROW + (v + k) * LANES);                       \
    }

/* 16 registers hold 4 * 3 sums beside the factors, 32 registers hold 4 * 6. */
#if LANES == 8
#define WIDEST 3
#else
#define WIDEST 6
#endif
TILE(1)
TILE(2)
TILE(3)
#if WIDEST > 3
TILE(4)
TILE(5)
TILE(6)
#endif

/* Computes S = weight * sum_t q_t q_t', on and to the right of the diagonal. */
static void covariance(__global const float *Q, __global float *S, uint frames, float weight)
{
    for (int i0 = 0; i0 < P; i0 += 4)
        for (int v = i0 / LANES; v < VECS;) {
            const int left = VECS - v, parts = (left + WIDEST - 1) / WIDEST, width = (left + parts - 1) / parts;
            switch (width) {
            case 1: tile1(Q, S, frames, weight, i0, v); break;
            case 2: tile2(Q, S, frames, weight, i0, v); break;
#if WIDEST == 3
            default: tile3(Q, S, frames, weight, i0, v); break;
#else
            case 3: tile3(Q, S, frames, weight, i0, v); break;
            case 4: tile4(Q, S, frames, weight, i0, v); break;
            case 5: tile5(Q, S, frames, weight, i0, v); break;
            default: tile6(Q, S, frames, weight, i0, v); break;
#endif
            }
            v += width;
        }
}

/* Divides row k by the root of its diagonal and adds its right-hand sides' products to the sums of each frame. */
static void finish_row(__global float *mine, int k, uint frames, float *sum)
{
    const float inverse = 1.0f / sqrt(mine[k]);
    for (int v = k / LANES * LANES; v < ROW; v += LANES) lanes_store(lanes_load(mine + v) * inverse, mine + v);
    for (uint j = 0; j < frames; ++j, sum += CLV_TRIAL_SUMS) {
        const float h = mine[P + 4 * j], r = mine[P + 4 * j + 1], c = mine[P + 4 * j + 2], z = mine[P + 4 * j + 3];
        sum[0] = fma(h, h, sum[0]), sum[1] = fma(h, r, sum[1]), sum[2] = fma(h, c, sum[2]);
        sum[3] = fma(r, r, sum[3]), sum[4] = fma(r, c, sum[4]), sum[5] = fma(c, c, sum[5]);
        sum[6] = fma(h, z, sum[6]), sum[7] = fma(r, z, sum[7]), sum[8] = fma(c, z, sum[8]);
    }
}

/* Subtracts factor * mine from `other`, from column i on. */
static void take_row(__global float *other, __global const float *mine, float factor, int i)
{
    for (int v = i / LANES * LANES; v < ROW; v += LANES)
        lanes_store(fma((fvec)(-factor), lanes_load(mine + v), lanes_load(other + v)), other + v);
}

__kernel void clv_trial_rows(__global const float *restrict data, __global const float *restrict spots,
                             __global const float *restrict templates, __global const trial_place *restrict places,
                             __global const int *restrict run, __global float *restrict out,
                             __global float *restrict scratch, uint first, uint before, uint trials, uint frames,
                             uint height, uint width, uint size, uint stride, uint workers)
{
    places += (size_t)(first + before) * frames;
    out += (size_t)before * frames * CLV_TRIAL_SUMS;
    const uint worker = get_global_id(0);
    __global float *Q = scratch + (size_t)worker * ((size_t)frames * ROW + SCRATCH), *S = Q + (size_t)frames * ROW;
    const float weight = 1.0f / (float)frames;
    const ivec lane = lanes_iota();
    const uint share = (trials * frames + workers - 1) / workers, end = min((worker + 1) * share, trials * frames);
    for (uint at = worker * share, together; at < end; at += together) {
        const uint trial = at / frames, l = at % frames;
        const trial_place here = places[at];
        for (together = 1; together < CLV_TRIAL_TOGETHER && at + together < end && l + together < frames; ++together)
            if (places[at + together].row != here.row || places[at + together].col != here.col) break;
        const int middle = (int)size / 2;
        fvec mean[VECS];
        _Pragma("unroll") for (int v = 0; v < VECS; ++v) mean[v] = (fvec)0.0f;
        float weights = 0.0f;
        for (uint t = 0; t < frames; ++t) {
            const trial_place there = places[trial * frames + t];
            weights += there.weight;
            const int2 to_spot = (int2)(here.row - there.row + middle, here.col - there.col + middle);
            __global float *q = Q + (size_t)t * ROW;
            take_frame(q, data + ((size_t)t * height + here.row) * width + here.col, width,
                       spots + ((size_t)trial * frames + t) * size * stride, size, stride, run, to_spot);
            _Pragma("unroll") for (int v = 0; v < VECS; ++v) mean[v] += lanes_load(q + v * LANES) * there.weight;
        }
        _Pragma("unroll") for (int v = 0; v < VECS; ++v) mean[v] *= 1.0f / weights;
        for (uint t = 0; t < frames; ++t)
            _Pragma("unroll") for (int v = 0; v < VECS; ++v) {
                __global float *q = Q + (size_t)t * ROW + v * LANES;
                lanes_store((lanes_load(q) - mean[v]) * places[trial * frames + t].gain, q);
            }
        covariance(Q, S, frames, weight);
        /* rho, computed as in solve_rows.cl for the maps */
        fvec above = (fvec)0.0f;
        float trace = 0.0f, squares = 0.0f;
        for (int i = 0; i < P; ++i) {
            for (int v = i / LANES; v < VECS; ++v) {
                const fvec s = lanes_load(S + i * ROW + v * LANES);
                above += pick(v * LANES + lane > i, s * s, (fvec)0.0f);
            }
            const float s = S[i * ROW + i];
            trace += s, squares = fma(s, s, squares);
        }
        float part[LANES], all = 0.0f;
        lanes_store(above, part);
        for (int i = 0; i < LANES; ++i) all += part[i];
        all *= 2.0f;
        const float bottom = ((float)frames + 1.0f) * all;
        const float rho = bottom > 0.0f ? fmin(fmax((all - squares + trace * trace) / bottom, 0.0f), 1.0f) : 1.0f;
        const float shrink = 1.0f - rho;
        for (int i = 0; i < P; ++i)
            for (int v = i / LANES; v < VECS; ++v) {
                const fvec s = lanes_load(S + i * ROW + v * LANES);
                lanes_store(pick(v * LANES + lane > i, s * shrink, s), S + i * ROW + v * LANES);
            }
        /* the right-hand sides of each frame */
        __global const float *template = templates + (size_t)at * 3 * SIDE * CLV_TRIAL_ROW;
        for (uint f = 0; f < together; ++f, template += 3 * SIDE * CLV_TRIAL_ROW)
            for (int j = 0; j < SIDE; ++j)
                for (int i = -run[2 * j], n = run[2 * j + 1]; i <= run[2 * j]; ++i, ++n) {
                    __global float *side = S + n * ROW + P + 4 * f;
                    for (int k = 0; k < 3; ++k) side[k] = template[(k * SIDE + j) * CLV_TRIAL_ROW + RADIUS + i];
                    side[3] = Q[(size_t)(l + f) * ROW + n];
                }
        float sum[CLV_TRIAL_TOGETHER * CLV_TRIAL_SUMS];
        for (int i = 0; i < CLV_TRIAL_TOGETHER * CLV_TRIAL_SUMS; ++i) sum[i] = 0.0f;
        for (int k = 0; k < P; k += 2) { /* two columns at a time halve the accesses to the rest of S */
            __global float *mine = S + k * ROW, *next = mine + ROW;
            finish_row(mine, k, together, sum);
            if (k + 1 == P) break;
            take_row(next, mine, mine[k + 1], k + 1);
            finish_row(next, k + 1, together, sum);
            for (int i = k + 2; i < P; ++i) {
                const fvec factor = (fvec)(-mine[i]), second = (fvec)(-next[i]);
                __global float *other = S + i * ROW;
                for (int v = i / LANES * LANES; v < ROW; v += LANES) {
                    const fvec left = fma(factor, lanes_load(mine + v), lanes_load(other + v));
                    lanes_store(fma(second, lanes_load(next + v), left), other + v);
                }
            }
        }
        for (uint i = 0; i < together * CLV_TRIAL_SUMS; ++i) out[CLV_TRIAL_SUMS * at + i] = sum[i];
    }
}
