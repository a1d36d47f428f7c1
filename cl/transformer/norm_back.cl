/* transformer/norm_back.cl -- the backward pass of LayerNorm and RMSNorm: gradients of their input.
 *
 * With t = (x - mean) / sqrt(var + eps), the forward pass gave y = t * weight + bias. For G = dL/dy:
 *
 *     LayerNorm  dL/dx = (G w - mean(G w) - t mean(G w t)) / sqrt(var + eps)
 *     RMSNorm    dL/dx = (G w - t mean(G w t)) / sqrt(mean(x^2) + eps),  t = x / sqrt(...)
 *
 * The gradients of weight and bias are sums over rows: see transformer/sums.cl.
 *
 * Launch   as in transformer/norm.cl.
 * Defines  LANES, LOCAL, TEAM, RMS (1: RMSNorm).
 * Needs    OpenCL C 1.2; `moments` as transformer/norm.cl keeps them. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/team.clh"

/* Computes DX, the gradient, plus A if has_add. DX may be G or A. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_norm_back(__global const float *G, ulong g_offset, ulong g_row, __global const float *restrict X,
              ulong x_offset, ulong x_row, __global const float2 *restrict moments,
              __global const float *restrict weight, ulong weight_offset, __global float *DX,
              ulong dx_offset, ulong dx_row, __global const float *A, ulong a_offset, ulong a_row,
              uint has_add, uint rows, uint width, uint each)
{
    TEAM_ROOM;
    const uint last = LAST_ROW(each, rows);
    __global const float *w = weight + weight_offset;
    for (uint r = FIRST_ROW(each); r < last; ++r) {
        __global const float *g = G + g_offset + r * g_row, *x = X + x_offset + r * x_row;
        __global float *dx = DX + dx_offset + r * dx_row;
        __global const float *add = A + a_offset + r * a_row;
        const float mean = moments[r].x, scale = moments[r].y;
        fvec sum = (fvec)(0.0f), along = (fvec)(0.0f);
        FOR_COLUMNS(c, width) { /* beyond the row G is 0 */
            const fvec gw = columns(g, c, width) * columns(w, c, width);
            sum += gw;
            along = fma(gw, (columns(x, c, width) - mean) * scale, along);
        }
        const float middle = RMS ? 0.0f : team_sum(lanes_sum(sum), room) / (float)width;
        const float slope = team_sum(lanes_sum(along), room) / (float)width;
        FOR_COLUMNS(c, width) {
            const fvec t = (columns(x, c, width) - mean) * scale;
            const fvec gw = columns(g, c, width) * columns(w, c, width);
            fvec d = (gw - middle - t * slope) * scale;
            if (has_add) d += columns(add, c, width);
            put_columns(d, dx, c, width);
        }
    }
}
