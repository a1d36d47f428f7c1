/* SPDX-License-Identifier: Apache-2.0 */
/* Converts sums to maps: applies units, and records the reason for every NaN. */
#include "host/patch/paco_plan.h"

#include "base/alloc.h"

#include <math.h>

/* Returns the worst state of any pixel of a patch. */
static uint8_t patch_state(const clv_paco_plan *plan, size_t row, size_t col)
{
    uint8_t worst = CLV_PIXEL_GOOD;
    for (size_t i = 0; i < plan->pixels; ++i) {
        const size_t y = row + (size_t)(ptrdiff_t)plan->offset[i].dy,
                     x = col + (size_t)(ptrdiff_t)plan->offset[i].dx;
        const uint8_t state = plan->state[y * plan->in.width + x];
        if (state == CLV_PIXEL_NOT_FINITE) return state;
        if (state) worst = state;
    }
    return worst;
}

/* Returns the counter of the reason why position (y, x) has no value: the first reason in the order of the frames. */
static size_t *reason(const clv_paco_plan *plan, size_t y, size_t x, clv_paco_counts *counts)
{
    const int64_t margin = (int64_t)plan->margin;
    const int64_t height = (int64_t)plan->in.height, width = (int64_t)plan->in.width;
    uint8_t worst = CLV_PIXEL_GOOD;
    for (size_t l = 0; l < plan->in.frames; ++l) {
        const clv_paco_place p = clv_paco_locate(plan, l, y, x);
        if (p.row < margin || p.row >= height - margin || p.col < margin || p.col >= width - margin)
            return &counts->outside;
        if (!worst) worst = patch_state(plan, (size_t)p.row, (size_t)p.col);
    }
    return worst == CLV_PIXEL_NOT_FINITE ? &counts->not_finite
           : worst == CLV_PIXEL_CONSTANT ? &counts->constant
                                         : &counts->degenerate;
}

void clv_paco_finish(const clv_paco_plan *plan, double *a, double *b, clv_paco_counts *counts)
{
    const size_t positions = plan->in.height * plan->in.width;
    const double s = plan->scale, unit_a = s * s / (plan->psf_scale * plan->psf_scale),
                 unit_b = s / plan->psf_scale;
    clv_paco_counts sorted = { 0 };
    for (size_t p = 0; p < positions; ++p) {
        const int64_t *sum = plan->sums + p;
        const double at = (double)sum[0] * 0x1p-10 + (double)sum[positions] * 0x1p-62;
        const double bt =
            (double)sum[2 * positions] * 0x1p-10 + (double)sum[3 * positions] * 0x1p-62;
        if (plan->found[p] == plan->in.frames && at > 0) {
            a[p] = at * unit_a;
            b[p] = bt * unit_b;
            ++sorted.valid;
        } else {
            a[p] = b[p] = NAN;
            ++*reason(plan, p / plan->in.width, p % plan->in.width, &sorted);
        }
    }
    if (counts) *counts = sorted;
}

void clv_paco_maps(const double *a, const double *b, size_t count, float *snr, float *flux,
                   float *sigma)
{
    for (size_t i = 0; i < count; ++i) {
        const double root = sqrt(a[i]);
        if (snr) snr[i] = (float)(b[i] / root);
        if (flux) flux[i] = (float)(b[i] / a[i]);
        if (sigma) sigma[i] = (float)(1 / root);
    }
}
