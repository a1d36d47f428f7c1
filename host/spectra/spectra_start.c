/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the input of the cross-correlation that finds the start values: the spectrum divided by a robust continuum, on
 * the grid of the start templates. */
#include "host/spectra/spectra_plan.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/linalg.h"

#include <math.h>
#include <string.h>

enum { MAX_NODES = 256, MAX_ROUNDS = 40, FILTER = 11 };
static const double ccf_light = 3e5; /* km/s: the speed of light in the start templates' grids */

/* Creates quadratic B-splines whose knots lie between the nodes, as those of an interpolating spline do. */
clv_status clv_continuum_create(const double *wavelength, size_t pixels, double spline_kms,
                                clv_continuum *c)
{
    const double first = wavelength[0], last = wavelength[pixels - 1];
    const double step = log1p(spline_kms / ccf_light);
    const double wanted = ceil(log(last / first) / step);
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
        c->weight[3 * k] = left * (1 - a);
        c->weight[3 * k + 1] =
            (x - t[-1]) / (t[1] - t[-1]) * (1 - a) + (t[2] - x) / (t[2] - t[0]) * a;
        c->weight[3 * k + 2] = right * a;
    }
    return CLV_OK;
}

void clv_continuum_clear(clv_continuum *c)
{
    clv_free(c->first), clv_free(c->weight), clv_free(c->edge);
    *c = (clv_continuum){ 0 };
}

static double model_at(const clv_continuum *c, size_t k, const double *p)
{
    const double *w = c->weight + 3 * k, *at = p + c->first[k];
    const double v = w[0] * at[0] + w[1] * at[1] + w[2] * at[2];
    return exp(v < -100 ? -100 : v > 100 ? 100 : v);
}

/* The normal equations of the continuum: for each node its upper band, and the right-hand side. */
typedef struct normal {
    double band[MAX_NODES][3], right[MAX_NODES];
} normal;

/* Returns the sum of the pixels' soft-L1 losses; *n receives the normal equations of this sum. */
static double loss_of(const clv_continuum *c, size_t pixels, const double *flux,
                      const double *sigma, const double *p, normal *n)
{
    double loss = 0, g0 = 0, g1 = 0, g2 = 0, h00 = 0, h01 = 0, h02 = 0, h11 = 0, h12 = 0, h22 = 0;
    memset(n->band, 0, c->nodes * sizeof *n->band);
    memset(n->right, 0, c->nodes * sizeof *n->right);
    for (size_t k = 0; k < pixels; ++k) {
        const double weight = 1 / sigma[k], m = model_at(c, k, p), r = (m - flux[k]) * weight;
        const double root = sqrt(1 + r * r), slope = m * weight, steep = slope / root;
        loss += 2 * (root - 1);
        const double *w = c->weight + 3 * k;
        const double g = steep * r, h = steep * slope;
        const double h0 = h * w[0], h1 = h * w[1];
        g0 += g * w[0], g1 += g * w[1], g2 += g * w[2];
        h00 += h0 * w[0], h01 += h0 * w[1], h02 += h0 * w[2];
        h11 += h1 * w[1], h12 += h1 * w[2], h22 += h * w[2] * w[2];
        if (k + 1 < pixels && c->first[k + 1] == c->first[k]) continue;
        double(*b)[3] = n->band + c->first[k]; /* the last pixel with these three nodes */
        double *u = n->right + c->first[k];
        u[0] -= g0, u[1] -= g1, u[2] -= g2;
        b[0][0] += h00, b[0][1] += h01, b[0][2] += h02;
        b[1][0] += h11, b[1][1] += h12, b[2][0] += h22;
        g0 = g1 = g2 = h00 = h01 = h02 = h11 = h12 = h22 = 0;
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
    double damping = 1e-3, best = loss_of(c, pixels, flux, sigma, p, here);
    for (int round = 0; round < MAX_ROUNDS && damping < 1e6; ++round) {
        memcpy(copy, here->band, c->nodes * sizeof *copy);
        memcpy(x, here->right, c->nodes * sizeof *x);
        double now = INFINITY;
        if (solve_band(copy, x, c->nodes, damping)) {
            for (size_t i = 0; i < c->nodes; ++i)
                next[i] = p[i] + fmin(fmax(x[i], -3), 3);
            now = loss_of(c, pixels, flux, sigma, next, there);
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
        out[k] = model_at(c, k, p);
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
        const double c = fmax(model_at(&g->continuum, k, p), level > 0 ? 0.01 * level : 1);
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
