/* SPDX-License-Identifier: Apache-2.0 */
/* Plots mean squared displacements over lags, both on logarithmic axes. */
#include "host/cli/tracks/tracks.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/pictures/chart.h"
#include "host/io/pictures/png.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TRACKS = 100, ALL = 0, FIT = 1, LOW = 2, HIGH = 3, LAGS = 4, ROWS = 5 };

/* Adds the curves of single tracks one after the other, separated by gaps. */
static clv_status add_single(const tracks_found *f, double *x, double *y, size_t *count)
{
    const size_t tracks = clv_tracks_count(f->tracks), shown = CLV_MIN(tracks, MOST_TRACKS);
    clv_msd *msd = clv_alloc(CLV_MAX(f->lags, (size_t)1), sizeof *msd);
    if (!msd) return clv_fail(CLV_E_MEMORY, "plot: out of memory");
    clv_status status = CLV_OK;
    size_t n = 0;
    for (size_t k = 0; k < shown && !status; ++k) {
        status = clv_tracks_msd(f->tracks, (int64_t)(k * tracks / shown), f->lags, msd);
        for (size_t i = 0; i < f->lags && !status; ++i) {
            x[n] = log10((double)msd[i].lag * f->units.interval);
            y[n++] = msd[i].msd > 0 ? log10(msd[i].msd) : (double)NAN;
        }
        if (f->lags) x[n] = x[n - 1], y[n++] = NAN;
    }
    clv_free(msd);
    *count = n;
    return status;
}

clv_status tracks_plot(const tracks_found *f, const char *path)
{
    static const clv_colour pale = { 200, 210, 225 }, blue = { 30, 80, 160 }, red = { 200, 40, 40 };
    char title[120], x_name[60], y_name[60];
    const size_t room = CLV_MAX(f->lags, (size_t)1), all = MOST_TRACKS * (room + 1);
    double *v = clv_alloc(room, ROWS * sizeof *v), *x = clv_alloc(all, sizeof *x),
           *y = clv_alloc(all, sizeof *y);
    size_t count = 0;
    clv_image image = { 0 };
    clv_status status = v && x && y ? add_single(f, x, y, &count)
                                    : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    const double d = f->diffusion.d, axes = (double)f->axes;
    double last = -INFINITY;
    for (size_t k = 0; k < f->lags && !status; ++k) {
        const clv_msd *m = &f->msd[k];
        v[LAGS * room + k] = log10((double)m->lag * f->units.interval);
        const bool apart = v[LAGS * room + k] - last > 0.035; /* leaves a gap between rings */
        if (apart) last = v[LAGS * room + k];
        v[ALL * room + k] = apart ? log10(m->msd) : (double)NAN;
        v[LOW * room + k] = log10(m->msd - m->error), v[HIGH * room + k] = log10(m->msd + m->error);
        v[FIT * room + k] = log10(2 * axes * d * (double)m->lag + f->diffusion.offset);
    }
    snprintf(title, sizeof title, "D = %.4g +- %.2g %s^2/%s, %zu tracks", d / f->units.interval,
             f->diffusion.d_error / f->units.interval, f->units.space, f->units.time,
             f->diffusion.tracks);
    snprintf(x_name, sizeof x_name, "lag (%s)",
             strcmp(f->units.time, "frame") == 0 ? "frames" : f->units.time);
    snprintf(y_name, sizeof y_name, "mean squared displacement (%s^2)", f->units.space);
    if (!status) {
        const clv_chart_curve curves[] = {
            { .x = x, .y = y, .count = count, .name = "single tracks", .colour = pale },
            { .x = v + LAGS * room,
              .y = v + FIT * room,
              .count = f->lags,
              .name = "fit",
              .colour = red },
            { .x = v + LAGS * room,
              .y = v + ALL * room,
              .low = v + LOW * room,
              .high = v + HIGH * room,
              .count = f->lags,
              .name = f->drifts ? "all tracks, drift not subtracted" : "all tracks",
              .colour = blue,
              .points = true },
        };
        status = clv_chart_draw(curves, CLV_LEN(curves),
                                &(clv_chart_style){ .title = title,
                                                    .x_name = x_name,
                                                    .y_name = y_name,
                                                    .x_powers = true,
                                                    .y_powers = true,
                                                    .legend_left = true },
                                &image);
    }
    if (!status) status = clv_png_write(path, &image);
    clv_image_clear(&image);
    clv_free(v), clv_free(x), clv_free(y);
    return status;
}
