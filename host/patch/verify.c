/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the S/N that a search measures for planets at the detection limit. In a trial, a planet is compared with the
 * noise of the sequence alone. In a search, the planet's own traces along its arc are part of the noise, and its peak
 * is the highest of a few pixels. */
#include "host/patch/limit.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { PLANETS = 12, TURNS = 2 };

/* step between the planets used in each turn; the first turn may be rough */
static const size_t every[TURNS] = { 3, 1 };

/* The part of the frames that determines the S/N of planets at one separation, and the maps of that part. */
typedef struct window {
    clv_paco_plan *plan; /* plan->in.cube points to `cube` */
    size_t x, y;         /* first pixel of the window in the frame */
    float *cube, *snr;
    double *a, *b;
    bool *masked;
} window;

static void close_window(window *w)
{
    clv_paco_plan_free(w->plan);
    clv_free(w->cube), clv_free(w->snr), clv_free(w->a), clv_free(w->b), clv_free(w->masked);
    *w = (window){ 0 };
}

/* Returns how many pixels along one side of the frame are within `reach` of the centre, and sets *first to the first of
 * them. */
static size_t cut(double centre, double reach, size_t side, size_t *first)
{
    *first = (size_t)fmax(floor(centre - reach), 0);
    return (size_t)fmin(ceil(centre + reach) + 1, (double)side) - *first;
}

/* Opens a window around the circle of radius r. It contains all annuli from which the noise at r is measured, and their
 * patches. */
static clv_status open_window(const clv_limits *l, const clv_paco_options *options, double r,
                              window *w)
{
    const clv_paco_plan *whole = l->plan;
    const double reach = r + 2 * l->fwhm + (double)whole->margin + 4;
    clv_paco_input in = whole->in;
    clv_paco_options o = *options;
    *w = (window){ 0 };
    in.width = cut(whole->centre_x, reach, in.width, &w->x);
    in.height = cut(whole->centre_y, reach, in.height, &w->y);
    in.cube += w->y * in.row_stride + w->x;
    o.centre_given = true;
    o.centre_x = whole->centre_x - (double)w->x, o.centre_y = whole->centre_y - (double)w->y;
    const size_t plane = in.height * in.width;
    w->cube = clv_alloc(in.frames * plane, sizeof *w->cube);
    w->snr = clv_alloc(plane, sizeof *w->snr), w->masked = clv_alloc(plane, sizeof *w->masked);
    w->a = clv_alloc(plane, sizeof *w->a), w->b = clv_alloc(plane, sizeof *w->b);
    clv_status status =
        w->cube && w->snr && w->a && w->b && w->masked
            ? clv_paco_plan_create(&in, &o, &w->plan)
            : clv_fail(CLV_E_MEMORY, "contrast: not enough memory for %zu frames", in.frames);
    if (status) {
        close_window(w);
        return status;
    }
    for (size_t i = 0; i < plane; ++i)
        w->masked[i] = l->masked[(w->y + i / in.width) * whole->in.width + w->x + i % in.width];
    w->plan->in.cube = w->cube;
    w->plan->in.row_stride = in.width, w->plan->in.frame_stride = plane;
    return CLV_OK;
}

static clv_status hide_one(clv_limits *l, bool reverse, const clv_sought *s, const window *w)
{
    const clv_paco_input *from = &l->plan->in, *to = &w->plan->in;
    clv_paco_options o = { .size = sizeof o, .radius = w->plan->radius, .centre_given = true };
    clv_paco_counts counts;
    o.centre_x = w->plan->centre_x, o.centre_y = w->plan->centre_y;
    o.reverse_angles = reverse;
    const clv_companion planet = { .x = s->x - (double)w->x,
                                   .y = s->y - (double)w->y,
                                   .flux = -s->flux };
    for (size_t t = 0; t < to->frames; ++t)
        for (size_t y = 0; y < to->height; ++y)
            memcpy(w->cube + t * to->frame_stride + y * to->row_stride,
                   from->cube + t * from->frame_stride + (w->y + y) * from->row_stride + w->x,
                   to->width * sizeof *w->cube);
    CLV_TRY(clv_paco_subtract(to, &o, &planet, 1, w->cube));
    CLV_TRY(
        clv_paco_run(l->context, w->plan, clv_limit_progress, l, w->a, w->b, &counts, l->report));
    clv_paco_maps(w->a, w->b, to->height * to->width, w->snr, NULL, NULL);
    return CLV_OK;
}

/* Computes the S/N that a search measures for the planet: the S/N of its highest pixel, calibrated by the noise
 * elsewhere. */
static clv_status value_of(const clv_limits *l, const clv_sought *s, const window *w, double *value)
{
    const clv_paco_input *in = &w->plan->in;
    const double x = s->x - (double)w->x, y = s->y - (double)w->y;
    size_t best = SIZE_MAX;
    *value = NAN;
    for (size_t p = 0; p < in->height * in->width; ++p) {
        const double d = hypot((double)(p % in->width) - x, (double)(p / in->width) - y);
        if (d > fmax(0.5 * l->fwhm, 0.75) || !isfinite(w->snr[p])) continue;
        if (best == SIZE_MAX || w->snr[p] > w->snr[best]) best = p;
    }
    if (best == SIZE_MAX) return CLV_OK;
    *value = w->snr[best];
    if (l->wanted->raw) return CLV_OK;
    return clv_calibrated_alone(w->snr, in->height, in->width, w->plan->centre_x, w->plan->centre_y,
                                l->fwhm, w->masked, best, value);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Averages each ring with its two neighbours on either side, because a few planets determine a ring's value only to 2
 * or 3 %. */
static void smooth(clv_limits *l)
{
    double was[CLV_LIMIT_RINGS];
    memcpy(was, l->shortfall, sizeof was);
    for (size_t i = 0; i < l->rings; ++i) {
        double sum = 0, weights = 0;
        for (size_t k = 0; k < l->rings; ++k) {
            const double w = fmax(3 - fabs((double)k - (double)i), 0);
            sum += w * was[k], weights += w;
        }
        l->shortfall[i] = sum / weights;
    }
}

/* Writes the S/N values, sorted, that a search measures for the planets of a ring. */
static clv_status judge(clv_limits *l, const clv_paco_options *o, double r, const clv_sought *s,
                        size_t step, double *values, size_t *count)
{
    window w;
    *count = 0;
    CLV_TRY(open_window(l, o, r, &w));
    clv_status status = CLV_OK;
    for (size_t k = 0; k < PLANETS && !status; k += step) {
        if (!isfinite(s[k].flux) || !(s[k].flux > 0)) continue;
        status = hide_one(l, o->reverse_angles, &s[k], &w);
        if (!status) status = value_of(l, &s[k], &w, &values[*count]);
        if (!status) *count += isfinite(values[*count]);
    }
    close_window(&w);
    if (*count) qsort(values, *count, sizeof *values, by_value);
    return status;
}

/* Runs one turn: makes planets as bright as the current limits, measures their S/N as in a search, and improves the
 * limits. */
static clv_status turn(clv_limits *l, const clv_paco_options *o, clv_sought *s, size_t step)
{
    for (size_t k = 0; k < l->rings * PLANETS; ++k)
        if (k % step == 0)
            clv_limit_begin(&s[k], clv_limit_target(l, s[k].x, s[k].y), false);
        else
            s[k].done = true;
    CLV_TRY(clv_limit_seek(l, s, l->rings * PLANETS, false));
    for (size_t i = 0; i < l->rings; ++i) {
        double values[PLANETS];
        size_t n;
        CLV_TRY(judge(l, o, l->ring[i], s + i * PLANETS, step, values, &n));
        /* too few planets can be detected at this separation */
        if (2 * n * step < PLANETS) continue;
        const double median = 0.5 * (values[(n - 1) / 2] + values[n / 2]);
        /* a brighter planet also leaves more traces, so the flux must grow by a bit more than the S/N */
        const double factor = l->shortfall[i] * pow(l->snr / fmax(median, 0.1), 1.25);
        l->shortfall[i] = fmin(fmax(factor, 0.5), 4);
    }
    smooth(l);
    return CLV_OK;
}

clv_status clv_limit_verify(clv_limits *l, const clv_paco_options *options, double from, double to)
{
    clv_sought s[CLV_LIMIT_RINGS * PLANETS];
    clv_paco_options o = *options;
    o.progress = NULL, o.progress_user = NULL;
    memset(s, 0, sizeof s);
    l->rings = to > from ? CLV_LIMIT_RINGS : 1;
    for (size_t k = 0; k < l->rings * PLANETS; ++k) {
        const size_t i = k / PLANETS;
        const double r =
            l->rings > 1 ? from + (to - from) * (double)i / (double)(l->rings - 1) : from;
        double angle = 2 * PI * ((double)(k % PLANETS) / PLANETS + 0.618034 * (double)i + 0.1);
        l->ring[i] = r, l->shortfall[i] = 1;
        /* avoids known companions */
        for (int other = 0; other < 8; ++other, angle += 0.09) {
            s[k].x = l->plan->centre_x + r * cos(angle),
            s[k].y = l->plan->centre_y + r * sin(angle);
            if (!clv_limit_known(l, s[k].x, s[k].y)) break;
        }
    }
    CLV_TRY(clv_limit_look(l, s, l->rings * PLANETS));
    for (int i = 0; i < TURNS; ++i)
        CLV_TRY(turn(l, &o, s, every[i]));
    return CLV_OK;
}
