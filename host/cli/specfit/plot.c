/* SPDX-License-Identifier: Apache-2.0 */
/* Plots fits: data, model and residuals of one star, and a summary of all stars. */
#include "host/cli/specfit/files.h"

#include "base/alloc.h"
#include "base/text.h"
#include "host/io/pictures/image.h"
#include "host/io/pictures/png.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1200, PANEL = 260, RESIDUAL = 70, TOP = 30, LEFT = 60, RIGHT = 20, GAP = 36 };

static const clv_colour white = { 255, 255, 255 }, ink = { 40, 40, 40 }, grey = { 190, 190, 190 },
                        data_colour = { 120, 120, 120 }, model_colour = { 200, 40, 40 },
                        good_colour = { 40, 110, 180 }, mark_colour = { 225, 225, 160 };

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* Widens a range to hold the cores of lines: three or more neighbouring values beyond the range on one side. Fewer
 * values are outliers. */
static void widen_to_lines(const float *values, size_t n, double *low, double *high)
{
    enum { LINE = 3 };
    const double from = *low, to = *high;
    for (size_t k = 0, run = 0; k < n; ++k) {
        const double v = (double)values[k], before = k ? (double)values[k - 1] : NAN;
        run = !(v < from || v > to) ? 0 : (v < from) == (before < from) ? run + 1 : 1;
        for (size_t i = 0; run >= LINE && i < run; ++i)
            *low = fmin(*low, (double)values[k - i]), *high = fmax(*high, (double)values[k - i]);
    }
}

/* Returns how far a range of equal values must extend beyond them, so that its ends are other numbers. */
static double room_beside(double value)
{
    return fmax(1, 1e-6 * fabs(value));
}

/* Finds the range that holds most of the finite values, and the cores of lines. */
static void range_of(const float *values, size_t n, double *low, double *high)
{
    float *sorted = clv_alloc(n, sizeof *sorted);
    size_t count = 0;
    *low = 0, *high = 1;
    for (size_t i = 0; sorted && i < n; ++i)
        if (isfinite(values[i])) sorted[count++] = values[i];
    if (sorted && count > 1) {
        qsort(sorted, count, sizeof *sorted, by_value);
        *low = (double)sorted[count / 200], *high = (double)sorted[count - 1 - count / 200];
        widen_to_lines(values, n, low, high);
    }
    if (!(*high > *low)) *high = *low + room_beside(*low);
    const double margin = 0.08 * (*high - *low);
    *low -= margin, *high += margin;
    clv_free(sorted);
}

typedef struct frame {
    long x, y, width, height;
    double low, high;
} frame;

/* Draws one pixel column of a line, between two heights. */
static void column(clv_image *image, long x, long from, long to, clv_colour colour)
{
    clv_image_fill(image, x, CLV_MIN(from, to), 1, labs(to - from) + 1, colour);
}

/* Returns the x position of a wavelength. */
static long place_of(const frame *f, const double *wave, size_t n, double at)
{
    return f->x + (long)((at - wave[0]) / (wave[n - 1] - wave[0]) * (double)(f->width - 1));
}

/* Returns a round step that divides a range into about `count` parts. */
static double step_of(double range, double count)
{
    const double rough = range / count, power = pow(10, floor(log10(rough)));
    const double part = rough / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

/* Draws straight lines from value to value; values that are not finite leave gaps. */
static void line(clv_image *image, const frame *f, const double *wave, const float *values,
                 size_t n, clv_colour colour)
{
    long x0 = -1, y0 = 0;
    for (size_t i = 0; i < n; ++i) {
        const double v = ((double)values[i] - f->low) / (f->high - f->low);
        if (!isfinite(v)) {
            x0 = -1;
            continue;
        }
        const long x = place_of(f, wave, n, wave[i]);
        const long y = f->y + f->height - 1 - (long)(fmin(fmax(v, 0), 1) * (double)(f->height - 1));
        if (x0 < 0 || x == x0) column(image, x, x0 < 0 ? y : y0, y, colour);
        for (long c = x0 < 0 ? x + 1 : x0 + 1, last = y0; c <= x; ++c) {
            const long here = y0 + (y - y0) * (c - x0) / (x - x0);
            column(image, c, last, here, colour);
            last = here;
        }
        x0 = x, y0 = y;
    }
}

static void border(clv_image *image, const frame *f)
{
    clv_image_fill(image, f->x, f->y, f->width, 1, grey);
    clv_image_fill(image, f->x, f->y + f->height, f->width + 1, 1, grey);
    clv_image_fill(image, f->x, f->y, 1, f->height, grey);
    clv_image_fill(image, f->x + f->width, f->y, 1, f->height, grey);
}

/* Returns the power of ten of a number's first digit. */
static int magnitude(double value)
{
    return value != 0 ? (int)floor(log10(fabs(value)) + 1e-9) : -400;
}

/* Draws a number whose left edge is `before` times its width to the left of x, with the digits that tell it from those
 * one step away, and without an exponent below a million. */
static void number(clv_image *image, long x, long y, double value, double step, double before)
{
    char text[32];
    const int first = magnitude(value), told = first - magnitude(step) + 1;
    const int digits = CLV_MAX(told, first < 6 ? first + 1 : 1);
    snprintf(text, sizeof text, "%.*g", CLV_MIN(CLV_MAX(digits, 1), 15),
             value == 0 ? 0 : value); /* no "-0" */
    clv_image_text(image, x - (long)(before * (double)clv_text_width(text, 1)), y, 1, text, ink,
                   NULL);
}

/* Draws the name and unit of the vertical axis, with a white background so that it stays readable over a panel's
 * lines. */
static void name_of_y(clv_image *image, long x, long y, const char *name)
{
    clv_image_text(image, x, y, 1, name, ink, &white);
}

/* Draws the name of the horizontal axis below its numbers. */
static void name_x(clv_image *image, const frame *f, const char *name)
{
    clv_image_text(image, f->x + (f->width - clv_text_width(name, 1)) / 2, f->y + f->height + 16, 1,
                   name, ink, NULL);
}

static void ticks_of_y(clv_image *image, const frame *f, double count)
{
    const double step = step_of(f->high - f->low, count);
    for (long i = (long)ceil(f->low / step); (double)i * step <= f->high; ++i) {
        const double part = ((double)i * step - f->low) / (f->high - f->low);
        const long y = f->y + f->height - 1 - (long)(part * (double)(f->height - 1));
        if (y + 5 > f->y + f->height) continue; /* would overlap the panel below */
        clv_image_fill(image, f->x, y, 5, 1, ink);
        number(image, f->x - 4, y - 3, (double)i * step, step, 1);
    }
}

static void ticks_of_x(clv_image *image, const frame *f, const double *wave, size_t n)
{
    const double step = step_of(wave[n - 1] - wave[0], 9);
    for (long i = (long)ceil(wave[0] / step); (double)i * step <= wave[n - 1]; ++i) {
        const long x = place_of(f, wave, n, (double)i * step);
        clv_image_fill(image, x, f->y + f->height - 4, 1, 5, ink);
        number(image, x, f->y + f->height + 4, (double)i * step, step, 0.5);
    }
}

/* Well-known spectral lines, by their wavelengths in vacuum. */
static const struct {
    const char *name;
    double wavelength;
} known_lines[] = { { "Ca K", 3934.77 },    { "Ca H", 3969.59 },    { "H delta", 4102.89 },
                    { "H gamma", 4341.68 }, { "H beta", 4862.68 },  { "Mg b", 5168.76 },
                    { NULL, 5174.13 },      { NULL, 5185.05 },      { "Na D", 5891.58 },
                    { NULL, 5897.56 },      { "H alpha", 6564.61 }, { "Ca II", 8500.35 },
                    { "Ca II", 8544.44 },   { "Ca II", 8664.52 } };

/* Returns where a line of a star with this velocity is drawn, or -1 if the spectrum does not contain it. */
static long place_of_line(const frame *f, const double *wave, size_t n, size_t line,
                          double velocity)
{
    const double speed = isfinite(velocity) ? velocity : 0;
    const double at = known_lines[line].wavelength * (1 + speed / 299792.458);
    return at > wave[0] && at < wave[n - 1] ? place_of(f, wave, n, at) : -1;
}

static void mark_lines(clv_image *image, const frame *f, const double *wave, size_t n,
                       double velocity)
{
    for (size_t i = 0; i < CLV_LEN(known_lines); ++i) {
        const long x = place_of_line(f, wave, n, i, velocity);
        if (x >= 0) clv_image_fill(image, x, f->y, 1, f->height, mark_colour);
    }
}

/* Draws the names of the marked lines over the spectrum. A name that would overlap the one before lies above it. */
static void name_lines(clv_image *image, const frame *f, const double *wave, size_t n,
                       double velocity)
{
    for (long i = 0, end = 0, row = 0; i < (long)CLV_LEN(known_lines); ++i) {
        const long x = place_of_line(f, wave, n, (size_t)i, velocity);
        if (x < 0 || !known_lines[i].name) continue;
        const long width = clv_text_width(known_lines[i].name, 1);
        const long at = x + 3 + width < f->x + f->width ? x + 3 : x - 3 - width;
        row = at < end ? row + 1 : 0;
        clv_image_text(image, at, f->y + f->height - 12 - 10 * row, 1, known_lines[i].name, ink,
                       &white);
        end = at + width + 4;
    }
}

static void draw_arm(clv_image *image, const clv_spectrum *s, const float *model, double velocity,
                     bool desi, long y)
{
    const size_t n = s->pixels;
    const double *wave = s->wavelength, unit = s->unit;
    const float *ivar = s->ivar;
    frame f = { LEFT, y, WIDTH - LEFT - RIGHT, PANEL - RESIDUAL, 0, 1 };
    frame r = { LEFT, y + f.height, f.width, RESIDUAL, -6, 6 };
    float *residual = clv_alloc(n, sizeof *residual), *flux = clv_alloc(n, sizeof *flux);
    for (size_t k = 0; flux && k < n; ++k)
        flux[k] =
            ivar[k] > 0 ? (float)((double)s->flux[k] * unit) : NAN; /* masked pixels are gaps */
    if (!flux) {
        clv_free(residual);
        return;
    }
    range_of(flux, n, &f.low, &f.high);
    for (size_t k = 0; model && k < n; ++k) /* the deepest lines are only a few pixels wide */
        if (isfinite(model[k]))
            f.low = fmin(f.low, (double)model[k]), f.high = fmax(f.high, (double)model[k]);
    mark_lines(image, &f, wave, n, velocity);
    line(image, &f, wave, flux, n, data_colour);
    if (model) line(image, &f, wave, model, n, model_colour);
    name_lines(image, &f, wave, n, velocity);
    for (size_t k = 0; residual && k < n; ++k)
        residual[k] =
            model && ivar[k] > 0
                ? (float)(((double)flux[k] - (double)model[k]) / unit * sqrt((double)ivar[k]))
                : NAN;
    if (residual) line(image, &r, wave, residual, n, good_colour);
    border(image, &f), border(image, &r);
    ticks_of_y(image, &f, 4);
    ticks_of_y(image, &r, 2);
    ticks_of_x(image, &r, wave, n);
    name_of_y(image, f.x + 12, y + 6,
              desi ? "flux (1e-17 erg / s / cm2 / Angstrom)" : "flux (unit of the file)");
    name_of_y(image, r.x + 12, r.y + 4, "(flux - model) / error");
    name_x(image, &r, "wavelength (Angstrom)");
    clv_free(residual), clv_free(flux);
}

static clv_status save(const specfit_args *a, const char *name, const clv_image *image)
{
    clv_text path = { 0 };
    clv_text_add(&path, "%s/%s", a->plots, name);
    const clv_status status = path.failed ? CLV_E_MEMORY : clv_png_write(path.data, image);
    clv_text_clear(&path);
    return status;
}

/* Writes the star's name: its TARGETID, or how else the file names it. */
static void name_star(const specfit_table *t, const specfit_row *row, char out[48])
{
    const clv_desi_row *about = specfit_about(t, row);
    const char *path = t->inputs[t->places[row->first].input].path, *slash = strrchr(path, '/');
    if (about->target >= 0)
        snprintf(out, 48, "%lld", (long long)about->target);
    else if (*about->object)
        snprintf(out, 48, "%.40s", about->object);
    else
        snprintf(out, 48, "%.40s", slash ? slash + 1 : path);
}

int specfit_plot(const specfit_args *a, const specfit_table *t, const specfit_row *row,
                 const specfit_batch *b)
{
    clv_image image = { 0 };
    specfit_slot slots[CLV_SPECTRA_MAX_SPECTRA];
    char text[256], name[48];
    const clv_specfit_result *f = &row->fit;
    const size_t spectra = specfit_slots(t, row, slots), height = TOP + spectra * (PANEL + GAP) + 4;
    const clv_desi_row *about = specfit_about(t, row);
    const specfit_place *place = &t->places[row->first];
    clv_status status = clv_image_create(&image, WIDTH, height, white);
    if (status) return cli_status(cli_running(), status);
    double chi = 0;
    size_t pixels = 0;
    for (size_t k = 0; k < spectra; ++k)
        chi += f->chisq[k], pixels += f->pixels[k];
    name_star(t, row, name);
    snprintf(text, sizeof text,
             "v %.2f +- %.2f km/s  vsini %.1f km/s  teff %.0f +- %.0f K  logg %.2f +- %.2f  "
             "[Fe/H] %.2f +- %.2f  "
             "[a/Fe] %.2f +- %.2f  chi2/n %.2f  RVS_WARN %u",
             f->velocity, f->velocity_error, f->vsini, f->teff, f->teff_error, f->logg,
             f->logg_error, f->feh, f->feh_error, f->alpha, f->alpha_error,
             pixels ? chi / (double)pixels : 0.0, f->warnings & ~(unsigned)CLV_SPECFIT_WIDE_ERROR);
    clv_image_text(&image, LEFT, 5, 1, name, ink, NULL);
    clv_image_text(&image, LEFT, 17, 1, text, ink, NULL);
    for (size_t k = 0; k < spectra; ++k) {
        const clv_spectrum s = specfit_batch_spectrum(t, b, &slots[k]);
        draw_arm(&image, &s, f->model[k], f->velocity, !slots[k].input->single,
                 TOP + (long)(k * (PANEL + GAP)));
    }
    if (t->input_count > 1 || about->target < 0)
        snprintf(name, sizeof name, "star%zu.png", (size_t)(row - t->rows));
    else
        snprintf(name, sizeof name, "%lld_row%zu.png", (long long)about->target, place->row);
    status = save(a, name, &image);
    clv_image_clear(&image);
    return cli_status(cli_running(), status);
}

/* ---- all stars ----------------------------------------------------------------------------------- */

/* A quantity of each star. If `reversed`, small values are on the right of a horizontal axis and at the top of a
 * vertical one, as astronomers draw temperatures and gravities. */
typedef struct quantity {
    const char *name; /* with its unit */
    double (*of)(const clv_specfit_result *);
    bool reversed;
    double first, last; /* at the ends of the axis */
} quantity;

static void find_ends(const specfit_table *t, quantity *q)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < t->count; ++i) {
        const double value = q->of(&t->rows[i].fit);
        if (isfinite(value)) low = fmin(low, value), high = fmax(high, value);
    }
    if (!isfinite(low)) low = high = 0;
    if (!(high > low)) {
        const double room = room_beside(low);
        low -= room, high += room;
    }
    const double margin = 0.05 * (high - low); /* no star lies on the frame */
    low -= margin, high += margin;
    q->first = q->reversed ? high : low;
    q->last = q->reversed ? low : high;
}

/* Returns where a value lies on the axis: 0 at its beginning, 1 at its end. */
static double place_on(const quantity *q, double value)
{
    return (value - q->first) / (q->last - q->first);
}

/* Draws ticks at round values. */
static void ticks_on(clv_image *image, const frame *f, const quantity *q, bool vertical)
{
    const double low = fmin(q->first, q->last), high = fmax(q->first, q->last);
    const double step = step_of(high - low, 5);
    for (long i = (long)ceil(low / step); (double)i * step <= high; ++i) {
        const double value = (double)i * step, part = place_on(q, value);
        if (vertical) {
            const long y = f->y + f->height - (long)(part * (double)f->height);
            clv_image_fill(image, f->x, y, 5, 1, ink);
            number(image, f->x - 4, y - 3, value, step, 1);
        } else {
            const long x = f->x + (long)(part * (double)f->width);
            clv_image_fill(image, x, f->y + f->height - 4, 1, 5, ink);
            number(image, x, f->y + f->height + 4, value, step, 0.5);
        }
    }
}

static void scatter(clv_image *image, const specfit_table *t, frame f, quantity x, quantity y)
{
    find_ends(t, &x), find_ends(t, &y);
    for (size_t i = 0; i < t->count; ++i) {
        const clv_specfit_result *r = &t->rows[i].fit;
        const double across = place_on(&x, x.of(r)), up = place_on(&y, y.of(r));
        if (!isfinite(across) || !isfinite(up)) continue;
        clv_image_ring(image, (double)f.x + across * (double)f.width,
                       (double)f.y + (1 - up) * (double)f.height, 2.5, 2,
                       r->warnings & ~(unsigned)CLV_SPECFIT_WIDE_ERROR ? model_colour
                                                                       : good_colour);
    }
    border(image, &f);
    clv_image_text(image, f.x, f.y - 14, 1, y.name, ink, NULL);
    ticks_on(image, &f, &x, false), ticks_on(image, &f, &y, true);
    name_x(image, &f, x.name);
}

static double velocity_of(const clv_specfit_result *r)
{
    return r->velocity;
}

static double error_of(const clv_specfit_result *r)
{
    return log10(r->velocity_error);
}

static double teff_of(const clv_specfit_result *r)
{
    return r->teff;
}

static double logg_of(const clv_specfit_result *r)
{
    return r->logg;
}

static double feh_of(const clv_specfit_result *r)
{
    return r->feh;
}

static double alpha_of(const clv_specfit_result *r)
{
    return r->alpha;
}

int specfit_plot_summary(const specfit_args *a, const specfit_table *t)
{
    clv_image image = { 0 };
    clv_status status = clv_image_create(&image, 1200, 440, white);
    if (status) return cli_status(cli_running(), status);
    scatter(&image, t, (frame){ 70, 40, 300, 340, 0, 1 },
            (quantity){ .name = "radial velocity (km/s)", .of = velocity_of },
            (quantity){ .name = "log10 of the velocity's error in km/s", .of = error_of });
    scatter(&image, t, (frame){ 470, 40, 300, 340, 0, 1 },
            (quantity){ .name = "effective temperature (K)", .of = teff_of, .reversed = true },
            (quantity){ .name = "log10 of the gravity in cm/s2", .of = logg_of, .reversed = true });
    scatter(&image, t, (frame){ 870, 40, 300, 340, 0, 1 },
            (quantity){ .name = "[Fe/H] (dex)", .of = feh_of },
            (quantity){ .name = "[alpha/Fe] (dex)", .of = alpha_of });
    clv_image_text(&image, 70, 10, 1, "blue: without warnings, red: with some (RVS_WARN)", ink,
                   NULL);
    status = save(a, "summary.png", &image);
    clv_image_clear(&image);
    return cli_status(cli_running(), status);
}
