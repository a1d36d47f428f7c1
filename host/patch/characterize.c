/* SPDX-License-Identifier: Apache-2.0 */
/* Flux and place of companions, each with its error: rounds of trials, all candidates in one batch. */
#include "host/patch/measure.h"
#include "host/patch/trial.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/linalg.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { GRID = 9, MOST_ROUNDS = 96, BATCH = 8, RING = 24, LEAST_RING = 6 };

typedef struct fit {
    clv_context *context;
    const clv_paco_plan *plan;
    clv_progress *progress;
    void *user;
    clv_report *report;
    double fwhm;
} fit;

static clv_status run(const fit *f, clv_trial *trials, size_t count, size_t rounds)
{
    return clv_trials_run(f->context, f->plan, trials, count, rounds, f->progress, f->user,
                          f->report);
}

static double snr_of(const clv_trial *t)
{
    return t->b / sqrt(t->a);
}

/* z = c0 + c1 y + c2 x + c3 yy + c4 xy + c5 xx through the nine values of a grid of spacing 1; false with a NaN. */
static bool paraboloid(const double *z, double *c)
{
    double a[GRID * 6], b[GRID];
    for (int i = 0; i < GRID; ++i) {
        const double y = i / 3 - 1, x = i % 3 - 1;
        const double row[6] = { 1, y, x, y * y, y * x, x * x };
        if (!isfinite(z[i])) return false;
        memcpy(a + (size_t)i * 6, row, sizeof row);
        b[i] = z[i];
    }
    return clv_least_squares(a, GRID, 6, b, 1, c);
}

/* The paraboloid's maximum, in steps; false when it has none. */
static bool maximum(const double *c, double *y, double *x)
{
    const double determinant = 4 * c[3] * c[5] - c[4] * c[4];
    if (!(determinant > 0) || !(c[3] < 0)) return false;
    *y = (c[4] * c[2] - 2 * c[5] * c[1]) / determinant;
    *x = (c[4] * c[1] - 2 * c[3] * c[2]) / determinant;
    return true;
}

static void make_grid(const clv_companion *at, double step, clv_trial *grid)
{
    for (int i = 0; i < GRID; ++i)
        grid[i] = (clv_trial){ .y = at->y + (i / 3 - 1) * step,
                               .x = at->x + (i % 3 - 1) * step,
                               .flux = at->flux };
}

/* Rounds until no flux changes by more than 0.1 %. */
static clv_status settle(const fit *f, clv_trial *trials, size_t count)
{
    for (size_t rounds = 0; rounds < MOST_ROUNDS; rounds += BATCH) {
        CLV_TRY(run(f, trials, count, BATCH));
        bool settled = true;
        for (size_t k = 0; k < count; ++k) {
            if (!(trials[k].a > 0)) continue;
            const double next = fmax(trials[k].b, 0) / trials[k].a;
            if (fabs(next - trials[k].flux) > 1e-3 * fabs(next) &&
                fabs(next - trials[k].flux) * sqrt(trials[k].a) > 0.01)
                settled = false;
            trials[k].flux = next;
        }
        if (settled) break;
    }
    return CLV_OK;
}

/* One move of every companion to the best of nine trials, or with `fine` to the maximum of the paraboloid through
 * them. `moved`: whether any left its place. */
static clv_status move(const fit *f, clv_companion *found, size_t count, double step, size_t rounds,
                       bool fine, bool *moved)
{
    clv_trial *grid = clv_alloc(count * GRID + 1, sizeof *grid);
    if (!grid) return clv_fail(CLV_E_MEMORY, "paco: no memory for trials");
    for (size_t k = 0; k < count; ++k)
        make_grid(&found[k], step, grid + k * GRID);
    const clv_status status = run(f, grid, count * GRID, rounds);
    *moved = false;
    for (size_t k = 0; k < count && !status; ++k) {
        const clv_trial *g = grid + k * GRID;
        double z[GRID], c[6], y = 0, x = 0;
        int best = GRID / 2;
        for (int i = 0; i < GRID; ++i) {
            z[i] = snr_of(&g[i]);
            if (isfinite(z[i]) && !(z[i] <= snr_of(&g[best]))) best = i;
        }
        if (!isfinite(z[best])) continue;
        if (fine && best == GRID / 2 && paraboloid(z, c) && maximum(c, &y, &x) && fabs(y) <= 0.7 &&
            fabs(x) <= 0.7)
            found[k].y += y * step, found[k].x += x * step;
        else
            found[k].y = g[best].y, found[k].x = g[best].x;
        found[k].flux = fmax(g[best].b, 0) / g[best].a;
        *moved = *moved || best != GRID / 2;
    }
    clv_free(grid);
    return status;
}

/* From a pixel to the maximum of b / sqrt(a): smaller and smaller steps. The surface of a bright companion is a narrow
 * peak, so that a paraboloid through distant points would mislead. */
static clv_status find_places(const fit *f, clv_companion *found, size_t count)
{
    static const struct {
        double step;
        size_t rounds, moves;
        bool fine;
    } stages[] = { { 0.8, 8, 2, false }, { 0.4, 6, 2, false },  { 0.2, 5, 3, false },
                   { 0.1, 5, 2, true },  { 0.05, 5, 4, false }, { 0.05, 5, 1, true } };
    clv_trial *start = clv_alloc(count + 1, sizeof *start);
    if (!start) return clv_fail(CLV_E_MEMORY, "paco: no memory for trials");
    for (size_t k = 0; k < count; ++k)
        start[k] = (clv_trial){ .x = found[k].x, .y = found[k].y };
    const clv_status status = settle(f, start, count);
    for (size_t k = 0; k < count; ++k)
        found[k].flux = start[k].a > 0 ? start[k].flux : 0;
    clv_free(start);
    CLV_TRY(status);
    for (size_t i = 0; i < CLV_LEN(stages); ++i) {
        bool moved = true;
        for (size_t n = 0; n < stages[i].moves && moved; ++n)
            CLV_TRY(
                move(f, found, count, stages[i].step, stages[i].rounds, stages[i].fine, &moved));
    }
    return CLV_OK;
}

/* Errors of the place from the curvature of the likelihood, whose logarithm is snr^2 / 2 at the best flux. */
static clv_status place_errors(const fit *f, clv_companion *found, size_t count)
{
    const double step = 0.2;
    clv_trial *grid = clv_alloc(count * GRID + 1, sizeof *grid);
    if (!grid) return clv_fail(CLV_E_MEMORY, "paco: no memory for trials");
    for (size_t k = 0; k < count; ++k)
        make_grid(&found[k], step, grid + k * GRID);
    const clv_status status = run(f, grid, count * GRID, 5);
    for (size_t k = 0; k < count && !status; ++k) {
        double z[GRID], c[6];
        for (int i = 0; i < GRID; ++i) {
            const double snr = snr_of(&grid[k * GRID + (size_t)i]);
            z[i] = 0.5 * snr * fabs(snr);
        }
        found[k].x_err = found[k].y_err = NAN;
        if (!paraboloid(z, c)) continue;
        const double determinant = 4 * c[3] * c[5] - c[4] * c[4];
        if (!(determinant > 0) || !(c[3] < 0)) continue;
        found[k].y_err = step * sqrt(-2 * c[5] / determinant);
        found[k].x_err = step * sqrt(-2 * c[3] / determinant);
    }
    clv_free(grid);
    return status;
}

/* Trials on a circle about the star, away from all companions; returns how many. */
static size_t make_ring(const fit *f, const clv_companion *found, size_t count, size_t which,
                        clv_trial *ring)
{
    const clv_companion *mine = &found[which];
    const double cx = f->plan->centre_x, cy = f->plan->centre_y,
                 radius = hypot(mine->x - cx, mine->y - cy),
                 start = atan2(mine->y - cy, mine->x - cx);
    const size_t places = (size_t)fmin(floor(2 * PI * radius / f->fwhm), RING + 2);
    size_t n = 0;
    for (size_t i = 1; i < places && n < RING; ++i) {
        const double angle = start + 2 * PI * (double)i / (double)places;
        const clv_trial t = { .x = cx + radius * cos(angle),
                              .y = cy + radius * sin(angle),
                              .injected = mine->flux,
                              .flux = mine->flux };
        bool free_of = true;
        for (size_t k = 0; k < count; ++k)
            free_of = free_of && hypot(t.x - found[k].x, t.y - found[k].y) > f->fwhm;
        if (free_of) ring[n++] = t;
    }
    return n;
}

/* The scatter of the fluxes of planets like each companion, hidden elsewhere at its separation in the cube that is
 * left without all of them, is the error of its flux. */
static clv_status ring_errors(const fit *f, clv_companion *found, size_t count)
{
    clv_trial *ring = clv_alloc(count * RING + 1, sizeof *ring);
    size_t *in_ring = clv_alloc(count + 1, sizeof *in_ring), total = 0;
    clv_status status = CLV_OK;
    if (!ring || !in_ring) {
        status = clv_fail(CLV_E_MEMORY, "paco: no memory for trials");
        goto cleanup;
    }
    for (size_t k = 0; k < count; ++k) {
        in_ring[k] = found[k].flux > 0 ? make_ring(f, found, count, k, ring + total) : 0;
        total += in_ring[k];
    }
    status = settle(f, ring, total);
    total = 0;
    for (size_t k = 0; k < count && !status; ++k) {
        double sum = 0, squares = 0;
        size_t n = 0;
        for (size_t i = 0; i < in_ring[k]; ++i) {
            const clv_trial *t = &ring[total + i];
            if (!(t->a > 0)) continue;
            sum += t->flux, squares += t->flux * t->flux, ++n;
        }
        total += in_ring[k];
        found[k].ring = n;
        if (n < LEAST_RING) continue;
        const double mean = sum / (double)n,
                     deviation = sqrt(fmax(squares / (double)n - mean * mean, 0) * (double)n /
                                      ((double)n - 1));
        const double ratio = deviation / found[k].flux_err;
        found[k].recovery = mean / found[k].flux;
        found[k].flux_err = deviation, found[k].x_err *= ratio, found[k].y_err *= ratio;
    }
cleanup:
    clv_free(ring), clv_free(in_ring);
    return status;
}

clv_status clv_paco_subtract(const clv_paco_input *input, const clv_paco_options *options,
                             const clv_companion *companions, size_t count, float *cube)
{
    if (!companions || !cube)
        return clv_fail(CLV_E_ARGUMENT, "subtract: companions or cube is NULL");
    clv_paco_plan *plan;
    CLV_TRY(clv_paco_plan_create(input, options, &plan));
    const clv_paco_input *in = &plan->in;
    const size_t size = in->psf_size;
    const int64_t middle = (int64_t)size / 2;
    float *spot = clv_alloc(size * size, sizeof *spot);
    clv_status status = spot ? CLV_OK : clv_fail(CLV_E_MEMORY, "subtract: no memory for the PSF");
    for (size_t k = 0; k < count && !status; ++k) {
        if (!isfinite(companions[k].flux) || companions[k].flux == 0) continue;
        for (size_t l = 0; l < in->frames && !status; ++l) {
            const double c = (double)plan->turn[l].c * 0x1p-32,
                         s = (double)plan->turn[l].s * 0x1p-32;
            const double dy = companions[k].y - plan->centre_y,
                         dx = companions[k].x - plan->centre_x;
            const double row = plan->centre_y + dy * c - dx * s,
                         col = plan->centre_x + dx * c + dy * s;
            const double ky = floor(row + 0.5), kx = floor(col + 0.5);
            memcpy(spot, in->psf, size * size * sizeof *spot);
            status = clv_psf_move(spot, size, row - ky, col - kx);
            for (int64_t v = 0; v < (int64_t)size; ++v)
                for (int64_t u = 0; u < (int64_t)size; ++u) {
                    const int64_t y = (int64_t)ky - middle + v, x = (int64_t)kx - middle + u;
                    if (y < 0 || x < 0 || y >= (int64_t)in->height || x >= (int64_t)in->width)
                        continue;
                    cube[l * in->frame_stride + (size_t)y * in->row_stride + (size_t)x] -=
                        (float)(companions[k].flux * (double)spot[v * (int64_t)size + u]);
                }
        }
    }
    clv_free(spot);
    clv_paco_plan_free(plan);
    return status;
}

static clv_status measure(fit *f, bool keep_places, clv_companion *found, size_t count)
{
    if (!keep_places) CLV_TRY(find_places(f, found, count));
    clv_trial *trials = clv_alloc(count + 1, sizeof *trials);
    if (!trials) return clv_fail(CLV_E_MEMORY, "paco: no memory for trials");
    for (size_t k = 0; k < count; ++k)
        trials[k] = (clv_trial){ .x = found[k].x, .y = found[k].y, .flux = found[k].flux };
    clv_status status = settle(f, trials, count);
    for (size_t k = 0; k < count && !status; ++k) {
        clv_companion *c = &found[k];
        const double dx = c->x - f->plan->centre_x, dy = c->y - f->plan->centre_y,
                     angle = atan2(-dx, dy) * (180 / PI);
        c->separation_px = hypot(dx, dy);
        c->position_angle = angle < 0 ? angle + 360 : angle + 0.0;
        c->flux = isfinite(trials[k].a) ? trials[k].flux : NAN;
        c->flux_err = 1 / sqrt(trials[k].a);
        c->x_err = c->y_err = 0, c->recovery = NAN, c->ring = 0;
    }
    clv_free(trials);
    if (!status && !keep_places) status = place_errors(f, found, count);
    return status;
}

/* Everything that both halves begin with. */
static clv_status open_fit(clv_context *context, const clv_paco_input *input,
                           const clv_paco_options *options, double fwhm, clv_report *report,
                           clv_paco_plan **plan, fit *f)
{
    CLV_TRY(clv_paco_plan_create(input, options, plan));
    *f = (fit){ .context = context,
                .plan = *plan,
                .progress = options ? options->progress : NULL,
                .user = options ? options->progress_user : NULL,
                .report = report,
                .fwhm = fwhm };
    return CLV_OK;
}

clv_status clv_measure(clv_context *context, const clv_paco_input *input,
                       const clv_paco_options *options, double fwhm_px, bool keep_places,
                       clv_companion *companions, size_t count, clv_report *report)
{
    fit f;
    clv_paco_plan *plan;
    CLV_TRY(open_fit(context, input, options, fwhm_px, report, &plan, &f));
    for (size_t k = 0; k < count; ++k)
        companions[k].flux = 0;
    const clv_status status = measure(&f, keep_places, companions, count);
    clv_paco_plan_free(plan);
    return status;
}

clv_status clv_measure_errors(clv_context *context, const clv_paco_input *input,
                              const clv_paco_options *options, double fwhm_px,
                              clv_companion *companions, size_t count, clv_report *report)
{
    fit f;
    clv_paco_plan *plan;
    if (!count) return CLV_OK;
    CLV_TRY(open_fit(context, input, options, fwhm_px, report, &plan, &f));
    const clv_status status = ring_errors(&f, companions, count);
    clv_paco_plan_free(plan);
    return status;
}

clv_status clv_paco_characterize(clv_context *context, const clv_paco_input *input,
                                 const clv_paco_options *options, double fwhm_px, bool keep_places,
                                 clv_companion *companions, size_t count, clv_report *report)
{
    if (!context || !companions)
        return clv_fail(CLV_E_ARGUMENT, "characterize: context or companions is NULL");
    if (!(fwhm_px > 0) || !isfinite(fwhm_px))
        return clv_fail(CLV_E_ARGUMENT, "characterize: FWHM %g; expected a positive number",
                        fwhm_px);
    for (size_t k = 0; k < count; ++k)
        if (!isfinite(companions[k].x) || !isfinite(companions[k].y))
            return clv_fail(CLV_E_ARGUMENT,
                            "characterize: the place of companion %zu is not finite", k);
    CLV_TRY(clv_measure(context, input, options, fwhm_px, keep_places, companions, count, report));
    /* the errors need the cube without the companions */
    clv_paco_plan *plan;
    CLV_TRY(clv_paco_plan_create(input, options, &plan));
    clv_paco_input in = plan->in;
    clv_paco_plan_free(plan);
    float *cube = clv_alloc(in.frames * in.frame_stride, sizeof *cube);
    if (!cube) return clv_fail(CLV_E_MEMORY, "characterize: no memory for %zu frames", in.frames);
    for (size_t l = 0; l < in.frames; ++l)
        memcpy(cube + l * in.frame_stride, in.cube + l * in.frame_stride,
               (in.row_stride * (in.height - 1) + in.width) * sizeof *cube);
    in.cube = cube;
    clv_status status = clv_paco_subtract(&in, options, companions, count, cube);
    if (!status)
        status = clv_measure_errors(context, &in, options, fwhm_px, companions, count, report);
    clv_free(cube);
    return status;
}
