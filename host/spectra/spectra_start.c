/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the input of the cross-correlation that finds the start values: the spectrum divided by a robust continuum, on
 * the grid of the start templates. */
#include "host/spectra/spectra_plan.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/linalg.h"

#include <math.h>
#include <string.h>

enum { MAX_NODES = 256, MAX_ROUNDS = 40, FILTER = 11, RUN = 64 };
static const double ccf_light = 3e5; /* km/s: the speed of light in the start templates' grids */
static const double least_curvature = 0.1; /* of a pixel, as a part of that of a quadratic loss */

/* Creates quadratic B-splines whose knots lie between the nodes, as those of an interpolating spline do. If the nodes
 * would be too many, fewer cover the same range. Beyond a factor of e^100 between nodes, a float64 could not hold the
 * knots. */
clv_status clv_continuum_create(const double *wavelength, size_t pixels, double spline_kms,
                                clv_continuum *c)
{
    const double first = wavelength[0], last = wavelength[pixels - 1];
    const double range = log(last / first);
    const double step = fmin(fmax(log1p(spline_kms / ccf_light), range / MAX_NODES), 100);
    const double wanted = ceil(range / step);
    *c = (clv_continuum){ .nodes = (size_t)fmin(fmax(wanted, 3), MAX_NODES) };
    const size_t n = c->nodes;
    double knot[MAX_NODES + 3];
    c->first = clv_alloc(pixels, sizeof *c->first);
    c->weight = clv_alloc(3 * pixels, sizeof *c->weight);
    c->edge = clv_alloc(n + 1, sizeof *c->edge);
    if (!c->first || !c->weight || !c->edge) {
        clv_continuum_clear(c);
        return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a continuum");
    }
    for (size_t i = 0; i <= n; ++i)
        c->edge[i] = first * exp(((double)i - 0.5) * step);
    for (size_t i = 0; i < n + 3; ++i) {
        const double j = (double)i - 2;
        knot[i] = i < 3    ? first
                  : i >= n ? first * exp((double)(n - 1) * step)
                           : 0.5 * first * (exp((j)*step) + exp((j + 1) * step));
    }
    for (size_t k = 0, at = 2; k < pixels; ++k) {
        const double x = wavelength[k];
        while (at + 1 < n && x >= knot[at + 1])
            ++at;
        const double *t = knot + at;
        const double a = (x - t[0]) / (t[1] - t[0]);
        const double left = (t[1] - x) / (t[1] - t[-1]), right = (x - t[0]) / (t[2] - t[0]);
        c->first[k] = (uint16_t)(at - 2);
        c->weight[k] = left * (1 - a);
        c->weight[pixels + k] =
            (x - t[-1]) / (t[1] - t[-1]) * (1 - a) + (t[2] - x) / (t[2] - t[0]) * a;
        c->weight[2 * pixels + k] = right * a;
    }
    return CLV_OK;
}

void clv_continuum_clear(clv_continuum *c)
{
    clv_free(c->first), clv_free(c->weight), clv_free(c->edge);
    *c = (clv_continuum){ 0 };
}

/* Returns exp(v), correct to 1e-11. Arguments are limited to +-100. It has no branches, so that compilers vectorise
 * loops that call it. */
static double exp_of(double v)
{
    /* Adding this number rounds to an integer, which the last bits of the sum hold. */
    const double shift = 0x1.8p52;
    const double limited = 0.5 * (fabs(v + 100) - fabs(v - 100));
    const double power = limited * 1.4426950408889634 + shift;
    const double x = limited - (power - shift) * 0.69314718055994531, y = x * x;
    const double series =
        1 + x +
        y * (1. / 2 + x / 6 +
             y * (1. / 24 + x / 120 + y * (1. / 720 + x / 5040 + y * (1. / 40320 + x / 362880))));
    double scale;
    uint64_t bits;
    memcpy(&bits, &power, sizeof bits);
    bits = (bits + 1023) << 52; /* the exponent of a float64 */
    memcpy(&scale, &bits, sizeof scale);
    return series * scale;
}

static double model_at(const clv_continuum *c, size_t pixels, size_t k, const double *p)
{
    const double *w = c->weight + k, *at = p + c->first[k];
    return exp_of(w[0] * at[0] + w[pixels] * at[1] + w[2 * pixels] * at[2]);
}

/* The normal equations of the continuum: for each node its upper band, and the right-hand side. */
typedef struct normal {
    double band[MAX_NODES][3], right[MAX_NODES];
} normal;

/* Returns the sum of the pixels' soft-L1 losses; *n receives the equations of a step towards its minimum. They contain
 * the second derivative of each pixel's loss where it is positive enough, else a part of that of a quadratic loss with
 * the same slope. `inverse` holds 1 / sigma. */
static double loss_of(const clv_continuum *c, size_t pixels, const double *flux,
                      const double *inverse, const double *p, normal *n)
{
    double loss = 0, root[RUN], g[RUN], h[RUN];
    memset(n->band, 0, c->nodes * sizeof *n->band);
    memset(n->right, 0, c->nodes * sizeof *n->right);
    for (size_t from = 0, end; from < pixels; from = end) { /* pixels with the same three nodes */
        const size_t node = c->first[from];
        end = from + 1;
        while (end < pixels && end < from + RUN && c->first[end] == node)
            ++end;
        const double p0 = p[node], p1 = p[node + 1], p2 = p[node + 2];
        const double *w0 = c->weight + from, *w1 = w0 + pixels, *w2 = w1 + pixels;
        const double *f = flux + from, *u = inverse + from;
        for (size_t k = 0; k < end - from; ++k) { /* without branches: vectorised */
            const double slope = exp_of(w0[k] * p0 + w1[k] * p1 + w2[k] * p2) * u[k];
            const double r = slope - f[k] * u[k], square = 1 + r * r;
            root[k] = sqrt(square);
            const double steep = slope / root[k], soft = steep * slope;
            g[k] = steep * r;
            const double whole = soft / square + g[k], least = least_curvature * soft;
            h[k] = 0.5 * (whole + least + fabs(whole - least)); /* the larger of the two */
        }
        double(*b)[3] = n->band + node, *right = n->right + node;
        double roots = 0, g0 = 0, g1 = 0, g2 = 0, h00 = 0, h01 = 0, h02 = 0, h11 = 0, h12 = 0,
               h22 = 0;
        for (size_t k = 0; k < end - from; ++k) {
            const double h0 = h[k] * w0[k], h1 = h[k] * w1[k];
            roots += root[k] - 1;
            g0 += g[k] * w0[k], g1 += g[k] * w1[k], g2 += g[k] * w2[k];
            h00 += h0 * w0[k], h01 += h0 * w1[k], h02 += h0 * w2[k];
            h11 += h1 * w1[k], h12 += h1 * w2[k], h22 += h[k] * w2[k] * w2[k];
        }
        loss += 2 * roots;
        right[0] -= g0, right[1] -= g1, right[2] -= g2;
        b[0][0] += h00, b[0][1] += h01, b[0][2] += h02;
        b[1][0] += h11, b[1][1] += h12, b[2][0] += h22;
    }
    return loss;
}

/* Solves (A + damping diag A) x = right in place by a banded L D L' factorisation. */
static bool solve_band(double (*band)[3], double *x, size_t n, double damping)
{
    for (size_t i = 0; i < n; ++i) {
        band[i][0] = band[i][0] * (1 + damping) + 1e-12;
        if (i > 0) band[i][0] -= band[i - 1][1] * band[i - 1][1] * band[i - 1][0];
        if (i > 1) band[i][0] -= band[i - 2][2] * band[i - 2][2] * band[i - 2][0];
        if (!(band[i][0] > 0)) return false;
        if (i > 0) band[i][1] -= band[i - 1][2] * band[i - 1][1] * band[i - 1][0];
        band[i][1] /= band[i][0], band[i][2] /= band[i][0];
    }
    for (size_t i = 0; i < n; ++i) {
        if (i > 0) x[i] -= band[i - 1][1] * x[i - 1];
        if (i > 1) x[i] -= band[i - 2][2] * x[i - 2];
    }
    for (size_t i = n; i-- > 0;) {
        x[i] /= band[i][0];
        if (i + 1 < n) x[i] -= band[i][1] * x[i + 1];
        if (i + 2 < n) x[i] -= band[i][2] * x[i + 2];
    }
    return true;
}

/* Fits the continuum; `level` is the median of the flux. */
static void fit_continuum(const clv_continuum *c, const double *wavelength, size_t pixels,
                          const double *flux, const double *sigma, double level, double *scratch,
                          double *p)
{
    normal two[2], *here = &two[0], *there = &two[1];
    double copy[MAX_NODES][3], x[MAX_NODES], next[MAX_NODES];
    const double middle = fabs(level) > 0 ? fabs(level) : 1;
    for (size_t i = 0, k = 0; i < c->nodes; ++i) {
        size_t n = 0;
        for (; k < pixels && wavelength[k] < c->edge[i + 1]; ++k)
            scratch[n++] = flux[k];
        const double v = n ? clv_median(scratch, n) : middle;
        p[i] = log(fmax(v, 1e-3 * middle));
    }
    for (size_t k = 0; k < pixels; ++k)
        scratch[k] = 1 / sigma[k];
    double damping = 1e-3, best = loss_of(c, pixels, flux, scratch, p, here);
    for (int round = 0; round < MAX_ROUNDS && damping < 1e6; ++round) {
        memcpy(copy, here->band, c->nodes * sizeof *copy);
        memcpy(x, here->right, c->nodes * sizeof *x);
        double now = INFINITY;
        if (solve_band(copy, x, c->nodes, damping)) {
            for (size_t i = 0; i < c->nodes; ++i)
                next[i] = p[i] + fmin(fmax(x[i], -3), 3);
            now = loss_of(c, pixels, flux, scratch, next, there);
        }
        if (!(now <= best)) {
            damping = damping * 8;
            continue;
        }
        const double gain = best - now;
        memcpy(p, next, c->nodes * sizeof *p);
        if (gain < 1e-5 * best) return;
        normal *const kept = here;
        here = there, there = kept, best = now;
        damping *= 0.1;
    }
}

void clv_continuum_fit(const clv_continuum *c, const double *wavelength, size_t pixels,
                       const double *flux, const double *sigma, double level, double *scratch,
                       double *out)
{
    double p[MAX_NODES];
    fit_continuum(c, wavelength, pixels, flux, sigma, level, scratch, p);
    for (size_t k = 0; k < pixels; ++k)
        out[k] = model_at(c, pixels, k, p);
}

static double window_median(const double *flux, size_t k, size_t n)
{
    double v[FILTER];
    for (size_t i = 0; i < FILTER; ++i) { /* zeros beyond the ends */
        const size_t at = k + i;
        double now = at >= FILTER / 2 && at - FILTER / 2 < n ? flux[at - FILTER / 2] : 0;
        size_t j = i;
        while (j > 0 && v[j - 1] > now) {
            v[j] = v[j - 1];
            --j;
        }
        v[j] = now;
    }
    return v[FILTER / 2];
}

/* Marks pixels around which the median flux is not above 0. Counting replaces sorting: the median is above 0 where more
 * than half of the window's pixels are above 0. */
static void mark_sunk(const double *flux, size_t n, unsigned char *sunk)
{
    int above = 0;
    for (size_t k = 0; k < n; ++k) {
        if (k < FILTER / 2 || k + FILTER / 2 >= n) {
            sunk[k] = window_median(flux, k, n) <= 0;
            continue;
        }
        if (k == FILTER / 2)
            for (size_t i = 0; i < FILTER; ++i)
                above += flux[i] > 0;
        else
            above += (flux[k + FILTER / 2] > 0) - (flux[k - FILTER / 2 - 1] > 0);
        sunk[k] = above <= FILTER / 2;
    }
}

void clv_start_arrays(const clv_spectra_plan *plan, size_t spectrum, const double *flux,
                      const double *sigma, const unsigned char *bad, double *scratch, float *q,
                      float *ivar, double *plain)
{
    const clv_spectra_grid *g = &plan->grid[spectrum];
    const size_t n = g->pixels;
    double *error = scratch + n, *filled = scratch + 2 * n, *weight = scratch + 3 * n;
    double p[MAX_NODES];
    memcpy(scratch, sigma, n * sizeof *sigma);
    const double middle = clv_median(scratch, n);
    unsigned char *sunk = (unsigned char *)scratch;
    mark_sunk(flux, n, sunk);
    size_t good = 0, last = 0;
    for (size_t k = 0; k < n; ++k) {
        const bool off = bad[k] || sigma[k] > 10 * middle || sunk[k];
        error[k] = off ? 1e9 * middle : sigma[k];
        filled[k] = flux[k];
        if (off) continue;
        /* interpolates linearly across masked pixels */
        for (size_t i = good ? last + 1 : 0; i < k; ++i) {
            const double x =
                (g->wavelength[i] - g->wavelength[last]) / (g->wavelength[k] - g->wavelength[last]);
            filled[i] = good ? flux[last] + (flux[k] - flux[last]) * x : flux[k];
        }
        last = k, ++good;
    }
    for (size_t i = last + 1; good && i < n; ++i)
        filled[i] = flux[last];
    memcpy(scratch, filled, n * sizeof *filled);
    const double level = clv_median(scratch, n);
    fit_continuum(&g->continuum, g->wavelength, n, filled, error, level, scratch, p);
    for (size_t k = 0; k < n; ++k) {
        const double c = fmax(model_at(&g->continuum, n, k, p), level > 0 ? 0.01 * level : 1);
        const bool off = error[k] > 1e8 * middle;
        filled[k] = off ? 0 : flux[k] / c;
        weight[k] = off ? 0 : c * c / (error[k] * error[k]);
    }
    const size_t fold = g->ccf_fold;
    for (size_t i = 0; i < g->ccf_points; ++i)
        for (size_t j = i * fold; j < (i + 1) * fold; ++j) {
            const size_t at = g->ccf_left[j];
            double s = 0, w = 0;
            if (at != SIZE_MAX) {
                const double r = (double)g->ccf_right[j], l = 1 - r;
                const double a = weight[at], b = weight[at + 1];
                s = l * filled[at] + r * filled[at + 1];
                if (a > 0 && b > 0) w = a * b / (l * l * b + r * r * a);
            }
            q[i] += (float)(s * w), ivar[i] += (float)w;
            if (plain) plain[j] = s;
        }
}
