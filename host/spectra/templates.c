/* SPDX-License-Identifier: Apache-2.0 */
/* Makes templates from high-resolution spectra: the host computes the weights, the devices compute the weighted sums,
 * and the host takes their logarithms. */
#include "host/spectra/spectra_math.h"
#include "host/spectra/spectra_plan.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "cl_embedded.h"

#include <cleave/items.h>
#include <cleave/templates.h>

#include <math.h>
#include <string.h>

enum {
    LANES = 16, /* spectra per block, as in cl/spectra/smooth.cl */
    GROUP = 64,
    LEAST_POINTS = 64, /* least points of a template */
    MOST_POINTS = 1 << 20,
    MOST_PIECES = 4096,
    MOST_CONTINUUM = 20 /* points of the start templates' continuum */
};

static const double sigmas_in_fwhm = 2.3548200450309493, reach_sigmas = 5, ccf_light = 3e5,
                    least_spline_kms = 1000, root_half = 0.70710678118654752;

struct clv_template_maker {
    clv_template_grid grid;
    double *wavelength; /* [grid.points] */
    size_t points;      /* points of the source */
    size_t base, used;  /* the range of source points that is used */
    int32_t *from;      /* [grid.points] first neighbour, counted from base */
    int32_t *start;     /* [grid.points + 1] offset of a point's weights in `weight` */
    float *weight;
    size_t capacity; /* of the array `weight` */
    bool keep_slope;
    clv_continuum continuum;
};

/* ---- weights ----------------------------------------------------------------------------------- */

/* Adds the integrals over the interval [x1, x2], clipped to [low, high], to the weights of the interval's two ends.
 * Uses 3-point Gauss quadrature in pieces of half a sigma, with a relative error below 1e-7. */
static void add_interval(double x1, double x2, double low, double high, double l1, double l2,
                         double sigma, double *left, double *right)
{
    static const double node[3] = { -0.7745966692414834, 0, 0.7745966692414834 };
    static const double share[3] = { 5.0 / 18, 8.0 / 18, 5.0 / 18 };
    const double a = fmax(x1, low), b = fmin(x2, high);
    if (!(b > a)) return;
    const double wanted = ceil((b - a) / (0.5 * sigma));
    const int pieces = (int)fmin(fmax(wanted, 1), MOST_PIECES);
    const double h = (b - a) / pieces, scale = root_half / sigma;
    for (int i = 0; i < pieces; ++i)
        for (int g = 0; g < 3; ++g) {
            const double x = a + h * (i + 0.5 * (1 + node[g]));
            const double seen =
                0.5 * (erf((l2 - x) * scale) - erf((l1 - x) * scale)) * share[g] * h;
            *right += seen * (x - x1) / (x2 - x1);
            *left += seen * (x2 - x) / (x2 - x1);
        }
}

/* Returns the index of the last point at or below x; 0 if there is none. */
static size_t point_below(const double *wave, size_t count, double x)
{
    size_t low = 0, high = count;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (wave[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static double sigma_at(const clv_template_arm *arm, double wavelength)
{
    return arm->sigma > 0 ? arm->sigma : wavelength / arm->resolving_power / sigmas_in_fwhm;
}

/* Computes the interval [*l1, *l2] of wavelengths that point n represents. */
static void edges_of(const double *lam, size_t count, size_t n, double *l1, double *l2)
{
    const double left = n ? lam[n] - lam[n - 1] : lam[1] - lam[0];
    const double right = n + 1 < count ? lam[n + 1] - lam[n] : left;
    *l1 = lam[n] - 0.5 * left, *l2 = lam[n] + 0.5 * right;
}

static clv_status add_point(clv_template_maker *m, const clv_template_source *s, size_t n,
                            double sigma)
{
    const double *wave = s->wavelength;
    double l1, l2, sum = 0;
    edges_of(m->wavelength, m->grid.points, n, &l1, &l2);
    const double low = l1 - reach_sigmas * sigma, high = l2 + reach_sigmas * sigma;
    const size_t first = point_below(wave, s->points, low);
    size_t end = CLV_MIN(point_below(wave, s->points, high) + 2, s->points);
    const size_t count = end - first, at = (size_t)m->start[n];
    if (at + count > INT32_MAX / 2 ||
        !clv_reserve(&m->weight, &m->capacity, at + count, sizeof *m->weight))
        return clv_fail(CLV_E_MEMORY, "templates: not enough memory for %zu weights", at + count);
    double *w = clv_zalloc(count, sizeof *w);
    if (!w) return clv_fail(CLV_E_MEMORY, "templates: not enough memory for weights");
    for (size_t i = first; i + 1 < end; ++i)
        add_interval(wave[i], wave[i + 1], low, high, l1, l2, sigma, &w[i - first],
                     &w[i + 1 - first]);
    for (size_t i = 0; i < count; ++i)
        sum += w[i];
    /* for photon counts, multiplies by the source's wavelength and divides by the template's */
    for (size_t i = 0; i < count; ++i)
        m->weight[at + i] = (float)(w[i] / sum * wave[first + i] / m->wavelength[n]);
    m->from[n] = (int32_t)first;
    m->start[n + 1] = (int32_t)(at + count);
    clv_free(w);
    return CLV_OK;
}

static clv_status make_weights(clv_template_maker *m, const clv_template_source *s,
                               const clv_template_arm *arm)
{
    size_t end = 0;
    m->base = SIZE_MAX;
    for (size_t n = 0; n < m->grid.points; ++n) {
        const double lam = m->wavelength[n], wanted = sigma_at(arm, lam);
        const double there = s->resolving_power > 0 ? lam / s->resolving_power / sigmas_in_fwhm : 0;
        if (!(wanted > there))
            return clv_fail(CLV_E_ARGUMENT,
                            "templates: at %.1f Angstrom the source has a FWHM of %.4g Angstrom, "
                            "but the arm is to have %.4g, which must be larger",
                            lam, there * sigmas_in_fwhm, wanted * sigmas_in_fwhm);
        CLV_TRY(add_point(m, s, n, sqrt(wanted * wanted - there * there)));
        m->base = CLV_MIN(m->base, (size_t)m->from[n]);
        end = CLV_MAX(end, (size_t)m->from[n] + (size_t)(m->start[n + 1] - m->start[n]));
    }
    for (size_t n = 0; n < m->grid.points; ++n)
        m->from[n] -= (int32_t)m->base;
    m->used = end - m->base;
    return CLV_OK;
}

/* ---- grids ------------------------------------------------------------------------------------- */

static clv_status check(const clv_template_source *s, const clv_template_arm *arm)
{
    if (!(arm->first > 0 && arm->last > arm->first && arm->last < 1e7 && arm->step > 0))
        return clv_fail(
            CLV_E_ARGUMENT,
            "templates: the range is %g to %g by %g Angstrom; expected rising numbers above 0",
            arm->first, arm->last, arm->step);
    if (!(arm->sigma >= 0 && arm->resolving_power >= 0) ||
        (arm->sigma > 0) == (arm->resolving_power > 0))
        return clv_fail(CLV_E_ARGUMENT,
                        "templates: sigma is %g and the resolving power %g; expected exactly one "
                        "of them above 0",
                        arm->sigma, arm->resolving_power);
    if (!(arm->margin_kms >= 0 && arm->margin_kms < 1e5 && s->resolving_power >= 0))
        return clv_fail(CLV_E_ARGUMENT,
                        "templates: the margin is %g km/s (expected 0 to 1e5), and the resolving "
                        "power of the source is %g (expected 0 or more)",
                        arm->margin_kms, s->resolving_power);
    if (!s->wavelength || s->points < 16 || s->points > INT32_MAX / 4)
        return clv_fail(
            CLV_E_ARGUMENT,
            "templates: the source has %zu points%s; expected at least 16, with wavelengths",
            s->points, s->wavelength ? "" : " without wavelengths");
    for (size_t i = 1; i < s->points; ++i)
        if (!(s->wavelength[i] > s->wavelength[i - 1]) || !(s->wavelength[0] > 0) ||
            !isfinite(s->wavelength[i]))
            return clv_fail(CLV_E_SHAPE,
                            "templates: wavelength %zu of the source is %g after %g; expected "
                            "rising wavelengths above 0",
                            i, s->wavelength[i], s->wavelength[i - 1]);
    return CLV_OK;
}

static clv_status make_grid(clv_template_maker *m, const clv_template_source *s,
                            const clv_template_arm *arm)
{
    const double margin = 1 + (arm->margin_kms > 0 ? arm->margin_kms : 1000) / CLV_LIGHT_KMS;
    const double middle = 0.5 * (arm->first + arm->last), step = log1p(arm->step / middle);
    const double low = log(arm->first / margin), high = log(arm->last * margin);
    const double points = ceil((high - low) / step), pixels = (arm->last - arm->first) / arm->step;
    if (!(points >= LEAST_POINTS && points <= MOST_POINTS))
        return clv_fail(CLV_E_ARGUMENT,
                        "templates: %g to %g by %g Angstrom are %.0f points; expected %d to %d",
                        arm->first, arm->last, arm->step, points, LEAST_POINTS, MOST_POINTS);
    clv_template_grid *g = &m->grid;
    g->points = (size_t)points, g->sigma = sigma_at(arm, middle);
    g->first = exp(low), g->last = exp(low + step * (points - 1));
    g->ccf_points = LEAST_POINTS;
    while ((double)g->ccf_points < floor(pixels))
        g->ccf_points *= 2;
    g->ccf_log0 = log(arm->first), g->ccf_log1 = log(arm->last);
    g->ccf_spline_kms =
        fmax(least_spline_kms, ccf_light * expm1((g->ccf_log1 - g->ccf_log0) / MOST_CONTINUUM));
    m->wavelength = clv_alloc(g->points, sizeof *m->wavelength);
    m->from = clv_alloc(g->points, sizeof *m->from);
    m->start = clv_zalloc(g->points + 1, sizeof *m->start);
    if (!m->wavelength || !m->from || !m->start)
        return clv_fail(CLV_E_MEMORY, "templates: not enough memory for %zu points", g->points);
    for (size_t n = 0; n < g->points; ++n)
        m->wavelength[n] = exp(low + step * (double)n);
    const double left = g->first - reach_sigmas * sigma_at(arm, g->first),
                 right = g->last + reach_sigmas * sigma_at(arm, g->last) + arm->step;
    if (s->wavelength[0] > left || s->wavelength[s->points - 1] < right)
        return clv_fail(CLV_E_SHAPE,
                        "templates: the source covers %.2f to %.2f Angstrom, but %.2f to %.2f are "
                        "needed for %.2f to %.2f with a margin for velocities and smoothing",
                        s->wavelength[0], s->wavelength[s->points - 1], left, right, arm->first,
                        arm->last);
    return clv_continuum_create(m->wavelength, g->points, g->ccf_spline_kms, &m->continuum);
}

clv_status clv_template_maker_create(const clv_template_source *given_source,
                                     const clv_template_arm *given_arm, clv_template_maker **maker)
{
    if (maker) *maker = NULL;
    if (!given_source || !given_arm || !maker)
        return clv_fail(CLV_E_ARGUMENT, "templates: source, arm or maker is NULL");
    clv_template_source source;
    clv_template_arm arm;
    CLV_TRY(
        clv_take_struct(&source, sizeof source, given_source, "templates", "clv_template_source"));
    CLV_TRY(clv_take_struct(&arm, sizeof arm, given_arm, "templates", "clv_template_arm"));
    CLV_TRY(check(&source, &arm));
    clv_template_maker *m = clv_zalloc(1, sizeof *m);
    if (!m) return clv_fail(CLV_E_MEMORY, "templates: out of memory");
    m->points = source.points, m->keep_slope = arm.keep_slope;
    clv_status status = make_grid(m, &source, &arm);
    if (!status) status = make_weights(m, &source, &arm);
    if (status)
        clv_template_maker_free(m);
    else
        *maker = m;
    return status;
}

void clv_template_maker_free(clv_template_maker *m)
{
    if (!m) return;
    clv_continuum_clear(&m->continuum);
    clv_free(m->wavelength), clv_free(m->from), clv_free(m->start), clv_free(m->weight),
        clv_free(m);
}

clv_template_grid clv_template_maker_grid(const clv_template_maker *m)
{
    return m ? m->grid : (clv_template_grid){ 0 };
}

/* ---- the sums ---------------------------------------------------------------------------------- */

static clv_status smooth_plain(void *const *args, size_t first, size_t count, void *user)
{
    const clv_template_maker *m = user;
    (void)first;
    const float *in = args[0];
    float *out = args[4];
    for (size_t b = 0; b < count; ++b)
        for (size_t n = 0; n < m->grid.points; ++n) {
            const float *x = in + (b * m->used + (size_t)m->from[n]) * LANES;
            double sum[LANES] = { 0 };
            for (int32_t j = m->start[n]; j < m->start[n + 1]; ++j, x += LANES)
                for (int lane = 0; lane < LANES; ++lane)
                    sum[lane] += (double)m->weight[j] * (double)x[lane];
            for (int lane = 0; lane < LANES; ++lane)
                out[(b * m->grid.points + n) * LANES + (size_t)lane] = (float)sum[lane];
        }
    return CLV_OK;
}

/* Divides each of `count` spectra by its median and packs the used part of LANES spectra at a time into a block
 * [used][LANES]. Unused lanes are 0. */
static clv_status pack(const clv_template_maker *m, const float *flux, size_t count, float *blocks)
{
    double *room = clv_alloc(m->used, sizeof *room);
    if (!room) return clv_fail(CLV_E_MEMORY, "templates: out of memory");
    clv_status status = CLV_OK;
    for (size_t s = 0; s < count && !status; ++s) {
        const float *x = flux + s * m->points + m->base;
        for (size_t i = 0; i < m->used && !status; ++i) {
            room[i] = (double)x[i];
            if (!isfinite(x[i]))
                status =
                    clv_fail(CLV_E_FORMAT, "templates: flux %zu of spectrum %zu is not a number",
                             m->base + i, s);
        }
        const double middle = status ? 1 : clv_median(room, m->used);
        if (!(middle > 0))
            status = clv_fail(CLV_E_FORMAT,
                              "templates: the median flux of spectrum %zu in this arm is %g, but "
                              "it must be above 0",
                              s, middle);
        float *block = blocks + s / LANES * m->used * LANES + s % LANES;
        for (size_t i = 0; i < m->used && !status; ++i)
            block[i * LANES] = (float)((double)x[i] / middle);
    }
    clv_free(room);
    return status;
}

/* Takes the logarithm of a template after dividing it by its median and, unless the maker keeps the slope, by the
 * exponential of a line in ln flux through the medians of the two halves. */
static clv_status take_logarithm(const clv_template_maker *m, size_t spectrum, const float *block,
                                 double *room, float *out)
{
    const size_t n = m->grid.points, half = n / 2;
    double level[2], at[2];
    for (size_t i = 0; i < n; ++i) {
        if (!(block[i * LANES] > 0))
            return clv_fail(CLV_E_FORMAT,
                            "templates: spectrum %zu: the flux at %.2f Angstrom after smoothing is "
                            "%g of its median, but it must be above 0",
                            spectrum, m->wavelength[i], (double)block[i * LANES]);
        room[i] = (double)block[i * LANES];
    }
    const double middle = log(clv_median(room, n));
    for (int side = 0; side < 2; ++side) {
        const size_t from = side ? half : 0, count = side ? n - half : half;
        for (size_t i = 0; i < count; ++i)
            room[i] = (double)block[(from + i) * LANES];
        level[side] = log(clv_median(room, count)) - middle;
        memcpy(room, m->wavelength + from, count * sizeof *room);
        at[side] = clv_median(room, count);
    }
    const double slope = (level[1] - level[0]) / (at[1] - at[0]);
    for (size_t i = 0; i < n; ++i) {
        const double line = m->keep_slope ? 0 : level[0] + slope * (m->wavelength[i] - at[0]);
        out[i] = (float)(log((double)block[i * LANES]) - middle - line);
    }
    return CLV_OK;
}

clv_status clv_template_maker_run(const clv_template_maker *m, clv_context *context,
                                  const float *flux, size_t count, float *log_flux,
                                  clv_report *report)
{
    if (!m || !context || !flux || !log_flux || !count)
        return clv_fail(CLV_E_ARGUMENT, "templates: %s",
                        count ? "maker, context, flux or log_flux is NULL"
                              : "there are no spectra");
    const size_t blocks = (count + LANES - 1) / LANES, n = m->grid.points;
    if (blocks > UINT32_MAX || blocks > SIZE_MAX / sizeof(float) / LANES / CLV_MAX(n, m->used))
        return clv_fail(CLV_E_MEMORY, "templates: not enough memory for %zu spectra", count);
    float *in = clv_zalloc(blocks * m->used * LANES, sizeof *in);
    float *out = clv_alloc(blocks * n * LANES, sizeof *out);
    double *room = clv_alloc(n, sizeof *room);
    const uint32_t used = (uint32_t)m->used, points = (uint32_t)n;
    const clv_item_arg args[] = {
        { CLV_ITEM_INPUT, m->used * LANES * sizeof *in, in, NULL },
        { CLV_ITEM_SHARED, n * sizeof *m->from, m->from, NULL },
        { CLV_ITEM_SHARED, (n + 1) * sizeof *m->start, m->start, NULL },
        { CLV_ITEM_SHARED, (size_t)m->start[n] * sizeof *m->weight, m->weight, NULL },
        { CLV_ITEM_OUTPUT, n * LANES * sizeof *out, NULL, out },
        { CLV_ITEM_VALUE, sizeof used, &used, NULL },
        { CLV_ITEM_VALUE, sizeof points, &points, NULL },
    };
    const clv_items items = { .size = sizeof items,
                              .source = &clv_cl_spectra_smooth,
                              .kernel = "clv_spectra_smooth",
                              .items = blocks,
                              .grid = { clv_round_up(n, GROUP) },
                              .flops = 2.0 * LANES * (double)m->start[n],
                              .signature = "templates",
                              .reference = smooth_plain };
    clv_status status =
        in && out && room
            ? CLV_OK
            : clv_fail(CLV_E_MEMORY, "templates: not enough memory for %zu spectra", count);
    if (!status) status = pack(m, flux, count, in);
    if (!status)
        status = clv_items_run(context, &items, args, CLV_LEN(args), (void *)(uintptr_t)m, report);
    for (size_t s = 0; s < count && !status; ++s)
        status =
            take_logarithm(m, s, out + s / LANES * n * LANES + s % LANES, room, log_flux + s * n);
    clv_free(in), clv_free(out), clv_free(room);
    return status;
}

/* ---- start templates --------------------------------------------------------------------------- */

clv_status clv_template_maker_starts(const clv_template_maker *m, const float *log_flux,
                                     size_t count, float *ccf)
{
    if (!m || !log_flux || !ccf)
        return clv_fail(CLV_E_ARGUMENT, "templates: maker, log_flux or ccf is NULL");
    const size_t n = m->grid.points, points = m->grid.ccf_points;
    const double low = log(m->grid.first),
                 dln = log(m->grid.last / m->grid.first) / (double)(n - 1);
    double *y = clv_alloc(4 * n, sizeof *y), *error = y + n, *smooth = y + 2 * n, *room = y + 3 * n;
    if (!y) return clv_fail(CLV_E_MEMORY, "templates: out of memory");
    for (size_t s = 0; s < count; ++s) {
        for (size_t i = 0; i < n; ++i)
            y[i] = exp((double)log_flux[s * n + i]);
        memcpy(room, y, n * sizeof *y);
        const double level = clv_median(room, n);
        for (size_t i = 0; i < n; ++i)
            error[i] = fmax(1e-5 * y[i], 1e-2 * level);
        clv_continuum_fit(&m->continuum, m->wavelength, n, y, error, level, room, smooth);
        memcpy(room, smooth, n * sizeof *y);
        const double least = 1e-2 * clv_median(room, n);
        for (size_t i = 0; i < n; ++i)
            y[i] /= fmax(smooth[i], least);
        for (size_t k = 0; k < points; ++k) {
            const double x = m->grid.ccf_log0 + (m->grid.ccf_log1 - m->grid.ccf_log0) * (double)k /
                                                    (double)(points - 1);
            const double p = fmin(fmax((x - low) / dln, 0), (double)(n - 1) - 1e-9),
                         part = p - floor(p);
            const double *at = y + (size_t)p;
            ccf[s * points + k] = (float)(at[0] * (1 - part) + at[1] * part);
        }
    }
    clv_free(y);
    return CLV_OK;
}
