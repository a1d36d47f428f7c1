/* SPDX-License-Identifier: Apache-2.0 */
/* Computes in float64 the rows of the resolution matrix, the normal equations of a spectrum, convex hulls, and the
 * moments along velocity. */
#include "host/spectra/spectra_math.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/linalg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- resolution ---------------------------------------------------------------------------- */

/* Factors the matrix of the sampled Gaussian in place, with row exchanges, which it writes to `swap`. */
static bool factor(double *g, size_t *swap, size_t n)
{
    for (size_t c = 0; c < n; ++c) {
        size_t p = c;
        for (size_t r = c + 1; r < n; ++r)
            if (fabs(g[r * n + c]) > fabs(g[p * n + c])) p = r;
        swap[c] = p;
        if (!(fabs(g[p * n + c]) > 0)) return false;
        for (size_t k = 0; k < n; ++k) {
            const double v = g[c * n + k];
            g[c * n + k] = g[p * n + k], g[p * n + k] = v;
        }
        for (size_t r = c + 1; r < n; ++r) {
            const double m = g[r * n + c] /= g[c * n + c];
            for (size_t k = c + 1; k < n; ++k)
                g[r * n + k] -= m * g[c * n + k];
        }
    }
    return true;
}

static void solve_factored(const double *g, const size_t *swap, size_t n, double *b)
{
    for (size_t c = 0; c < n; ++c) {
        const double v = b[c];
        b[c] = b[swap[c]], b[swap[c]] = v;
    }
    for (size_t r = 1; r < n; ++r)
        for (size_t k = 0; k < r; ++k)
            b[r] -= g[r * n + k] * b[k];
    for (size_t r = n; r-- > 0;) {
        for (size_t k = r + 1; k < n; ++k)
            b[r] -= g[r * n + k] * b[k];
        b[r] /= g[r * n + r];
    }
}

clv_status clv_resolution_rows(const float *raw, size_t nd, size_t pixels, double sigma_px,
                               double *out)
{
    const size_t half = nd / 2;
    double *g = clv_alloc(nd * nd, sizeof *g), *sums = clv_alloc(pixels, sizeof *sums);
    size_t *swap = clv_alloc(nd, sizeof *swap);
    clv_status status =
        g && sums && swap ? CLV_OK : clv_fail(CLV_E_MEMORY, "specfit: out of memory");
    if (!status && sigma_px > 0) {
        for (size_t i = 0; i < nd * nd; ++i) {
            const double u = ((double)(i / nd) - (double)(i % nd)) / sigma_px;
            g[i] = exp(-0.5 * u * u) / (sqrt(2 * 3.14159265358979323846) * sigma_px);
        }
        if (!factor(g, swap, nd))
            status = clv_fail(CLV_E_FORMAT,
                              "specfit: the templates' Gaussian of %g pixels cannot be removed "
                              "from the resolution",
                              sigma_px);
    }
    for (size_t k = 0; !status && k < pixels; ++k) {
        double *row = out + k * nd;
        sums[k] = 0;
        for (size_t m = 0; m < nd; ++m) { /* raw is aligned by columns, highest offset first */
            const size_t at = k + m;
            const bool inside = at >= half && at - half < pixels;
            row[m] = inside ? (double)raw[(nd - 1 - m) * pixels + at - half] : 0;
            if (!isfinite(row[m])) row[m] = 0;
        }
        if (sigma_px > 0) solve_factored(g, swap, nd, row);
        for (size_t m = 0; m < nd; ++m)
            sums[k] += row[m];
    }
    const double middle = status ? 0 : clv_median(sums, pixels);
    for (size_t k = 0; !status && k < pixels; ++k) {
        double *row = out + k * nd, sum = 0;
        for (size_t m = 0; m < nd; ++m) {
            const size_t at = k + m;
            if (at < half || at - half >= pixels) row[m] = 0;
            sum += row[m];
        }
        if (k >= half && k + half < pixels) continue;
        for (size_t m = 0; m < nd; ++m)
            row[m] = sum != 0 && isfinite(middle / sum) ? row[m] * middle / sum : 0;
    }
    clv_free(g), clv_free(sums), clv_free(swap);
    return status;
}

void clv_resolution_apply(const double *rows, size_t nd, size_t pixels, const double *in,
                          double *out)
{
    const size_t half = nd / 2;
    for (size_t k = 0; k < pixels; ++k) {
        double sum = 0;
        for (size_t m = 0; m < nd; ++m)
            if (k + m >= half && k + m - half < pixels) sum += rows[k * nd + m] * in[k + m - half];
        out[k] = sum;
    }
}

/* ---- normal equations ---------------------------------------------------------------------- */

bool clv_spectra_value(const double *basis, unsigned terms, size_t pixels, const double *t,
                       const double *d, const double *s, double *a, double *value)
{
    /* TOGETHER: pixels that are added in one pass over the sums. ROOM: the sums of a row are added in pairs, the last
     * of which may have one column too many. */
    enum { TOGETHER = 4, ROOM = CLV_SPECTRA_MAX_TERMS + 1 };
    double m[CLV_SPECTRA_MAX_TERMS * CLV_SPECTRA_MAX_TERMS], log_det = 0, chi = 0;
    double sums[ROOM][ROOM] = { 0 }, design[TOGETHER][ROOM] = { 0 }, value_here[TOGETHER];
    for (unsigned i = 0; i < terms; ++i)
        a[i] = 0;
    for (size_t first = 0; first < pixels; first += TOGETHER) {
        for (size_t p = 0; p < TOGETHER; ++p) {
            const size_t k = first + p < pixels ? first + p : first;
            const double weight = first + p < pixels ? 1 / s[k] : 0, scale = t[k] * weight;
            value_here[p] = d[k] * weight;
            for (unsigned i = 0; i < terms; ++i)
                design[p][i] = basis[k * terms + i] * scale;
        }
        const double *d0 = design[0], *d1 = design[1], *d2 = design[2], *d3 = design[3];
        for (unsigned i = 0; i < terms; ++i) {
            const double x0 = d0[i], x1 = d1[i], x2 = d2[i], x3 = d3[i];
            a[i] +=
                x0 * value_here[0] + x1 * value_here[1] + x2 * value_here[2] + x3 * value_here[3];
            for (unsigned j = 0; j <= i; j += 2) { /* two at once: one vector */
                sums[i][j] += x0 * d0[j] + x1 * d1[j] + x2 * d2[j] + x3 * d3[j];
                sums[i][j + 1] += x0 * d0[j + 1] + x1 * d1[j + 1] + x2 * d2[j + 1] + x3 * d3[j + 1];
            }
        }
    }
    for (unsigned i = 0; i < terms; ++i)
        memcpy(m + i * terms, sums[i], terms * sizeof *m);
    if (!clv_cholesky(m, terms)) return false;
    clv_forward_substitute(m, terms, a);
    for (unsigned i = terms; i-- > 0;) {
        for (unsigned k = i + 1; k < terms; ++k)
            a[i] -= m[k * terms + i] * a[k];
        a[i] /= m[i * terms + i];
        log_det += 2 * log(m[i * terms + i]);
    }
    for (size_t k = 0; k < pixels; ++k) {
        double model = 0;
        for (unsigned i = 0; i < terms; ++i)
            model += a[i] * basis[k * terms + i];
        const double r = (d[k] - model * t[k]) / s[k];
        chi += r * r;
    }
    *value = log_det + chi;
    return isfinite(*value);
}

/* ---- hull ---------------------------------------------------------------------------------- */

static int by_x_then_y(const void *a, const void *b)
{
    const double *p = a, *q = b;
    if (p[0] != q[0]) return p[0] < q[0] ? -1 : 1;
    return p[1] < q[1] ? -1 : p[1] > q[1];
}

static double turn(const double *o, const double *a, const double *b)
{
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
}

/* Finds the convex hull by the monotone chain; `hull` gets the corners counterclockwise. */
static size_t corners_of(double (*points)[2], size_t count, double (*hull)[2])
{
    qsort(points, count, sizeof *points, by_x_then_y);
    size_t n = 0;
    for (size_t i = 0; i < count; ++i) {
        while (n >= 2 && turn(hull[n - 2], hull[n - 1], points[i]) <= 0)
            --n;
        memcpy(hull[n++], points[i], sizeof *hull);
    }
    for (size_t i = count - 1, low = n + 1; i-- > 0;) {
        while (n >= low && turn(hull[n - 2], hull[n - 1], points[i]) <= 0)
            --n;
        memcpy(hull[n++], points[i], sizeof *hull);
    }
    return n ? n - 1 : 0;
}

clv_status clv_spectra_hull_create(const double *points, size_t count, clv_spectra_hull *out)
{
    *out = (clv_spectra_hull){ 0 };
    if (!count) return CLV_OK;
    double(*flat)[2] = clv_alloc(count, sizeof *flat);
    double(*hull)[2] = clv_alloc(2 * count + 2, sizeof *hull);
    bool ok = flat && hull;
    for (size_t pair = 0; ok && pair < 2; ++pair) {
        for (size_t i = 0; i < count; ++i)
            memcpy(flat[i], points + i * 4 + 2 * pair, sizeof *flat);
        const size_t n = corners_of(flat, count, hull);
        out->facet[pair] = clv_alloc(CLV_MAX(n, (size_t)1), sizeof *out->facet[pair]);
        if (!(ok = out->facet[pair] != NULL)) break;
        out->facets[pair] = n;
        for (size_t i = 0; i < n; ++i) {
            const double *a = hull[i], *b = hull[(i + 1) % n];
            const double nx = b[1] - a[1], ny = a[0] - b[0], norm = hypot(nx, ny);
            double *f = out->facet[pair][i];
            f[0] = nx / norm, f[1] = ny / norm, f[2] = -(nx * a[0] + ny * a[1]) / norm;
        }
    }
    clv_free(flat), clv_free(hull);
    if (ok) return CLV_OK;
    clv_spectra_hull_clear(out);
    return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a hull of %zu points", count);
}

void clv_spectra_hull_clear(clv_spectra_hull *hull)
{
    clv_free(hull->facet[0]), clv_free(hull->facet[1]);
    *hull = (clv_spectra_hull){ 0 };
}

double clv_spectra_outside(const clv_spectra_hull *hull, const double q[4])
{
    double largest = 0;
    for (size_t pair = 0; pair < 2; ++pair)
        for (size_t i = 0; i < hull->facets[pair]; ++i) {
            const double *f = hull->facet[pair][i];
            largest = fmax(largest, f[0] * q[2 * pair] + f[1] * q[2 * pair + 1] + f[2]);
        }
    return largest * largest;
}

/* ---- velocities ---------------------------------------------------------------------------- */

void clv_velocity_moments(const double *v, const double *value, size_t count, double moments[4])
{
    size_t low = 0;
    for (size_t i = 1; i < count; ++i)
        if (value[i] < value[low]) low = i;
    double best = v[low];
    if (low > 0 && low + 1 < count) {
        const double h = v[low + 1] - v[low];
        const double bend = value[low - 1] - 2 * value[low] + value[low + 1];
        if (bend > 0) best += 0.5 * h * (value[low - 1] - value[low + 1]) / bend;
    }
    double sum = 0, second = 0, third = 0, fourth = 0;
    for (size_t i = 0; i < count; ++i) {
        const double p = exp(-0.5 * (value[i] - value[low])), u = v[i] - best;
        sum += p, second += p * u * u, third += p * u * u * u, fourth += p * u * u * u * u;
    }
    const double spread = sqrt(second / sum);
    moments[0] = best, moments[1] = spread;
    moments[2] = third / sum / (spread * spread * spread);
    moments[3] = fourth / sum / (spread * spread * spread * spread);
}
