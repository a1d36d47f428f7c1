/* transformer/norm.cl -- LayerNorm and RMSNorm of rows, and embeddings followed by LayerNorm.
 *
 *     LayerNorm  y = (x - mean) / sqrt(var + eps) * weight + bias
 *     RMSNorm    y = x / sqrt(mean(x^2) + eps) * weight
 *
 * Launch   1-D: global (rows / `each`, rounded up to the local size), local (LOCAL); a work-item does
 *          `each` rows. CPUs: LANES 16, LOCAL 1. GPUs: LANES 1, and neighbouring work-items take neighbouring rows.
 * Defines  LANES, LOCAL.
 * Needs    OpenCL C 1.2.
 * Order    There are two passes: the first computes the mean, and the second the deviations from it, so that a
 *          row of mean 1000 and spread 0.01 keeps its digits. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/rows.clh"

/* Normalises a row; y may be x. `moments`: the row's mean and 1 / sqrt(var + eps), for the backward pass. */
static void norm_row(__global const float *x, __global float *y, __global const float *weight,
                     __global const float *bias, uint width, float eps, uint rms, float2 *moments)
{
    float mean = 0.0f;
    if (!rms) {
        fvec sum = (fvec)(0.0f);
        for (uint c = 0; c < width; c += LANES)
            sum += columns(x, c, width);
        mean = lanes_sum(sum) / (float)width;
        sum = (fvec)(0.0f); /* corrects the rounding error of the first sum */
        for (uint c = 0; c < width; c += LANES)
            sum += (columns(x, c, width) - mean) * inside(c, width);
        mean += lanes_sum(sum) / (float)width;
    }
    fvec squares = (fvec)(0.0f);
    for (uint c = 0; c < width; c += LANES) {
        const fvec d = (columns(x, c, width) - mean) * inside(c, width);
        squares = fma(d, d, squares);
    }
    const float scale = 1.0f / sqrt(lanes_sum(squares) / (float)width + eps);
    for (uint c = 0; c < width; c += LANES) {
        fvec v = (columns(x, c, width) - mean) * scale * columns(weight, c, width);
        if (!rms) v += columns(bias, c, width);
        put_columns(v, y, c, width);
    }
    *moments = (float2)(mean, scale);
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_norm(__global const float *x, ulong x_offset, ulong x_row, __global float *y, ulong y_offset,
         ulong y_row, __global const float *parameters, ulong weight, ulong bias,
         __global float2 *moments, uint keep, uint rows, uint width, float eps, uint rms, uint each)
{
    const uint last = min((uint)(get_global_id(0) + 1) * each, rows);
    for (uint r = get_global_id(0) * each; r < last; ++r) {
        float2 found;
        norm_row(x + x_offset + r * x_row, y + y_offset + r * y_row, parameters + weight,
                 parameters + bias, width, eps, rms, &found);
        if (keep) moments[r] = found;
    }
}

/* y = word[id] + position[p] + type, where `tokens` holds id and p; with `norm`, LayerNorm follows. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_embed(__global const int2 *tokens, ulong first, __global const float *word,
          __global const float *parameters, ulong position, ulong type, ulong weight, ulong bias,
          __global float *y, uint rows, uint width, float eps, uint norm, uint each)
{
    const uint last = min((uint)(get_global_id(0) + 1) * each, rows);
    for (uint r = get_global_id(0) * each; r < last; ++r) {
        const int2 token = tokens[first + r];
        __global float *row = y + (size_t)r * width;
        __global const float *w = word + (size_t)token.x * width;
        __global const float *p = parameters + position + (size_t)token.y * width;
        for (uint c = 0; c < width; c += LANES)
            put_columns(columns(w, c, width) + columns(p, c, width) +
                            columns(parameters + type, c, width),
                        row, c, width);
        float2 found;
        if (norm)
            norm_row(row, row, parameters + weight, parameters + bias, width, eps, 0, &found);
    }
}
