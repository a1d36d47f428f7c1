/* SPDX-License-Identifier: Apache-2.0 */
/* Fits a Gaussian integrated over the pixels to each spot by Levenberg-Marquardt: first with equal weights, then with
 * weights from the variance of the first fit's residuals. Where spots are close, the first sweep leaves out pixels that
 * are nearer to another spot; a second sweep subtracts the neighbours and fits all these pixels again. */
#include "host/blob/blob_job.h"

#include "base/alloc.h"
#include "base/linalg.h"

#include <math.h>
#include <string.h>

enum { REACH = 48, SIDE = 2 * REACH + 1, UNKNOWNS = 5, ROUNDS = 30 };
enum { Y, X, LIGHT, GROUND, WIDTH };

typedef struct window {
    size_t y0, x0, rows, columns;
    double pixel[SIDE * SIDE], weight[SIDE * SIDE]; /* weight 0: the pixel is not finite */
} window;

static double sign_of(const clv_blob_plan *plan)
{
    return plan->options.invert ? -1 : 1;
}

/* Finds the range of spots whose y is within `reach`. The spots are sorted by y. */
static void near_in_y(const clv_blob_found *spots, size_t count, size_t own, double reach,
                      size_t *first, size_t *last)
{
    size_t low = own, high = own;
    while (low > 0 && (double)spots[own].spot.y - (double)spots[low - 1].spot.y <= reach)
        --low;
    while (high + 1 < count && (double)spots[high + 1].spot.y - (double)spots[own].spot.y <= reach)
        ++high;
    *first = low, *last = high;
}

static double reach_of(const clv_spot *spot)
{
    return fmin(ceil(3 * (double)spot->sigma), REACH);
}

static void take(const clv_blob_plan *plan, size_t frame, const clv_spot *spot, window *w)
{
    const double reach = reach_of(spot);
    const double cy = round((double)spot->y), cx = round((double)spot->x);
    w->y0 = (size_t)fmax(cy - reach, 0), w->x0 = (size_t)fmax(cx - reach, 0);
    w->rows = (size_t)fmin(cy + reach, (double)plan->shape.height - 1) - w->y0 + 1;
    w->columns = (size_t)fmin(cx + reach, (double)plan->shape.width - 1) - w->x0 + 1;
    for (size_t y = 0; y < w->rows; ++y)
        for (size_t x = 0; x < w->columns; ++x) {
            const double v = clv_blob_pixel_at(plan, frame, w->y0 + y, w->x0 + x);
            const size_t i = y * w->columns + x;
            w->weight[i] = isfinite(v);
            w->pixel[i] = isfinite(v) ? sign_of(plan) * v : 0;
        }
}

/* Excludes pixels that are nearer to `other` than to `spot`. */
static void leave_to(window *w, const clv_spot *spot, const clv_spot *other)
{
    for (size_t y = 0; y < w->rows; ++y)
        for (size_t x = 0; x < w->columns; ++x) {
            const double py = (double)(w->y0 + y), px = (double)(w->x0 + x);
            const double ay = py - (double)spot->y, ax = px - (double)spot->x,
                         by = py - (double)other->y, bx = px - (double)other->x;
            if (by * by + bx * bx < ay * ay + ax * ax) w->weight[y * w->columns + x] = 0;
        }
}

/* Integrates the light over each pixel along one axis, and computes the derivatives with respect to position and
 * width. */
static void along(double from, size_t count, double centre, double width, double *e, double *by_c,
                  double *by_w)
{
    static const double norm = 0.3989422804014327; /* 1 / sqrt(2 pi) */
    double t0 = (from - 0.5 - centre) / width;
    double e0 = 0.5 * erf(t0 * sqrt(0.5)), g0 = norm / width * exp(-0.5 * t0 * t0);
    for (size_t i = 0; i < count; ++i) {
        const double t1 = t0 + 1 / width;
        const double e1 = 0.5 * erf(t1 * sqrt(0.5)), g1 = norm / width * exp(-0.5 * t1 * t1);
        e[i] = e1 - e0, by_c[i] = g0 - g1, by_w[i] = t0 * g0 - t1 * g1;
        t0 = t1, e0 = e1, g0 = g1;
    }
}

typedef struct shape {
    double ey[SIDE], ey_c[SIDE], ey_w[SIDE], ex[SIDE], ex_c[SIDE], ex_w[SIDE];
} shape;

static void make_shape(const window *w, const double p[UNKNOWNS], shape *s)
{
    along((double)w->y0, w->rows, p[Y], p[WIDTH], s->ey, s->ey_c, s->ey_w);
    along((double)w->x0, w->columns, p[X], p[WIDTH], s->ex, s->ex_c, s->ex_w);
}

/* Subtracts the light of `other`. */
static void take_away(window *w, const clv_spot *other)
{
    shape s;
    const double p[UNKNOWNS] = { (double)other->y, (double)other->x, (double)other->mass, 0,
                                 (double)other->sigma };
    make_shape(w, p, &s);
    for (size_t y = 0; y < w->rows; ++y)
        for (size_t x = 0; x < w->columns; ++x)
            w->pixel[y * w->columns + x] -= p[LIGHT] * s.ey[y] * s.ex[x];
}

/* Returns the weighted sum of squared residuals; with `normal` also computes J'WJ and J'Wr. */
static double judge(const window *w, const double p[UNKNOWNS], double *normal, double *right)
{
    shape s;
    double sum = 0;
    make_shape(w, p, &s);
    if (normal) memset(normal, 0, UNKNOWNS * UNKNOWNS * sizeof *normal);
    if (right) memset(right, 0, UNKNOWNS * sizeof *right);
    for (size_t y = 0; y < w->rows; ++y)
        for (size_t x = 0; x < w->columns; ++x) {
            const size_t i = y * w->columns + x;
            const double light = s.ey[y] * s.ex[x];
            const double r = w->pixel[i] - p[GROUND] - p[LIGHT] * light;
            sum += w->weight[i] * r * r;
            if (!normal) continue;
            const double j[UNKNOWNS] = { p[LIGHT] * s.ey_c[y] * s.ex[x],
                                         p[LIGHT] * s.ey[y] * s.ex_c[x], light, 1,
                                         p[LIGHT] * (s.ey_w[y] * s.ex[x] + s.ey[y] * s.ex_w[x]) };
            for (size_t a = 0; a < UNKNOWNS; ++a) {
                right[a] += w->weight[i] * j[a] * r;
                for (size_t b = 0; b <= a; ++b)
                    normal[a * UNKNOWNS + b] += w->weight[i] * j[a] * j[b];
            }
        }
    return sum;
}

static bool sensible(const window *w, const double p[UNKNOWNS], double sigma)
{
    return p[Y] >= (double)w->y0 - 0.5 && p[Y] <= (double)(w->y0 + w->rows) - 0.5 &&
           p[X] >= (double)w->x0 - 0.5 && p[X] <= (double)(w->x0 + w->columns) - 0.5 &&
           p[WIDTH] > 0.25 && p[WIDTH] < 3 * sigma && p[LIGHT] > 0 && isfinite(p[LIGHT]);
}

static bool descend(const window *w, double p[UNKNOWNS], double sigma)
{
    double normal[UNKNOWNS * UNKNOWNS], scratch[UNKNOWNS * UNKNOWNS], right[UNKNOWNS],
        step[UNKNOWNS], next[UNKNOWNS];
    double damping = 1e-3, best = judge(w, p, normal, right);
    for (int round = 0; round < ROUNDS; ++round) {
        if (!clv_damped_step(normal, UNKNOWNS, damping, right, scratch, step)) return false;
        for (int a = 0; a < UNKNOWNS; ++a)
            next[a] = p[a] + step[a];
        const double now = sensible(w, next, sigma) ? judge(w, next, NULL, NULL) : INFINITY;
        if (!(now <= best)) {
            damping *= 8;
            if (damping > 1e8) return sensible(w, p, sigma);
            continue;
        }
        const bool done = fabs(step[Y]) < 1e-5 && fabs(step[X]) < 1e-5 && fabs(step[WIDTH]) < 1e-4;
        memcpy(p, next, sizeof next);
        if (done) return true;
        damping = fmax(damping / 8, 1e-9);
        best = judge(w, p, normal, right);
    }
    return false;
}

/* Sums from which the line variance = a + b * light is fitted. */
typedef struct line_sums {
    double n, m, mm, v, mv;
} line_sums;

static void add_to(line_sums *s, double weight, double light, double variance)
{
    s->n += weight, s->m += weight * light, s->mm += weight * light * light;
    s->v += weight * variance, s->mv += weight * light * variance;
}

/* Computes the coefficients a and b of the line; returns false if the variance does not grow with the light. */
static bool line_of(const line_sums *s, double *a, double *b)
{
    const double det = s->n * s->mm - s->m * s->m;
    *a = s->n > 0 ? s->v / s->n : 0, *b = 0;
    if (!(det > 0) || !(s->v > 0)) return false;
    const double slope = (s->n * s->mv - s->m * s->v) / det;
    if (!(slope > 0)) return false;
    *b = slope;
    *a = fmax((s->v - slope * s->m) / s->n, 0.1 * s->v / s->n);
    return true;
}

/* Sets the weight of each pixel to the inverse of its variance a + b * light, with a and b fitted to the residuals. If
 * the variance does not grow with the light, the weights stay equal. */
static void weigh(window *w, const double p[UNKNOWNS])
{
    shape s;
    line_sums sums = { 0 };
    double a, b;
    make_shape(w, p, &s);
    for (size_t i = 0; i < w->rows * w->columns; ++i) {
        if (w->weight[i] == 0) continue;
        const double light = p[LIGHT] * s.ey[i / w->columns] * s.ex[i % w->columns];
        const double r = w->pixel[i] - p[GROUND] - light;
        add_to(&sums, 1, light, r * r);
    }
    if (!line_of(&sums, &a, &b)) return;
    for (size_t i = 0; i < w->rows * w->columns; ++i)
        if (w->weight[i] > 0) {
            const double light = p[LIGHT] * s.ey[i / w->columns] * s.ex[i % w->columns];
            w->weight[i] = 1 / (a + b * light);
        }
}

/* Computes the inverse of J'WJ. */
static bool invert(const window *w, const double p[UNKNOWNS], double inverse[UNKNOWNS][UNKNOWNS])
{
    double normal[UNKNOWNS * UNKNOWNS], scratch[UNKNOWNS * UNKNOWNS], right[UNKNOWNS];
    judge(w, p, normal, right);
    for (int a = 0; a < UNKNOWNS; ++a) {
        double unit[UNKNOWNS] = { 0 };
        unit[a] = 1;
        if (!clv_damped_step(normal, UNKNOWNS, 0, unit, scratch, inverse[a])) return false;
    }
    return true;
}

/* Returns the fraction of the squared residual at pixel i that the fit has removed (its leverage). */
static double taken_away(const window *w, const shape *s, const double p[UNKNOWNS], size_t i,
                         double inverse[UNKNOWNS][UNKNOWNS])
{
    const size_t y = i / w->columns, x = i % w->columns;
    const double light = s->ey[y] * s->ex[x];
    const double j[UNKNOWNS] = { p[LIGHT] * s->ey_c[y] * s->ex[x], p[LIGHT] * s->ey[y] * s->ex_c[x],
                                 light, 1,
                                 p[LIGHT] * (s->ey_w[y] * s->ex[x] + s->ey[y] * s->ex_w[x]) };
    double sum = 0;
    for (int a = 0; a < UNKNOWNS; ++a)
        for (int b = 0; b < UNKNOWNS; ++b)
            sum += j[a] * inverse[a][b] * j[b];
    return fmin(w->weight[i] * sum, 0.9);
}

/* Returns the standard deviation of a position, from `variance`, which is exact only in the limit of much light. Two
 * terms are added for less light: the variances are estimated from the scatter of some 80 pixels, and where positions
 * scatter by a tenth of the spot's width, the model is no longer linear. The sizes of both terms were measured on
 * simulated spots of 300 to 10,000 photons. */
static double enlarged(double variance, double sigma)
{
    const double scatter = 0.05, nonlinear = 20;
    return sqrt(variance * (1 + scatter + nonlinear * variance / (sigma * sigma)));
}

/* Computes the standard deviations of the position. The few bright pixels determine the position, and the fit makes
 * their residuals small. Therefore each squared residual is divided by the fraction that the fit left, and the line of
 * variances is fitted again with weighted points. */
static clv_spot_error errors_of(window *w, const double p[UNKNOWNS])
{
    const clv_spot_error none = { NAN, NAN };
    double inverse[UNKNOWNS][UNKNOWNS], a = 0, b = 0;
    shape s;
    if (!invert(w, p, inverse)) return none;
    make_shape(w, p, &s);
    for (int round = 0; round < 3; ++round) {
        line_sums sums = { 0 };
        for (size_t i = 0; i < w->rows * w->columns; ++i) {
            if (w->weight[i] == 0) continue;
            const double light = p[LIGHT] * s.ey[i / w->columns] * s.ex[i % w->columns];
            const double r = w->pixel[i] - p[GROUND] - light, model = round ? a + b * light : 1;
            add_to(&sums, 1 / (model * model), light,
                   r * r / (1 - taken_away(w, &s, p, i, inverse)));
        }
        line_of(&sums, &a, &b);
        if (!(a > 0)) return none;
    }
    for (size_t i = 0; i < w->rows * w->columns; ++i)
        if (w->weight[i] > 0)
            w->weight[i] = 1 / (a + b * p[LIGHT] * s.ey[i / w->columns] * s.ex[i % w->columns]);
    if (!invert(w, p, inverse) || !(inverse[Y][Y] > 0 && inverse[X][X] > 0)) return none;
    return (clv_spot_error){ (float)enlarged(inverse[Y][Y], p[WIDTH]),
                             (float)enlarged(inverse[X][X], p[WIDTH]) };
}

/* Fits the window, starting at `from`, and stores the result in *found. Returns false if the fit fails. */
static bool fit_window(const clv_blob_plan *plan, window *w, const clv_spot *from,
                       clv_blob_found *found)
{
    clv_spot *to = &found->spot;
    const double sigma = (double)from->sigma, sign = sign_of(plan);
    double p[UNKNOWNS] = { (double)from->y, (double)from->x, fmax((double)from->mass, 1e-3),
                           sign * (double)from->background, sigma };
    size_t used = 0;
    for (size_t i = 0; i < w->rows * w->columns; ++i)
        used += w->weight[i] > 0;
    if (used < 2 * UNKNOWNS || !descend(w, p, sigma)) return false;
    weigh(w, p);
    if (!descend(w, p, sigma)) return false;
    to->y = (float)p[Y], to->x = (float)p[X], to->sigma = (float)p[WIDTH];
    to->mass = (float)p[LIGHT], to->background = (float)(sign * p[GROUND]);
    found->error = errors_of(w, p);
    return true;
}

/* Fits one spot. `guess` holds the spots from the quadratic fit, sorted by y; `fitted` holds the results of a first
 * sweep, or is NULL. *crowded is set to whether another spot's light is in the window. */
static bool fit_one(const clv_blob_plan *plan, size_t frame, const clv_blob_found *guess,
                    const clv_blob_found *fitted, size_t count, size_t own, clv_blob_found *to,
                    bool *crowded)
{
    window w;
    size_t first, last;
    const double reach = reach_of(&guess[own].spot);
    take(plan, frame, &guess[own].spot, &w);
    near_in_y(guess, count, own, reach + REACH, &first, &last);
    *crowded = false;
    for (size_t i = first; i <= last; ++i) {
        const double away = reach + reach_of(&guess[i].spot);
        if (i == own || fabs((double)guess[i].spot.x - (double)guess[own].spot.x) > away ||
            fabs((double)guess[i].spot.y - (double)guess[own].spot.y) > away)
            continue;
        *crowded = true;
        if (fitted)
            take_away(&w, &fitted[i].spot);
        else
            leave_to(&w, &guess[own].spot, &guess[i].spot);
    }
    if (fitted && !*crowded) return false; /* keeps the first sweep's result */
    return fit_window(plan, &w, fitted ? &fitted[own].spot : &guess[own].spot, to);
}

void clv_blob_fit(const clv_blob_plan *plan, size_t frame, const clv_blob_found *guess,
                  clv_blob_found *first, clv_blob_found *spots, size_t count)
{
    bool crowded;
    for (size_t i = 0; i < count; ++i) {
        first[i] = guess[i];
        if (!fit_one(plan, frame, guess, NULL, count, i, &first[i], &crowded))
            first[i].spot.flags |= CLV_SPOT_FIT_FAILED;
    }
    for (size_t i = 0; i < count; ++i) {
        spots[i] = first[i];
        clv_blob_found second = guess[i];
        if (fit_one(plan, frame, guess, first, count, i, &second, &crowded)) spots[i] = second;
    }
}
