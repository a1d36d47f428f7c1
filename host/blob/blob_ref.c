/* SPDX-License-Identifier: Apache-2.0 */
/* Computes responses and their maxima in plain C and float64: the reference for the kernels, and the fallback if no
 * device works. */
#include "host/blob/blob_job.h"
#include "host/blob/blob_noise.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* Computes out[y,x] = sum_j tap[|j|][which] in[y,x+j], along x or y. */
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

/* Returns the value that maxima of scale k must exceed at (y, x). */
static double floor_at(const clv_blob_plan *plan, const float *map, size_t k, size_t y, size_t x)
{
    const size_t cell = (y >> plan->cell_shift) * plan->cells_across + (x >> plan->cell_shift);
    return (double)(plan->factor[k] * map[cell]);
}

/* Counts the responses by their magnitude relative to the value that maxima must exceed: 16 bins per factor of 2. */
static void count_sizes(const clv_blob_plan *plan, const float *map, size_t k,
                        const double *response, uint32_t *bins)
{
    for (size_t y = 0; y < plan->shape.height; y += plan->noise_step)
        for (size_t x = 0; x < plan->shape.width; x += plan->noise_step) {
            const float size =
                fabsf((float)(response[y * plan->shape.width + x] / floor_at(plan, map, k, y, x)));
            uint32_t bits;
            memcpy(&bits, &size, sizeof bits);
            const int64_t bin = (int64_t)(bits >> CLV_BLOB_NOISE_SHIFT) - CLV_BLOB_NOISE_FIRST;
            ++bins[bin < 0 ? 0 : CLV_MIN(bin, (int64_t)CLV_BLOB_NOISE_BINS - 1)];
        }
}

/* The responses of one frame, and the list of its maxima. */
typedef struct volume {
    const clv_blob_plan *plan;
    const float *map;
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

/* Returns whether a value is larger than all neighbours before it in the order (k, y, x) and not smaller than all
 * neighbours after it. */
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
                if (value > (float)floor_at(plan, v->map, k, y, x) &&
                    value > plan->relative * largest &&
                    is_maximum(v, (int64_t)k, (int64_t)y, (int64_t)x))
                    hand_over(v, (int64_t)k, (int64_t)y, (int64_t)x);
            }
}

static void one_frame(const clv_blob_plan *plan, size_t frame, double *memory, uint32_t *counts,
                      clv_blob_peak *peaks, uint32_t *bins)
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
    const float *map = plan->map + frame * plan->cells;
    for (size_t k = 0; k < plan->scales && plan->by_noise; ++k)
        count_sizes(plan, map, k, L + k * plane, bins + k * CLV_BLOB_NOISE_BINS);
    look(&(volume){ plan, map, L, counts, peaks });
}

clv_status clv_blob_reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_blob_plan *plan = user;
    const size_t plane = plan->shape.height * plan->shape.width;
    void *counts, *peaks, *bins;
    CLV_TRY(clv_slot_result_create(slot, CLV_BLOB_COUNTS, count * 2 * sizeof(uint32_t), &counts));
    CLV_TRY(clv_slot_result_create(slot, CLV_BLOB_PEAKS,
                                   count * plan->capacity * sizeof(clv_blob_peak), &peaks));
    const size_t size = clv_blob_bins(plan, count) * sizeof(uint32_t);
    CLV_TRY(clv_slot_result_create(slot, CLV_BLOB_BINS, size, &bins));
    memset(bins, 0, size);
    memcpy(counts, plan->seed + 2 * (plan->base + first), count * 2 * sizeof(uint32_t));
    double *memory = clv_alloc(plane * (plan->scales + 5), sizeof *memory);
    clv_status status = CLV_OK;
    if (!memory) status = clv_fail(CLV_E_MEMORY, "blobs: not enough memory for a frame");
    for (size_t i = 0; i < count && !status; ++i)
        one_frame(plan, plan->base + first + i, memory, (uint32_t *)counts + 2 * i,
                  (clv_blob_peak *)peaks + i * plan->capacity,
                  (uint32_t *)bins + clv_blob_bins(plan, i));
    clv_free(memory);
    return status;
}
