/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave paco --contrast`: chooses the separations, and writes the table with vip-hci's columns and the plot. */
#include "host/cli/paco/files.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/pictures/chart.h"
#include "host/io/pictures/png.h"
#include "host/io/tables/csv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_RADII = 256 };

/* Parses "8,12.5,20" as numbers above 0; returns 0 if the list is not valid. */
static size_t parse_radii(const char *list, double *radii)
{
    size_t count = 0;
    for (const char *at = list;; ++at) {
        char one[64];
        const size_t length = strcspn(at, ",");
        if (count == MOST_RADII || !length || length >= sizeof one) return 0;
        memcpy(one, at, length), one[length] = '\0';
        if (!clv_parse_double(one, &radii[count]) || !(radii[count] > 0)) return 0;
        ++count, at += length;
        if (!*at) return count;
    }
}

int paco_contrast_check(const paco_args *a)
{
    double radii[MOST_RADII];
    if (!a->contrast && (a->contrast_radii || a->contrast_injections))
        return cli_error(cli_running(), CLI_USAGE, "%s needs --contrast",
                         a->contrast_radii ? "--contrast-radii" : "--contrast-injections");
    if (a->contrast && (a->psf_mode || a->conv))
        return cli_error(cli_running(), CLI_USAGE,
                         "--contrast is only possible with the paper's formulas and the PSF "
                         "shifted to sub-pixel positions; leave out %s",
                         a->psf_mode ? "--psf-mode fixed" : "--conv vip");
    if (a->contrast_radii && !parse_radii(a->contrast_radii, radii))
        return cli_error(cli_running(), CLI_USAGE,
                         "--contrast-radii is \"%s\", but it must be up to %d numbers above 0, "
                         "such as 8,12.5,20",
                         a->contrast_radii, MOST_RADII);
    if (a->contrast_injections > 100000)
        return cli_error(cli_running(), CLI_USAGE,
                         "--contrast-injections is %llu, but it must be at most 100000",
                         (unsigned long long)a->contrast_injections);
    return -1;
}

/* Chooses radii from one FWHM to the last circle that lies wholly in the frame, in steps of half a FWHM, at most 40. */
static size_t choose_radii(const paco_args *a, const paco_inputs *in, double *radii)
{
    const double far = fmin(fmin(a->centre_x, (double)in->width - 1 - a->centre_x),
                            fmin(a->centre_y, (double)in->height - 1 - a->centre_y)) -
                       (double)a->radius - 0.5;
    const double step = fmax(0.5 * in->fwhm, (far - in->fwhm) / 39.5);
    size_t count = 0;
    for (double r = in->fwhm; r <= far && count < MOST_RADII; r += step)
        radii[count++] = r;
    return count;
}

clv_status paco_contrast_prepare(const paco_args *a, const paco_inputs *in, paco_maps *m)
{
    double radii[MOST_RADII];
    const size_t plane = in->height * in->width;
    m->limit_count =
        a->contrast_radii ? parse_radii(a->contrast_radii, radii) : choose_radii(a, in, radii);
    m->limits = clv_zalloc(m->channels * m->limit_count + 1, sizeof *m->limits);
    m->limit_map = clv_alloc(m->channels * plane, sizeof *m->limit_map);
    if (!m->limits || !m->limit_map)
        return clv_fail(CLV_E_MEMORY, "not enough memory for detection limits");
    for (size_t i = 0; i < m->channels * m->limit_count; ++i)
        m->limits[i].separation_px = radii[i % m->limit_count];
    return CLV_OK;
}

clv_status paco_contrast_run(const paco_args *a, const paco_inputs *in, clv_context *context,
                             const clv_paco_input *input, const clv_paco_options *options,
                             size_t channel, const clv_companion *known, size_t count, paco_maps *m,
                             clv_report *report)
{
    double *places = clv_alloc(2 * count + 1, sizeof *places);
    if (!places) return clv_fail(CLV_E_MEMORY, "not enough memory for positions");
    for (size_t k = 0; k < count; ++k)
        places[2 * k] = known[k].x, places[2 * k + 1] = known[k].y;
    const clv_contrast_options wanted = { .size = sizeof wanted,
                                          .snr = a->threshold,
                                          .injections = (size_t)a->contrast_injections,
                                          .raw = a->snr != 0,
                                          .known_xy = places,
                                          .known_count = count };
    const clv_status status = clv_paco_contrast(
        context, input, options, in->fwhm, &wanted, m->limits + channel * m->limit_count,
        m->limit_count, m->limit_map + channel * in->height * in->width, report);
    clv_free(places);
    return status;
}

static double magnitude(const paco_args *a, double flux)
{
    return -2.5 * log10(flux / a->star_flux);
}

static clv_status path_of(const paco_args *a, const char *name, clv_text *path)
{
    clv_text_add(path, "%s/%s", a->output, name);
    return path->failed ? clv_fail(CLV_E_MEMORY, "not enough memory for a path") : CLV_OK;
}

/* Writes the table with the column names of vip-hci's contrast_curve, and more columns. Sensitivities are fluxes
 * divided by --star-flux. */
static clv_status write_table(const paco_args *a, const paco_inputs *in, const paco_maps *m)
{
    const char *names[20];
    size_t n = 0;
    const double unit = a->star_given ? a->star_flux : 1;
    if (m->channels > 1) names[n++] = "channel";
    names[n++] = "sensitivity_gaussian", names[n++] = "sensitivity_student",
    names[n++] = "throughput";
    names[n++] = "distance";
    if (a->scale_given) names[n++] = "distance_arcsec";
    names[n++] = "noise", names[n++] = "sigma corr";
    names[n++] = "flux", names[n++] = "flux_16", names[n++] = "flux_84";
    if (a->star_given) names[n++] = "delta_mag";
    names[n++] = "injections";
    clv_csv csv = { 0 };
    clv_csv_begin(&csv, names, n);
    for (size_t i = 0; i < m->channels * m->limit_count; ++i) {
        const clv_contrast_point *p = &m->limits[i];
        if (m->channels > 1) clv_csv_int(&csv, (int64_t)(in->first_channel + i / m->limit_count));
        clv_csv_number(&csv, p->flux_normal / unit), clv_csv_number(&csv, p->flux / unit);
        clv_csv_number(&csv, p->throughput), clv_csv_number(&csv, p->separation_px);
        if (a->scale_given) clv_csv_number(&csv, p->separation_px * a->pixel_scale * 1e-3);
        clv_csv_number(&csv, p->noise), clv_csv_number(&csv, p->threshold);
        clv_csv_number(&csv, p->flux), clv_csv_number(&csv, p->flux_low),
            clv_csv_number(&csv, p->flux_high);
        if (a->star_given) clv_csv_number(&csv, magnitude(a, p->flux));
        clv_csv_int(&csv, (int64_t)p->injections);
        clv_csv_end_row(&csv);
    }
    clv_text path = { 0 };
    clv_status status = path_of(a, "contrast.csv", &path);
    if (!status) status = clv_csv_write(&csv, path.data);
    clv_text_clear(&path), clv_csv_clear(&csv);
    return status;
}

/* Plots the limits of the first channel: magnitudes below the star, or the logarithm of the flux. */
static clv_status draw(const paco_args *a, const paco_maps *m)
{
    const size_t n = m->limit_count;
    double *x = clv_alloc(5 * n + 1, sizeof *x), *student = x + n, *normal = student + n,
           *low = normal + n, *high = low + n;
    if (!x) return clv_fail(CLV_E_MEMORY, "not enough memory for a picture");
    for (size_t i = 0; i < n; ++i) {
        const clv_contrast_point *p = &m->limits[i];
        const double flux[4] = { p->flux, p->flux_normal, p->flux_low, p->flux_high };
        double *const to[4] = { student, normal, low, high };
        x[i] = p->separation_px * (a->scale_given ? a->pixel_scale * 1e-3 : 1);
        for (int k = 0; k < 4; ++k)
            to[k][i] = a->star_given ? magnitude(a, flux[k]) : log10(flux[k]);
    }
    char title[96];
    snprintf(title, sizeof title, "S/N of %g for half of the planets; band: 16 to 84 %%",
             a->threshold);
    const clv_chart_style style = {
        .title = title,
        .x_name = a->scale_given ? "separation (arcsec)" : "separation (pixels)",
        .y_name = a->star_given ? "delta mag" : "flux (unit of the PSF)",
        .y_down = a->star_given,
        .y_powers = !a->star_given
    };
    const clv_chart_curve curves[] = {
        { .x = x, .y = normal, .count = n, .name = "normal noise", .colour = { 150, 150, 150 } },
        { .x = x,
          .y = student,
          .low = low,
          .high = high,
          .count = n,
          .name = "Student's correction",
          .colour = { 40, 110, 180 } },
    };
    clv_image image = { 0 };
    clv_text path = { 0 };
    clv_status status = clv_chart_draw(curves, CLV_LEN(curves), &style, &image);
    if (!status) status = path_of(a, "contrast.png", &path);
    if (!status) status = clv_png_write(path.data, &image);
    clv_image_clear(&image), clv_text_clear(&path), clv_free(x);
    return status;
}

clv_status paco_contrast_write(const paco_args *a, const paco_inputs *in, const paco_maps *m)
{
    CLV_TRY(write_table(a, in, m));
    return draw(a, m);
}
