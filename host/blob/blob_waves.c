/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when cosine transforms are faster than sums over taps, and computes their tables. */
#include "host/blob/blob_waves.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/blob/blob_plan.h"

#include <math.h>

enum { BLOCK = CLV_BLOB_WAVE_BLOCK };

static const double pi = 3.14159265358979323846;

/* Cost model in nanoseconds per pixel, for two cores with vectors of 16. Sums over taps cost scale_ns per scale and
 * tap_ns per tap; the cost per tap grows with the length of the ring buffers by radius_ns per pixel of radius (to 0.07
 * at a radius of 12 and 0.27 at 200). Transforms cost plane_ns per plane and doubling_ns per doubling of the plane's
 * size, plus look_ns to examine the responses. Only the ratios matter. They are constants, so that a movie is computed
 * in the same way on all CPUs. Measured at 512x512 with 5 sigmas: up to sigma 10, 2.8 ms by taps and 3.2 ms by
 * transforms; up to sigma 50, 36 ms and 4.6 ms. At 2048x2048 up to sigma 20: 111 ms and 52 ms. */
static const double scale_ns = 0.25, tap_ns = 0.06, radius_ns = 0.001;
static const double plane_ns = 1.0, doubling_ns = 0.04, look_ns = 1.7;
/* transforms must take less than this fraction of the time of taps, because taps use less memory */
static const double worth_it = 0.8;

static const double most_bytes = 2147483648.0;

static bool is_smooth(size_t n)
{
    static const size_t factors[] = { 2, 3, 5 };
    for (size_t i = 0; i < CLV_LEN(factors); ++i)
        while (n % factors[i] == 0)
            n /= factors[i];
    return n == 1;
}

size_t clv_blob_wave_length(size_t size, size_t radius)
{
    if (is_smooth(size)) return size;
    size_t length = size + radius;
    while (!is_smooth(length))
        ++length;
    return length;
}

bool clv_blob_waves_pay(const clv_blob_plan *plan)
{
    double pixels = (double)plan->shape.height * (double)plan->shape.width, padded = 1;
    const size_t size[2] = { plan->shape.height, plan->shape.width };
    for (int axis = 0; axis < 2; ++axis)
        padded *= (double)clv_round_up(clv_blob_wave_length(size[axis], plan->max_radius), BLOCK);
    const double planes = (double)(plan->scales + 1);
    const double tap = tap_ns + radius_ns * (double)plan->max_radius;
    double sums = 0;
    for (size_t l = 0; l < plan->levels; ++l)
        sums += scale_ns + (plan->options.dog ? 0.5 : 1) * tap * plan->radius[l];
    const double waves =
        look_ns + planes * (plane_ns + doubling_ns * log2(padded)) * padded / pixels;
    return waves < worth_it * sums && 4 * (planes + 2) * padded < most_bytes;
}

/* Computes the filter's response to cos(pi k (i + 1/2) / n), [n][2], for the two kernels of a level. */
static void answers(const clv_blob_plan *plan, size_t level, size_t n, const double *cosine,
                    double *out)
{
    const double *tap = plan->tap + 2 * plan->first_tap[level];
    for (size_t k = 0; k < n; ++k) {
        double g = tap[0], q = tap[1];
        for (size_t j = 1, at = k; j <= plan->radius[level]; ++j, at += k) {
            at %= 2 * n;
            g += 2 * tap[2 * j] * cosine[at], q += 2 * tap[2 * j + 1] * cosine[at];
        }
        out[2 * k] = g, out[2 * k + 1] = q;
    }
}

/* Computes the filters along y, then along x: [2][n] or pairs, times `scale`. LoG: q_y g_x + g_y q_x. DoG: g_y g_x of a
 * level minus g_y g_x of the next level. */
static clv_status make_filters(const clv_blob_plan *plan, clv_blob_waves *w)
{
    const size_t ny = w->along[0].length, nx = w->along[1].length, pitch = w->along[0].padded;
    const size_t most = CLV_MAX(nx, ny), each = 2 * (pitch + nx);
    const bool dog = plan->options.dog;
    w->filter_floats = plan->scales * each;
    w->filters = clv_zalloc(plan->scales, each * sizeof *w->filters);
    double *cosine = clv_alloc(2 * most, sizeof *cosine),
           *answer = clv_alloc(most, 4 * sizeof *answer);
    const bool ok = w->filters && cosine && answer;
    /* each forward transform gives twice the sums, and the inverse does not divide */
    const double norm = 0.25 / ((double)nx * (double)ny);
    for (int axis = 0; ok && axis < 2; ++axis) {
        const size_t n = w->along[axis].length;
        for (size_t i = 0; i < 2 * n; ++i)
            cosine[i] = cos(pi * (double)i / (double)n);
        for (size_t k = 0; k < plan->scales; ++k) {
            float *y = w->filters + k * each, *x = y + 2 * pitch;
            answers(plan, k, n, cosine, answer);
            if (dog) answers(plan, k + 1, n, cosine, answer + 2 * n);
            const double factor = dog ? norm / (plan->options.sigma_ratio - 1) : norm;
            for (size_t i = 0; i < n; ++i) {
                const double g = answer[2 * i], q = dog ? answer[2 * (n + i)] : answer[2 * i + 1];
                if (axis == 0) /* all of the first kernel, then all of the second */
                    y[i] = (float)g, y[pitch + i] = (float)q;
                else if (dog)
                    x[2 * i] = (float)(factor * g), x[2 * i + 1] = (float)(-factor * q);
                else
                    x[2 * i] = (float)(factor * q), x[2 * i + 1] = (float)(factor * g);
            }
        }
    }
    clv_free(cosine), clv_free(answer);
    return ok ? CLV_OK : clv_fail(CLV_E_MEMORY, "blobs: not enough memory for filters");
}

clv_status clv_blob_waves_create(const clv_blob_plan *plan, clv_blob_waves *w)
{
    const size_t size[2] = { plan->shape.height, plan->shape.width };
    *w = (clv_blob_waves){ .used = true };
    for (int axis = 0; axis < 2; ++axis) {
        w->along[axis].length = clv_blob_wave_length(size[axis], plan->max_radius);
        w->along[axis].padded = clv_round_up(w->along[axis].length, BLOCK);
    }
    for (int axis = 0; axis < 2; ++axis) {
        const size_t n = w->along[axis].length;
        float *waves = w->along[axis].waves = clv_alloc(n, 2 * sizeof *waves);
        float *quarters = w->along[axis].quarters = clv_alloc(n / 2 + 1, 2 * sizeof *quarters);
        if (!waves || !quarters)
            return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for cosines");
        for (size_t k = 0; k < n; ++k) {
            const double angle = 2 * pi * (double)k / (double)n;
            waves[2 * k] = (float)cos(angle), waves[2 * k + 1] = (float)-sin(angle);
        }
        for (size_t k = 0; k <= n / 2; ++k) {
            const double angle = pi * (double)k / (2 * (double)n);
            quarters[2 * k] = (float)cos(angle), quarters[2 * k + 1] = (float)sin(angle);
        }
    }
    return make_filters(plan, w);
}

void clv_blob_waves_clear(clv_blob_waves *w)
{
    for (int axis = 0; axis < 2; ++axis)
        clv_free(w->along[axis].waves), clv_free(w->along[axis].quarters);
    clv_free(w->filters);
    *w = (clv_blob_waves){ 0 };
}
