/* SPDX-License-Identifier: Apache-2.0 */
/* Trials in plain C and float64: what the kernels are held against, and the way out where no device works. The
 * planet's images come from Fourier shifts, not from polynomials. */
#include "host/patch/trial.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/linalg.h"

#include <math.h>
#include <string.h>

typedef struct workspace {
    float *spots;       /* [frames][size][size] */
    double *q, *matrix; /* [frames][pixels], [pixels][pixels] */
    double h[CLV_PACO_MAX_PIXELS], z[CLV_PACO_MAX_PIXELS];
} workspace;

static double spot_at(const clv_trials *b, const workspace *w, size_t t, int row, int col)
{
    const int size = (int)b->plan->in.psf_size;
    if (row < 0 || col < 0 || row >= size || col >= size) return 0;
    return w->spots[(t * (size_t)size + (size_t)row) * (size_t)size + (size_t)col];
}

/* (a, c) of frame l */
static void one_frame(const clv_trials *b, const clv_trial_place *places, size_t l, double removed,
                      workspace *w, double *a, double *c)
{
    const size_t p = b->plan->pixels, frames = b->plan->in.frames;
    const int middle = (int)b->plan->in.psf_size / 2;
    const clv_trial_place here = places[l];
    for (size_t i = 0; i < p; ++i) {
        const clv_offset o = b->plan->offset[i];
        double mean = 0;
        for (size_t t = 0; t < frames; ++t) {
            const size_t at =
                (t * b->height + (size_t)(here.row + o.dy)) * b->width + (size_t)(here.col + o.dx);
            const double m = spot_at(b, w, t, here.row + o.dy - places[t].row + middle,
                                     here.col + o.dx - places[t].col + middle);
            w->q[t * p + i] = b->data[at] - removed * m;
            mean += w->q[t * p + i];
        }
        mean /= (double)frames;
        for (size_t t = 0; t < frames; ++t)
            w->q[t * p + i] -= mean;
        w->h[i] = spot_at(b, w, l, o.dy + middle, o.dx + middle);
        w->z[i] = w->q[l * p + i];
    }
    double all = 0, trace = 0, squares = 0;
    for (size_t i = 0; i < p; ++i)
        for (size_t j = 0; j <= i; ++j) {
            double s = 0;
            for (size_t t = 0; t < frames; ++t)
                s += w->q[t * p + i] * w->q[t * p + j];
            s /= (double)frames;
            w->matrix[i * p + j] = s;
            all += (i == j ? 1 : 2) * s * s;
            if (i == j) trace += s, squares += s * s;
        }
    const double bottom = ((double)frames + 1) * (all - squares);
    const double rho =
        bottom > 0 ? fmin(fmax((all + trace * trace - 2 * squares) / bottom, 0), 1) : 1;
    for (size_t i = 0; i < p; ++i)
        for (size_t j = 0; j < i; ++j)
            w->matrix[i * p + j] *= 1 - rho;
    *a = *c = NAN;
    if (!clv_cholesky(w->matrix, p)) return;
    clv_forward_substitute(w->matrix, p, w->h);
    clv_forward_substitute(w->matrix, p, w->z);
    *a = *c = 0;
    for (size_t i = 0; i < p; ++i)
        *a += w->h[i] * w->h[i], *c += w->h[i] * w->z[i];
}

static clv_status one_trial(const clv_trials *b, size_t k, workspace *w, float *result)
{
    const size_t frames = b->plan->in.frames, size = b->plan->in.psf_size;
    const clv_trial_place *places = b->places + k * frames;
    for (size_t t = 0; t < frames; ++t) {
        float *spot = w->spots + t * size * size;
        for (size_t i = 0; i < size * size; ++i)
            spot[i] = (float)b->plan->psf[i];
        CLV_TRY(clv_psf_move(spot, size, places[t].fy, places[t].fx));
    }
    double flux = b->start[k], a = NAN, sum_b = NAN, before = NAN, next_before = NAN;
    for (size_t round = 0; round < b->rounds; ++round) {
        double c = 0;
        a = 0;
        if (round) { /* the secant of clv_trial_step */
            const double next = fmax(sum_b, 0) / (double)result[0],
                         slope = (next - next_before) / (flux - before);
            next_before = next, before = flux;
            flux = slope > -1 && slope < 0.95 ? fmax((next - slope * flux) / (1 - slope), 0) : next;
        }
        for (size_t l = 0; l < frames; ++l) {
            double frame_a, frame_c;
            one_frame(b, places, l, flux - b->injected[k], w, &frame_a, &frame_c);
            a += frame_a, c += frame_c;
        }
        sum_b = c + flux * a;
        result[0] = (float)a, result[1] = (float)sum_b, result[2] = (float)flux;
    }
    return CLV_OK;
}

clv_status clv_trial_reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_trials *b = user;
    const size_t frames = b->plan->in.frames, p = b->plan->pixels, size = b->plan->in.psf_size;
    void *results;
    CLV_TRY(clv_slot_result_create(slot, CLV_TRIAL_RESULT, 3 * count * sizeof(float), &results));
    workspace w = { .spots = clv_alloc(frames * size * size, sizeof(float)),
                    .q = clv_alloc(frames * p, sizeof(double)),
                    .matrix = clv_alloc(p * p, sizeof(double)) };
    clv_status status = CLV_OK;
    if (!w.spots || !w.q || !w.matrix)
        status = clv_fail(CLV_E_MEMORY, "paco: no memory for a trial");
    for (size_t k = 0; k < count && !status; ++k)
        status = one_trial(b, first + k, &w, (float *)results + 3 * k);
    clv_free(w.spots), clv_free(w.q), clv_free(w.matrix);
    return status;
}
