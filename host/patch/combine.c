/* SPDX-License-Identifier: Apache-2.0 */
/* Combines channels into one map: whitens them by the correlation of their noise and weights them by a spectrum. Also
 * computes how much the S/N must be lowered because several spectra were tried. */
#include "host/patch/combine.h"
#include "host/patch/calibrate.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/linalg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

static const double beyond = 5; /* values this far from 0 are not noise */
/* limit for the sum of all channels, in which a planet adds up and noise is rarely this high */
static const double suspect = 3.5;

static size_t separation(const clv_combination *c, size_t p)
{
    return (size_t)hypot((double)(p % c->width) - c->cx, (double)(p / c->width) - c->cy);
}

/* Returns the S/N of a channel at a position, or NaN if the position has no value. */
static double snr_of(const double *a, const double *b, size_t at)
{
    return a[at] > 0 ? b[at] / sqrt(a[at]) : NAN;
}

/* Measures the scatter of every channel by separation, relative to the mean of all channels. Thereby channels whose
 * noise is underestimated count for less, and the S/N keeps its unit if all channels are alike. */
static clv_status learn_scale(const clv_combination *c, const double *a, const double *b,
                              const bool *masked, clv_whitening *w)
{
    const size_t plane = c->height * c->width;
    float *snr = clv_alloc(plane + 1, sizeof *snr);
    double *scatter = clv_alloc(w->radii + 1, sizeof *scatter);
    clv_status status =
        snr && scatter ? CLV_OK : clv_fail(CLV_E_MEMORY, "combine: not enough memory for a map");
    for (size_t l = 0; l < c->channels && !status; ++l) {
        for (size_t p = 0; p < plane; ++p)
            snr[p] = (float)snr_of(a, b, l * plane + p);
        status = clv_calibration_scatter(snr, c->height, c->width, c->cx, c->cy, c->fwhm, masked,
                                         scatter, w->radii);
        for (size_t r = 0; r < w->radii && !status; ++r)
            w->scale[r * c->channels + l] = scatter[r] > 0 ? scatter[r] : 1;
    }
    for (size_t r = 0; r < w->radii && !status; ++r) {
        double sum = 0, *scale = w->scale + r * c->channels;
        for (size_t l = 0; l < c->channels; ++l)
            sum += log(scale[l]);
        w->common[r] = exp(sum / (double)c->channels);
        for (size_t l = 0; l < c->channels; ++l)
            scale[l] /= w->common[r];
    }
    clv_free(snr), clv_free(scatter);
    return status;
}

static void mask_disc(const clv_combination *c, double x, double y, double radius, bool *masked)
{
    const size_t x0 = (size_t)fmin(fmax(floor(x) - ceil(radius), 0), (double)c->width),
                 y0 = (size_t)fmin(fmax(floor(y) - ceil(radius), 0), (double)c->height);
    for (size_t v = y0; v < c->height && (double)v <= y + radius; ++v)
        for (size_t u = x0; u < c->width && (double)u <= x + radius; ++u)
            if (hypot((double)u - x, (double)v - y) <= radius) masked[v * c->width + u] = true;
}

/* Masks possible planets that have not been found yet: peaks and troughs of the channels' sum before whitening. */
static clv_status mask_sources(const clv_combination *c, const clv_whitening *w, const double *a,
                               const double *b, const double *places, size_t count, bool *masked)
{
    const size_t plane = c->height * c->width, n = c->channels;
    clv_whitening alone = *w;
    alone.zone = clv_zalloc(w->radii, sizeof *alone.zone);
    alone.factor = clv_zalloc(n * n, sizeof *alone.factor);
    float *raw = clv_alloc((c->spectrum_count + 1) * plane, sizeof *raw),
          *shown = raw + c->spectrum_count * plane;
    clv_status status = alone.zone && alone.factor && raw
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "combine: not enough memory for maps");
    for (size_t l = 0; l < n && !status; ++l)
        alone.factor[l * (n + 1)] = 1;
    if (!status) status = clv_combine(c, &alone, a, b, raw, NULL);
    for (size_t k = 0; k < c->spectrum_count && !status; ++k) {
        status = clv_paco_calibrate(raw + k * plane, NULL, c->height, c->width, c->cx, c->cy,
                                    c->fwhm, places, count, shown);
        for (size_t p = 0; p < plane && !status; ++p)
            if (fabsf(shown[p]) > (float)suspect)
                mask_disc(c, (double)(p % c->width), (double)(p / c->width), c->fwhm, masked);
    }
    clv_free(alone.zone), clv_free(alone.factor), clv_free(raw);
    return status;
}

/* Computes s at a position in units of its scatter. Returns false if a channel has no value, or a value too large to be
 * noise. */
static bool noise_at(const clv_combination *c, const clv_whitening *w, const double *a,
                     const double *b, size_t p, double *s)
{
    const size_t r = separation(c, p), plane = c->height * c->width;
    for (size_t l = 0; l < c->channels; ++l) {
        s[l] = snr_of(a, b, l * plane + p) / (w->scale[r * c->channels + l] * w->common[r]);
        if (!(fabs(s[l]) < beyond)) return false;
    }
    return true;
}

/* Groups separations into zones, each with enough independent positions to estimate a covariance of all channels. */
static size_t make_zones(const clv_combination *c, clv_whitening *w, const size_t *pixels,
                         double independent)
{
    const double least = fmax(40, 2 * (double)c->channels) * independent;
    double left = 0, held = 0;
    size_t zones = 0;
    for (size_t r = 0; r < w->radii; ++r)
        left += (double)pixels[r];
    for (size_t r = 0; r < w->radii; ++r) {
        w->zone[r] = zones;
        held += (double)pixels[r], left -= (double)pixels[r];
        if (held >= least && left >= least) ++zones, held = 0;
    }
    return zones + 1;
}

/* Replaces S, a sum of products, by the Cholesky factor of its shrunk correlation. Shrinking multiplies off-diagonal
 * elements by 1 - rho, as in patches; rho depends on the number of independent samples. */
static clv_status factorise(double *S, size_t n, double samples, double independent)
{
    double all = 0, trace = 0, squares = 0;
    const double n_eff = fmax(samples / independent, 2);
    for (size_t i = 0; i < n; ++i)
        S[i * n + i] = samples > 0 && S[i * n + i] > 0 ? S[i * n + i] / samples : 1;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < i; ++j) {
            S[i * n + j] =
                samples > 0 ? S[i * n + j] / (samples * sqrt(S[i * n + i] * S[j * n + j])) : 0;
            all += 2 * S[i * n + j] * S[i * n + j];
        }
    for (size_t i = 0; i < n; ++i)
        S[i * n + i] = 1, trace += 1, squares += 1, all += 1;
    const double top = all + trace * trace - 2 * squares, bottom = (n_eff + 1) * (all - squares),
                 rho = bottom > 0 ? fmin(fmax(top / bottom, 0), 1) : 1;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < i; ++j)
            S[i * n + j] *= 1 - rho;
    return clv_cholesky(S, n)
               ? CLV_OK
               : clv_fail(
                     CLV_E_ARGUMENT,
                     "combine: the covariance of the channels' noise is not positive definite");
}

clv_status clv_whitening_create(const clv_combination *c, const double *a, const double *b,
                                const double *places, size_t count, clv_whitening *w)
{
    const size_t plane = c->height * c->width, n = c->channels;
    const double independent =
        fmax(2 * PI * c->fwhm * c->fwhm / (8 * log(2)), 1); /* pixels per independent sample */
    *w = (clv_whitening){
        .radii = (size_t)hypot(fmax(c->cx, (double)c->width), fmax(c->cy, (double)c->height)) + 2
    };
    w->zone = clv_alloc(w->radii, sizeof *w->zone);
    w->scale = clv_alloc(w->radii * (n + 1), sizeof *w->scale);
    bool *masked = clv_zalloc(plane + 1, sizeof *masked);
    size_t *pixels = clv_zalloc(w->radii, sizeof *pixels), zones = 0;
    double *s = clv_alloc(n, sizeof *s), *samples = NULL;
    clv_status status = CLV_OK;
    if (!w->zone || !w->scale || !masked || !pixels || !s) {
        status = clv_fail(CLV_E_MEMORY, "combine: not enough memory for maps of %zux%zu", c->width,
                          c->height);
        goto cleanup;
    }
    w->common = w->scale + w->radii * n;
    for (size_t k = 0; k < count; ++k)
        mask_disc(c, places[2 * k], places[2 * k + 1], c->fwhm, masked);
    status = learn_scale(c, a, b, masked, w);
    if (!status) status = mask_sources(c, w, a, b, places, count, masked);
    if (status) goto cleanup;
    for (size_t p = 0; p < plane; ++p) {
        masked[p] = masked[p] || !noise_at(c, w, a, b, p, s);
        pixels[separation(c, p)] += !masked[p];
    }
    zones = make_zones(c, w, pixels, independent);
    w->factor = clv_zalloc(zones * n * n, sizeof *w->factor),
    samples = clv_zalloc(zones, sizeof *samples);
    if (!w->factor || !samples) {
        status = clv_fail(CLV_E_MEMORY, "combine: not enough memory for %zu channels", n);
        goto cleanup;
    }
    for (size_t p = 0; p < plane; ++p) {
        if (masked[p] || !noise_at(c, w, a, b, p, s)) continue;
        const size_t zone = w->zone[separation(c, p)];
        double *S = w->factor + zone * n * n;
        ++samples[zone];
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j <= i; ++j)
                S[i * n + j] += s[i] * s[j];
    }
    for (size_t z = 0; z < zones && !status; ++z)
        status = factorise(w->factor + z * n * n, n, samples[z], independent);
cleanup:
    if (status) clv_whitening_clear(w);
    clv_free(masked), clv_free(pixels), clv_free(s), clv_free(samples);
    return status;
}

void clv_whitening_clear(clv_whitening *w)
{
    clv_free(w->zone), clv_free(w->scale), clv_free(w->factor);
    *w = (clv_whitening){ 0 };
}

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += x[i] * y[i];
    return sum;
}

clv_status clv_combine(const clv_combination *c, const clv_whitening *w, const double *a,
                       const double *b, float *raw, double *alike)
{
    const size_t plane = c->height * c->width, n = c->channels, count = c->spectrum_count;
    double *s = clv_alloc((count + 1) * n, sizeof *s), *u = s + n, positions = 0;
    if (!s) return clv_fail(CLV_E_MEMORY, "combine: not enough memory for %zu spectra", count);
    if (alike) memset(alike, 0, count * count * sizeof *alike);
    for (size_t p = 0; p < plane; ++p) {
        const size_t r = separation(c, p);
        const double *factor = w->factor + w->zone[r] * n * n, *scale = w->scale + r * n;
        bool whole = true;
        for (size_t l = 0; l < n; ++l) {
            s[l] = snr_of(a, b, l * plane + p) / scale[l];
            whole = whole && isfinite(s[l]);
            for (size_t k = 0; k < count; ++k)
                u[k * n + l] = c->spectra[k * n + l] * sqrt(a[l * plane + p]) / scale[l];
        }
        for (size_t k = 0; k < count && !whole; ++k)
            raw[k * plane + p] = NAN;
        if (!whole) continue;
        clv_forward_substitute(factor, n, s);
        for (size_t k = 0; k < count; ++k) {
            double *v = u + k * n;
            clv_forward_substitute(factor, n, v);
            const double length = sqrt(dot(v, v, n));
            for (size_t l = 0; l < n; ++l)
                v[l] /= length;
            raw[k * plane + p] = (float)dot(v, s, n);
        }
        for (size_t k = 0; k < count && alike; ++k)
            for (size_t j = 0; j < count; ++j)
                alike[k * count + j] += dot(u + k * n, u + j * n, n);
        ++positions;
    }
    for (size_t k = 0; k < count * count && alike; ++k)
        alike[k] = positions > 0 ? alike[k] / positions : k % (count + 1) == 0;
    clv_free(s);
    return CLV_OK;
}

/* ---- correction for the number of spectra --------------------------------------------------------- */

static double uniform(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9),
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static double step_value(size_t i)
{
    return -8 + 0.5 * (double)i;
}

/* Sets `body` to the lowest z that the highest S/N exceeds in at most 30 % of cases: above it the tail is accurate.
 * Below it, a small relative error of the tail is a large relative error of its complement. */
static void set_body(clv_price *price)
{
    const double rare = log(0.3);
    for (size_t i = 0; i < CLV_PRICE_STEPS; ++i) {
        const double z = step_value(i), tail = clv_log_normal_tail(z) + price->log_trials[i];
        if (tail > rare) continue;
        price->body = z;
        price->trials = fmax(log1p(-exp(tail)) / clv_log_normal_tail(-z), 1);
        return;
    }
}

clv_status clv_price_create(const double *alike, size_t count, clv_price *price)
{
    enum { DRAWS = 300 };
    memset(price, 0, sizeof *price);
    if (count < 2) return CLV_OK;
    double *factor = clv_alloc(count * count, sizeof *factor), *x = clv_alloc(2 * count, sizeof *x),
           *g = x + count, sums[CLV_PRICE_STEPS] = { 0 };
    if (!factor || !x) {
        clv_free(factor), clv_free(x);
        return clv_fail(CLV_E_MEMORY, "combine: not enough memory for %zu spectra", count);
    }
    memcpy(factor, alike, count * count * sizeof *factor);
    /* keeps the matrix positive definite if two spectra are equal */
    for (size_t k = 0; k < count; ++k)
        factor[k * (count + 1)] = 1 + 1e-9;
    const bool usable = clv_cholesky(factor, count);
    uint64_t state = 28;
    for (size_t k = 0; k < count; ++k)
        for (int draw = 0; draw < DRAWS && usable; ++draw) {
            for (size_t i = 0; i < count; ++i)
                g[i] = sqrt(-2 * log(uniform(&state))) * cos(2 * PI * uniform(&state));
            for (size_t i = 0; i < count; ++i)
                x[i] = dot(factor + i * count, g, i + 1);
            const double log_u = log(uniform(&state));
            for (size_t i = 0; i < CLV_PRICE_STEPS; ++i) {
                /* puts spectrum k beyond z; the other spectra follow from their correlation with spectrum k */
                const double z = step_value(i),
                             mine = clv_normal_of_log_tail(log_u + clv_log_normal_tail(z));
                size_t exceed = 0;
                for (size_t j = 0; j < count; ++j)
                    exceed += j == k || x[j] + alike[j * count + k] * (mine - x[k]) > z;
                sums[i] += 1 / (double)exceed;
            }
        }
    for (size_t i = 0; i < CLV_PRICE_STEPS; ++i)
        price->log_trials[i] = usable ? log(sums[i] / DRAWS) : log((double)count);
    set_body(price);
    clv_free(factor), clv_free(x);
    return CLV_OK;
}

double clv_price_paid(const clv_price *price, double highest)
{
    if (!isfinite(highest) || price->trials == 0) return highest;
    if (highest < price->body)
        return -clv_normal_of_log_tail(price->trials * clv_log_normal_tail(-highest));
    const double at = fmin(fmax(2 * (highest + 8), 0), CLV_PRICE_STEPS - 1.001);
    const size_t i = (size_t)at;
    const double trials =
        price->log_trials[i] + (at - (double)i) * (price->log_trials[i + 1] - price->log_trials[i]);
    return clv_normal_of_log_tail(fmin(clv_log_normal_tail(highest) + trials, -1e-15));
}

double clv_price_unpaid(const clv_price *price, double paid)
{
    double low = paid - 1, high = paid + 10;
    for (int i = 0; i < 60 && isfinite(paid); ++i) {
        const double middle = 0.5 * (low + high);
        if (clv_price_paid(price, middle) < paid)
            low = middle;
        else
            high = middle;
    }
    return isfinite(paid) ? 0.5 * (low + high) : paid;
}
