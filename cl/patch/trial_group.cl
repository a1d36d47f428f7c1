/* cl/patch/trial_group.cl -- trials for GPUs: a work-group computes one frame of one trial. See trial.clh.
 *
 * Every work-item keeps ENTRIES elements of the covariance in registers while the frames pass through local memory;
 * then follows the elimination of trial_rows.cl, with the triangle in local memory.
 *
 * Launch   1-D: global = trials * frames * WG, local (WG).
 * Defines  LANES 1; P pixels of the patch, RADIUS; WG; ENTRIES, WG * ENTRIES >= P (P + 1) / 2.
 * Needs    barriers; `memory`, P (P + 1) / 2 + 7 P + WG floats of local memory.
 * Memory   data, spots and templates are read twice; neighbouring work-items read neighbouring elements. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/trial.clh"

#define PAIRS (P * (P + 1) / 2)

/* Returns a pixel of the patch without the planet; `offset` is the pixel's dy, dx. */
static float pixel_of(__global const float *data, uint width, __global const float *spot, int size, uint stride,
                      int2 offset, int2 to_spot)
{
    const float value = data[offset.x * (int)width + offset.y];
    const int row = to_spot.x + offset.x, col = to_spot.y + offset.y;
    if (row < 0 || row >= size || col < 0 || col >= size) return value;
    return value - spot[row * (int)stride + CLV_TRIAL_PAD + col];
}

static float group_sum(__local float *part, float value, uint id)
{
    part[id] = value;
    for (uint left = WG / 2; left; left /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < left) part[id] += part[id + left];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float sum = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_trial_group(__global const float *restrict data, __global const float *restrict spots,
                __global const float *restrict templates, __global const trial_place *restrict places,
                __global const int *restrict offsets, __global float *restrict out, uint first_trial,
                uint frames, uint height, uint width, uint size, uint stride, __local float *restrict memory)
{
    places += (size_t)first_trial * frames;
    const uint id = get_local_id(0), at = get_group_id(0), trial = at / frames, l = at % frames;
    __local float *S = memory, *row = S + PAIRS, *right = row + 2 * P, *mean = right + 4 * P,
            *part = mean + P;
    const trial_place here = places[at];
    const int middle = (int)size / 2;
    const float weight = 1.0f / (float)frames;
    __global const float *at0 = data + (size_t)here.row * width + here.col;
    __global const float *spot0 = spots + (size_t)trial * frames * size * stride;

    for (uint i = id; i < P; i += WG) {
        const int2 offset = (int2)(offsets[2 * i], offsets[2 * i + 1]);
        float sum = 0.0f, weights = 0.0f;
        for (uint t = 0; t < frames; ++t) {
            const trial_place there = places[trial * frames + t];
            weights += there.weight;
            sum += there.weight * pixel_of(at0 + (size_t)t * height * width, width,
                                           spot0 + (size_t)t * size * stride, size, stride, offset,
                                           (int2)(here.row - there.row + middle, here.col - there.col + middle));
        }
        mean[i] = sum * (1.0f / weights);
        for (int k = 0; k < 3; ++k)
            right[k * P + i] =
                templates[((size_t)at * 3 + k) * (2 * RADIUS + 1) * CLV_TRIAL_ROW +
                          (offset.x + RADIUS) * CLV_TRIAL_ROW + offset.y + RADIUS];
    }
    int first[ENTRIES], second[ENTRIES];
    float acc[ENTRIES];
    for (int e = 0; e < ENTRIES; ++e) {
        const uint n = min(id + e * WG, (uint)(PAIRS - 1));
        int i = (int)((sqrt(8.0f * (float)n + 1.0f) - 1.0f) * 0.5f);
        while (i * (i + 1) / 2 > (int)n) --i;
        while ((i + 1) * (i + 2) / 2 <= (int)n) ++i;
        first[e] = i, second[e] = (int)n - i * (i + 1) / 2, acc[e] = 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint t = 0; t < frames; ++t) {
        __local float *q = row + (t & 1) * P;
        const trial_place there = places[trial * frames + t];
        for (uint i = id; i < P; i += WG) {
            const int2 offset = (int2)(offsets[2 * i], offsets[2 * i + 1]);
            const float value = pixel_of(at0 + (size_t)t * height * width, width, spot0 + (size_t)t * size * stride,
                                         size, stride, offset,
                                         (int2)(here.row - there.row + middle, here.col - there.col + middle));
            q[i] = there.gain * (value - mean[i]);
            if (t == l) right[3 * P + i] = q[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = 0; e < ENTRIES; ++e) acc[e] = fma(q[first[e]], q[second[e]], acc[e]);
    }
    float off = 0.0f, trace = 0.0f, squares = 0.0f;
    for (int e = 0; e < ENTRIES; ++e) {
        if (id + e * WG >= PAIRS) continue;
        const float s = acc[e] * weight;
        S[id + e * WG] = s;
        if (first[e] == second[e])
            trace += s, squares = fma(s, s, squares);
        else
            off = fma(s, s, off);
    }
    off = 2.0f * group_sum(part, off, id);
    trace = group_sum(part, trace, id);
    squares = group_sum(part, squares, id);
    const float bottom = ((float)frames + 1.0f) * off;
    const float rho = bottom > 0.0f ? fmin(fmax((off - squares + trace * trace) / bottom, 0.0f), 1.0f) : 1.0f;
    for (int e = 0; e < ENTRIES; ++e)
        if (id + e * WG < PAIRS && first[e] != second[e]) S[id + e * WG] *= 1.0f - rho;
    float sum[CLV_TRIAL_SUMS];
    for (int i = 0; i < CLV_TRIAL_SUMS; ++i) sum[i] = 0.0f;
    for (int k = 0; k < P; ++k) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const float inverse = 1.0f / S[k * (k + 1) / 2 + k], h = right[k], r = right[P + k], c = right[2 * P + k],
                    z = right[3 * P + k];
        const float hk = h * inverse, rk = r * inverse, ck = c * inverse;
        sum[0] = fma(hk, h, sum[0]), sum[1] = fma(hk, r, sum[1]), sum[2] = fma(hk, c, sum[2]);
        sum[3] = fma(rk, r, sum[3]), sum[4] = fma(rk, c, sum[4]), sum[5] = fma(ck, c, sum[5]);
        sum[6] = fma(hk, z, sum[6]), sum[7] = fma(rk, z, sum[7]), sum[8] = fma(ck, z, sum[8]);
        /* all work-items read column k and none writes it; the elements to the right and below change */
        for (int e = 0; e < ENTRIES; ++e) {
            const int i = first[e], j = second[e];
            if (id + e * WG < PAIRS && j > k)
                S[id + e * WG] = fma(-S[i * (i + 1) / 2 + k] * inverse, S[j * (j + 1) / 2 + k], S[id + e * WG]);
        }
        for (uint i = k + 1 + id; i < P; i += WG) {
            const float factor = -S[i * (i + 1) / 2 + k] * inverse;
            right[i] = fma(factor, h, right[i]), right[P + i] = fma(factor, r, right[P + i]);
            right[2 * P + i] = fma(factor, c, right[2 * P + i]), right[3 * P + i] = fma(factor, z, right[3 * P + i]);
        }
    }
    for (int i = 0; i < CLV_TRIAL_SUMS; ++i)
        if (id == 0) out[CLV_TRIAL_SUMS * at + i] = sum[i];
}
