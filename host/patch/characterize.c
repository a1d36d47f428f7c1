/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the flux and position of companions with their errors: fits all companions in one batch, then fits injected
 * planets to calibrate the errors. */
#include "host/patch/fit.h"
#include "host/patch/measure.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

enum {
    FAR = 1 << 20 /* pixels: far outside of any frame */
};
enum { RING = 24, LEAST_RING = 6, WARM = 8, MOST_ROUNDS = 24, RING_ROUNDS = 10 };

/* tolerances of the fits, in units of the likelihood's error */
static const double tolerance = 0.03, ring_tolerance = 0.25;

/* Places planets like the companion on a circle around the star, away from all companions, and returns their number. If
 * the circle through the companion is too short for LEAST_RING planets, uses the smallest circle that has room. */
static size_t make_ring(const clv_fit *f, double fwhm, const clv_companion *found, size_t count,
                        size_t which, const double *spectrum, clv_fit_planet *ring)
{
    const clv_companion *mine = &found[which];
    const double cx = f->plan->centre_x, cy = f->plan->centre_y,
                 radius =
                     fmax(hypot(mine->x - cx, mine->y - cy), (LEAST_RING + 2) * fwhm / (2 * PI)),
                 start = atan2(mine->y - cy, mine->x - cx);
    const size_t places = (size_t)fmin(floor(2 * PI * radius / fwhm), RING + 2);
    size_t n = 0;
    for (size_t i = 1; i < places && n < RING; ++i) {
        const double angle = start + 2 * PI * (double)i / (double)places;
        const clv_trial t = { .x = cx + radius * cos(angle),
                              .y = cy + radius * sin(angle),
                              .injected = mine->flux,
                              .flux = mine->flux };
        bool free_of = true;
        for (size_t k = 0; k < count; ++k)
            free_of = free_of && hypot(t.x - found[k].x, t.y - found[k].y) > fwhm;
        if (free_of)
            ring[n++] = (clv_fit_planet){ .at = t,
                                          .reach = mine->x_err > 0 ? fwhm : 0,
                                          .spectrum = spectrum };
    }
    return n;
}

/* Returns the root mean square of the values. Values above three times 1.4826 times the median are clipped to that
 * limit first. */
static double typical(double *values, size_t count)
{
    for (size_t i = 1; i < count; ++i)
        for (size_t j = i; j > 0 && values[j] < values[j - 1]; --j) {
            const double v = values[j];
            values[j] = values[j - 1], values[j - 1] = v;
        }
    const double limit = 3 * 1.4826 * values[count / 2];
    double squares = 0;
    for (size_t i = 0; i < count; ++i)
        squares += fmin(values[i], limit) * fmin(values[i], limit);
    return sqrt(squares / (double)count);
}

/* Returns sqrt(count / (count - 2)), the standard deviation of Student's t with `count` degrees of freedom. A result
 * divided by an error that was estimated from `count` samples follows this distribution, so multiplying such errors by
 * the returned factor makes the results scatter by 1 in units of their errors. */
static double of_few(size_t count)
{
    return sqrt((double)count / ((double)count - 2));
}

void clv_measure_by_ring(const clv_fit_planet *ring, size_t planned, clv_companion *c)
{
    double flux[RING], place[2 * RING], sum = 0;
    size_t n = 0, places = 0;
    for (size_t i = 0; i < planned; ++i) {
        const clv_fit_planet *p = &ring[i];
        if (!(p->at.a > 0) || !(p->flux_err > 0)) continue;
        sum += p->at.flux / p->at.injected;
        flux[n++] = fabs(p->at.flux - p->at.injected) / p->flux_err;
        if (!(p->reach > 0) || !(p->x_err > 0)) continue;
        place[places++] = fabs(p->at.aside_x) / p->x_err;
        place[places++] = fabs(p->at.aside_y) / p->y_err;
    }
    c->ring = n;
    if (n < LEAST_RING) return;
    c->recovery = sum / (double)n;
    c->flux_err *= typical(flux, n) * of_few(n);
    if (places) {
        const double ratio = typical(place, places) * of_few(places);
        c->x_err *= ratio, c->y_err *= ratio;
    }
}

clv_status clv_measure_rings(const clv_fit *f, double fwhm, const bool *left_out,
                             clv_companion *found, size_t count, const double *spectra)
{
    clv_fit_planet *ring = clv_alloc(count * RING + 1, sizeof *ring);
    size_t *in_ring = clv_alloc(count + 1, sizeof *in_ring), total = 0;
    clv_status status = CLV_OK;
    if (!ring || !in_ring) {
        status = clv_fail(CLV_E_MEMORY, "paco: not enough memory for trial positions");
        goto cleanup;
    }
    for (size_t k = 0; k < count; ++k) {
        const double *spectrum = spectra ? spectra + k * f->channel_count : NULL;
        in_ring[k] = found[k].flux > 0 && !(left_out && left_out[k])
                         ? make_ring(f, fwhm, found, count, k, spectrum, ring + total)
                         : 0;
        total += in_ring[k];
    }
    status = clv_fit_run(f, ring, total, RING_ROUNDS, 0, ring_tolerance);
    total = 0;
    for (size_t k = 0; k < count && !status; ++k) {
        if (!(left_out && left_out[k])) clv_measure_by_ring(ring + total, in_ring[k], &found[k]);
        total += in_ring[k];
    }
cleanup:
    clv_free(ring), clv_free(in_ring);
    return status;
}

static clv_status take_options(clv_paco_options *o, const clv_paco_options *options)
{
    CLV_TRY(clv_take_struct(o, sizeof *o, options, "clv_paco", "clv_paco_options"));
    o->size = sizeof *o;
    return CLV_OK;
}

/* Creates a plan for steps that use no PSF basis. Building the basis would take longer than all other work together. */
static clv_status plan_without_basis(const clv_paco_input *input, const clv_paco_options *options,
                                     clv_paco_plan **plan)
{
    clv_paco_options o;
    CLV_TRY(take_options(&o, options));
    o.psf_mode = CLV_PSF_FIXED;
    return clv_paco_plan_create(input, &o, plan);
}

clv_status clv_paco_subtract(const clv_paco_input *input, const clv_paco_options *options,
                             const clv_companion *companions, size_t count, float *cube)
{
    if (!companions || !cube)
        return clv_fail(CLV_E_ARGUMENT, "subtract: companions or cube is NULL");
    for (size_t k = 0; k < count; ++k)
        if (isfinite(companions[k].flux) &&
            !(isfinite(companions[k].x) && isfinite(companions[k].y)))
            return clv_fail(CLV_E_ARGUMENT,
                            "subtract: companion %zu is at x %g, y %g, but its position must be "
                            "finite; to leave it out, set its flux to 0",
                            k, companions[k].x, companions[k].y);
    clv_paco_plan *plan;
    CLV_TRY(plan_without_basis(input, options, &plan));
    const clv_paco_input *in = &plan->in;
    const size_t size = in->psf_size;
    const int64_t middle = (int64_t)size / 2;
    float *spot = clv_alloc(size * size, sizeof *spot);
    clv_status status =
        spot ? CLV_OK : clv_fail(CLV_E_MEMORY, "subtract: not enough memory for the PSF");
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
            /* no pixel of its image lies in the frame, and an index may not hold its place */
            if (!(fabs(ky) < FAR && fabs(kx) < FAR)) continue;
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

clv_status clv_measure_fit(const clv_fit *f, double fwhm, bool keep_places, clv_companion *found,
                           size_t count, const double *spectra)
{
    clv_fit_planet *planets = clv_zalloc(count + 1, sizeof *planets);
    if (!planets) return clv_fail(CLV_E_MEMORY, "paco: not enough memory for trial positions");
    for (size_t k = 0; k < count; ++k) {
        planets[k].at = (clv_trial){ .x = found[k].x, .y = found[k].y };
        planets[k].reach = keep_places ? 0 : 1.5 * fwhm;
        planets[k].spectrum = spectra ? spectra + k * f->channel_count : NULL;
    }
    const clv_status status = clv_fit_run(f, planets, count, MOST_ROUNDS, WARM, tolerance);
    for (size_t k = 0; k < count && !status; ++k) {
        const clv_fit_planet *p = &planets[k];
        clv_companion *c = &found[k];
        c->x = p->at.x, c->y = p->at.y;
        const double dx = c->x - f->plan->centre_x, dy = c->y - f->plan->centre_y,
                     angle = atan2(-dx, dy) * (180 / PI);
        c->separation_px = hypot(dx, dy);
        c->position_angle = angle < 0 ? angle + 360 : angle + 0.0;
        c->flux = isfinite(p->at.a) ? p->at.flux : NAN;
        c->flux_err = p->flux_err;
        c->x_err = keep_places ? 0 : p->x_err, c->y_err = keep_places ? 0 : p->y_err;
        c->recovery = NAN, c->ring = 0;
    }
    clv_free(planets);
    return status;
}

/* ---- fits with the configured patch radius ---- */

/* Sets up the fit for both measuring and error calibration. `wide`: uses the patch radius options->measure_radius. */
static clv_status open_fit(clv_context *context, const clv_paco_input *input,
                           const clv_paco_options *options, bool wide, clv_report *report,
                           clv_paco_plan **plan, clv_fit *f)
{
    clv_paco_options o = *options;
    if (wide && o.measure_radius) o.radius = o.measure_radius;
    o.psf_mode = CLV_PSF_FIXED; /* as in plan_without_basis */
    CLV_TRY(clv_paco_plan_create(input, &o, plan));
    *f = (clv_fit){ .context = context,
                    .plan = *plan,
                    .progress = o.progress,
                    .user = o.progress_user,
                    .report = report };
    return CLV_OK;
}

/* Returns whether the patches along the planet's arc stay inside the frames, with a margin of one pixel. */
static bool fits(const clv_paco_plan *plan, double x, double y)
{
    const double edge = (double)plan->margin + 1, dx = x - plan->centre_x, dy = y - plan->centre_y;
    for (size_t l = 0; l < plan->in.frames; ++l) {
        const double c = (double)plan->turn[l].c * 0x1p-32, s = (double)plan->turn[l].s * 0x1p-32;
        const double row = plan->centre_y + dy * c - dx * s, col = plan->centre_x + dx * c + dy * s;
        if (row < edge || col < edge || row > (double)plan->in.height - 1 - edge ||
            col > (double)plan->in.width - 1 - edge)
            return false;
    }
    return true;
}

clv_status clv_measure(clv_context *context, const clv_paco_input *input,
                       const clv_paco_options *options, double fwhm_px, bool keep_places,
                       clv_companion *companions, size_t count, clv_report *report)
{
    clv_paco_options o;
    CLV_TRY(take_options(&o, options));
    clv_companion *near = clv_alloc(count + 1, sizeof *near);
    size_t *who = clv_alloc(count + 1, sizeof *who), n = 0;
    clv_fit f;
    clv_paco_plan *plan = NULL;
    clv_status status =
        near && who ? open_fit(context, input, &o, true, report, &plan, &f)
                    : clv_fail(CLV_E_MEMORY, "paco: not enough memory for %zu companions", count);
    if (!status) memcpy(near, companions, count * sizeof *near);
    if (!status) status = clv_measure_fit(&f, fwhm_px, keep_places, companions, count, NULL);
    /* the patch must also fit at the position to which the companion has moved */
    for (size_t k = 0; k < count && !status; ++k)
        if (isnan(companions[k].flux) || !fits(plan, companions[k].x, companions[k].y))
            near[n] = near[k], who[n++] = k;
    clv_paco_plan_free(plan);
    plan = NULL;
    if (!status && n && o.measure_radius) {
        status = open_fit(context, input, &o, false, report, &plan, &f);
        if (!status) status = clv_measure_fit(&f, fwhm_px, keep_places, near, n, NULL);
        for (size_t i = 0; i < n && !status; ++i)
            companions[who[i]] = near[i];
        clv_paco_plan_free(plan);
    }
    clv_free(near), clv_free(who);
    return status;
}

clv_status clv_measure_errors(clv_context *context, const clv_paco_input *input,
                              const clv_paco_options *options, double fwhm_px,
                              clv_companion *companions, size_t count, clv_report *report)
{
    clv_paco_options o;
    if (!count) return CLV_OK;
    CLV_TRY(take_options(&o, options));
    clv_fit f;
    clv_paco_plan *plan = NULL;
    bool *left_out = clv_zalloc(count, sizeof *left_out), any = false;
    clv_status status =
        left_out ? open_fit(context, input, &o, true, report, &plan, &f)
                 : clv_fail(CLV_E_MEMORY, "paco: not enough memory for %zu companions", count);
    for (size_t k = 0; k < count && !status; ++k) {
        left_out[k] = !fits(plan, companions[k].x, companions[k].y);
        any = any || left_out[k];
    }
    const bool again = any && o.measure_radius;
    if (!status)
        status = clv_measure_rings(&f, fwhm_px, again ? left_out : NULL, companions, count, NULL);
    clv_paco_plan_free(plan);
    plan = NULL;
    if (!status && again) {
        for (size_t k = 0; k < count; ++k)
            left_out[k] = !left_out[k];
        status = open_fit(context, input, &o, false, report, &plan, &f);
        if (!status) status = clv_measure_rings(&f, fwhm_px, left_out, companions, count, NULL);
        clv_paco_plan_free(plan);
    }
    clv_free(left_out);
    return status;
}

clv_status clv_paco_characterize(clv_context *context, const clv_paco_input *input,
                                 const clv_paco_options *options, double fwhm_px, bool keep_places,
                                 clv_companion *companions, size_t count, clv_report *report)
{
    if (!context || !companions)
        return clv_fail(CLV_E_ARGUMENT, "characterize: context or companions is NULL");
    if (!(fwhm_px > 0) || !isfinite(fwhm_px))
        return clv_fail(CLV_E_ARGUMENT, "characterize: the FWHM is %g; expected a positive number",
                        fwhm_px);
    for (size_t k = 0; k < count; ++k)
        if (!isfinite(companions[k].x) || !isfinite(companions[k].y))
            return clv_fail(CLV_E_ARGUMENT,
                            "characterize: the position of companion %zu is not finite", k);
    CLV_TRY(clv_measure(context, input, options, fwhm_px, keep_places, companions, count, report));
    /* the errors are measured in the cube without the companions */
    clv_paco_plan *plan;
    CLV_TRY(plan_without_basis(input, options, &plan));
    clv_paco_input in = plan->in;
    clv_paco_plan_free(plan);
    float *cube = clv_alloc(in.frames * in.frame_stride, sizeof *cube);
    if (!cube)
        return clv_fail(CLV_E_MEMORY, "characterize: not enough memory for %zu frames", in.frames);
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
