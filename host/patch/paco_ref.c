/* SPDX-License-Identifier: Apache-2.0 */
/* Computes PACO in plain C and float64, patch by patch: the reference for the kernels, and the fallback if no device
 * works. It shifts the PSF exactly, without a basis. */
#include "host/patch/paco_family.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/linalg.h"

#include <math.h>
#include <string.h>

typedef struct workspace {
    double *residuals;  /* [frames][pixels], centred and scaled */
    double *covariance; /* [pixels][pixels], later its Cholesky factor */
    double h[CLV_PACO_MAX_PIXELS], z[CLV_PACO_MAX_PIXELS];
} workspace;

static void judge_pixels(const clv_paco_plan *plan, size_t row, uint8_t *state)
{
    const clv_paco_input *in = &plan->in;
    for (size_t x = 0; x < in->width; ++x) {
        const float *pixel = in->cube + row * in->row_stride + x;
        bool finite = true, changes = false;
        for (size_t l = 0; l < in->frames; ++l) {
            finite = finite && isfinite(pixel[l * in->frame_stride]);
            changes = changes || pixel[l * in->frame_stride] != pixel[0];
        }
        state[x] = !finite ? CLV_PIXEL_NOT_FINITE : !changes ? CLV_PIXEL_CONSTANT : CLV_PIXEL_GOOD;
    }
}

/* Extracts the residuals of the patch at (row, col); returns false if one of the patch's pixels cannot be used. */
static bool take_patch(const clv_paco_plan *plan, size_t row, size_t col, workspace *w)
{
    const clv_paco_input *in = &plan->in;
    for (size_t i = 0; i < plan->pixels; ++i) {
        const size_t y = row + (size_t)(ptrdiff_t)plan->offset[i].dy,
                     x = col + (size_t)(ptrdiff_t)plan->offset[i].dx;
        const float *pixel = in->cube + y * in->row_stride + x;
        double mean = 0, squares = 0, weights = 0;
        for (size_t l = 0; l < in->frames; ++l) {
            const double weight = (double)plan->turn[l].weight;
            mean += weight * (double)pixel[l * in->frame_stride], weights += weight;
        }
        mean /= weights;
        for (size_t l = 0; l < in->frames; ++l) {
            const double d =
                (pixel[l * in->frame_stride] - mean) * plan->scale * (double)plan->turn[l].gain;
            w->residuals[l * plan->pixels + i] = d;
            squares += d * d;
        }
        /* a spread as small as rounding errors counts as zero variance */
        const double level = 1e-14 * fabs(mean) * plan->scale;
        if (!(squares > (double)in->frames * level * level) || !isfinite(squares)) return false;
    }
    return true;
}

/* Computes C = (1 - rho) S + rho diag(S), then its Cholesky factor. */
static bool factor_covariance(const clv_paco_plan *plan, workspace *w)
{
    const size_t p = plan->pixels, frames = plan->in.frames;
    const double weight = (plan->vip ? 0.5 : 1.0) / (double)frames;
    double all = 0, trace = 0, squares = 0;
    for (size_t i = 0; i < p; ++i)
        for (size_t j = 0; j <= i; ++j) {
            double s = 0;
            for (size_t l = 0; l < frames; ++l)
                s += w->residuals[l * p + i] * w->residuals[l * p + j];
            s *= weight;
            w->covariance[i * p + j] = s;
            all += (i == j ? 1 : 2) * s * s;
            if (i == j) trace += s, squares += s * s;
        }
    const double top = all + trace * trace - 2 * (plan->vip ? all : squares);
    const double bottom = ((double)frames + 1) * (all - squares);
    const double rho = bottom > 0 ? fmin(fmax(top / bottom, 0), 1) : 1;
    for (size_t i = 0; i < p; ++i)
        for (size_t j = 0; j < i; ++j)
            w->covariance[i * p + j] *= 1 - rho;
    return clv_cholesky(w->covariance, p);
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += a[i] * b[i];
    return sum;
}

/* Where a chunk of the reference adds its contributions. */
typedef struct target {
    clv_paco_chunk chunk;
    int64_t *sums;
    uint32_t *found;
} target;

static void add_hit(const clv_paco_plan *plan, const target *t, size_t y, size_t x, double a,
                    double b)
{
    const size_t at = (y - t->chunk.map0) * plan->in.width + x,
                 plane = t->chunk.map_rows * plan->in.width;
    clv_paco_add(&t->sums[at], &t->sums[plane + at], a);
    clv_paco_add(&t->sums[2 * plane + at], &t->sums[3 * plane + at], b);
    ++t->found[at];
}

/* Adds to every map position to which the patch contributes in frame l. With z = L^-1 d: a = |L^-1 h|^2, b = (L^-1
 * h).z. */
static void serve_frame(const clv_paco_plan *plan, const target *t, size_t l, size_t row,
                        size_t col, workspace *w)
{
    const clv_rotation *r = &plan->turn[l];
    const int64_t py = ((int64_t)row * r->c + (int64_t)col * r->s + r->back_row0) >> 32;
    const int64_t px = ((int64_t)col * r->c - (int64_t)row * r->s + r->back_col0) >> 32;
    bool have_z = false;
    for (int k = 0; k < 4; ++k) {
        const int64_t y = py + k / 2, x = px + k % 2;
        if (y < 0 || x < 0 || y >= (int64_t)plan->in.height || x >= (int64_t)plan->in.width)
            continue;
        const clv_paco_place place = clv_paco_locate(plan, l, (size_t)y, (size_t)x);
        if (place.row != (int64_t)row || place.col != (int64_t)col) continue;
        if (!have_z) {
            memcpy(w->z, w->residuals + l * plan->pixels, plan->pixels * sizeof *w->z);
            clv_forward_substitute(w->covariance, plan->pixels, w->z);
            have_z = true;
        }
        if (plan->shifted) {
            clv_psf_shifted(plan, place.fy, place.fx, w->h);
            clv_forward_substitute(w->covariance, plan->pixels, w->h);
        }
        add_hit(plan, t, (size_t)y, (size_t)x, (double)r->weight * dot(w->h, w->h, plan->pixels),
                (double)r->gain * dot(w->h, w->z, plan->pixels));
    }
}

static void serve_patch(const clv_paco_plan *plan, const target *t, size_t row, size_t col,
                        workspace *w)
{
    if (!take_patch(plan, row, col, w) || !factor_covariance(plan, w)) return;
    if (!plan->shifted) {
        clv_psf_shifted(plan, 0, 0, w->h);
        clv_forward_substitute(w->covariance, plan->pixels, w->h);
    }
    for (size_t l = 0; l < plan->in.frames; ++l)
        serve_frame(plan, t, l, row, col, w);
}

static clv_status make_results(const clv_paco_plan *plan, clv_slot *slot, target *t,
                               uint8_t **state)
{
    const size_t positions = t->chunk.map_rows * plan->in.width;
    void *sums, *found, *states;
    CLV_TRY(clv_paco_note_layout(plan, slot));
    CLV_TRY(
        clv_slot_result_create(slot, CLV_PACO_STATE, t->chunk.band_rows * plan->in.width, &states));
    CLV_TRY(clv_slot_result_create(slot, CLV_PACO_SUMS,
                                   CLV_MAX(4 * positions, (size_t)1) * sizeof *t->sums, &sums));
    CLV_TRY(clv_slot_result_create(slot, CLV_PACO_FOUND,
                                   CLV_MAX(positions, (size_t)1) * sizeof *t->found, &found));
    memset(sums, 0, 4 * positions * sizeof *t->sums);
    memset(found, 0, positions * sizeof *t->found);
    t->sums = sums, t->found = found, *state = states;
    return CLV_OK;
}

clv_status clv_paco_reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_paco_plan *plan = user;
    target t = { .chunk = clv_paco_chunk_of(plan, first, count) };
    uint8_t *state;
    CLV_TRY(make_results(plan, slot, &t, &state));
    for (size_t y = 0; y < t.chunk.band_rows; ++y)
        judge_pixels(plan, t.chunk.band0 + y, state + y * plan->in.width);

    workspace w = { .residuals = clv_alloc(plan->in.frames * plan->pixels, sizeof(double)),
                    .covariance = clv_alloc(plan->pixels * plan->pixels, sizeof(double)) };
    clv_status status = CLV_OK;
    if (!w.residuals || !w.covariance)
        status = clv_fail(CLV_E_MEMORY, "paco: not enough memory for a patch");
    for (size_t y = 0; y < t.chunk.centre_rows && !status; ++y)
        for (size_t x = plan->margin; x < plan->in.width - plan->margin; ++x)
            serve_patch(plan, &t, t.chunk.centre0 + y, x, &w);
    clv_free(w.residuals), clv_free(w.covariance);
    return status;
}
