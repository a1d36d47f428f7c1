/* cl/spectra/network.cl -- one layer of the template network: out = f(W x + b).
 *
 * clv_spectra_inputs: normalised inputs of the 5 points of an item that need a template.
 * clv_spectra_layer:  f = SiLU, rows [item][5][width].
 * clv_spectra_output: f = exp, the last layer, as template lanes [item][points][8].
 * Launch   x: pairs of items, y: LANES neighbouring outputs; local (WG, 1). Weights [out / 16][in][16].
 * Defines  LANES 16 (CPUs), 1 (GPUs); WG.
 * Memory   pairs run fastest: a tile of weights stays in the cache for all of them. It lies in one piece: rows of a
 *          wide matrix would each have a page of their own. */
#include "common/lanes.clh"
#include "common/loose.clh"
#include "spectra/spectra.clh"

#define ROWS CLV_SPECTRA_NETWORK_ROWS

#define PAIR (2 * ROWS)
#define TILE 16 /* outputs whose weights lie together */

/* Where the weights of output o begin. */
static size_t tile_of(int o, int inputs)
{
    return (size_t)(o / TILE) * TILE * inputs + o % TILE;
}

__kernel void clv_spectra_inputs(__global const float *restrict state,
                                 __global const int *restrict list,
                                 __global const float *restrict weights, __global float *restrict out,
                                 int width, uint scale_at)
{
    const int at = (int)get_global_id(0);
    if (at >= list[0]) return;
    const int item = list[1 + at];
    __global const float *s = state + (size_t)item * CLV_SPECTRA_STATE, *scale = weights + scale_at;
    __global float *o = out + (size_t)item * ROWS * width;
    for (int row = 0; row < ROWS; ++row)
        for (int k = 0; k < 4; ++k) {
            float q = s[CLV_S_TRY + 2 + k];
            if (row == k + 1) q += s[CLV_S_STEP + 2 + k];
            if (k == 0) q = log2(q) * 0.30102999566398120f;
            o[row * width + k] = (q - scale[k]) * scale[4 + k];
        }
}

/* The sums of LANES outputs for the 10 rows of two items. */
static void layer(__global const float *restrict x0, __global const float *restrict x1,
                  __global const float *restrict weight, __global const float *restrict bias,
                  int inputs, int width, fvec *sum)
{
    const fvec start = lanes_load(bias);
    fvec s0 = start, s1 = start, s2 = start, s3 = start, s4 = start;
    fvec s5 = start, s6 = start, s7 = start, s8 = start, s9 = start;
    for (int i = 0; i < inputs; ++i) {
        const fvec w = lanes_load(weight + (size_t)i * TILE);
        s0 = fma(w, (fvec)(x0[i]), s0);
        s1 = fma(w, (fvec)(x0[i + width]), s1);
        s2 = fma(w, (fvec)(x0[i + 2 * width]), s2);
        s3 = fma(w, (fvec)(x0[i + 3 * width]), s3);
        s4 = fma(w, (fvec)(x0[i + 4 * width]), s4);
        s5 = fma(w, (fvec)(x1[i]), s5);
        s6 = fma(w, (fvec)(x1[i + width]), s6);
        s7 = fma(w, (fvec)(x1[i + 2 * width]), s7);
        s8 = fma(w, (fvec)(x1[i + 3 * width]), s8);
        s9 = fma(w, (fvec)(x1[i + 4 * width]), s9);
    }
    sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3, sum[4] = s4;
    sum[5] = s5, sum[6] = s6, sum[7] = s7, sum[8] = s8, sum[9] = s9;
}

__kernel void clv_spectra_layer(__global const float *restrict in, __global float *restrict out,
                                __global const int *restrict list,
                                __global const float *restrict weights, uint weight, uint bias,
                                int inputs, int pitch, int width, int silu)
{
    const int at = 2 * (int)get_global_id(0), o = LANES * (int)get_global_id(1);
    if (at >= list[0] || o >= pitch) return;
    const int one = list[1 + at], two = list[1 + min(at + 1, list[0] - 1)];
    fvec sum[PAIR];
    layer(in + (size_t)one * ROWS * width, in + (size_t)two * ROWS * width, weights + weight + tile_of(o, inputs),
          weights + bias + o, inputs, width, sum);
    for (int r = 0; r < PAIR; ++r) {
        const fvec v = sum[r];
        __global float *to = out + (size_t)(r < ROWS ? one : two) * ROWS * width;
        lanes_store(silu ? v / (1.0f + exp(-v)) : v, to + (r % ROWS) * width + o);
    }
}

__kernel void clv_spectra_output(__global const float *restrict in, __global float *restrict out,
                                 __global const int *restrict list,
                                 __global const float *restrict weights, uint weight, uint bias,
                                 int inputs, int pitch, int width, ulong points)
{
    const int at = 2 * (int)get_global_id(0), o = LANES * (int)get_global_id(1);
    if (at >= list[0] || o >= pitch) return;
    const int one = list[1 + at], two = list[1 + min(at + 1, list[0] - 1)];
    fvec sum[PAIR];
    layer(in + (size_t)one * ROWS * width, in + (size_t)two * ROWS * width, weights + weight + tile_of(o, inputs),
          weights + bias + o, inputs, width, sum);
    for (int r = 0; r < PAIR; ++r)
        sum[r] = exp(clamp(sum[r], -87.0f, 87.0f));
    const float *v = (const float *)sum;
    for (int second = 0; second < 2; ++second) {
        __global float *to = out + ((size_t)(second ? two : one) * points + o) * 8;
        for (int k = 0; k < LANES; ++k) {
            const float *row = v + second * ROWS * LANES + k;
            const float8 t = (float8)(row[0], row[0], row[LANES], row[2 * LANES], row[3 * LANES],
                                      row[4 * LANES], 0.0f, 0.0f);
            store8(t, k, to);
        }
    }
}
