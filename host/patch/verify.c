/* SPDX-License-Identifier: Apache-2.0 */
/* What a search makes of planets at the limit: a planet of a trial meets the noise of the sequence as it is, but in a
 * search its own traces along its arc are part of the noise, and its peak is the highest of a few pixels. */
#include "host/patch/limit.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { PLANETS = 12, TURNS = 2 };

static const size_t every[TURNS] = { 3, 1 }; /* of these planets: the first turn may be rough */

typedef struct maps {
    float *cube, *snr;
    double *a, *b;
} maps;

static clv_status hide_one(clv_limits *l, const clv_paco_options *o, const clv_sought *s,
                           const maps *m)
{
    clv_paco_input in = l->plan->in;
    const clv_companion planet = { .x = s->x, .y = s->y, .flux = -s->flux };
    for (size_t t = 0; t < in.frames; ++t)
        memcpy(m->cube + t * in.frame_stride, in.cube + t * in.frame_stride,
               (in.row_stride * (in.height - 1) + in.width) * sizeof *m->cube);
    in.cube = m->cube;
    CLV_TRY(clv_paco_subtract(&in, o, &planet, 1, m->cube));
    CLV_TRY(clv_paco(l->context, &in, o, m->a, m->b, NULL, l->report));
    clv_paco_maps(m->a, m->b, in.height * in.width, m->snr, NULL, NULL);
    return CLV_OK;
}

/* The S/N that a search gives the planet: its highest pixel, by the noise elsewhere. */
static clv_status value_of(const clv_limits *l, const clv_sought *s, const maps *m, double *value)
{
    const clv_paco_input *in = &l->plan->in;
    size_t best = SIZE_MAX;
    *value = NAN;
    for (size_t p = 0; p < in->height * in->width; ++p) {
        const double d = hypot((double)(p % in->width) - s->x, (double)(p / in->width) - s->y);
        if (d > fmax(0.5 * l->fwhm, 0.75) || !isfinite(m->snr[p])) continue;
        if (best == SIZE_MAX || m->snr[p] > m->snr[best]) best = p;
    }
    if (best == SIZE_MAX) return CLV_OK;
    *value = m->snr[best];
    if (l->wanted->raw) return CLV_OK;
    return clv_calibrated_alone(m->snr, in->height, in->width, l->plan->centre_x, l->plan->centre_y,
                                l->fwhm, l->masked, best, value);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Each ring with two neighbours on either side: a few planets tell no more than 2 or 3 %. */
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

/* One turn: planets as bright as the limits say now, what they are worth, better limits. */
static clv_status turn(clv_limits *l, const clv_paco_options *o, clv_sought *s, const maps *m,
                       size_t step)
{
    for (size_t k = 0; k < l->rings * PLANETS; ++k)
        if (k % step == 0)
            clv_limit_begin(&s[k], clv_limit_target(l, s[k].x, s[k].y), false);
        else
            s[k].done = true;
    CLV_TRY(clv_limit_seek(l, s, l->rings * PLANETS, false));
    for (size_t i = 0; i < l->rings; ++i) {
        double values[PLANETS];
        size_t n = 0;
        for (size_t k = i * PLANETS; k < (i + 1) * PLANETS; k += step) {
            if (!isfinite(s[k].flux) || !(s[k].flux > 0)) continue;
            CLV_TRY(hide_one(l, o, &s[k], m));
            CLV_TRY(value_of(l, &s[k], m, &values[n]));
            n += isfinite(values[n]);
        }
        if (2 * n * step < PLANETS) continue; /* too few can be detected there at all */
        qsort(values, n, sizeof *values, by_value);
        const double median = 0.5 * (values[(n - 1) / 2] + values[n / 2]);
        /* a brighter planet leaves more traces, too: a bit more than what is missing has to be added */
        const double factor = l->shortfall[i] * pow(l->snr / fmax(median, 0.1), 1.25);
        l->shortfall[i] = fmin(fmax(factor, 0.5), 4);
    }
    smooth(l);
    return CLV_OK;
}

clv_status clv_limit_verify(clv_limits *l, const clv_paco_options *options, double from, double to)
{
    const clv_paco_input *in = &l->plan->in;
    const size_t plane = in->height * in->width;
    clv_sought s[CLV_LIMIT_RINGS * PLANETS];
    clv_paco_options o = *options;
    o.progress = clv_limit_progress, o.progress_user = l;
    memset(s, 0, sizeof s);
    l->rings = to > from ? CLV_LIMIT_RINGS : 1;
    for (size_t k = 0; k < l->rings * PLANETS; ++k) {
        const size_t i = k / PLANETS;
        const double r =
            l->rings > 1 ? from + (to - from) * (double)i / (double)(l->rings - 1) : from;
        double angle = 2 * PI * ((double)(k % PLANETS) / PLANETS + 0.618034 * (double)i + 0.1);
        l->ring[i] = r, l->shortfall[i] = 1;
        for (int other = 0; other < 8; ++other, angle += 0.09) { /* not where a companion was */
            s[k].x = l->plan->centre_x + r * cos(angle),
            s[k].y = l->plan->centre_y + r * sin(angle);
            if (!clv_limit_known(l, s[k].x, s[k].y)) break;
        }
    }
    CLV_TRY(clv_limit_look(l, s, l->rings * PLANETS));
    const maps m = { clv_alloc(in->frames * in->frame_stride, sizeof *m.cube),
                     clv_alloc(plane, sizeof *m.snr), clv_alloc(plane, sizeof *m.a),
                     clv_alloc(plane, sizeof *m.b) };
    clv_status status =
        m.cube && m.snr && m.a && m.b
            ? CLV_OK
            : clv_fail(CLV_E_MEMORY, "contrast: no memory for %zu frames", in->frames);
    for (int i = 0; i < TURNS && !status; ++i)
        status = turn(l, &o, s, &m, every[i]);
    clv_free(m.cube), clv_free(m.snr), clv_free(m.a), clv_free(m.b);
    return status;
}
