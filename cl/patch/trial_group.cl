/* cl/patch/trial_group.cl -- trials for GPUs: a work-group does one frame of one trial. See trial.clh.
 *
 * Every work-item keeps ENTRIES elements of the covariance in registers while the frames pass through local memory;
 * then the elimination of trial_rows.cl, with the triangle in local memory.
 *
 * Launch   1-D: global = trials * frames * WG, local (WG).
 * Defines  LANES 1; P pixels of the patch, RADIUS; WG; ENTRIES, WG * ENTRIES >= P (P + 1) / 2.
 * Needs    barriers; `memory`, P (P + 1) / 2 + 5 P + WG floats of local memory.
 * Memory   data and spots twice, neighbours by neighbours. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/trial.clh"

#define PAIRS (P * (P + 1) / 2)

/* Where pixel i of the patch is: packed dy, dx. */
static float pixel_of(__global const float *data, uint width, __global const float *spot, int size, uint stride,
                      int2 offset, int2 to_spot, float removed)
{
    const float value = data[offset.x * (int)width + offset.y];
    const int row = to_spot.x + offset.x, col = to_spot.y + offset.y;
    if (row < 0 || row >= size || col < 0 || col >= size) return value;
    return fma(-removed, spot[row * (int)stride + CLV_TRIAL_PAD + col], value);
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
                __global const trial_place *restrict places, __global const float *restrict removed,
                __global const int *restrict offsets, __global float *restrict out, uint first_trial,
                uint frames, uint height, uint width, uint size, uint stride, __local float *restrict memory)
{
    places += (size_t)first_trial * frames;
    const uint id = get_local_id(0), at = get_group_id(0), trial = at / frames, l = at % frames;
    __local float *S = memory, *row = S + PAIRS, *y = row + 2 * P, *z = y + P, *mean = z + P, *part = mean + P;
    const trial_place here = places[at];
    const int middle = (int)size / 2;
    const float weight = 1.0f / (float)frames, flux = removed[trial];
    __global const float *at0 = data + (size_t)here.row * width + here.col;
    __global const float *spot0 = spots + (size_t)trial * frames * size * stride;

    for (uint i = id; i < P; i += WG) {
        const int2 offset = (int2)(offsets[2 * i], offsets[2 * i + 1]);
        float sum = 0.0f;
        for (uint t = 0; t < frames; ++t) {
            const trial_place there = places[trial * frames + t];
            sum += pixel_of(at0 + (size_t)t * height * width, width, spot0 + (size_t)t * size * stride, size, stride,
                            offset, (int2)(here.row - there.row + middle, here.col - there.col + middle), flux);
        }
        mean[i] = sum * weight;
        y[i] = spot0[((size_t)l * size + middle + offset.x) * stride + CLV_TRIAL_PAD + middle + offset.y];
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
            q[i] = pixel_of(at0 + (size_t)t * height * width, width, spot0 + (size_t)t * size * stride, size, stride,
                            offset, (int2)(here.row - there.row + middle, here.col - there.col + middle), flux) -
                   mean[i];
            if (t == l) z[i] = q[i];
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
    float a = 0.0f, c = 0.0f;
    for (int k = 0; k < P; ++k) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const float inverse = 1.0f / S[k * (k + 1) / 2 + k], yk = y[k], zk = z[k];
        a = fma(yk * inverse, yk, a), c = fma(yk * inverse, zk, c);
        /* column k is read by all and written by nobody; the elements right and below change */
        for (int e = 0; e < ENTRIES; ++e) {
            const int i = first[e], j = second[e];
            if (id + e * WG < PAIRS && j > k)
                S[id + e * WG] = fma(-S[i * (i + 1) / 2 + k] * inverse, S[j * (j + 1) / 2 + k], S[id + e * WG]);
        }
        for (uint i = k + 1 + id; i < P; i += WG) {
            const float factor = -S[i * (i + 1) / 2 + k] * inverse;
            y[i] = fma(factor, yk, y[i]), z[i] = fma(factor, zk, z[i]);
        }
    }
    if (id == 0) out[2 * at] = a, out[2 * at + 1] = c;
}
