/* SPDX-License-Identifier: Apache-2.0 */
/* Calibrates an S/N map so that its noise has a standard deviation of 1 at every separation. */
#include "host/patch/calibrate.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* ---- tails of distributions, as logarithms ------------------------------------------------------- */

double clv_log_normal_tail(double z)
{
    if (z < 25) return log(0.5 * erfc(z / sqrt(2)));
    return -0.5 * z * z - log(z * sqrt(2 * PI)) + log1p(-1 / (z * z));
}

double clv_normal_of_log_tail(double log_p)
{
    double z = log_p > -1 ? 0 : sqrt(-2 * log_p) - 0.5;
    for (int i = 0; i < 100; ++i) {
        const double tail = clv_log_normal_tail(z),
                     slope = -exp(-0.5 * z * z - tail) / sqrt(2 * PI);
        const double step = (tail - log_p) / slope;
        z -= fmin(fmax(step, -2), 2);
        if (fabs(step) < 1e-12 * (1 + fabs(z))) break;
    }
    return z;
}

/* Returns the log of the regularised incomplete beta function, by Lentz's continued fraction; requires x < (a + 1) / (a
 * + b + 2). */
static double log_beta(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double sum = d;
    for (int m = 1; m < 500; ++m) {
        for (int odd = 0; odd < 2; ++odd) {
            const double n = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                                 : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
            d = 1 + n * d, c = 1 + n / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            sum *= c * d;
        }
        if (fabs(c * d - 1) < 1e-14) break;
    }
    return a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b) - log(a) + log(sum);
}

double clv_log_student_tail(double t, double freedom)
{
    if (t < 0) return log1p(-exp(clv_log_student_tail(-t, freedom)));
    const double x = freedom / (freedom + t * t), a = 0.5 * freedom, b = 0.5;
    if (x < (a + 1) / (a + b + 2)) return log(0.5) + log_beta(a, b, x);
    return log(0.5) + log1p(-exp(t > 0 ? log_beta(b, a, 1 - x) : -INFINITY));
}

/* Returns the value of a normal distribution that is as rare as x, where x is in units of a scatter that was estimated
 * from `count` samples (Mawet et al. 2014, equation 9). */
static double as_normal(double x, double count)
{
    const double t = fabs(x) / sqrt(1 + 1 / count);
    return copysign(clv_normal_of_log_tail(clv_log_student_tail(t, count - 1)), x);
}

/* ---- the map ------------------------------------------------------------------------------------------ */

enum {
    /* values of as_normal per annulus, at 0, 1/16, ... 8: a map has too many values to compute each */
    TABLE = 129,
    FARTHEST = 10 /* largest distance of the centre from a map, in units of the map's sides */
};

static double corrected(const clv_calibration *c, size_t annulus, double x)
{
    const double at = fabs(x) * 16;
    if (!(at < TABLE - 1)) return as_normal(x, c->samples[annulus]);
    const double *table = c->table + annulus * TABLE;
    const size_t i = (size_t)at;
    return copysign(table[i] + (at - (double)i) * (table[i + 1] - table[i]), x);
}

/* The pixels of a map, sorted by separation: bin i holds `pixel[first[i]]` to `pixel[first[i + 1] - 1]`. */
typedef struct bins {
    size_t *first, *pixel;
} bins;

static clv_status make_bins(const float *noise, size_t height, size_t width, const bool *masked,
                            const clv_calibration *c, bins *b)
{
    const size_t plane = height * width;
    b->first = clv_zalloc(c->count + 2, sizeof *b->first);
    b->pixel = clv_alloc(plane + 1, sizeof *b->pixel);
    size_t *bin = clv_alloc(plane + 1, sizeof *bin);
    if (!b->first || !b->pixel || !bin) {
        clv_free(bin);
        return clv_fail(CLV_E_MEMORY, "calibrate: not enough memory for maps of %zux%zu", width,
                        height);
    }
    for (size_t p = 0; p < plane; ++p) {
        const double r = hypot((double)(p % width) - c->cx, (double)(p / width) - c->cy);
        bin[p] = masked[p] || !isfinite(noise[p]) ? SIZE_MAX
                                                  : CLV_MIN((size_t)(r / c->step), c->count - 1);
        if (bin[p] != SIZE_MAX) ++b->first[bin[p] + 2];
    }
    for (size_t i = 2; i < c->count + 2; ++i)
        b->first[i] += b->first[i - 1];
    for (size_t p = 0; p < plane; ++p)
        if (bin[p] != SIZE_MAX) b->pixel[b->first[bin[p] + 1]++] = p;
    clv_free(bin);
    return CLV_OK;
}

/* Returns the k-th smallest value; reorders the array. */
static float select_kth(float *v, size_t count, size_t k)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        const float pivot = v[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (v[i] < pivot)
                ++i;
            while (v[j] > pivot)
                --j;
            if (i >= j) break;
            const float t = v[i];
            v[i++] = v[j], v[j--] = t;
        }
        if (v[j] > pivot) --j;
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
    return v[k];
}

/* Returns the scatter of the values in annulus i, which extends FWHM / 2 to either side of its radius. Leaves out
 * sources, which are values beyond 5 times 1.4826 MAD. With `scaled`, uses the corrected values. Returns NaN for an
 * annulus of fewer than 8 pixels. */
static double scatter(const float *noise, const clv_calibration *c, const bins *b, size_t annulus,
                      bool scaled, float *work)
{
    const size_t reach = 2, first = annulus > reach ? annulus - reach : 0,
                 last = CLV_MIN(annulus + reach, c->count);
    size_t count = 0;
    for (size_t i = b->first[first]; i < b->first[last]; ++i) {
        double value = noise[b->pixel[i]];
        if (scaled) value = corrected(c, annulus, value / c->scale[annulus]);
        work[count++] = (float)value;
    }
    if (count < 8) return NAN;
    float *size = work + count;
    for (size_t i = 0; i < count; ++i)
        size[i] = fabsf(work[i]);
    const double limit = 5 * 1.4826 * (double)select_kth(size, count, count / 2);
    double squares = 0, kept = 0;
    for (size_t i = 0; i < count; ++i)
        if (fabs((double)work[i]) <= limit) squares += (double)work[i] * work[i], ++kept;
    return kept > 0 && squares > 0 ? sqrt(squares / kept) : NAN;
}

/* Fills in annuli without a value from the nearest annulus that has one. */
static void fill(double *values, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        for (size_t d = 1; d < count && isnan(values[i]); ++d) {
            if (i + d < count && !isnan(values[i + d])) values[i] = values[i + d];
            if (i >= d && !isnan(values[i - d])) values[i] = values[i - d];
        }
}

/* Corrects for the change of the scatter within an annulus, where the mean scatter is too large on one side and too
 * small on the other. Values of 5 or more are treated as sources and left out. */
static void refine(const float *noise, size_t width, clv_calibration *c, const bins *b,
                   size_t first, size_t last, float *work)
{
    enum { ROUNDS = 2, REACH = 2 };
    const size_t whole =
        last < c->count ? last - 1 : last; /* interpolation also uses the next annulus */
    const size_t from = b->first[first], to = b->first[whole];
    for (int round = 0; round < ROUNDS; ++round) {
        for (size_t i = from; i < to; ++i) {
            const size_t p = b->pixel[i];
            work[i] = (float)clv_calibrated(c, noise[p], (double)(p % width), (double)(p / width));
        }
        for (size_t k = first; k < last; ++k) {
            const size_t end = b->first[CLV_MIN(k + REACH, whole)];
            double squares = 0, count = 0;
            for (size_t i = b->first[k > first + REACH ? k - REACH : first]; i < end; ++i)
                if (fabsf(work[i]) < 5) squares += (double)work[i] * work[i], ++count;
            if (count >= 8 && squares > 0) c->after[k] *= sqrt(squares / count);
        }
    }
}

/* Calibrates the annuli that cover the radii from `from` to `to`; the others take the values of their neighbours.
 * `plain`: computes the scale alone. */
static clv_status create(const float *noise, size_t height, size_t width, double cx, double cy,
                         double fwhm, const bool *masked, double from, double to, bool plain,
                         clv_calibration *out)
{
    const double far = hypot(fmax(cx, (double)width - cx), fmax(cy, (double)height - cy));
    clv_calibration *c = out;
    *c = (clv_calibration){ .cx = cx, .cy = cy, .step = fmax(0.25 * fwhm, 0.75) };
    c->count = (size_t)(far / c->step) + 2;
    c->scale = clv_alloc(c->count, (3 + TABLE) * sizeof *c->scale);
    float *work = clv_alloc(2 * height * width + 2, sizeof *work);
    bins b = { 0 };
    clv_status status =
        c->scale && work
            ? CLV_OK
            : clv_fail(CLV_E_MEMORY, "calibrate: not enough memory for maps of %zux%zu", width,
                       height);
    if (!status) status = make_bins(noise, height, width, masked, c, &b);
    if (!status) {
        const size_t first = (size_t)fmin(fmax(from / c->step, 0), (double)c->count),
                     last = (size_t)fmin(ceil(to / c->step) + 1, (double)c->count);
        c->samples = c->scale + c->count, c->after = c->samples + c->count,
        c->table = c->after + c->count;
        for (size_t i = 0; i < c->count; ++i) {
            const bool wanted = i >= first && i < last;
            c->samples[i] = fmax(2 * PI * (double)i * c->step / fwhm, 3);
            for (int k = 0; k < TABLE && wanted && !plain; ++k)
                c->table[i * TABLE + (size_t)k] = as_normal(k / 16.0, c->samples[i]);
            c->scale[i] = wanted ? scatter(noise, c, &b, i, false, work) : NAN;
        }
        fill(c->scale, c->count);
        for (size_t i = 0; i < c->count; ++i)
            c->after[i] =
                i >= first && i < last && !plain ? scatter(noise, c, &b, i, true, work) : NAN;
        fill(c->after, c->count);
        if (!plain) refine(noise, width, c, &b, first, last, work);
    } else {
        clv_calibration_clear(c);
    }
    clv_free(work), clv_free(b.first), clv_free(b.pixel);
    return status;
}

clv_status clv_calibration_create(const float *noise, size_t height, size_t width, double cx,
                                  double cy, double fwhm, const bool *masked, clv_calibration *out)
{
    return create(noise, height, width, cx, cy, fwhm, masked, 0, INFINITY, false, out);
}

clv_status clv_calibration_scatter(const float *noise, size_t height, size_t width, double cx,
                                   double cy, double fwhm, const bool *masked, double *scatter,
                                   size_t count)
{
    clv_calibration c;
    CLV_TRY(create(noise, height, width, cx, cy, fwhm, masked, 0, INFINITY, true, &c));
    for (size_t r = 0; r < count; ++r) {
        const double at = fmin((double)r / c.step, (double)c.count - 1.001);
        const size_t i = (size_t)at;
        scatter[r] = c.scale[i] + (at - (double)i) * (c.scale[i + 1] - c.scale[i]);
    }
    clv_calibration_clear(&c);
    return CLV_OK;
}

clv_status clv_calibrated_alone(const float *snr, size_t height, size_t width, double cx, double cy,
                                double fwhm, const bool *masked, size_t place, double *value)
{
    const size_t plane = height * width;
    const double x = (double)(place % width), y = (double)(place / width),
                 r = hypot(x - cx, y - cy);
    bool *without = clv_alloc(plane, sizeof *without);
    if (!without) return clv_fail(CLV_E_MEMORY, "calibrate: not enough memory for a mask");
    size_t total = 0, left = 0; /* numbers of pixels in the annulus as wide as the PSF */
    for (size_t p = 0; p < plane; ++p) {
        const double u = (double)(p % width), v = (double)(p / width);
        without[p] = masked[p] || hypot(u - x, v - y) <= fwhm;
        if (masked[p] || !isfinite(snr[p]) || fabs(hypot(u - cx, v - cy) - r) > 0.5 * fwhm)
            continue;
        ++total, left += !without[p];
    }
    if (2 * left < total) memcpy(without, masked, plane * sizeof *without);
    clv_calibration c;
    const clv_status status =
        create(snr, height, width, cx, cy, fwhm, without, r - fwhm, r + fwhm, false, &c);
    clv_free(without);
    if (status) return status;
    *value = clv_calibrated(&c, snr[place], x, y);
    clv_calibration_clear(&c);
    return CLV_OK;
}

void clv_calibration_clear(clv_calibration *c)
{
    clv_free(c->scale);
    *c = (clv_calibration){ 0 };
}

double clv_calibrated(const clv_calibration *c, double snr, double x, double y)
{
    const double at = fmin(hypot(x - c->cx, y - c->cy) / c->step, (double)c->count - 1.001);
    const size_t i = (size_t)at;
    const double t = at - (double)i;
    if (!(c->scale[i] > 0) || !isfinite(snr)) return snr;
    const double near = corrected(c, i, snr / c->scale[i]) / c->after[i],
                 next = corrected(c, i + 1, snr / c->scale[i + 1]) / c->after[i + 1];
    return (1 - t) * near + t * next;
}

/* Returns the raw value whose calibrated value is `calibrated`. Uses bisection, because calibration is monotonic. */
double clv_uncalibrated(const clv_calibration *c, double calibrated, double x, double y)
{
    double low = 0, high = 1;
    while (clv_calibrated(c, high, x, y) < calibrated && high < 1e6)
        high *= 2;
    for (int i = 0; i < 60; ++i) {
        const double middle = 0.5 * (low + high);
        if (clv_calibrated(c, middle, x, y) < calibrated)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

clv_status clv_paco_calibrate(const float *snr, const float *noise, size_t height, size_t width,
                              double centre_x, double centre_y, double fwhm_px,
                              const double *masked_xy, size_t masked_count, float *calibrated)
{
    if (!snr || !calibrated || (masked_count && !masked_xy))
        return clv_fail(CLV_E_ARGUMENT, "calibrate: a map or the list of masked positions is NULL");
    if (!(fwhm_px > 0) || !isfinite(fwhm_px) || !isfinite(centre_x) || !isfinite(centre_y))
        return clv_fail(CLV_E_ARGUMENT,
                        "calibrate: the FWHM is %g and the centre (%g, %g); expected finite "
                        "numbers and a FWHM above 0",
                        fwhm_px, centre_x, centre_y);
    if (!height || !width) return CLV_OK;
    const double far = FARTHEST * ((double)height + (double)width);
    if (!(fabs(centre_x) <= far && fabs(centre_y) <= far))
        return clv_fail(CLV_E_ARGUMENT,
                        "calibrate: the centre is (%g, %g), but for a map of %zux%zu it must be at "
                        "most %g pixels away from the first pixel along each axis",
                        centre_x, centre_y, width, height, far);
    bool *masked = clv_zalloc(height * width, sizeof *masked);
    if (!masked) return clv_fail(CLV_E_MEMORY, "calibrate: not enough memory for a mask");
    for (size_t k = 0; k < masked_count; ++k)
        for (size_t p = 0; p < height * width; ++p)
            if (hypot((double)(p % width) - masked_xy[2 * k],
                      (double)(p / width) - masked_xy[2 * k + 1]) <= fwhm_px)
                masked[p] = true;
    clv_calibration c;
    const clv_status status = clv_calibration_create(noise ? noise : snr, height, width, centre_x,
                                                     centre_y, fwhm_px, masked, &c);
    if (!status) {
        for (size_t p = 0; p < height * width; ++p)
            calibrated[p] =
                (float)clv_calibrated(&c, snr[p], (double)(p % width), (double)(p / width));
        clv_calibration_clear(&c);
    }
    clv_free(masked);
    return status;
}
