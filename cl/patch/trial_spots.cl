/* cl/patch/trial_spots.cl -- computes the images of the trials' planets. See trial.clh.
 *
 *   image(f) = sum_m coefficient_m phi_m(fy, fx), phi the monomials by total degree: 1, y, x, yy, yx, xx, ...
 *
 * clv_trial_spots computes what is removed from the frames, flux * image(f) - injected * image(f0), where the injected
 * planet is at another place f0. clv_trial_templates computes the image and its derivatives by fy and fx on the patch.
 *
 * Launch   spots: 3-D, global (n, size, m); templates: 3-D, global (n, 2 RADIUS + 1, m). A work-item computes every
 *          n-th vector of its row in every m-th of `images` = trials * frames: CPUs take whole rows of many images,
 *          whose coefficients then stay in the first-level cache.
 * Defines  LANES; RADIUS.
 * Memory   coefficients [size][CLV_TRIAL_TERMS][stride] are read from the cache; each output is written once. */
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

/* Returns a vector of the image, as two sums that need not wait for each other. */
static fvec image(__global const float *from, const float *phi, uint stride)
{
    fvec even = lanes_load(from) * phi[0], odd = lanes_load(from + stride) * phi[1];
    for (int m = 2; m < CLV_TRIAL_TERMS; m += 2) {
        even = fma((fvec)phi[m], lanes_load(from + m * stride), even);
        odd = fma((fvec)phi[m + 1], lanes_load(from + (m + 1) * stride), odd);
    }
    return even + odd;
}

__kernel void clv_trial_spots(__global float *restrict spots, __global const float *restrict coefficients,
                              __global const trial_place *restrict places,
                              __global const trial_place *restrict origins, __global const float *restrict flux,
                              __global const float *restrict injected, uint first, uint frames, uint size, uint stride,
                              uint images)
{
    const uint y = get_global_id(1);
    if (y >= size) return;
    for (uint at = get_global_id(2); at < images; at += get_global_size(2)) {
        const uint trial = first + at / frames;
        const trial_place here = places[(size_t)first * frames + at], origin = origins[(size_t)first * frames + at];
        const int row = (int)y - (origin.row - here.row);
        const bool same = origin.row == here.row && origin.col == here.col && origin.fy == here.fy &&
                          origin.fx == here.fx,
                   other_row = !same && row >= 0 && row < (int)size;
        const float own = same ? flux[trial] - injected[trial] : flux[trial];
        float phi[CLV_TRIAL_TERMS], psi[CLV_TRIAL_TERMS];
        monomials(here.fy, here.fx, phi);
        if (other_row) monomials(origin.fy, origin.fx, psi);
        for (uint x = get_global_id(0) * LANES; x < stride; x += get_global_size(0) * LANES) {
            __global float *to = spots + ((size_t)at * size + y) * stride + x;
            if (x + LANES <= CLV_TRIAL_PAD || x >= CLV_TRIAL_PAD + size) {
                lanes_store((fvec)0.0f, to);
                continue;
            }
            const int col = (int)x - (origin.col - here.col);
            fvec sum = image(coefficients + y * CLV_TRIAL_TERMS * stride + x, phi, stride) * own;
            /* columns outside a row's zeros belong to another row, so the planet's image has no part there */
            if (other_row && col >= 0 && col + LANES <= (int)stride)
                sum = fma((fvec)(-injected[trial]),
                          image(coefficients + row * CLV_TRIAL_TERMS * stride + col, psi, stride), sum);
            lanes_store(sum, to);
        }
    }
}

__kernel void clv_trial_templates(__global float *restrict templates, __global const float *restrict coefficients,
                                  __global const trial_place *restrict places, uint first, uint frames, uint size,
                                  uint stride, uint images)
{
    const uint y = get_global_id(1), next = (2 * RADIUS + 1) * CLV_TRIAL_ROW;
    if (y >= 2 * RADIUS + 1) return;
    for (uint at = get_global_id(2); at < images; at += get_global_size(2)) {
        const trial_place here = places[(size_t)first * frames + at];
        float phi[CLV_TRIAL_TERMS], by_y[CLV_TRIAL_TERMS], by_x[CLV_TRIAL_TERMS];
        monomials(here.fy, here.fx, phi);
        derivatives(phi, by_y, by_x);
        for (uint x = get_global_id(0) * LANES; x < CLV_TRIAL_ROW; x += get_global_size(0) * LANES) {
            __global const float *from = coefficients + (size / 2 - RADIUS + y) * CLV_TRIAL_TERMS * stride +
                                         CLV_TRIAL_PAD + size / 2 - RADIUS + x;
            __global float *to = templates + (((size_t)at * 3) * (2 * RADIUS + 1) + y) * CLV_TRIAL_ROW + x;
            lanes_store(image(from, phi, stride), to);
            lanes_store(image(from, by_y, stride), to + next);
            lanes_store(image(from, by_x, stride), to + 2 * next);
        }
    }
}
