/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a star for the fit: marks bad pixels, corrects errors, converts the resolution matrix, and fits the
 * continuum alone. */
#include "host/spectra/spectra_plan.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* limits in units of the medians of flux and error */
static const double big_error = 1000, least_error = 0.3;
/* for the arm that the first rounds use: least chi-square of its lines, largest mean square of their depth */
static const double least_lines = 1000, deepest = 0.05;

static double median_where(const clv_spectrum *in, int rule, double *scratch)
{
    size_t n = 0;
    for (size_t k = 0; k < in->pixels; ++k) {
        const double v = (double)in->flux[k];
        const bool masked = in->mask && in->mask[k] > 0;
        if (isnan(v) || (rule == 1 && !(v > 0 && !masked))) continue;
        scratch[n++] = rule == 2 ? fabs(v) : v;
    }
    return clv_median(scratch, n);
}

/* Fills gaps of the flux: interpolates linearly in pixel number between good neighbours; the ends are constant. */
static void interpolate(double *flux, const unsigned char *gap, size_t n)
{
    for (size_t k = 0; k < n; ++k) {
        if (!gap[k]) continue;
        size_t end = k;
        while (end < n && gap[end])
            ++end;
        if (k == 0 && end == n) return;
        for (size_t i = k; i < end; ++i) {
            if (k == 0)
                flux[i] = flux[end];
            else if (end == n)
                flux[i] = flux[k - 1];
            else
                flux[i] = flux[k - 1] +
                          (flux[end] - flux[k - 1]) * (double)(i - k + 1) / (double)(end - k + 1);
        }
        k = end;
    }
}

static bool is_ignored(const clv_specfit_options *options, double wavelength)
{
    for (size_t i = 0; i < options->ignored_count; ++i)
        if (wavelength > options->ignored[2 * i] && wavelength < options->ignored[2 * i + 1])
            return true;
    return false;
}

bool clv_spectrum_prepare(const clv_spectrum *in, const clv_specfit_options *options, bool edges,
                          double *flux, double *sigma, unsigned char *bad, double *scratch)
{
    const size_t n = in->pixels;
    size_t flagged = 0, gaps = 0, good = 0;
    if (!n) return false;
    for (size_t k = 0; k < n; ++k)
        flagged += in->mask && in->mask[k] > 0;
    double middle = median_where(in, 0, scratch);
    if (middle == 0) middle = median_where(in, 1, scratch);
    if (!isfinite(middle)) middle = median_where(in, 2, scratch);
    if (flagged == n || !isfinite(middle) || middle == 0) return false;
    for (size_t k = 0; k < n; ++k) {
        const double f = (double)in->flux[k], v = (double)in->ivar[k];
        const bool gap = !isfinite(f + v) || (in->mask && in->mask[k] > 0) || v <= 0;
        const bool edge = edges && (k < 5 || k + 5 >= n);
        flux[k] = f;
        gaps += bad[k] = gap;
        scratch[k] = gap || edge || is_ignored(options, in->wavelength[k]) ? 0 : 1 / sqrt(v);
    }
    if (gaps == n)
        memset(flux, 0, n * sizeof *flux);
    else
        interpolate(flux, bad, n);
    for (size_t k = 0; k < n; ++k) {
        bad[k] = !(scratch[k] > 0);
        sigma[k] = bad[k] ? big_error * fabs(middle) : scratch[k];
        if (!bad[k]) scratch[good++] = sigma[k];
    }
    const double least = good ? least_error * clv_median(scratch, good) : 0;
    for (size_t k = 0; k < n; ++k)
        if (!bad[k] && sigma[k] < least) sigma[k] = least;
    return true;
}

clv_status clv_star_data_create(const clv_spectra_plan *plan, clv_star_data *d)
{
    const size_t n = plan->sizes.all_pixels;
    *d = (clv_star_data){ 0 };
    d->flux = clv_alloc(n, sizeof *d->flux), d->sigma = clv_alloc(n, sizeof *d->sigma);
    d->bad = clv_alloc(n, 1), d->pairs = clv_alloc(2 * n, sizeof *d->pairs);
    d->ccf = clv_alloc(plan->stars.spectra * 2 * plan->sizes.ccf_room, sizeof *d->ccf);
    d->scratch = clv_alloc(4 * n, sizeof *d->scratch);
    if (plan->sizes.diagonals) {
        d->resolution = clv_alloc(n * plan->sizes.diagonals, sizeof *d->resolution);
        d->resolution64 = clv_alloc(n * plan->sizes.diagonals, sizeof *d->resolution64);
    }
    if (d->flux && d->sigma && d->bad && d->pairs && d->ccf && d->scratch &&
        (!plan->sizes.diagonals || (d->resolution && d->resolution64)))
        return CLV_OK;
    clv_star_data_clear(d);
    return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a star of %zu pixels", n);
}

void clv_star_data_clear(clv_star_data *d)
{
    clv_free(d->flux), clv_free(d->sigma), clv_free(d->bad), clv_free(d->pairs);
    clv_free(d->resolution), clv_free(d->resolution64), clv_free(d->ccf), clv_free(d->scratch);
    *d = (clv_star_data){ 0 };
}

static void continuum_alone(const clv_spectra_plan *plan, size_t i, clv_star_data *d)
{
    const clv_spectra_grid *g = &plan->grid[i];
    double a[CLV_SPECTRA_MAX_TERMS], value, chi = 0;
    double *ones = d->scratch;
    for (size_t k = 0; k < g->pixels; ++k)
        ones[k] = 1;
    if (!clv_spectra_value(g->basis, plan->options.terms, g->pixels, ones, d->flux + g->first,
                           d->sigma + g->first, a, &value))
        return;
    for (size_t k = 0; k < g->pixels; ++k) {
        double model = 0;
        for (unsigned j = 0; j < plan->options.terms; ++j)
            model += a[j] * g->basis[k * plan->options.terms + j];
        const double r = (d->flux[g->first + k] - model) / d->sigma[g->first + k];
        if (!d->bad[g->first + k]) chi += r * r;
    }
    d->facts.chisq_continuum[i] = chi;
}

/* Divides flux and errors by a power of two near the median error, so that float32 can hold the sums of their squares,
 * whatever the unit of the flux. The scaling does not change the bits of a fit. Returns the power of two. */
static double rescale(double *flux, double *sigma, const unsigned char *bad, size_t n,
                      double *scratch)
{
    size_t good = 0;
    for (size_t k = 0; k < n; ++k)
        if (!bad[k]) scratch[good++] = sigma[k];
    const double middle = good ? clv_median(scratch, good) : 0;
    if (!(middle > 0) || !isfinite(middle)) return 1;
    const double scale = exp2(round(log2(middle)));
    for (size_t k = 0; k < n; ++k)
        flux[k] /= scale, sigma[k] /= scale;
    return scale;
}

static clv_status prepare_spectrum(const clv_spectra_plan *plan, size_t i, const clv_spectrum *in,
                                   clv_star_data *d)
{
    const clv_spectra_grid *g = &plan->grid[i];
    double *flux = d->flux + g->first, *sigma = d->sigma + g->first, sum = 0, product = 1;
    unsigned char *bad = d->bad + g->first;
    size_t good = 0;
    d->facts.scale[i] = 1;
    if (!clv_spectrum_prepare(in, &plan->options, plan->sizes.diagonals > 0, flux, sigma, bad,
                              d->scratch)) {
        for (size_t k = 0; k < g->pixels; ++k)
            flux[k] = 0, sigma[k] = 1, bad[k] = 1;
        return CLV_OK;
    }
    d->facts.present[i] = true;
    d->facts.scale[i] = rescale(flux, sigma, bad, g->pixels, d->scratch);
    const double unit = d->facts.scale[i] * (in->unit == 0 ? 1 : in->unit);
    for (size_t k = 0; k < g->pixels; ++k) {
        const double inverse = 1 / sigma[k];
        float *pair = d->pairs + 2 * (g->first + k);
        pair[0] = (float)(bad[k] ? -inverse : inverse);
        pair[1] = (float)(flux[k] * inverse);
        product *= sigma[k]; /* one logarithm per 4 errors: their product stays in range */
        if (k % 4 == 3 || k + 1 == g->pixels) sum += log(product), product = 1;
        if (!bad[k]) d->scratch[good++] = flux[k] * inverse;
    }
    /* M = S S' contains the squares of 1 / s and of the templates: this also corrects log det M for the scaling */
    d->facts.log_sigmas += 2 * (sum + (double)g->pixels * log(unit)) +
                           2 * (double)plan->options.terms * (g->log_scale - log(unit));
    d->facts.good[i] = good;
    d->facts.signal_to_noise[i] = good ? clv_median(d->scratch, good) : 0;
    d->facts.usable |= good > 0;
    continuum_alone(plan, i, d);
    if (plan->library->arms[g->arm].ccf)
        clv_start_arrays(plan, i, flux, sigma, bad, d->scratch,
                         d->ccf + 2 * i * plan->sizes.ccf_room,
                         d->ccf + (2 * i + 1) * plan->sizes.ccf_room, NULL);
    if (!plan->sizes.diagonals || !in->resolution) return CLV_OK;
    const double pixel = g->wavelength[1] - g->wavelength[0];
    const double of_arm = plan->library->arms[g->arm].sigma;
    const double width = of_arm > 0 ? of_arm : plan->options.library_sigma;
    CLV_TRY(clv_resolution_rows(in->resolution, plan->sizes.diagonals, g->pixels,
                                in->resolution_is_final ? 0 : width / pixel, d->resolution64));
    for (size_t k = 0; k < g->pixels * plan->sizes.diagonals; ++k)
        d->resolution[g->first * plan->sizes.diagonals + k] = (float)d->resolution64[k];
    return CLV_OK;
}

/* Finds the arm whose lines say most about the star: how far chi-square of a continuum alone is above what noise gives.
 * The depth that lines can have at this signal-to-noise ratio limits it, so that cosmic rays do not count. */
static size_t first_arm(const clv_spectra_plan *plan, const clv_star_facts *f)
{
    double most = least_lines;
    size_t found = 0;
    if (!clv_spectra_has_first_arms(plan)) return 0;
    for (size_t lead = 0; lead < plan->stars.spectra; ++lead) {
        double sum = 0;
        for (size_t i = lead; i < plan->stars.spectra; ++i) {
            if (!f->present[i] || clv_spectra_lead(plan, i) != lead) continue;
            const double good = (double)f->good[i], signal = f->signal_to_noise[i];
            sum += fmin(f->chisq_continuum[i] - good, deepest * signal * signal * good);
        }
        if (sum > most) most = sum, found = lead + 1;
    }
    return found;
}

clv_status clv_star_prepare(const clv_spectra_plan *plan, size_t star, clv_star_data *d)
{
    const size_t n = plan->sizes.all_pixels;
    d->facts = (clv_star_facts){ 0 };
    memset(d->pairs, 0, 2 * n * sizeof *d->pairs);
    memset(d->ccf, 0, plan->stars.spectra * 2 * plan->sizes.ccf_room * sizeof *d->ccf);
    for (size_t k = 0; k < n; ++k)
        d->flux[k] = 0, d->sigma[k] = 1, d->bad[k] = 1;
    if (plan->sizes
            .diagonals) { /* R is the identity for spectra without a matrix, and at padding */
        memset(d->resolution, 0, n * plan->sizes.diagonals * sizeof *d->resolution);
        for (size_t k = 0; k < n; ++k)
            d->resolution[k * plan->sizes.diagonals + plan->sizes.diagonals / 2] = 1;
    }
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        const clv_spectrum *in = &plan->stars.items[star * plan->stars.spectra + i];
        if (in->pixels && plan->grid[i].wavelength) CLV_TRY(prepare_spectrum(plan, i, in, d));
    }
    d->facts.first_arm = first_arm(plan, &d->facts);
    return CLV_OK;
}
