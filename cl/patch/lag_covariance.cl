/* cl/patch/lag_covariance.cl -- V[lag][u] = (1/T) sum_t D[t,u] * D[t,u+lag].
 *
 * The covariance of two patch pixels depends only on one of them and on their distance, so all
 * patches share these numbers: 91 lags instead of 1225 entries at radius 4.
 *
 * Launch   2-D: global (pitch / LANES, band rows); CPU local (1, 1).
 * Defines  LANES; LAG_BLOCK lags at once (registers); LAGS, a multiple of LAG_BLOCK.
 * Memory   D is read once per block of lags, from the cache; V is written once. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/paco.clh"

/* shift[lag]: distance in elements from D[t,u] to D[t,u+lag]; lag_row[lag]: distance in rows (never negative). */
__kernel void clv_paco_lag_covariance(__global const float *restrict D, __global float *restrict V,
                                      __global const int *restrict shift,
                                      __global const uchar *restrict lag_row, uint band_rows,
                                      uint frames, uint pitch, float weight, uint first_lag,
                                      uint last_lag)
{
    const uint tile = get_global_id(0) * LANES, row = get_global_id(1);
    if (tile >= pitch || row >= band_rows) return;

    if (tile < CLV_PACO_PAD || tile >= pitch - CLV_PACO_PAD) { /* padding beside the first and last column */
        for (uint lag = first_lag; lag < last_lag; ++lag)
            lanes_store((fvec)0.0f, V + ((size_t)row * LAGS + lag) * pitch + tile);
        return;
    }
    __global const float *here = D + (size_t)row * frames * pitch + tile;
    for (uint lag0 = first_lag; lag0 < last_lag; lag0 += LAG_BLOCK) {
        fvec sum[LAG_BLOCK];
        int other[LAG_BLOCK];
#pragma unroll
        for (int k = 0; k < LAG_BLOCK; ++k) {
            sum[k] = 0.0f;
            /* a lag that leaves the band belongs to no patch of this chunk, so any number will do */
            other[k] = row + lag_row[lag0 + k] < band_rows ? shift[lag0 + k] : 0;
        }
        for (uint t = 0; t < frames; ++t) {
            __global const float *at = here + (size_t)t * pitch;
            const fvec mine = lanes_load(at);
#pragma unroll
            for (int k = 0; k < LAG_BLOCK; ++k)
                sum[k] = fma(mine, lanes_load(at + other[k]), sum[k]);
        }
        __global float *out = V + ((size_t)row * LAGS + lag0) * pitch + tile;
#pragma unroll
        for (int k = 0; k < LAG_BLOCK; ++k) lanes_store(sum[k] * weight, out + (size_t)k * pitch);
    }
}
