/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates diffusion coefficients by maximum likelihood. The displacements of a track have a tridiagonal covariance: 2
 * D g_i + 2 s on the diagonal and -s beside it. Its factors are computed from the first displacement to the last, so
 * that an evaluation takes only a few operations per displacement. */
#include "base/error.h"
#include "base/options.h"
#include "host/track/tracks.h"

#include <math.h>

/* The data of one fit: the tracks [first, end), along axes that share s. */
typedef struct sample {
    const clv_tracks *t;
    size_t first, end;
    int axis, axes; /* number of coordinates used, and the first of them */
    double displacements, tracks;
} sample;

/* Sums of log d and of e^2 / d over all displacements. Here d is the pivot of the covariance, and e is the part of a
 * displacement that the previous displacements do not explain. */
typedef struct terms {
    double logs, squares;
} terms;

static terms terms_of(const sample *f, double d, double s)
{
    terms sum = { 0 };
    double product = 1; /* product of pivots: one logarithm serves many pivots */
    for (size_t k = f->first; k < f->end; ++k) {
        const clv_track_spot *spot = &f->t->spots[f->t->ranges[k].first];
        double pivot = 0, left[2] = { 0 };
        for (size_t i = 1; i < f->t->ranges[k].count; ++i) {
            const double gap = (double)(spot[i].frame - spot[i - 1].frame);
            const double ratio = i > 1 ? s / pivot : 0;
            pivot = 2 * d * gap + 2 * s - ratio * s;
            product *= pivot;
            if (!(product > 1e-150 && product < 1e150)) sum.logs += log(product), product = 1;
            for (int a = 0; a < f->axes; ++a) {
                left[a] =
                    spot[i].place[f->axis + a] - spot[i - 1].place[f->axis + a] + ratio * left[a];
                sum.squares += left[a] * left[a] / pivot;
            }
        }
    }
    sum.logs = f->axes * (sum.logs + log(product));
    return sum;
}

/* The function to minimise. */
typedef struct problem {
    const sample *f;
    double known, exposure; /* known: variance of a position; NaN: it is fitted */
    double scale;           /* unit of D: half a squared displacement per frame */
} problem;

static double effective(double variance, double d, double exposure)
{
    return variance - exposure * d / 3;
}

/* Returns -2 log(likelihood) up to a constant. If the variance is fitted, `at` is w from -1 to 1, with D = c (1 - w)
 * and s = c w; the best c follows from w. If the variance is known, `at` is the logarithm of D / scale. */
static double cost(const problem *p, double at)
{
    const double n = p->f->axes * p->f->displacements;
    if (!isnan(p->known)) {
        const double d = p->scale * exp(at);
        const terms t = terms_of(p->f, d, effective(p->known, d, p->exposure));
        return t.logs + t.squares;
    }
    const terms t = terms_of(p->f, 1 - at, at);
    return n * log(t.squares / n) + t.logs;
}

enum { GRID = 16, REFINE = 40 };

/* Returns the position of the minimum: searches a grid, then refines around its best point by golden sections. */
static double least(const problem *p, double from, double to)
{
    static const double golden = 0.61803398874989484820;
    double best = from, best_cost = INFINITY;
    const double step = (to - from) / GRID;
    for (int i = 0; i <= GRID; ++i) {
        const double at = i < GRID ? from + i * step : to, here = cost(p, at);
        if (here < best_cost) best = at, best_cost = here;
    }
    double a = fmax(from, best - step), b = fmin(to, best + step);
    double x = b - golden * (b - a), y = a + golden * (b - a), fx = cost(p, x), fy = cost(p, y);
    for (int i = 0; i < REFINE && b - a > 1e-7; ++i) {
        if (fx <= fy)
            b = y, y = x, fy = fx, x = b - golden * (b - a), fx = cost(p, x);
        else
            a = x, x = y, fx = fy, y = a + golden * (b - a), fy = cost(p, y);
    }
    const double middle = fx <= fy ? x : y;
    /* returns an end of the range exactly if the minimum is there */
    return fmin(fx, fy) <= best_cost ? middle : best;
}

/* Computes the error of D from the Fisher information of D and s. A track with gaps counts as a track whose gaps all
 * have their mean length. */
static double error_of(const sample *f, double d, double s, double exposure, bool known)
{
    double dd = 0, ds = 0, ss = 0;
    for (size_t k = f->first; k < f->end; ++k) {
        const clv_track_range *r = &f->t->ranges[k];
        if (r->count < 2) continue;
        const size_t n = r->count - 1;
        const double gap =
            (double)(f->t->spots[r->first + n].frame - f->t->spots[r->first].frame) / (double)n;
        for (size_t i = 1; i <= n; ++i) {
            const double bend = 2 * (1 - cos(acos(-1.0) * (double)i / (double)(n + 1)));
            const double value = 2 * d * gap + s * bend, weight = f->axes / (2 * value * value);
            const double by_d = 2 * gap - (known ? exposure / 3 * bend : 0);
            dd += by_d * by_d * weight, ds += by_d * bend * weight, ss += bend * bend * weight;
        }
    }
    if (known) return 1 / sqrt(dd);
    return sqrt(ss / (dd * ss - ds * ds));
}

typedef struct fit {
    double d, error, variance;
} fit;

static void count_displacements(sample *f, double *squares)
{
    *squares = 0;
    double frames = 0;
    for (size_t k = f->first; k < f->end; ++k) {
        const clv_track_spot *spot = &f->t->spots[f->t->ranges[k].first];
        const size_t count = f->t->ranges[k].count;
        f->displacements += (double)count - 1, f->tracks += count > 1;
        frames += (double)(spot[count - 1].frame - spot[0].frame);
        for (size_t i = 1; i < count; ++i)
            for (int a = f->axis; a < f->axis + f->axes; ++a)
                *squares += (spot[i].place[a] - spot[i - 1].place[a]) *
                            (spot[i].place[a] - spot[i - 1].place[a]);
    }
    *squares /= 2 * f->axes * frames; /* the estimate of D for positions without errors */
}

static fit fit_axes(const sample *f, double squares, double known, double exposure)
{
    const bool given = !isnan(known);
    const problem p = { f, known, exposure, squares };
    fit best = { NAN, NAN, NAN };
    if (f->displacements < (given ? 1 : 2)) return best;
    if (!(squares > 0)) return (fit){ 0, 0, given ? known : 0 };
    if (given) {
        best.d = squares * exp(least(&p, log(1e-6), log(10)));
        best.variance = known;
        best.error = error_of(f, best.d, effective(known, best.d, exposure), exposure, true);
        return best;
    }
    const double w = least(&p, -0.95, 1);
    const double c = terms_of(f, 1 - w, w).squares / (f->axes * f->displacements);
    best.d = c * (1 - w);
    best.variance = c * w + exposure * best.d / 3;
    best.error = error_of(f, best.d, c * w, exposure, false);
    return best;
}

static clv_status check(const clv_diffusion_options *o)
{
    if (!(o->position_error >= 0 && isfinite(o->position_error)))
        return clv_fail(CLV_E_ARGUMENT,
                        "tracks_diffusion: position_error is %g, but it must be 0 or more",
                        o->position_error);
    if (!(o->exposure >= 0 && o->exposure <= 1))
        return clv_fail(CLV_E_ARGUMENT,
                        "tracks_diffusion: exposure is %g, but it must be from 0 to 1",
                        o->exposure);
    if (!(o->drift_share >= 0 && o->drift_share <= 1))
        return clv_fail(CLV_E_ARGUMENT,
                        "tracks_diffusion: drift_share is %g, but it must be from 0 to 1",
                        o->drift_share);
    return CLV_OK;
}

clv_status clv_tracks_diffusion(const clv_tracks *tracks, int64_t index,
                                const clv_diffusion_options *options, clv_diffusion *result)
{
    clv_diffusion_options o;
    if (!result) return clv_fail(CLV_E_ARGUMENT, "tracks_diffusion: result is NULL");
    *result = (clv_diffusion){ 0 };
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "tracks_diffusion", "clv_diffusion_options"));
    CLV_TRY(check(&o));
    sample f = { .t = tracks, .axis = 1, .axes = 2 };
    CLV_TRY(clv_tracks_pick(tracks, "tracks_diffusion", index, &f.first, &f.end));
    double squares;
    count_displacements(&f, &squares);
    /* removing the drift also removes a share of the displacements' variance; this is the rest */
    const double rest = 1 - o.drift_share;
    const double known =
        o.position_error_given ? o.position_error * o.position_error * rest : (double)NAN;
    const fit flat = fit_axes(&f, squares, known, o.exposure);
    *result = (clv_diffusion){ .lateral = flat.d / rest,
                               .axial = NAN,
                               .position_variance = flat.variance / rest,
                               .position_variance_z = NAN,
                               .displacements = (size_t)f.displacements,
                               .tracks = (size_t)f.tracks };
    result->d = result->lateral, result->d_error = flat.error / rest;
    result->offset = 4 * effective(result->position_variance, result->d, o.exposure);
    if (!tracks->deep) return CLV_OK;
    sample along = { .t = tracks, .first = f.first, .end = f.end, .axis = 0, .axes = 1 };
    count_displacements(&along, &squares);
    const fit deep = fit_axes(&along, squares, NAN, o.exposure);
    result->axial = deep.d / rest, result->position_variance_z = deep.variance / rest;
    result->d = (2 * flat.d + deep.d) / 3 / rest;
    result->d_error = sqrt(4 * flat.error * flat.error + deep.error * deep.error) / 3 / rest;
    result->offset += 2 * effective(result->position_variance_z, result->axial, o.exposure);
    return CLV_OK;
}
