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
#define TILE 16 /* outputs whose weights lie together */

/* Ten sums of a work-item: two vectors of outputs of one item where vectors are explicit, so that few loads serve many
 * products; else one output of two items. */
#if LANES > 1
#define VECTORS 2
#define ITEMS 1
#else
#define VECTORS 1
#define ITEMS 2
#endif
#define SUMS (ROWS * VECTORS * ITEMS)

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

/* Sums of the outputs from o and from p on (explicit vectors), or of output o for two items. */
static void layer(__global const float *restrict x0, __global const float *restrict x1,
                  __global const float *restrict w0, __global const float *restrict w1,
                  __global const float *restrict b0, __global const float *restrict b1,
                  int inputs, int width, fvec *sum)
{
    const fvec from0 = lanes_load(b0), from1 = lanes_load(b1);
    fvec s0 = from0, s1 = from0, s2 = from0, s3 = from0, s4 = from0;
    fvec s5 = from1, s6 = from1, s7 = from1, s8 = from1, s9 = from1;
    for (int i = 0; i < inputs; ++i) {
        const fvec w = lanes_load(w0 + (size_t)i * TILE);
#if VECTORS == 2
        const fvec u = lanes_load(w1 + (size_t)i * TILE);
        const fvec a = x0[i], b = x0[i + width], c = x0[i + 2 * width], d = x0[i + 3 * width], e = x0[i + 4 * width];
        s0 = fma(w, a, s0), s5 = fma(u, a, s5);
        s1 = fma(w, b, s1), s6 = fma(u, b, s6);
        s2 = fma(w, c, s2), s7 = fma(u, c, s7);
        s3 = fma(w, d, s3), s8 = fma(u, d, s8);
        s4 = fma(w, e, s4), s9 = fma(u, e, s9);
#else
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
#endif
    }
    sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3, sum[4] = s4;
    sum[5] = s5, sum[6] = s6, sum[7] = s7, sum[8] = s8, sum[9] = s9;
}

/* What a work-item has: items one and two, outputs from o on and from p on; where either has no second, it is the
 * first again. */
#define PLACE                                                                                       \
    const int at = ITEMS * (int)get_global_id(0), o = VECTORS * LANES * (int)get_global_id(1);      \
    if (at >= list[0] || o >= pitch) return;                                                        \
    const int one = list[1 + at], two = list[1 + min(at + ITEMS - 1, list[0] - 1)];                 \
    const int p = VECTORS > 1 && o + LANES < pitch ? o + LANES : o;                                 \
    fvec sum[SUMS];                                                                                 \
    layer(in + (size_t)one * ROWS * width, in + (size_t)two * ROWS * width,                         \
          weights + weight + tile_of(o, inputs), weights + weight + tile_of(p, inputs),             \
          weights + bias + o, weights + bias + p, inputs, width, sum)

__kernel void clv_spectra_layer(__global const float *restrict in, __global float *restrict out,
                                __global const int *restrict list,
                                __global const float *restrict weights, uint weight, uint bias,
                                int inputs, int pitch, int width, int silu)
{
    PLACE;
    for (int r = 0; r < SUMS; ++r) {
        const fvec v = sum[r];
        __global float *to = out + (size_t)(r < ROWS ? one : two) * ROWS * width;
        lanes_store(silu ? v / (1.0f + exp(-v)) : v, to + (r % ROWS) * width + (r < ROWS ? o : p));
    }
}

__kernel void clv_spectra_output(__global const float *restrict in, __global float *restrict out,
                                 __global const int *restrict list,
                                 __global const float *restrict weights, uint weight, uint bias,
                                 int inputs, int pitch, int width, ulong points)
{
    PLACE;
    for (int r = 0; r < SUMS; ++r)
        sum[r] = exp(clamp(sum[r], -87.0f, 87.0f));
    for (int second = 0; second < 2; ++second) {
        __global float *to = out + ((size_t)(second ? two : one) * points + (second ? p : o)) * 8;
        const fvec *v = sum + second * ROWS;
#if LANES == 8
        fvec rows[8] = { v[0], v[0], v[1], v[2], v[3], v[4], 0.0f, 0.0f };
        turn_eight(rows);
#pragma unroll
        for (int k = 0; k < 8; ++k)
            store8(rows[k], k, to);
#else
        const float *row = (const float *)v;
        for (int k = 0; k < LANES; ++k) {
            const float8 t = (float8)(row[k], row[k], row[LANES + k], row[2 * LANES + k], row[3 * LANES + k],
                                      row[4 * LANES + k], 0.0f, 0.0f);
            store8(t, k, to);
        }
#endif
    }
}
