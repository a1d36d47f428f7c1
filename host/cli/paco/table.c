/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the tables of `cleave paco`: companions, requested positions, frames. */
#include "host/cli/paco/files.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/tables/csv.h"
#include "host/io/pictures/image.h"
#include "host/io/pictures/png.h"

#include <math.h>
#include <stdio.h>

static clv_status path_of(const paco_args *a, const char *name, clv_text *path)
{
    clv_text_add(path, "%s/%s", a->output, name);
    return path->failed ? clv_fail(CLV_E_MEMORY, "not enough memory for a path") : CLV_OK;
}

static clv_status finish(const paco_args *a, const char *name, clv_csv *csv)
{
    clv_text path = { 0 };
    clv_status status = path_of(a, name, &path);
    if (!status) status = clv_csv_write(csv, path.data);
    clv_text_clear(&path);
    clv_csv_clear(csv);
    return status;
}

/* Writes the peaks of the map: positions in whole pixels, flux and sigma from the maps. */
static clv_status write_peaks(const paco_args *a, const paco_maps *m)
{
    static const char *const names[] = {
        "channel", "x", "y", "separation_px", "position_angle_deg", "snr", "flux", "sigma"
    };
    const size_t skip = m->channels > 1 ? 0 : 1;
    clv_csv csv = { 0 };
    clv_csv_begin(&csv, names + skip, CLV_LEN(names) - skip);
    for (size_t i = 0; i < m->detection_count; ++i) {
        const clv_companion *d = &m->detections[i].companion;
        if (!skip) clv_csv_int(&csv, (int64_t)m->detections[i].channel);
        clv_csv_int(&csv, (int64_t)d->x), clv_csv_int(&csv, (int64_t)d->y);
        clv_csv_number(&csv, d->separation_px);
        clv_csv_number(&csv, fmod(d->position_angle + a->true_north + 720, 360));
        clv_csv_number(&csv, d->snr), clv_csv_number(&csv, d->flux),
            clv_csv_number(&csv, d->flux_err);
        clv_csv_end_row(&csv);
    }
    return finish(a, "detections.csv", &csv);
}

/* Writes a table of companions. `channels`: every row belongs to one channel. `spectra`: rows are of all channels
 * together and name the best spectrum. */
static clv_status write_companions(const paco_args *a, const paco_maps *m, const char *name,
                                   const paco_found *found, size_t count, bool channels,
                                   bool spectra)
{
    static const char *const always[] = {
        "channel", "x",    "y",        "x_err",      "y_err", "separation_px", "position_angle_deg",
        "snr",     "flux", "flux_err", "false_alarm"
    };
    const char *names[17];
    size_t n = 0;
    for (size_t i = channels ? 0 : 1; i < CLV_LEN(always); ++i)
        names[n++] = always[i];
    if (a->scale_given) names[n++] = "separation_mas", names[n++] = "separation_mas_err";
    if (a->star_given) names[n++] = "delta_mag", names[n++] = "delta_mag_err";
    if (spectra) names[n++] = "spectrum";
    clv_csv csv = { 0 };
    clv_csv_begin(&csv, names, n);
    for (size_t i = 0; i < count; ++i) {
        const clv_companion *d = &found[i].companion;
        if (channels) clv_csv_int(&csv, (int64_t)found[i].channel);
        clv_csv_number(&csv, d->x), clv_csv_number(&csv, d->y);
        clv_csv_number(&csv, d->x_err), clv_csv_number(&csv, d->y_err);
        clv_csv_number(&csv, d->separation_px);
        clv_csv_number(&csv, fmod(d->position_angle + a->true_north + 720, 360));
        clv_csv_number(&csv, d->snr), clv_csv_number(&csv, d->flux),
            clv_csv_number(&csv, d->flux_err);
        clv_csv_number(&csv, d->false_alarm);
        if (a->scale_given) {
            const double dx = (d->x - a->centre_x) / d->separation_px,
                         dy = (d->y - a->centre_y) / d->separation_px;
            clv_csv_number(&csv, d->separation_px * a->pixel_scale);
            clv_csv_number(&csv, hypot(dx * d->x_err, dy * d->y_err) * a->pixel_scale);
        }
        if (a->star_given) {
            clv_csv_number(&csv, -2.5 * log10(d->flux / a->star_flux));
            clv_csv_number(&csv, 2.5 / log(10) * d->flux_err / d->flux);
        }
        if (spectra) clv_csv_string(&csv, paco_spectrum_name(a, m->companions.spectrum[i]));
        clv_csv_end_row(&csv);
    }
    return finish(a, name, &csv);
}

static clv_status write_frames(const paco_args *a, const paco_inputs *in)
{
    static const char *const names[] = {
        "frame", "angle_deg", "scale", "missing", "used", "weight"
    };
    clv_csv csv = { 0 };
    clv_csv_begin(&csv, names, CLV_LEN(names));
    for (size_t l = 0; l < in->frames_read; ++l) {
        clv_csv_int(&csv, (int64_t)l), clv_csv_number(&csv, in->angles_read[l]);
        clv_csv_number(&csv, in->quality[l].scale), clv_csv_number(&csv, in->quality[l].missing);
        clv_csv_int(&csv, !in->quality[l].rejected), clv_csv_number(&csv, in->weights_read[l]);
        clv_csv_end_row(&csv);
    }
    return finish(a, "frames.csv", &csv);
}

/* Plots one bar per frame, its deviation: yellow if the frame counts less, red if it was rejected. */
static clv_status draw_frames(const paco_args *a, const paco_inputs *in)
{
    enum { LEFT = 60, TOP = 40, HEIGHT = 240, BOTTOM = 50, TOPMOST = 6 };
    static const clv_colour white = { 255, 255, 255 }, ink = { 40, 40, 40 },
                            grey = { 215, 215, 215 }, good = { 40, 110, 180 },
                            less = { 225, 160, 30 }, bad = { 200, 40, 40 };
    const size_t count = in->frames_read;
    const long bar = count < 200   ? 900 / (long)count
                     : count < 900 ? 2
                                   : 1,
               width = bar * (long)CLV_MIN(count, 3000u);
    clv_image image = { 0 };
    clv_text path = { 0 };
    clv_status status = clv_image_create(&image, (size_t)(LEFT + CLV_MAX(width, 420) + 20),
                                         TOP + HEIGHT + BOTTOM, white);
    if (!status) {
        char label[64];
        for (int v = 0; v <= TOPMOST; v += 2) {
            const long y = TOP + HEIGHT - v * HEIGHT / TOPMOST;
            clv_image_fill(&image, LEFT, y, width, 1, grey);
            snprintf(label, sizeof label, "%d", v);
            clv_image_text(&image, LEFT - 24, y - clv_text_height(2) / 2, 2, label, ink, NULL);
        }
        for (size_t l = 0; l < count && l < 3000; ++l) {
            const clv_paco_frame *f = &in->quality[l];
            const double scale = isfinite(f->scale) ? fmin(f->scale, TOPMOST) : TOPMOST;
            const long height = (long)(scale * HEIGHT / TOPMOST);
            clv_image_fill(&image, LEFT + (long)l * bar, TOP + HEIGHT - height,
                           bar > 2 ? bar - 1 : bar, height,
                           f->rejected               ? bad
                           : in->weights_read[l] < 1 ? less
                                                     : good);
        }
        clv_image_fill(&image, LEFT, TOP + HEIGHT, width, 1, ink);
        clv_image_text(&image, LEFT, 12, 2, "deviation of each frame (1 is usual)", ink, NULL);
        snprintf(label, sizeof label, "frame 0 to %zu; yellow: counts less, red: left out",
                 count - 1);
        clv_image_text(&image, LEFT, TOP + HEIGHT + 16, 2, label, ink, NULL);
        status = path_of(a, "frames.png", &path);
    }
    if (!status) status = clv_png_write(path.data, &image);
    clv_image_clear(&image);
    clv_text_clear(&path);
    return status;
}

clv_status paco_write_tables(const paco_args *a, const paco_inputs *in, const paco_maps *m)
{
    CLV_TRY(a->no_subtract
                ? write_peaks(a, m)
                : write_companions(a, m, "detections.csv", m->detections, m->detection_count,
                                   m->channels > 1 && !m->together, m->together));
    if (m->at_count)
        CLV_TRY(write_companions(a, m, "at.csv", m->at, m->at_count, m->channels > 1, false));
    if (m->together) CLV_TRY(paco_asdi_write(a, in, m));
    if (m->limits) CLV_TRY(paco_contrast_write(a, in, m));
    CLV_TRY(write_frames(a, in));
    return draw_frames(a, in);
}
