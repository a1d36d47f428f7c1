/* SPDX-License-Identifier: Apache-2.0 */
/* Responses and their maxima in plain C and float64: what the kernels are held against, and the
 * way out where no device works. */
#include "host/blob/blob_job.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* out[y,x] = sum_j tap[|j|][which] in[y,x+j], along x or y. */
static void convolve(const clv_blob_plan *plan, size_t level, int which, bool along_y,
                     const double *in, double *out)
{
    const size_t height = plan->shape.height, width = plan->shape.width;
    const double *tap = plan->tap + 2 * plan->first_tap[level] + which;
    const int64_t radius = plan->radius[level];
    const size_t lines = along_y ? width : height, size = along_y ? height : width;
    const size_t step = along_y ? width : 1, jump = along_y ? 1 : width;
    for (size_t line = 0; line < lines; ++line) {
        const double *from = in + line * jump;
        for (size_t i = 0; i < size; ++i) {
            const int64_t at = (int64_t)i;
            const bool near_edge = at < radius || at + radius >= (int64_t)size;
            double sum = tap[0] * from[i * step];
            for (int64_t j = 1; j <= radius; ++j) {
                const size_t a = near_edge ? clv_blob_mirror(at - j, size) : (size_t)(at - j);
                const size_t b = near_edge ? clv_blob_mirror(at + j, size) : (size_t)(at + j);
                sum += tap[2 * j] * (from[a * step] + from[b * step]);
            }
            out[line * jump + i * step] = sum;
        }
    }
}

void clv_blob_responses(const clv_blob_plan *plan, const double *frame, double pedestal,
                        double *scratch, double *responses)
{
    const size_t plane = plan->shape.height * plan->shape.width;
    double *a = scratch, *b = a + plane, *c = b + plane, *before = c + plane;
    for (size_t l = 0; l < plan->levels; ++l) {
        convolve(plan, l, 0, false, frame, a);
        if (plan->options.dog) {
            convolve(plan, l, 0, true, a, b);
            for (size_t i = 0; l && i < plane; ++i)
                responses[(l - 1) * plane + i] =
                    (before[i] - b[i]) / (plan->options.sigma_ratio - 1);
            memcpy(before, b, plane * sizeof *b);
            continue;
        }
        convolve(plan, l, 1, true, a, b);
        convolve(plan, l, 1, false, frame, a);
        convolve(plan, l, 0, true, a, c);
        for (size_t i = 0; i < plane; ++i)
            responses[l * plane + i] = b[i] + c[i] + (double)plan->leak[l] * pedestal;
    }
}

/* As cl/blob/noise.cl: the median of |L|, interpolated in bins of 1/16 of a factor of 2. */
static double inverse_noise(const clv_blob_plan *plan, const double *response, uint32_t *bins)
{
    memset(bins, 0, CLV_BLOB_NOISE_BINS * sizeof *bins);
    size_t samples = 0, bin = 0;
    for (size_t y = 0; y < plan->shape.height; y += plan->noise_step)
        for (size_t x = 0; x < plan->shape.width; ++x, ++samples) {
            const float size = fabsf((float)response[y * plan->shape.width + x]);
            uint32_t bits;
            memcpy(&bits, &size, sizeof bits);
            ++bins[bits >> 19];
        }
    double before = 0;
    while (bin < CLV_BLOB_NOISE_BINS - 1 && before + bins[bin] < 0.5 * (double)samples)
        before += bins[bin++];
    if (!bin) return 0;
    const uint32_t edges[2] = { (uint32_t)bin << 19, (uint32_t)(bin + 1) << 19 };
    float low, high;
    memcpy(&low, &edges[0], sizeof low), memcpy(&high, &edges[1], sizeof high);
    const double part = (0.5 * (double)samples - before) / (bins[bin] ? bins[bin] : 1);
    const double median = low + (high - low) * part;
    return median > 0 && isfinite(median) ? 1 / (1.4826 * median) : 0;
}

/* One frame's volume, and where its maxima go. */
typedef struct volume {
    const clv_blob_plan *plan;
    const double *L; /* [scales][height][width] */
    uint32_t *counts;
    clv_blob_peak *peaks;
} volume;

static double at_place(const volume *v, int64_t k, int64_t y, int64_t x)
{
    const clv_blob_frames *s = &v->plan->shape;
    if (k < 0 || y < 0 || x < 0 || k >= (int64_t)v->plan->scales || y >= (int64_t)s->height ||
        x >= (int64_t)s->width)
        return -INFINITY;
    return v->L[((size_t)k * s->height + (size_t)y) * s->width + (size_t)x];
}

/* Above all neighbours before it in (k, y, x), not below those after it. */
static bool is_maximum(const volume *v, int64_t k, int64_t y, int64_t x)
{
    const double value = at_place(v, k, y, x);
    for (int64_t place = 0; place < 27; ++place) {
        if (place == 13) continue;
        const double other =
            at_place(v, k + place / 9 - 1, y + place / 3 % 3 - 1, x + place % 3 - 1);
        if (place < 13 ? !(value > other) : !(value >= other)) return false;
    }
    return true;
}

static void hand_over(const volume *v, int64_t k, int64_t y, int64_t x)
{
    const float value = (float)at_place(v, k, y, x);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    v->counts[1] = CLV_MAX(v->counts[1], bits);
    if (v->counts[0]++ >= v->plan->capacity) return;
    clv_blob_peak *peak = &v->peaks[v->counts[0] - 1];
    *peak = (clv_blob_peak){ .y = (uint32_t)y, .x = (uint32_t)x, .k = (uint32_t)k };
    for (int64_t i = 0; i < 9; ++i)
        peak->around[i] = (float)at_place(v, k, y + i / 3 - 1, x + i % 3 - 1);
    peak->below = (float)at_place(v, k - 1, y, x);
    peak->above = (float)at_place(v, k + 1, y, x);
}

static void look(const volume *v)
{
    const clv_blob_plan *plan = v->plan;
    for (size_t k = 0; k < plan->scales; ++k)
        for (size_t y = 0; y < plan->shape.height; ++y)
            for (size_t x = 0; x < plan->shape.width; ++x) {
                float largest;
                memcpy(&largest, &v->counts[1], sizeof largest);
                const float value = (float)at_place(v, (int64_t)k, (int64_t)y, (int64_t)x);
                if (value > plan->floor && value > plan->relative * largest &&
                    is_maximum(v, (int64_t)k, (int64_t)y, (int64_t)x))
                    hand_over(v, (int64_t)k, (int64_t)y, (int64_t)x);
            }
}

static void one_frame(const clv_blob_plan *plan, size_t frame, double *memory, uint32_t *bins,
                      uint32_t *counts, clv_blob_peak *peaks, float *inverse)
{
    const size_t height = plan->shape.height, width = plan->shape.width, plane = height * width;
    double *pixels = memory, *scratch = pixels + plane, *L = scratch + 4 * plane;
    const double pedestal = plan->pedestal[frame];
    for (size_t y = 0; y < height; ++y)
        for (size_t x = 0; x < width; ++x) {
            const double v = clv_blob_pixel_at(plan, frame, y, x);
            pixels[y * width + x] = isfinite(v) ? (v - pedestal) * plan->gain : 0;
        }
    clv_blob_responses(plan, pixels, pedestal * plan->gain, scratch, L);
    for (size_t k = 0; k < plan->scales && plan->by_noise; ++k) {
        const double factor = inverse_noise(plan, L + k * plane, bins);
        inverse[k] = (float)factor;
        for (size_t i = 0; i < plane; ++i)
            L[k * plane + i] *= factor;
    }
    look(&(volume){ plan, L, counts, peaks });
}

clv_status clv_blob_reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_blob_plan *plan = user;
    const size_t plane = plan->shape.height * plan->shape.width;
    void *counts, *peaks, *inverse;
    CLV_TRY(clv_slot_result_create(slot, CLV_BLOB_COUNTS, count * 2 * sizeof(uint32_t), &counts));
    CLV_TRY(clv_slot_result_create(slot, CLV_BLOB_PEAKS,
                                   count * plan->capacity * sizeof(clv_blob_peak), &peaks));
    CLV_TRY(clv_slot_result_create(slot, CLV_BLOB_INVERSE, count * plan->scales * sizeof(float),
                                   &inverse));
    memcpy(counts, plan->seed + 2 * (plan->base + first), count * 2 * sizeof(uint32_t));
    double *memory = clv_alloc(plane * (plan->scales + 5), sizeof *memory);
    uint32_t *bins = clv_alloc(CLV_BLOB_NOISE_BINS, sizeof *bins);
    clv_status status = CLV_OK;
    if (!memory || !bins) status = clv_fail(CLV_E_MEMORY, "blobs: no memory for a frame");
    for (size_t i = 0; i < count && !status; ++i)
        one_frame(plan, plan->base + first + i, memory, bins, (uint32_t *)counts + 2 * i,
                  (clv_blob_peak *)peaks + i * plan->capacity, (float *)inverse + i * plan->scales);
    clv_free(memory), clv_free(bins);
    return status;
}
