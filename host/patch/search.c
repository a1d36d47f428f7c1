/* SPDX-License-Identifier: Apache-2.0 */
/* Searches for companions: measures the highest peak and subtracts its companion from the data, until no peak above the
 * threshold is left. */
#include "host/patch/calibrate.h"
#include "host/patch/measure.h"
#include "host/patch/paco_plan.h"
#include "host/patch/peaks.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FOUND = 64 };

typedef struct state {
    clv_context *context;
    clv_paco_input in;  /* strides filled in; the cube is the data without the companions found */
    const float *whole; /* the caller's cube */
    float *rest;        /* the caller's cube without the companions found */
    const clv_paco_options *options;
    double fwhm, cx, cy;
    double *a, *b;        /* maps of the remaining data */
    float *snr, *snr_now; /* S/N of the remaining data, raw and calibrated */
    double *places;       /* [count][2]: x, y of the companions found */
    clv_companion *found;
    size_t count;
    clv_report *report;
} state;

static void copy_cube(const state *s, const float *from, float *to)
{
    const clv_paco_input *in = &s->in;
    for (size_t l = 0; l < in->frames; ++l)
        memcpy(to + l * in->frame_stride, from + l * in->frame_stride,
               (in->row_stride * (in->height - 1) + in->width) * sizeof *to);
}

static clv_status map_of_rest(state *s)
{
    const size_t count = s->in.height * s->in.width;
    CLV_TRY(clv_paco(s->context, &s->in, s->options, s->a, s->b, NULL, s->report));
    clv_paco_maps(s->a, s->b, count, s->snr, NULL, NULL);
    return clv_paco_calibrate(s->snr, NULL, s->in.height, s->in.width, s->cx, s->cy, s->fwhm,
                              s->places, s->count, s->snr_now);
}

/* Measures companion k in a cube without the other companions. Afterwards companion k is subtracted from `rest` as
 * well. */
static clv_status measure_one(state *s, size_t k)
{
    if (!s->rest) { /* copies the cube only after a companion was found */
        s->rest = clv_alloc(s->in.frames * s->in.frame_stride, sizeof *s->rest);
        if (!s->rest)
            return clv_fail(CLV_E_MEMORY, "search: not enough memory for %zu frames", s->in.frames);
        copy_cube(s, s->whole, s->rest);
        s->in.cube = s->rest;
    }
    clv_companion *c = &s->found[k];
    const clv_companion before = *c;
    if (c->flux > 0) { /* adds the companion back */
        clv_companion back = *c;
        back.flux = -c->flux;
        CLV_TRY(clv_paco_subtract(&s->in, s->options, &back, 1, s->rest));
    }
    CLV_TRY(clv_measure(s->context, &s->in, s->options, s->fwhm, false, c, 1, s->report));
    if (!(c->flux > 0) || hypot(c->x - before.x, c->y - before.y) > 1.5 * s->fwhm) {
        *c = before; /* no maximum nearby: use the peak's own position and the flux there */
        CLV_TRY(clv_measure(s->context, &s->in, s->options, s->fwhm, true, c, 1, s->report));
    }
    s->places[2 * k] = c->x, s->places[2 * k + 1] = c->y;
    return c->flux > 0 ? clv_paco_subtract(&s->in, s->options, c, 1, s->rest) : CLV_OK;
}

static int by_snr(const void *a, const void *b)
{
    const clv_companion *x = a, *y = b;
    return (x->snr < y->snr) - (x->snr > y->snr);
}

static clv_status search(state *s, double threshold)
{
    size_t best = 0, valid = 0;
    for (size_t p = 0; p < s->in.height * s->in.width; ++p)
        valid += isfinite(s->snr_now[p]);
    while (s->count < MOST_FOUND) {
        double snr;
        bool any;
        const clv_peaks peaks = { .height = s->in.height,
                                  .width = s->in.width,
                                  .cx = s->cx,
                                  .cy = s->cy,
                                  .fwhm = s->fwhm,
                                  .raw = s->snr,
                                  .calibrated = s->snr_now,
                                  .places = s->places,
                                  .count = s->count };
        CLV_TRY(clv_peaks_best(&peaks, threshold, &best, &snr, &any));
        if (!any) break;
        clv_companion *c = &s->found[s->count];
        *c = (clv_companion){ .x = (double)(best % s->in.width),
                              .y = (double)(best / s->in.width),
                              .snr = snr,
                              .false_alarm = clv_false_alarm(snr, (double)valid, s->fwhm) };
        CLV_TRY(measure_one(s, s->count));
        ++s->count;
        /* the new companion may have biased the others while it was unknown */
        for (size_t k = 0; k < s->count; ++k) {
            const clv_companion *other = &s->found[k];
            if (k + 1 == s->count || hypot(other->x - c->x, other->y - c->y) < 6 * s->fwhm)
                CLV_TRY(measure_one(s, k));
        }
        CLV_TRY(map_of_rest(s));
    }
    return CLV_OK;
}

clv_status clv_paco_search(clv_context *context, const clv_paco_input *input,
                           const clv_paco_options *options, double fwhm_px, double threshold,
                           const double *a, const double *b, float *snr, float *rest,
                           clv_companion **companions, size_t *count, clv_report *report)
{
    if (!context || !input || !a || !b || !snr || !companions || !count)
        return clv_fail(CLV_E_ARGUMENT, "search: context, input, a map or result is NULL");
    *companions = NULL, *count = 0;
    if (!(fwhm_px > 0) || !isfinite(fwhm_px) || isnan(threshold))
        return clv_fail(CLV_E_ARGUMENT,
                        "search: the FWHM is %g and the threshold %g, but the FWHM must be "
                        "positive and the threshold finite",
                        fwhm_px, threshold);
    clv_paco_plan *plan;
    CLV_TRY(clv_paco_plan_create(input, options, &plan));
    state s = { .context = context,
                .in = plan->in,
                .whole = input->cube,
                .options = options,
                .fwhm = fwhm_px,
                .cx = plan->centre_x,
                .cy = plan->centre_y,
                .report = report };
    clv_paco_plan_free(plan);
    const size_t plane = s.in.height * s.in.width;
    s.a = clv_alloc(2 * plane, sizeof *s.a), s.snr = clv_alloc(3 * plane, sizeof *s.snr);
    s.places = clv_alloc(2 * MOST_FOUND, sizeof *s.places);
    s.found = clv_zalloc(MOST_FOUND, sizeof *s.found);
    clv_status status = CLV_OK;
    if (!s.a || !s.snr || !s.places || !s.found) {
        status = clv_fail(CLV_E_MEMORY, "search: not enough memory for %zu frames of %zux%zu",
                          s.in.frames, s.in.width, s.in.height);
        goto cleanup;
    }
    s.b = s.a + plane, s.snr_now = s.snr + plane;
    float *raw = s.snr_now + plane;
    clv_paco_maps(a, b, plane, s.snr, NULL, NULL);
    memcpy(raw, s.snr, plane * sizeof *raw);
    status = clv_paco_calibrate(s.snr, NULL, s.in.height, s.in.width, s.cx, s.cy, fwhm_px, NULL, 0,
                                s.snr_now);
    if (!status) status = search(&s, threshold);
    /* the map of the whole cube, calibrated by the noise of the remaining data */
    /* nothing was subtracted, so the maps are equal */
    if (!status && !s.count)
        memcpy(snr, s.snr_now, plane * sizeof *snr);
    else if (!status)
        status = clv_paco_calibrate(raw, s.snr, s.in.height, s.in.width, s.cx, s.cy, fwhm_px,
                                    s.places, s.count, snr);
    if (!status)
        status = clv_measure_errors(context, &s.in, options, fwhm_px, s.found, s.count, report);
    if (!status && rest) copy_cube(&s, s.in.cube, rest);
    if (!status && s.count) {
        qsort(s.found, s.count, sizeof *s.found, by_snr);
        *companions = s.found, *count = s.count;
        s.found = NULL;
    }
cleanup:
    clv_free(s.rest), clv_free(s.a), clv_free(s.snr), clv_free(s.places), clv_free(s.found);
    return status;
}
