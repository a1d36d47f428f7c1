/* SPDX-License-Identifier: Apache-2.0 */
/* Computes templates in float64: evaluates the network, the rotation, the spline and the continuum basis. */
#include "host/spectra/spectra_math.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

size_t clv_spectra_widest(const clv_spectra_arm *arm)
{
    size_t widest = 0;
    for (size_t i = 0; i <= arm->layers; ++i)
        widest = CLV_MAX(widest, arm->width[i]);
    return widest;
}

void clv_spectra_network(const clv_spectra_arm *arm, const double parameters[4], double *work,
                         double *out)
{
    double *in = work, *next = work + clv_spectra_widest(arm);
    for (int k = 0; k < 4; ++k) {
        const double q = k ? parameters[k] : log10(parameters[k]);
        in[k] = (q - arm->mean[k]) / arm->std[k];
    }
    for (size_t l = 0; l < arm->layers; ++l) {
        const bool last = l + 1 == arm->layers;
        double *to = last ? out : next;
        for (size_t o = 0; o < arm->width[l + 1]; ++o) {
            const float *w = arm->weight[l] + o * arm->width[l];
            double sum = (double)arm->bias[l][o];
            for (size_t i = 0; i < arm->width[l]; ++i)
                sum += (double)w[i] * in[i];
            to[o] = last ? exp(fmin(fmax(sum, -300), 300)) : sum / (1 + exp(-sum));
        }
        next = in, in = to;
    }
}

/* ---- rotation ------------------------------------------------------------------------------ */

enum { MAX_REACH = 4096 };
static const double pi = 3.14159265358979323846, darkening = 0.6;

size_t clv_rotation_reach(double radius)
{
    return radius < 1e-9 ? 0 : (size_t)ceil(radius + 1);
}

/* Computes the integrals of K and of x K from -1 to x, where K is the rotation kernel on [-1, 1]. */
static void primitives(double x, double *zeroth, double *first)
{
    const double norm = pi * (1 - darkening / 3);
    const double disc = 2 * (1 - darkening) / norm, limb = pi / 2 * darkening / norm;
    x = fmin(fmax(x, -1), 1);
    const double s = sqrt(1 - x * x);
    *zeroth = disc * 0.5 * (x * s + asin(x)) + limb * (x - x * x * x / 3);
    *first = -disc / 3 * s * s * s + limb * (x * x / 2 - x * x * x * x / 4);
}

void clv_rotation_kernel(double radius, double *weights)
{
    const long reach = (long)clv_rotation_reach(radius);
    double sum = 0;
    for (long k = -reach; k <= reach; ++k) {
        double a0, a1, b0, b1, c0, c1;
        const double at = (double)k;
        if (!reach) {
            weights[0] = 1;
            return;
        }
        primitives((at - 1) / radius, &a0, &a1);
        primitives(at / radius, &b0, &b1);
        primitives((at + 1) / radius, &c0, &c1);
        const double w =
            radius * (b1 - a1) + (1 - at) * (b0 - a0) - radius * (c1 - b1) + (1 + at) * (c0 - b0);
        weights[k + reach] = w;
        sum += w;
    }
    for (long k = 0; k <= 2 * reach; ++k)
        weights[k] /= sum;
}

void clv_rotate(const double *in, size_t count, double radius, double *out)
{
    double weights[2 * MAX_REACH + 1];
    const size_t reach = clv_rotation_reach(fmin(radius, MAX_REACH - 2));
    clv_rotation_kernel(fmin(radius, MAX_REACH - 2), weights);
    for (size_t n = 0; n < count; ++n) {
        double sum = 0;
        const size_t from = n < reach ? 0 : n - reach, to = CLV_MIN(n + reach, count - 1);
        for (size_t i = from; i <= to; ++i)
            sum += weights[n + reach - i] * in[i];
        out[n] = sum;
    }
}

/* ---- spline -------------------------------------------------------------------------------- */

void clv_spline_prepare(const double *x, const double *y, size_t count, double *z, double *work)
{
    z[0] = z[count - 1] = 0;
    if (count < 3) return;
    work[0] = 0;
    for (size_t i = 1; i + 1 < count; ++i) { /* elimination; z holds the right-hand side */
        const double h0 = x[i] - x[i - 1], h1 = x[i + 1] - x[i];
        const double slope = 6 * ((y[i + 1] - y[i]) / h1 - (y[i] - y[i - 1]) / h0);
        const double pivot = 2 * (h0 + h1) - h0 * work[i - 1];
        work[i] = h1 / pivot;
        z[i] = (slope - h0 * z[i - 1]) / pivot;
    }
    for (size_t i = count - 2; i > 0; --i)
        z[i] -= work[i] * z[i + 1];
}

double clv_spline_at(const double *x, const double *y, const double *z, size_t count, double q)
{
    size_t low = 0, high = count - 1;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (x[middle] <= q)
            low = middle;
        else
            high = middle;
    }
    const double h = x[high] - x[low], a = (x[high] - q) / h, b = (q - x[low]) / h;
    return a * y[low] + b * y[high] +
           ((a * a * a - a) * z[low] + (b * b * b - b) * z[high]) * h * h / 6;
}

/* ---- continuum ----------------------------------------------------------------------------- */

void clv_spectra_basis(double x, unsigned terms, double *out)
{
    for (unsigned j = 0; j < terms && j < 3; ++j)
        out[j] = j == 0 ? 1 : j == 1 ? x : x * x;
    const unsigned bumps = terms > 3 ? terms - 3 : 0;
    for (unsigned j = 0; j < bumps; ++j) {
        const double centre = bumps > 1 ? -1 + 2.0 * j / (bumps - 1) : -1;
        const double u = (x - centre) * bumps;
        out[3 + j] = exp(-0.5 * u * u);
    }
}

double clv_median(double *v, size_t count)
{
    if (!count) return (double)NAN;
    const size_t middle = count / 2;
    size_t low = 0, high = count - 1;
    while (low < high) { /* quickselect */
        const double pivot = v[middle];
        size_t i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot)
                ++i;
            while (pivot < v[j])
                --j;
            if (i <= j) {
                const double swap = v[i];
                v[i] = v[j], v[j] = swap;
                ++i;
                if (!j) break;
                --j;
            }
        }
        if (j < middle) low = i;
        if (middle < i) high = j;
    }
    if (count % 2) return v[middle];
    double below = v[0];
    for (size_t i = 1; i < middle; ++i)
        below = fmax(below, v[i]);
    return 0.5 * (below + v[middle]);
}
