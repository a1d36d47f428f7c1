/* SPDX-License-Identifier: Apache-2.0 */
/* Computes responses at single pixels on the host, in float64, for scales whose maxima the kernels do not list at these
 * pixels. */
#include "host/blob/blob_noise.h"

#include "base/alloc.h"

#include <math.h>

enum { PART = 64 /* columns of a row that are read at a time */, MOST_SIDE = CLV_BLOB_PATCH };

/* The two kernels of a response: Gaussian and second derivative of one level, or the Gaussians of two levels. */
typedef struct kernels {
    const double *first, *second; /* half kernels, of which every second number is used */
    /* radius of the first kernel; radius of the second, which is not smaller */
    int64_t radius, reach;
    bool dog;
} kernels;

static kernels kernels_of(const clv_blob_plan *plan, size_t k)
{
    const bool dog = plan->options.dog;
    const double *first = plan->tap + 2 * plan->first_tap[k];
    return (kernels){
        .first = first,
        .second = dog ? plan->tap + 2 * plan->first_tap[k + 1] : first + 1,
        .radius = plan->radius[k],
        .reach = plan->radius[dog ? k + 1 : k],
        .dog = dog,
    };
}

/* Reads the pixels [x, x + count) of a row, mirrored at its ends, minus the pedestal; 0 for pixels that are not
 * finite. */
static void bring(const clv_blob_plan *plan, size_t frame, size_t y, int64_t x, size_t count,
                  float *raw, double *out)
{
    const size_t width = plan->shape.width;
    if (x >= 0 && (size_t)x + count <= width)
        clv_blob_pixel_row(plan, frame, y, (size_t)x, count, raw);
    else
        for (size_t i = 0; i < count; ++i)
            raw[i] =
                (float)clv_blob_pixel_at(plan, frame, y, clv_blob_mirror(x + (int64_t)i, width));
    for (size_t i = 0; i < count; ++i)
        out[i] = isfinite(raw[i]) ? (double)raw[i] - (double)plan->pedestal[frame] : 0;
}

/* Convolves a row with both kernels at `side` neighbouring pixels from x on. Each sum is computed from left to
 * right. */
static void across(const clv_blob_plan *plan, const kernels *t, size_t frame, size_t y, int64_t x,
                   size_t side, double *a, double *b)
{
    float raw[PART + MOST_SIDE];
    double v[PART + MOST_SIDE];
    for (size_t i = 0; i < side; ++i)
        a[i] = b[i] = 0;
    for (int64_t from = -t->reach; from <= t->reach; from += PART) {
        const size_t count = (size_t)CLV_MIN((int64_t)PART, t->reach + 1 - from);
        bring(plan, frame, y, x + from, count + side - 1, raw, v);
        for (size_t j = 0; j < count; ++j) {
            const int64_t dx = from + (int64_t)j, at = dx < 0 ? -dx : dx;
            const double p = at <= t->radius ? t->first[2 * at] : 0, q = t->second[2 * at];
            for (size_t i = 0; i < side; ++i)
                a[i] += p * v[j + i], b[i] += q * v[j + i];
        }
    }
}

/* Computes the responses of scale k at side x side pixels from (y, x) on. */
static void respond(const clv_blob_plan *plan, size_t frame, size_t k, int64_t y, int64_t x,
                    size_t side, double *out)
{
    const kernels t = kernels_of(plan, k);
    double sum[MOST_SIDE * MOST_SIDE], other[MOST_SIDE * MOST_SIDE];
    for (size_t i = 0; i < side * side; ++i)
        sum[i] = other[i] = 0;
    for (int64_t row = -t.reach; row < t.reach + (int64_t)side; ++row) {
        double a[MOST_SIDE], b[MOST_SIDE];
        across(plan, &t, frame, clv_blob_mirror(y + row, plan->shape.height), x, side, a, b);
        const size_t first = row > t.reach ? (size_t)(row - t.reach) : 0;
        const size_t end = (size_t)CLV_MIN((int64_t)side, row + t.reach + 1);
        for (size_t i = first; i < end; ++i) {
            const int64_t dy = row - (int64_t)i, at = dy < 0 ? -dy : dy;
            const double p = at <= t.radius ? t.first[2 * at] : 0, q = t.second[2 * at];
            for (size_t j = 0; j < side; ++j) {
                if (t.dog)
                    sum[i * side + j] += p * a[j], other[i * side + j] += q * b[j];
                else
                    sum[i * side + j] += p * b[j] + q * a[j];
            }
        }
    }
    const double leak = t.dog ? 0 : (double)(plan->leak[k] * plan->pedestal[frame]);
    for (size_t i = 0; i < side * side; ++i)
        out[i] = (double)plan->gain *
                 (t.dog ? (sum[i] - other[i]) / (plan->options.sigma_ratio - 1) : sum[i] + leak);
}

double clv_blob_response_at(const clv_blob_plan *plan, size_t frame, size_t k, size_t y, size_t x)
{
    double response;
    respond(plan, frame, k, (int64_t)y, (int64_t)x, 1, &response);
    return response;
}

void clv_blob_responses_around(const clv_blob_plan *plan, size_t frame, size_t k, size_t y,
                               size_t x, float around[9])
{
    double response[9];
    respond(plan, frame, k, (int64_t)y - 1, (int64_t)x - 1, 3, response);
    for (size_t i = 0; i < 9; ++i) {
        const bool there = y + i / 3 >= 1 && y + i / 3 <= plan->shape.height && x + i % 3 >= 1 &&
                           x + i % 3 <= plan->shape.width;
        around[i] = there ? (float)response[i] : -INFINITY;
    }
}

void clv_blob_responses_patch(const clv_blob_plan *plan, size_t frame, size_t k, int64_t y,
                              int64_t x, size_t side, double *responses)
{
    respond(plan, frame, k, y, x, side, responses);
    const int64_t height = (int64_t)plan->shape.height, width = (int64_t)plan->shape.width;
    for (int64_t i = 0; i < (int64_t)side; ++i)
        for (int64_t j = 0; j < (int64_t)side; ++j)
            if (y + i < 0 || y + i >= height || x + j < 0 || x + j >= width)
                responses[i * (int64_t)side + j] = -INFINITY;
}
