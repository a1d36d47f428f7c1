/* cl/blob/noise.cl -- from the bins of |L| to 1 / (1.4826 * median |L|), and a constant 1.
 *
 * Launch   1-D: one work-item for a frame's scale, local (1).
 * Defines  none. 4096 turns of a loop at most. */
#pragma OPENCL FP_CONTRACT OFF
#include "blob/shared.clh"

/* The median is interpolated in its bin. Where it is 0 nothing counts as signal: 0. */
__kernel void clv_blob_noise_median(__global const uint *restrict bins,
                                    __global float *restrict inverse, uint samples, uint first,
                                    uint count)
{
    const uint i = first + get_global_id(0);
    if (get_global_id(0) >= count) return;
    bins += (size_t)i * CLV_BLOB_NOISE_BINS;
    const float half_of = 0.5f * (float)samples;
    uint before = 0, bin = 0;
    while (bin < CLV_BLOB_NOISE_BINS - 1 && (float)(before + bins[bin]) < half_of) before += bins[bin++];
    const float low = as_float(bin << CLV_BLOB_NOISE_SHIFT), high = as_float((bin + 1) << CLV_BLOB_NOISE_SHIFT);
    const float part = (half_of - (float)before) / (float)max(bins[bin], 1u);
    const float median = bin ? fma(high - low, part, low) : 0.0f;
    inverse[i] = median > 0.0f && isfinite(median) ? 1.0f / (1.4826f * median) : 0.0f;
}
