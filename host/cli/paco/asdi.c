/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave paco --wavelengths`: searches all channels together; reads the spectra to try and writes the spectra
 * found. */
#include "host/cli/paco/files.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/reader.h"
#include "host/io/pictures/chart.h"
#include "host/io/pictures/png.h"
#include "host/io/tables/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SPECTRA = CLI_LIST_MOST, MOST_CURVES = 8 };

/* Wavelengths that are accepted, and a little more, so that the ends may be rounded. */
static const double least_um = 0.0999, most_um = 100.1;

/* Parses "1500K" as a temperature; returns 0 if `text` is not one. */
static double temperature_of(const char *text)
{
    char number[32];
    const size_t length = strlen(text);
    double kelvin;
    if (length < 2 || length >= sizeof number || text[length - 1] != 'K') return 0;
    memcpy(number, text, length - 1), number[length - 1] = '\0';
    return clv_parse_double(number, &kelvin) && kelvin > 0 && isfinite(kelvin) ? kelvin : 0;
}

int paco_asdi_check(const paco_args *a)
{
    size_t spectra = 0;
    while (a->spectra.items[spectra])
        ++spectra;
    if (!a->wavelengths && (spectra || a->star_temperature > 0))
        return cli_error(cli_running(), CLI_USAGE, "%s needs --wavelengths",
                         spectra ? "--spectrum" : "--star-temperature");
    if (spectra > MOST_SPECTRA)
        return cli_error(cli_running(), CLI_USAGE,
                         "--spectrum is given %zu times, but at most %d times are possible",
                         spectra, MOST_SPECTRA);
    if (a->temperature_given && !(a->star_temperature > 0))
        return cli_error(cli_running(), CLI_USAGE,
                         "--star-temperature is %g, but it must be a positive number of kelvin",
                         a->star_temperature);
    if (!a->wavelengths) return -1;
    if (a->channel && strcmp(a->channel, "all") != 0)
        return cli_error(cli_running(), CLI_USAGE,
                         "--wavelengths searches all channels together; leave out --channel %s",
                         a->channel);
    if (a->no_subtract)
        return cli_error(cli_running(), CLI_USAGE,
                         "--wavelengths measures companions and subtracts them; leave out "
                         "--no-subtract, or search channel by channel without --wavelengths");
    return -1;
}

/* Parses numbers separated by commas, such as "0.95,1.1"; returns NULL if `list` is not such a list. */
static double *parse_list(const char *list, size_t *count)
{
    size_t commas = 0;
    for (const char *at = list; *at; ++at)
        commas += *at == ',';
    double *values = clv_alloc(commas + 1, sizeof *values);
    *count = 0;
    for (const char *at = list; values;) {
        char one[64];
        const size_t length = strcspn(at, ",");
        if (length >= sizeof one) break;
        memcpy(one, at, length), one[length] = '\0';
        if (!clv_parse_double(one, &values[*count])) break;
        ++*count, at += length;
        if (!*at++) return values;
    }
    clv_free(values);
    return NULL;
}

/* Converts wavelengths to micrometres. The unit follows from the size of the first value: 0.1 to 100 are micrometres,
 * 100 to 1e5 nanometres, below 1e-3 metres. */
static int to_micrometres(const paco_args *a, double *values, size_t count)
{
    const double first = values[0];
    const double unit = first > 0.1 && first < 100   ? 1
                        : first > 100 && first < 1e5 ? 1e-3
                        : first < 1e-3               ? 1e6
                                                     : 0;
    for (size_t i = 0; i < count; ++i)
        if (!(values[i] * unit >= least_um && values[i] * unit <= most_um))
            return cli_error(cli_running(), CLI_USAGE,
                             "--wavelengths: wavelength %zu is %g; expected micrometres (0.1 to "
                             "100), nanometres (100 to 100000) or metres (1e-7 to 1e-4), the same "
                             "unit for all",
                             i, values[i]);
    for (size_t i = 0; i < count; ++i)
        values[i] *= unit;
    if (unit != 1 && !a->common.quiet)
        cli_say(stderr, "wavelengths read as %s: %.4g to %.4g micrometres\n",
                unit < 1 ? "nanometres" : "metres", values[0], values[count - 1]);
    return CLI_OK;
}

static int read_wavelengths(const paco_args *a, paco_inputs *in)
{
    size_t count;
    in->wavelengths = parse_list(a->wavelengths, &count);
    if (!in->wavelengths) {
        const clv_status status = clv_vector_read(a->wavelengths, &in->wavelengths, &count);
        if (status) {
            clv_error why = { 0 };
            clv_error_take(&why, status);
            (void)clv_fail_detail(status, why.detail, "--wavelengths: %s", why.message);
            clv_error_clear(&why);
            return cli_input_status(cli_running(), status);
        }
    }
    if (count != in->channels)
        return cli_error(cli_running(), CLI_USAGE,
                         "--wavelengths has %zu values, but the cube has %zu channel%s; expected "
                         "one for each channel of [C,T,H,W]",
                         count, in->channels, in->channels == 1 ? "" : "s");
    return to_micrometres(a, in->wavelengths, count);
}

/* Returns Planck's law for a wavelength in micrometres, without its constant factor. */
static double planck(double micrometres, double kelvin)
{
    return pow(micrometres, -5) / expm1(14387.769 / (micrometres * kelvin));
}

static int add_file(const char *path, size_t channels, double *spectrum)
{
    double *values;
    size_t count;
    const clv_status status = clv_vector_read(path, &values, &count);
    if (status) {
        clv_error why = { 0 };
        clv_error_take(&why, status);
        (void)clv_fail_detail(status, why.detail,
                              "--spectrum: %s; expected flat, a temperature such as 1500K, or a "
                              "file with one flux for each "
                              "channel",
                              why.message);
        clv_error_clear(&why);
        return cli_input_status(cli_running(), status);
    }
    int code = CLI_OK;
    double sum = 0;
    for (size_t l = 0; l < count; ++l)
        sum = values[l] >= 0 && isfinite(values[l]) ? sum + values[l] : NAN;
    if (count != channels)
        code = cli_error(cli_running(), CLI_USAGE,
                         "--spectrum %s: the file has %zu fluxes, but the cube has %zu channels",
                         path, count, channels);
    else if (!(sum > 0))
        code = cli_error(cli_running(), CLI_USAGE,
                         "--spectrum %s: a flux is negative or not finite, or all are 0; expected "
                         "numbers of 0 or more, at least one above 0",
                         path);
    else
        memcpy(spectrum, values, count * sizeof *spectrum);
    clv_free(values);
    return code;
}

static int make_spectra(const paco_args *a, paco_inputs *in)
{
    const size_t n = in->channels;
    size_t count = 0;
    while (a->spectra.items[count])
        ++count;
    in->spectrum_count = count ? count : 1;
    in->spectra = clv_alloc(in->spectrum_count * n, sizeof *in->spectra);
    if (!in->spectra)
        return cli_error(cli_running(), CLI_FAILED, "not enough memory for %zu spectra", count);
    for (size_t k = 0; k < in->spectrum_count; ++k) {
        const char *name = paco_spectrum_name(a, k);
        const double kelvin = temperature_of(name);
        double *spectrum = in->spectra + k * n;
        if (!kelvin && strcmp(name, "flat") != 0) {
            const int code = add_file(name, n, spectrum);
            if (code) return code;
            continue;
        }
        for (size_t l = 0; l < n; ++l) {
            spectrum[l] = kelvin > 0 ? planck(in->wavelengths[l], kelvin) : 1;
            if (kelvin > 0 && a->star_temperature > 0)
                spectrum[l] /= planck(in->wavelengths[l], a->star_temperature);
        }
        double most = 0;
        for (size_t l = 0; l < n; ++l)
            most = fmax(most, spectrum[l]);
        if (!(most > 0))
            return cli_error(cli_running(), CLI_USAGE,
                             "--spectrum %s: no light in any channel at that temperature", name);
        for (size_t l = 0; l < n; ++l)
            spectrum[l] /= most;
    }
    return CLI_OK;
}

const char *paco_spectrum_name(const paco_args *a, size_t k)
{
    return a->spectra.items[0] ? a->spectra.items[k] : "flat";
}

int paco_asdi_read(const paco_args *a, paco_inputs *in)
{
    if (!a->wavelengths) return CLI_OK;
    int code = read_wavelengths(a, in);
    if (!code) code = make_spectra(a, in);
    if (!code && in->psf_count == 1 && in->channels > 1 && !a->common.quiet)
        cli_say(stderr,
                "one PSF given: using it for all %zu channels (an array [%zu,n,n] gives each "
                "channel its own)\n",
                in->channels, in->channels);
    return code;
}

int paco_asdi_run(const paco_args *a, const paco_inputs *in, clv_context *context,
                  const clv_paco_input *channels, const clv_paco_options *options, float *rest,
                  paco_maps *m, clv_report *report)
{
    const size_t plane = in->height * in->width;
    const clv_asdi_options wanted = { .size = sizeof wanted,
                                      .fwhm_px = in->fwhm,
                                      .threshold = a->threshold,
                                      .spectra = in->spectra,
                                      .spectrum_count = in->spectrum_count };
    clv_status status =
        clv_paco_asdi(context, channels, in->channels, options, &wanted, m->a, m->b, m->snr,
                      m->raw ? m->raw : m->snr, rest, &m->companions, report);
    if (status) return cli_status(cli_running(), status);
    for (size_t p = 0; p < plane; ++p)
        m->counts.valid += isfinite(m->snr[p]);
    clv_paco_maps(m->a, m->b, m->channels * plane, NULL, m->flux, m->sigma);
    if (!paco_add_detections(m, 0, m->companions.companions, m->companions.count))
        return cli_error(cli_running(), CLI_FAILED, "not enough memory for detections");
    return CLI_OK;
}

static clv_status path_of(const paco_args *a, const char *name, clv_text *path)
{
    clv_text_add(path, "%s/%s", a->output, name);
    return path->failed ? clv_fail(CLV_E_MEMORY, "not enough memory for a path") : CLV_OK;
}

static clv_status write_table(const paco_args *a, const paco_inputs *in, const paco_maps *m)
{
    const char *names[8] = { "companion", "channel", "wavelength_um", "flux", "flux_err", "snr" };
    size_t n = 6;
    if (a->star_given) names[n++] = "delta_mag", names[n++] = "delta_mag_err";
    clv_csv csv = { 0 };
    clv_text path = { 0 };
    clv_csv_begin(&csv, names, n);
    for (size_t k = 0; k < m->companions.count; ++k)
        for (size_t l = 0; l < in->channels; ++l) {
            const double *f = m->companions.fluxes + 2 * (k * in->channels + l);
            clv_csv_int(&csv, (int64_t)k), clv_csv_int(&csv, (int64_t)l);
            clv_csv_number(&csv, in->wavelengths[l]);
            clv_csv_number(&csv, f[0]), clv_csv_number(&csv, f[1]),
                clv_csv_number(&csv, f[0] / f[1]);
            if (a->star_given) {
                clv_csv_number(&csv, f[0] > 0 ? -2.5 * log10(f[0] / a->star_flux) : (double)NAN);
                clv_csv_number(&csv, f[0] > 0 ? 2.5 / log(10) * f[1] / f[0] : (double)NAN);
            }
            clv_csv_end_row(&csv);
        }
    clv_status status = path_of(a, "spectra.csv", &path);
    if (!status) status = clv_csv_write(&csv, path.data);
    clv_text_clear(&path), clv_csv_clear(&csv);
    return status;
}

static int by_wavelength(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Plots fluxes with error bars over wavelength for the best companions. */
static clv_status draw(const paco_args *a, const paco_inputs *in, const paco_maps *m)
{
    static const clv_colour colours[MOST_CURVES] = { { 40, 110, 180 }, { 200, 80, 40 },
                                                     { 50, 140, 60 },  { 140, 70, 170 },
                                                     { 150, 120, 30 }, { 30, 150, 150 },
                                                     { 200, 60, 120 }, { 90, 90, 90 } };
    const size_t n = in->channels, count = CLV_MIN(m->companions.count, MOST_CURVES);
    typedef double point[4]; /* wavelength, flux, low, high */
    point *points = clv_alloc(count * n + 1, sizeof *points);
    double *columns = clv_alloc(4 * count * n + 1, sizeof *columns);
    clv_chart_curve curves[MOST_CURVES];
    char names[MOST_CURVES][48];
    clv_image image = { 0 };
    clv_text path = { 0 };
    clv_status status =
        points && columns ? CLV_OK : clv_fail(CLV_E_MEMORY, "not enough memory for a picture");
    for (size_t k = 0; k < count && !status; ++k) {
        point *own = points + k * n;
        for (size_t l = 0; l < n; ++l) {
            const double *f = m->companions.fluxes + 2 * (k * n + l);
            own[l][0] = in->wavelengths[l], own[l][1] = f[0], own[l][2] = f[0] - f[1],
            own[l][3] = f[0] + f[1];
        }
        qsort(own, n, sizeof *own, by_wavelength);
        double *x = columns + 4 * k * n;
        for (size_t l = 0; l < n; ++l)
            for (size_t i = 0; i < 4; ++i)
                x[i * n + l] = own[l][i];
        const clv_companion *c = &m->companions.companions[k];
        snprintf(names[k], sizeof names[k], "%zu: x %.1f y %.1f, S/N %.1f", k, c->x, c->y, c->snr);
        curves[k] = (clv_chart_curve){ .x = x,
                                       .y = x + n,
                                       .low = x + 2 * n,
                                       .high = x + 3 * n,
                                       .count = n,
                                       .name = names[k],
                                       .colour = colours[k],
                                       .points = true };
    }
    const clv_chart_style style = { .title = "flux of each companion",
                                    .x_name = "wavelength (micrometres)",
                                    .y_name = "flux (unit of the PSF)" };
    if (!status) status = clv_chart_draw(curves, count, &style, &image);
    if (!status) status = path_of(a, "spectra.png", &path);
    if (!status) status = clv_png_write(path.data, &image);
    clv_image_clear(&image), clv_text_clear(&path), clv_free(points), clv_free(columns);
    return status;
}

clv_status paco_asdi_write(const paco_args *a, const paco_inputs *in, const paco_maps *m)
{
    CLV_TRY(write_table(a, in, m));
    return draw(a, in, m);
}
