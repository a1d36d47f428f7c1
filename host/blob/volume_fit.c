/* SPDX-License-Identifier: Apache-2.0 */
/* Fits a Gaussian integrated over the voxels to a spot of a volume, as blob_fit.c does in frames: by
 * Levenberg-Marquardt, first with equal weights, then with weights from the variance of the first fit's residuals. The
 * first sweep leaves out voxels that are nearer to another spot; a second sweep subtracts the light of the other spots.
 * The ladder of sigmas says which widths are likely. This matters for faint spots, whose fits would otherwise shrink to
 * a few bright voxels and state errors that are too small. */
#include "host/blob/volume_plan.h"

#include "base/alloc.h"
#include "base/linalg.h"
#include "base/sort.h"

#include <math.h>
#include <string.h>

enum { REACH = 24, SIDE = 2 * REACH + 1, ROUNDS = 30 };
/* WIDTH is the width along x; the width along y follows from the voxels' ratio. */
enum { Z, Y, X, LIGHT, GROUND, WIDTH, DEPTH, UNKNOWNS };

/* Prior knowledge of a width: its logarithm scatters around that of `usual` with weight `loose` (inverse variance), and
 * widths below `least` are unlikely (weight `tight`). */
typedef struct belief {
    double usual, least, loose, tight;
} belief;

typedef struct window {
    size_t from[CLV_AXES], extent[CLV_AXES], count;
    double voxel[SIDE * SIDE * SIDE];
    double weight[SIDE * SIDE * SIDE]; /* 0: the voxel is not finite, or nearer to another spot */
    float sorted[SIDE * SIDE * SIDE];  /* scratch memory */
    belief width, depth;
} window;

static double reach_of(const clv_volume_plan *plan, const clv_volume_spot *s, int axis)
{
    const double sigma = axis == CLV_Z ? (double)s->sigma_z : (double)s->sigma * plan->ratio[axis];
    return fmin(fmax(ceil(3 * sigma), 2), REACH);
}

static double place_of(const clv_volume_spot *s, int axis)
{
    return (double)(axis == CLV_Z ? s->z : axis == CLV_Y ? s->y : s->x);
}

static void take(const clv_volume_plan *plan, const clv_volume_spot *s, window *w)
{
    const size_t size[CLV_AXES] = { plan->depth, plan->height, plan->width };
    for (int a = 0; a < CLV_AXES; ++a) {
        const double reach = reach_of(plan, s, a), at = round(place_of(s, a));
        w->from[a] = (size_t)fmax(at - reach, 0);
        w->extent[a] = (size_t)fmin(at + reach, (double)size[a] - 1) - w->from[a] + 1;
    }
    w->count = w->extent[CLV_Z] * w->extent[CLV_Y] * w->extent[CLV_X];
    size_t i = 0;
    for (size_t z = 0; z < w->extent[CLV_Z]; ++z)
        for (size_t y = 0; y < w->extent[CLV_Y]; ++y)
            for (size_t x = 0; x < w->extent[CLV_X]; ++x, ++i) {
                const double v = clv_volume_voxel(plan, w->from[CLV_Z] + z, w->from[CLV_Y] + y,
                                                  w->from[CLV_X] + x);
                w->weight[i] = isfinite(v);
                w->voxel[i] = isfinite(v) ? (double)plan->flat->gain * v : 0;
            }
}

/* Excludes voxels that are nearer to `other` than to `spot`. Distances are in units of a voxel's width along x. */
static void leave_to(const clv_volume_plan *plan, window *w, const clv_volume_spot *spot,
                     const clv_volume_spot *other)
{
    size_t i = 0;
    for (size_t z = 0; z < w->extent[CLV_Z]; ++z)
        for (size_t y = 0; y < w->extent[CLV_Y]; ++y)
            for (size_t x = 0; x < w->extent[CLV_X]; ++x, ++i) {
                const size_t at[CLV_AXES] = { w->from[CLV_Z] + z, w->from[CLV_Y] + y,
                                              w->from[CLV_X] + x };
                double own = 0, others = 0;
                for (int a = 0; a < CLV_AXES; ++a) {
                    const double d = ((double)at[a] - place_of(spot, a)) / plan->ratio[a],
                                 e = ((double)at[a] - place_of(other, a)) / plan->ratio[a];
                    own += d * d, others += e * e;
                }
                if (others < own) w->weight[i] = 0;
            }
}

/* The light integrated over each voxel along one axis, and its derivatives with respect to position and width. */
typedef struct profile {
    double e[SIDE], by_c[SIDE], by_w[SIDE];
} profile;

static void along(size_t from, size_t count, double centre, double width, profile *p)
{
    static const double norm = 0.3989422804014327; /* 1 / sqrt(2 pi) */
    double t0 = ((double)from - 0.5 - centre) / width;
    double e0 = 0.5 * erf(t0 * sqrt(0.5)), g0 = norm / width * exp(-0.5 * t0 * t0);
    for (size_t i = 0; i < count; ++i) {
        const double t1 = t0 + 1 / width;
        const double e1 = 0.5 * erf(t1 * sqrt(0.5)), g1 = norm / width * exp(-0.5 * t1 * t1);
        p->e[i] = e1 - e0, p->by_c[i] = g0 - g1, p->by_w[i] = t0 * g0 - t1 * g1;
        t0 = t1, e0 = e1, g0 = g1;
    }
}

static void make_profiles(const clv_volume_plan *plan, const window *w, const double p[UNKNOWNS],
                          profile s[CLV_AXES])
{
    along(w->from[CLV_Z], w->extent[CLV_Z], p[Z], p[DEPTH], &s[CLV_Z]);
    along(w->from[CLV_Y], w->extent[CLV_Y], p[Y], p[WIDTH] * plan->ratio[CLV_Y], &s[CLV_Y]);
    along(w->from[CLV_X], w->extent[CLV_X], p[X], p[WIDTH], &s[CLV_X]);
}

static void start_from(const clv_volume_plan *plan, const clv_volume_spot *s, double p[UNKNOWNS])
{
    p[Z] = (double)s->z, p[Y] = (double)s->y, p[X] = (double)s->x;
    p[LIGHT] = fmax((double)s->mass, 1e-3);
    p[GROUND] = (double)plan->flat->gain * (double)s->background;
    p[WIDTH] = (double)s->sigma, p[DEPTH] = (double)s->sigma_z;
}

/* Subtracts the light of `other`. */
static void take_away(const clv_volume_plan *plan, window *w, const clv_volume_spot *other)
{
    profile s[CLV_AXES];
    double p[UNKNOWNS];
    start_from(plan, other, p);
    make_profiles(plan, w, p, s);
    size_t i = 0;
    for (size_t z = 0; z < w->extent[CLV_Z]; ++z)
        for (size_t y = 0; y < w->extent[CLV_Y]; ++y)
            for (size_t x = 0; x < w->extent[CLV_X]; ++x, ++i)
                w->voxel[i] -= p[LIGHT] * s[CLV_Z].e[z] * s[CLV_Y].e[y] * s[CLV_X].e[x];
}

/* Adds the contribution of the prior to the sum of squares, and to the elements of parameter `own` in J'WJ and J'Wr. */
static double weigh_belief(const belief *b, const double p[UNKNOWNS], size_t own, double *normal,
                           double *right)
{
    const double usual = log(p[own] / b->usual), low = fmin(log(p[own] / b->least), 0);
    if (normal) {
        normal[own * UNKNOWNS + own] += (b->loose + (low < 0 ? b->tight : 0)) / (p[own] * p[own]);
        right[own] -= (b->loose * usual + b->tight * low) / p[own];
    }
    return b->loose * usual * usual + b->tight * low * low;
}

/* Returns the weighted sum of squared residuals; with `normal` also computes J'WJ (lower half) and J'Wr. */
static double judge(const clv_volume_plan *plan, const window *w, const double p[UNKNOWNS],
                    double *normal, double *right)
{
    profile s[CLV_AXES];
    double sum = 0;
    make_profiles(plan, w, p, s);
    if (normal) memset(normal, 0, UNKNOWNS * UNKNOWNS * sizeof *normal);
    if (right) memset(right, 0, UNKNOWNS * sizeof *right);
    const double ratio = plan->ratio[CLV_Y];
    size_t i = 0;
    for (size_t z = 0; z < w->extent[CLV_Z]; ++z)
        for (size_t y = 0; y < w->extent[CLV_Y]; ++y) {
            const double ez = s[CLV_Z].e[z], ey = s[CLV_Y].e[y], zy = ez * ey;
            for (size_t x = 0; x < w->extent[CLV_X]; ++x, ++i) {
                if (w->weight[i] == 0) continue;
                const double ex = s[CLV_X].e[x], light = zy * ex;
                const double r = w->voxel[i] - p[GROUND] - p[LIGHT] * light;
                sum += w->weight[i] * r * r;
                if (!normal) continue;
                const double j[UNKNOWNS] = {
                    [Z] = p[LIGHT] * s[CLV_Z].by_c[z] * ey * ex,
                    [Y] = p[LIGHT] * ez * s[CLV_Y].by_c[y] * ex,
                    [X] = p[LIGHT] * zy * s[CLV_X].by_c[x],
                    [LIGHT] = light,
                    [GROUND] = 1,
                    [WIDTH] =
                        p[LIGHT] * ez * (ratio * s[CLV_Y].by_w[y] * ex + ey * s[CLV_X].by_w[x]),
                    [DEPTH] = p[LIGHT] * s[CLV_Z].by_w[z] * ey * ex,
                };
                for (size_t a = 0; a < UNKNOWNS; ++a) {
                    const double weighted = w->weight[i] * j[a];
                    right[a] += weighted * r;
                    for (size_t b = 0; b <= a; ++b)
                        normal[a * UNKNOWNS + b] += weighted * j[b];
                }
            }
        }
    return sum + weigh_belief(&w->width, p, WIDTH, normal, right) +
           weigh_belief(&w->depth, p, DEPTH, normal, right);
}

static bool sensible(const window *w, const double p[UNKNOWNS], const double start[UNKNOWNS])
{
    for (int a = 0; a < CLV_AXES; ++a)
        if (!(p[a] >= (double)w->from[a] - 0.5 &&
              p[a] <= (double)(w->from[a] + w->extent[a]) - 0.5))
            return false;
    return p[WIDTH] > 0.25 && p[WIDTH] < 3 * start[WIDTH] && p[DEPTH] > 0.25 &&
           p[DEPTH] < 3 * start[DEPTH] && p[LIGHT] > 0 && isfinite(p[LIGHT]);
}

static bool descend(const clv_volume_plan *plan, const window *w, double p[UNKNOWNS],
                    const double start[UNKNOWNS])
{
    double normal[UNKNOWNS * UNKNOWNS], scratch[UNKNOWNS * UNKNOWNS], right[UNKNOWNS],
        step[UNKNOWNS], next[UNKNOWNS];
    double damping = 1e-3, best = judge(plan, w, p, normal, right);
    for (int round = 0; round < ROUNDS; ++round) {
        if (!clv_damped_step(normal, UNKNOWNS, damping, right, scratch, step)) return false;
        for (int a = 0; a < UNKNOWNS; ++a)
            next[a] = p[a] + step[a];
        const double now = sensible(w, next, start) ? judge(plan, w, next, NULL, NULL) : INFINITY;
        if (!(now <= best)) {
            damping *= 8;
            if (damping > 1e8) return sensible(w, p, start);
            continue;
        }
        bool done = fabs(step[WIDTH]) < 1e-4 && fabs(step[DEPTH]) < 1e-4;
        for (int a = 0; a < CLV_AXES; ++a)
            done = done && fabs(step[a]) < 1e-5;
        memcpy(p, next, sizeof next);
        if (done) return true;
        damping = fmax(damping / 8, 1e-9);
        best = judge(plan, w, p, normal, right);
    }
    return false;
}

/* Sets the weights to the inverse of the usual variance of the window's voxels, and sets the priors: the logarithms of
 * widths are evenly distributed over the ladder, and optics make no spot narrower than the smallest sigma. Along z,
 * optics vary more. */
static void expect(const clv_volume_plan *plan, window *w)
{
    static const double least = 0.09, least_z = 0.25, below = 0.01; /* variances of logarithms */
    const double low = plan->sigma[0], high = plan->sigma[plan->scales - 1];
    const double ladder = log(high / low) * log(high / low) / 12, ratio = plan->ratio[CLV_Z];
    size_t n = 0;
    for (size_t i = 0; i < w->count; ++i)
        if (w->weight[i] > 0) w->sorted[n++] = (float)w->voxel[i];
    const float middle = n ? clv_nth_float(w->sorted, n, n / 2) : 0;
    for (size_t i = 0; i < n; ++i)
        w->sorted[i] = fabsf(w->sorted[i] - middle);
    const double noise = n ? 1.4826 * (double)clv_nth_float(w->sorted, n, n / 2) : 0;
    const bool known = noise > 0; /* without noise, only the voxels determine the fit */
    w->width = (belief){ sqrt(low * high), low, known / fmax(ladder, least), known / below };
    w->depth = (belief){ sqrt(low * high) * ratio, low * ratio, known / fmax(ladder, least_z),
                         known / below };
    for (size_t i = 0; i < w->count && known; ++i)
        w->weight[i] /= noise * noise;
}

/* Sets the weight of each voxel to the inverse of its variance a + b * light, with a and b fitted to the residuals.
 * Returns false if the residuals do not determine a and b. */
static bool weigh(const clv_volume_plan *plan, window *w, const double p[UNKNOWNS])
{
    profile s[CLV_AXES];
    double n = 0, m = 0, mm = 0, r2 = 0, mr2 = 0;
    make_profiles(plan, w, p, s);
    for (int pass = 0; pass < 2; ++pass) {
        const double det = n * mm - m * m;
        double slope = det > 0 ? (n * mr2 - m * r2) / det : 0,
               ground = n > 0 ? (r2 - slope * m) / n : 0;
        if (pass && !(r2 > 0)) return false;
        if (!(slope > 0)) slope = 0, ground = n > 0 ? r2 / n : 0;
        ground = fmax(ground, n > 0 ? 0.1 * r2 / n : 0);
        size_t i = 0;
        for (size_t z = 0; z < w->extent[CLV_Z]; ++z)
            for (size_t y = 0; y < w->extent[CLV_Y]; ++y)
                for (size_t x = 0; x < w->extent[CLV_X]; ++x, ++i) {
                    if (w->weight[i] == 0) continue;
                    const double light = p[LIGHT] * s[CLV_Z].e[z] * s[CLV_Y].e[y] * s[CLV_X].e[x];
                    const double r = w->voxel[i] - p[GROUND] - light;
                    if (pass)
                        w->weight[i] = 1 / (ground + slope * light);
                    else
                        n += 1, m += light, mm += light * light, r2 += r * r, mr2 += light * r * r;
                }
    }
    return true;
}

/* Returns the standard deviation of a position, from `variance`, which is exact only in the limit of much light. Two
 * terms are added for less light, as in frames (blob_fit.c): the weights come from the voxels themselves, and where
 * positions scatter by a tenth of the width, the model is no longer linear. The sizes of both terms were measured on
 * simulated spots of 300 to 10,000 photons. A larger `nonlinear` fits spots whose positions scatter by 0.1 of the
 * width, but overestimates the errors of spots whose positions scatter by 0.2 of the width. */
static double enlarged(double variance, double sigma)
{
    const double scatter = 0.1, nonlinear = 15;
    const double voxel = 1.0 / 12; /* variance of a voxel's own extent */
    return sqrt(variance * (1 + scatter + nonlinear * variance / (sigma * sigma + voxel)));
}

/* Computes the standard deviations of the position from the inverse of J'WJ, whose weights are inverse variances. */
static void find_errors(const clv_volume_plan *plan, const window *w, const double p[UNKNOWNS],
                        clv_volume_spot *to)
{
    double normal[UNKNOWNS * UNKNOWNS], scratch[UNKNOWNS * UNKNOWNS], right[UNKNOWNS],
        column[UNKNOWNS], error[CLV_AXES] = { 0 };
    judge(plan, w, p, normal, right);
    for (int a = 0; a < CLV_AXES; ++a) {
        const double unit[UNKNOWNS] = { a == Z, a == Y, a == X };
        if (clv_damped_step(normal, UNKNOWNS, 0, unit, scratch, column) && column[a] > 0)
            error[a] = enlarged(column[a], p[a == Z ? DEPTH : WIDTH]);
    }
    to->z_err = (float)error[CLV_Z], to->y_err = (float)error[CLV_Y],
    to->x_err = (float)error[CLV_X];
}

static bool fit_window(const clv_volume_plan *plan, window *w, const clv_volume_spot *from,
                       clv_volume_spot *to)
{
    double p[UNKNOWNS], start[UNKNOWNS];
    size_t used = 0;
    start_from(plan, from, start);
    memcpy(p, start, sizeof p);
    for (size_t i = 0; i < w->count; ++i)
        used += w->weight[i] > 0;
    if (used < 2 * UNKNOWNS) return false;
    expect(plan, w);
    if (!descend(plan, w, p, start)) return false;
    const bool weighed = weigh(plan, w, p);
    if (weighed && !descend(plan, w, p, start)) return false;
    to->z = (float)p[Z], to->y = (float)p[Y], to->x = (float)p[X];
    to->sigma = (float)p[WIDTH], to->sigma_z = (float)p[DEPTH];
    to->mass = (float)p[LIGHT], to->background = (float)((double)plan->flat->gain * p[GROUND]);
    if (weighed) find_errors(plan, w, p, to);
    return true;
}

/* Finds the range of spots that may extend into the window of spot `own`. The spots are sorted by z. */
static void near_in_z(const clv_volume_spot *spots, size_t count, size_t own, double reach,
                      size_t *first, size_t *last)
{
    *first = *last = own;
    while (*first > 0 && (double)spots[own].z - (double)spots[*first - 1].z <= reach)
        --*first;
    while (*last + 1 < count && (double)spots[*last + 1].z - (double)spots[own].z <= reach)
        ++*last;
}

/* Removes the effect of neighbouring spots from the window of spot `own`. Returns whether there are any neighbours. */
static bool clear_window(const clv_volume_plan *plan, window *w, const clv_volume_spot *guess,
                         const clv_volume_spot *before, size_t count, size_t own)
{
    size_t first, last;
    bool crowded = false;
    near_in_z(guess, count, own, reach_of(plan, &guess[own], CLV_Z) + REACH, &first, &last);
    for (size_t i = first; i <= last; ++i) {
        bool near = i != own;
        for (int a = 0; a < CLV_AXES && near; ++a)
            near = fabs(place_of(&guess[i], a) - place_of(&guess[own], a)) <=
                   reach_of(plan, &guess[own], a) + reach_of(plan, &guess[i], a);
        if (!near) continue;
        crowded = true;
        if (before)
            take_away(plan, w, &before[i]);
        else
            leave_to(plan, w, &guess[own], &guess[i]);
    }
    return crowded;
}

bool clv_volume_fit(const clv_volume_plan *plan, const clv_volume_spot *guess,
                    const clv_volume_spot *before, clv_volume_spot *spots, size_t count,
                    size_t from, size_t to)
{
    window *w = clv_alloc(1, sizeof *w);
    if (!w) return false;
    for (size_t i = from; i < to; ++i) {
        spots[i] = before ? before[i] : guess[i];
        take(plan, &guess[i], w);
        const bool crowded = clear_window(plan, w, guess, before, count, i);
        if (before && !crowded) continue; /* keeps the first sweep's result */
        clv_volume_spot fitted = guess[i];
        if (fit_window(plan, w, before ? &before[i] : &guess[i], &fitted))
            spots[i] = fitted;
        else if (!before)
            spots[i].flags |= CLV_SPOT_FIT_FAILED;
    }
    clv_free(w);
    return true;
}
