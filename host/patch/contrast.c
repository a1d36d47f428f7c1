/* SPDX-License-Identifier: Apache-2.0 */
/* Measures detection limits by injection and recovery: varies the flux of an injected planet until the planet is just
 * detected, at many positions at once. */
#include "host/patch/limit.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { MOST_MAP_PLACES = 500, MOST_INJECTIONS = 200, LEAST_INJECTIONS = 24 };

static double scale_at(const clv_limits *l, double x, double y)
{
    if (l->wanted->raw) return 1;
    const clv_calibration *c = &l->noise;
    const double at = fmin(hypot(x - c->cx, y - c->cy) / c->step, (double)c->count - 1.001);
    const size_t i = (size_t)at;
    return c->scale[i] + (at - (double)i) * (c->scale[i + 1] - c->scale[i]);
}

/* ---- the curve ------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the q quantile of `count` sorted values, which may be infinite; NaN if the result is infinite. */
static double quantile(const double *sorted, size_t count, double q)
{
    if (!count) return NAN;
    const double at = q * (double)(count - 1);
    const size_t i = (size_t)at, next = CLV_MIN(i + 1, count - 1);
    if (isinf(sorted[next])) return at == (double)i && !isinf(sorted[i]) ? sorted[i] : NAN;
    return sorted[i] + (at - (double)i) * (sorted[next] - sorted[i]);
}

/* Writes the usable values of the planets on one circle, sorted; returns their number. */
static size_t collect(const clv_sought *s, size_t count, double (*of)(const clv_sought *),
                      double *values)
{
    size_t n = 0;
    for (size_t k = 0; k < count; ++k)
        if (!isnan(s[k].flux) && !isnan(of(&s[k]))) values[n++] = of(&s[k]);
    if (n) qsort(values, n, sizeof *values, by_value);
    return n;
}

static double flux_of(const clv_sought *s)
{
    return s->flux;
}

static double sigma_of(const clv_sought *s)
{
    return 1 / s->root;
}

static double throughput_of(const clv_sought *s)
{
    return s->flux > 0 && !isinf(s->flux) ? (s->recovered - s->without) / s->flux : NAN;
}

static size_t planets_at(const clv_limits *l, double radius)
{
    if (l->wanted->injections) return l->wanted->injections;
    return (size_t)fmin(fmax(ceil(4 * PI * radius / l->fwhm), LEAST_INJECTIONS), MOST_INJECTIONS);
}

static size_t make_circle(const clv_limits *l, double radius, size_t ring, clv_sought *s)
{
    const size_t places = planets_at(l, radius);
    size_t n = 0;
    /* starts each circle at another angle, so that positions never line up */
    for (size_t i = 0; i < places; ++i) {
        const double angle = 2 * PI * ((double)i / (double)places + 0.618034 * (double)ring);
        const double x = l->plan->centre_x + radius * cos(angle),
                     y = l->plan->centre_y + radius * sin(angle);
        if (!clv_limit_known(l, x, y)) s[n++] = (clv_sought){ .x = x, .y = y };
    }
    return n;
}

static clv_status curve(clv_limits *l, clv_contrast_point *points, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; ++i)
        total += planets_at(l, points[i].separation_px);
    clv_sought *s = clv_zalloc(total + 1, sizeof *s);
    double *values = clv_alloc(total + 1, sizeof *values);
    size_t *first = clv_zalloc(count + 1, sizeof *first);
    clv_status status =
        s && values && first
            ? CLV_OK
            : clv_fail(CLV_E_MEMORY, "contrast: not enough memory for %zu planets", total);
    for (size_t i = 0; i < count && !status; ++i)
        first[i + 1] = first[i] + make_circle(l, points[i].separation_px, i, s + first[i]);
    if (!status) status = clv_limit_look(l, s, first[count]);
    /* the run whose result is kept comes last */
    for (int student = 0; student < 2 && !status; ++student) {
        for (size_t k = 0; k < first[count]; ++k) {
            const double x = s[k].x, y = s[k].y, full = clv_limit_target(l, x, y),
                         normal = full * l->snr * scale_at(l, x, y) / clv_limit_threshold(l, x, y);
            clv_limit_begin(&s[k], student ? full : normal, false);
        }
        status = clv_limit_seek(l, s, first[count], false);
        for (size_t i = 0; i < count && !status; ++i) {
            clv_contrast_point *p = &points[i];
            const clv_sought *mine = s + first[i];
            const size_t made = first[i + 1] - first[i], n = collect(mine, made, flux_of, values);
            if (!student) {
                p->flux_normal = quantile(values, n, 0.5);
                continue;
            }
            const double x = l->plan->centre_x + p->separation_px, y = l->plan->centre_y;
            p->injections = n;
            p->flux = quantile(values, n, 0.5);
            p->flux_low = quantile(values, n, 0.1587), p->flux_high = quantile(values, n, 0.8413);
            p->throughput = quantile(values, collect(mine, made, throughput_of, values), 0.5);
            p->noise =
                scale_at(l, x, y) * quantile(values, collect(mine, made, sigma_of, values), 0.5);
            p->threshold = n ? clv_limit_threshold(l, x, y) / scale_at(l, x, y) : NAN;
        }
    }
    clv_free(s), clv_free(values), clv_free(first);
    return status;
}

/* ---- the map --------------------------------------------------------------------------------------- */

/* Returns the flux that a planet needs divided by the flux of a planet that loses nothing, interpolated between the
 * positions. Returns NaN if no flux is high enough at the nearest position. */
static double price_at(const clv_sought *s, size_t count, double reach, double x, double y)
{
    double sum = 0, weights = 0, nearest = INFINITY, price = NAN;
    for (size_t k = 0; k < count; ++k) {
        if (isnan(s[k].flux)) continue;
        const double d = hypot(s[k].x - x, s[k].y - y), own = s[k].flux * s[k].root / s[k].target;
        if (d < nearest) nearest = d, price = own;
        if (d >= reach || isinf(own)) continue;
        const double t = 1 - d * d / (reach * reach), w = t * t;
        sum += w * log(own), weights += w;
    }
    return isinf(price) ? NAN : weights > 0 ? exp(sum / weights) : price;
}

static clv_status draw_map(clv_limits *l, const double *a, float *map)
{
    const clv_paco_input *in = &l->plan->in;
    const size_t plane = in->height * in->width;
    size_t valid = 0, n = 0;
    for (size_t p = 0; p < plane; ++p)
        valid += isfinite(a[p]), map[p] = NAN;
    if (!valid) return CLV_OK;
    double spacing = fmax(0.75 * l->fwhm, sqrt((double)valid / MOST_MAP_PLACES));
    const size_t rows = (size_t)((double)in->height / spacing) + 1,
                 columns = (size_t)((double)in->width / spacing) + 1;
    clv_sought *s = clv_zalloc(rows * columns + 1, sizeof *s);
    if (!s) return clv_fail(CLV_E_MEMORY, "contrast: not enough memory for a map");
    for (size_t i = 0; i < rows * columns; ++i) {
        const double y = floor(((double)(i / columns) + 0.5) * spacing),
                     x = floor(((double)(i % columns) + 0.5) * spacing);
        if (y >= (double)in->height || x >= (double)in->width || clv_limit_known(l, x, y) ||
            !isfinite(a[(size_t)y * in->width + (size_t)x]))
            continue;
        s[n++] = (clv_sought){ .x = x, .y = y };
    }
    clv_status status = clv_limit_look(l, s, n);
    for (size_t k = 0; k < n && !status; ++k)
        clv_limit_begin(&s[k], clv_limit_target(l, s[k].x, s[k].y), true);
    if (!status) status = clv_limit_seek(l, s, n, true);
    for (size_t p = 0; p < plane && !status; ++p) {
        const double x = (double)(p % in->width), y = (double)(p / in->width);
        if (isfinite(a[p]))
            map[p] = (float)(price_at(s, n, 1.5 * spacing, x, y) * clv_limit_target(l, x, y) /
                             sqrt(a[p]));
    }
    clv_free(s);
    return status;
}

/* ---- the curve and the map --------------------------------------------------------------------------- */

static clv_status check(const clv_contrast_options *w, const clv_paco_plan *plan, double fwhm,
                        const clv_contrast_point *points, size_t count)
{
    if (!(fwhm > 0) || !isfinite(fwhm) || !(w->snr >= 0) || !isfinite(w->snr))
        return clv_fail(CLV_E_ARGUMENT,
                        "contrast: the FWHM is %g and the S/N %g; expected positive numbers", fwhm,
                        w->snr);
    if ((w->known_count && !w->known_xy) || (count && !points))
        return clv_fail(CLV_E_ARGUMENT, "contrast: the known companions or the points are NULL");
    if (w->injections > 100000)
        return clv_fail(CLV_E_ARGUMENT,
                        "contrast: got %zu planets per separation, expected at most 100000",
                        w->injections);
    const double most = hypot((double)plan->in.height, (double)plan->in.width);
    for (size_t i = 0; i < count; ++i)
        if (!(points[i].separation_px > 0) || points[i].separation_px > most)
            return clv_fail(
                CLV_E_ARGUMENT,
                "contrast: a separation is %g; expected more than 0 and at most %.0f pixels",
                points[i].separation_px, most);
    return CLV_OK;
}

/* Measures the noise of the S/N map, and its sums a. */
static clv_status measure_noise(clv_limits *l, const clv_paco_options *options, double *a,
                                bool *masked)
{
    const clv_paco_input *in = &l->plan->in;
    const size_t plane = in->height * in->width;
    double *b = clv_alloc(plane + 1, sizeof *b);
    float *snr = clv_alloc(plane + 1, sizeof *snr);
    clv_status status =
        b && snr ? CLV_OK
                 : clv_fail(CLV_E_MEMORY, "contrast: not enough memory for maps of %zux%zu",
                            in->width, in->height);
    if (!status) {
        clv_paco_options quiet = *options;
        quiet.progress = clv_limit_progress, quiet.progress_user = l;
        status = clv_paco(l->context, in, &quiet, a, b, NULL, l->report);
    }
    if (!status) {
        clv_paco_maps(a, b, plane, snr, NULL, NULL);
        for (size_t p = 0; p < plane; ++p)
            masked[p] = clv_limit_known(l, (double)(p % in->width), (double)(p / in->width));
        status = clv_calibration_create(snr, in->height, in->width, l->plan->centre_x,
                                        l->plan->centre_y, l->fwhm, masked, &l->noise);
    }
    clv_free(b), clv_free(snr);
    return status;
}

/* Measures the shortfall at the separations of the curve; for a map alone, from one FWHM to the edge. */
static clv_status verify(clv_limits *l, const clv_paco_options *options,
                         const clv_contrast_point *points, size_t count)
{
    const clv_paco_plan *plan = l->plan;
    const double cx = plan->centre_x, cy = plan->centre_y,
                 edge = fmin(fmin(cx, (double)plan->in.width - 1 - cx),
                             fmin(cy, (double)plan->in.height - 1 - cy)) -
                        (double)plan->margin - 0.5;
    double from = INFINITY, to = 0;
    for (size_t i = 0; i < count; ++i)
        from = fmin(from, points[i].separation_px), to = fmax(to, points[i].separation_px);
    if (!count) from = l->fwhm, to = edge;
    to = fmin(to, edge);
    return clv_limit_verify(l, options, fmin(from, to), to);
}

clv_status clv_paco_contrast(clv_context *context, const clv_paco_input *input,
                             const clv_paco_options *options, double fwhm_px,
                             const clv_contrast_options *wanted, clv_contrast_point *points,
                             size_t count, float *map, clv_report *report)
{
    if (!context) return clv_fail(CLV_E_ARGUMENT, "contrast: context is NULL");
    clv_contrast_options w;
    clv_paco_options o;
    CLV_TRY(clv_take_struct(&w, sizeof w, wanted, "clv_paco_contrast", "clv_contrast_options"));
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_paco_contrast", "clv_paco_options"));
    o.size = sizeof o;
    o.psf_mode = CLV_PSF_SHIFT, o.convention = CLV_PACO_PAPER; /* the settings that trials use */
    clv_paco_plan *plan;
    clv_paco_options fixed = o; /* trials use no PSF basis */
    fixed.psf_mode = CLV_PSF_FIXED;
    CLV_TRY(clv_paco_plan_create(input, &fixed, &plan));
    clv_limits l = { .context = context,
                     .plan = plan,
                     .wanted = &w,
                     .fwhm = fwhm_px,
                     .snr = w.snr > 0 ? w.snr : 5,
                     .progress = o.progress,
                     .user = o.progress_user,
                     .report = report };
    const size_t plane = plan->in.height * plan->in.width;
    double *a = clv_alloc(plane + 1, sizeof *a);
    bool *masked = clv_zalloc(plane + 1, sizeof *masked);
    l.masked = masked;
    clv_status status = a && masked
                            ? check(&w, plan, fwhm_px, points, count)
                            : clv_fail(CLV_E_MEMORY, "contrast: not enough memory for a map");
    for (size_t i = 0; i < count && !status; ++i)
        l.total += 2 * planets_at(&l, points[i].separation_px);
    if (map) l.total += MOST_MAP_PLACES;
    if (!status) status = measure_noise(&l, &o, a, masked);
    if (!status) status = verify(&l, &o, points, count);
    if (!status && count) status = curve(&l, points, count);
    if (!status && map) status = draw_map(&l, a, map);
    if (!status) clv_report_note(report, "planets_hidden", (double)l.settled);
    clv_calibration_clear(&l.noise);
    clv_free(a), clv_free(masked);
    clv_paco_plan_free(plan);
    return status;
}
