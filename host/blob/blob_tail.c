/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the threshold for a given false-alarm probability where the noise of the pixels is skewed: at a few photon
 * counts, or with electron multiplication.
 *
 * A pixel's noise is modelled as a gamma distribution of the same variance and third cumulant; its fourth cumulant is
 * slightly higher than that of Poisson counts and of electron multiplication. The response is a weighted sum of such
 * pixels. The saddle-point approximation gives its tail: P(L > K'(t)) = P(Gaussian > r*), r* = r + ln(v / r) / r, r =
 * sqrt(2 (t K' - K)), v = t sqrt(K''), with K the cumulant generating function. Source: Lugannani and Rice 1980;
 * Barndorff-Nielsen 1986 (r*). */
#include "host/blob/blob_tail.h"

#include "base/alloc.h"

#include <math.h>

enum { MOST_RADIUS = 16, MOST_WEIGHTS = (MOST_RADIUS + 1) * (MOST_RADIUS + 1) };

/* A kernel's weights, normalised to a sum of squares of 1. Weights of equal size are stored once. */
typedef struct weights {
    size_t count;
    double weight[MOST_WEIGHTS], times[MOST_WEIGHTS];
    double cubes, largest;
} weights;

static void make_weights(const double *tap, size_t radius, weights *w)
{
    double squares = 0;
    *w = (weights){ 0 };
    for (size_t y = 0; y <= radius; ++y)
        for (size_t x = 0; x <= radius; ++x) {
            const double value = tap[2 * y + 1] * tap[2 * x] + tap[2 * y] * tap[2 * x + 1];
            w->weight[w->count] = value, w->times[w->count] = (y ? 2 : 1) * (x ? 2 : 1);
            squares += w->times[w->count++] * value * value;
        }
    for (size_t i = 0; i < w->count; ++i) {
        w->weight[i] /= sqrt(squares);
        w->cubes += w->times[i] * w->weight[i] * w->weight[i] * w->weight[i];
        w->largest = fmax(w->largest, w->weight[i]);
    }
}

/* Returns r* at t, and the response at t. `theta`: scale of the gamma distribution. */
static double star(const weights *w, double theta, double t, double *response)
{
    const double shape = 1 / (theta * theta);
    double k = 0, k1 = 0, k2 = 0;
    for (size_t i = 0; i < w->count; ++i) {
        const double a = theta * w->weight[i] * t, n = w->times[i], v = w->weight[i];
        k += n * shape * (-log1p(-a) - a);
        k1 += n * v * v * t / (1 - a);
        k2 += n * v * v / ((1 - a) * (1 - a));
    }
    *response = k1;
    const double r = sqrt(fmax(2 * (t * k1 - k), 1e-300));
    return r + log(t * sqrt(k2) / r) / r;
}

void clv_blob_tail_make(const double *tap, size_t radius, double sigmas, clv_blob_tail *tail)
{
    weights w;
    make_weights(tap, CLV_MIN(radius, (size_t)MOST_RADIUS), &w);
    tail->at[0] = sigmas;
    for (size_t i = 1; i < CLV_BLOB_TAIL_STEPS; ++i) {
        /* the skewness of a gamma distribution is twice theta */
        const double theta = (double)i / 8 / w.cubes / 2;
        double low = 0, high = fmin(2 * sigmas + 4, (1 - 1e-9) / (theta * w.largest));
        for (int round = 0; round < 60; ++round) {
            const double t = (low + high) / 2;
            double response;
            if (star(&w, theta, t, &response) < sigmas)
                low = t;
            else
                high = t;
        }
        star(&w, theta, high, &tail->at[i]);
        tail->at[i] = fmax(tail->at[i], tail->at[i - 1]);
    }
}

double clv_blob_tail_at(const clv_blob_tail *tail, double skewness)
{
    const double at = skewness * 8;
    if (!(at > 0)) return tail->at[0];
    const size_t i = (size_t)fmin(at, CLV_BLOB_TAIL_STEPS - 2);
    return tail->at[i] + (at - (double)i) * (tail->at[i + 1] - tail->at[i]);
}
