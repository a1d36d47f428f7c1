/* cl/patch/trial_spots.cl -- images of the trials' planets. See trial.clh.
 *
 *   image(f) = sum_m coefficient_m phi_m(fy, fx), phi the monomials by total degree: 1, y, x, yy, yx, xx, ...
 *
 * clv_trial_spots: what is taken out of the frames, flux * image(f) - injected * image(f0), where the injected planet
 * has another place f0. clv_trial_templates: the image and its derivatives by fy and fx on the patch.
 *
 * Launch   spots: 3-D, global (stride / LANES, size, trials * frames). templates: 3-D, global (CLV_TRIAL_ROW / LANES,
 *          2 RADIUS + 1, trials * frames).
 * Defines  LANES; RADIUS.
 * Memory   coefficients [CLV_TRIAL_TERMS][size][stride] from cache, spots and templates once. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/trial.clh"

static void monomials(float fy, float fx, float *phi)
{
    phi[0] = 1.0f;
    for (int degree = 1, m = 1, last = 0; degree <= CLV_TRIAL_DEGREE; ++degree) {
        const int begin = m;
        for (int i = 0; i < degree; ++i, ++m) phi[m] = phi[last + i] * fy;
        phi[m++] = phi[begin - 1] * fx;
        last = begin;
    }
}

/* Derivatives of the monomials by fy and fx. */
static void derivatives(const float *phi, float *by_y, float *by_x)
{
    by_y[0] = by_x[0] = 0.0f;
    for (int degree = 1, m = 1, last = 0; degree <= CLV_TRIAL_DEGREE; ++degree) {
        const int begin = m;
        for (int k = 0; k <= degree; ++k, ++m) { /* y^(degree - k) x^k */
            by_y[m] = k < degree ? (float)(degree - k) * phi[last + k] : 0.0f;
            by_x[m] = k > 0 ? (float)k * phi[last + k - 1] : 0.0f;
        }
        last = begin;
    }
}

static fvec image(__global const float *from, const float *phi, size_t plane)
{
    fvec sum = lanes_load(from) * phi[0];
    for (int m = 1; m < CLV_TRIAL_TERMS; ++m) sum = fma((fvec)phi[m], lanes_load(from + (size_t)m * plane), sum);
    return sum;
}

__kernel void clv_trial_spots(__global float *restrict spots, __global const float *restrict coefficients,
                              __global const trial_place *restrict places,
                              __global const trial_place *restrict origins, __global const float *restrict flux,
                              __global const float *restrict injected, uint first, uint frames, uint size, uint stride)
{
    const uint x = get_global_id(0) * LANES, y = get_global_id(1), at = get_global_id(2);
    if (x >= stride || y >= size) return;
    __global float *to = spots + ((size_t)at * size + y) * stride + x;
    if (x + LANES <= CLV_TRIAL_PAD || x >= CLV_TRIAL_PAD + size) {
        lanes_store((fvec)0.0f, to);
        return;
    }
    const uint trial = first + at / frames;
    const size_t plane = (size_t)size * stride;
    const trial_place here = places[(size_t)first * frames + at], origin = origins[(size_t)first * frames + at];
    const int row = (int)y - (origin.row - here.row), col = (int)x - (origin.col - here.col);
    const bool same = origin.row == here.row && origin.col == here.col && origin.fy == here.fy && origin.fx == here.fx;
    float phi[CLV_TRIAL_TERMS];
    monomials(here.fy, here.fx, phi);
    fvec sum = image(coefficients + (size_t)y * stride + x, phi, plane) *
               (same ? flux[trial] - injected[trial] : flux[trial]);
    if (!same && row >= 0 && row < (int)size && col > -(int)LANES && col < (int)stride) {
        /* columns before and behind a row's zeros are of another row: nothing of the planet is there */
        monomials(origin.fy, origin.fx, phi);
        fvec other = (fvec)0.0f;
        if (col >= 0 && col + LANES <= (int)stride)
            other = image(coefficients + (size_t)row * stride + col, phi, plane);
        sum = fma((fvec)(-injected[trial]), other, sum);
    }
    lanes_store(sum, to);
}

__kernel void clv_trial_templates(__global float *restrict templates, __global const float *restrict coefficients,
                                  __global const trial_place *restrict places, uint first, uint frames, uint size,
                                  uint stride)
{
    const uint x = get_global_id(0) * LANES, y = get_global_id(1), at = get_global_id(2);
    if (x >= CLV_TRIAL_ROW || y >= 2 * RADIUS + 1) return;
    const trial_place here = places[(size_t)first * frames + at];
    const size_t plane = (size_t)size * stride;
    __global const float *from =
        coefficients + (size_t)(size / 2 - RADIUS + y) * stride + CLV_TRIAL_PAD + size / 2 - RADIUS + x;
    __global float *to = templates + (((size_t)at * 3) * (2 * RADIUS + 1) + y) * CLV_TRIAL_ROW + x;
    float phi[CLV_TRIAL_TERMS], by_y[CLV_TRIAL_TERMS], by_x[CLV_TRIAL_TERMS];
    monomials(here.fy, here.fx, phi);
    derivatives(phi, by_y, by_x);
    const size_t next = (size_t)(2 * RADIUS + 1) * CLV_TRIAL_ROW;
    lanes_store(image(from, phi, plane), to);
    lanes_store(image(from, by_y, plane), to + next);
    lanes_store(image(from, by_x, plane), to + 2 * next);
}
