/* cl/patch/trial_spots.cl -- images of the trials' planets, and the step from one flux to the next. See trial.clh.
 *
 *   spot = sum_m coefficient_m phi_m(fy, fx), phi the monomials by total degree: 1, y, x, yy, yx, xx, ...
 *
 * Launch   spots: 3-D, global (stride / LANES, size, trials * frames). step: 1-D, global (trials).
 * Defines  LANES; TERMS of the polynomials.
 * Memory   coefficients [TERMS][size][stride] from cache, spots once. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/trial.clh"

__kernel void clv_trial_spots(__global float *restrict spots, __global const float *restrict coefficients,
                              __global const trial_place *restrict places, uint first, uint size, uint stride)
{
    places += first; /* of this chunk: the first trial times the number of frames */
    const uint x = get_global_id(0) * LANES, y = get_global_id(1), at = get_global_id(2);
    if (x >= stride || y >= size) return;
    float phi[TERMS];
    const float fy = places[at].fy, fx = places[at].fx;
    phi[0] = 1.0f;
    for (int m = 1, last = 0, degree = 1; m < TERMS; ++degree) {
        const int begin = m;
        for (int i = 0; i < degree && m < TERMS; ++i, ++m) phi[m] = phi[last + i] * fy;
        if (m < TERMS) phi[m] = phi[begin - 1] * fx, ++m;
        last = begin;
    }
    __global const float *from = coefficients + (size_t)y * stride + x;
    fvec sum = lanes_load(from);
    for (int m = 1; m < TERMS; ++m)
        sum = fma((fvec)phi[m], lanes_load(from + (size_t)m * size * stride), sum);
    lanes_store(sum, spots + ((size_t)at * size + y) * stride + x);
}

/* From the frames' (a, c) in `parts` to a, b and the next flux: result [trial] a, b, flux. With
 * flux = removed + injected: b = c + flux a, next = max(b, 0) / a. From the second round on the secant through two
 * rounds says where next = flux, unless it is too flat to be trusted. `state` [3][trial] holds what is removed, and
 * flux and next of the round before. With `begin`, `parts` holds the first flux of every trial. */
__kernel void clv_trial_step(__global const float *restrict parts, __global float *restrict state,
                             __global const float *restrict injected, __global float *restrict result, uint first,
                             uint trials, uint frames, uint begin)
{
    const uint trial = get_global_id(0);
    if (trial >= trials) return;
    if (begin) {
        state[trial] = parts[first + trial] - injected[first + trial];
        state[trials + trial] = state[2 * trials + trial] = NAN;
        return;
    }
    float a = 0.0f, c = 0.0f;
    for (uint l = 0; l < frames; ++l) {
        a += parts[2 * (trial * frames + l)];
        c += parts[2 * (trial * frames + l) + 1];
    }
    const float flux = state[trial] + injected[first + trial], b = fma(flux, a, c), next = fmax(b, 0.0f) / a;
    const float slope = (next - state[2 * trials + trial]) / (flux - state[trials + trial]);
    float better = next;
    if (slope > -1.0f && slope < 0.95f) better = fmax(fma(-slope, flux, next) / (1.0f - slope), 0.0f);
    state[trial] = better - injected[first + trial];
    state[trials + trial] = flux, state[2 * trials + trial] = next;
    result[3 * trial] = a, result[3 * trial + 1] = b, result[3 * trial + 2] = flux;
}
