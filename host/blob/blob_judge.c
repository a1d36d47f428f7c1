/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which maxima are spots: thresholds, borders, bad pixels, hot pixels, edges. */
#include "host/blob/blob_job.h"
#include "host/blob/blob_noise.h"

#include "base/alloc.h"
#include "base/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* from this multiple of the threshold on, a maximum is certainly a spot, not the tail of the noise */
static const double bright = 1.5;

/* Smallest response, in units of its threshold, of a peak that a larger scale can confirm. */
static const double promising = 0.65;
/* The same limit if the larger scale's maximum may be a pixel away. */
static const double close_by = 0.8;

/* Returns whether a pixel within `radius` of (y, x) is not finite. */
bool clv_blob_bad_within(const clv_blob_plan *plan, size_t frame, const clv_blob_peak *peak,
                         double radius)
{
    const int64_t reach = (int64_t)ceil(radius);
    for (int64_t dy = -reach; dy <= reach; ++dy)
        for (int64_t dx = -reach; dx <= reach; ++dx) {
            const int64_t y = (int64_t)peak->y + dy, x = (int64_t)peak->x + dx;
            if (y < 0 || x < 0 || y >= (int64_t)plan->shape.height ||
                x >= (int64_t)plan->shape.width || (double)(dy * dy + dx * dx) > radius * radius)
                continue;
            if (!isfinite(clv_blob_pixel_at(plan, frame, (size_t)y, (size_t)x))) return true;
        }
    return false;
}

static bool outside(const clv_blob_plan *plan, const clv_blob_peak *p)
{
    const size_t border = plan->options.exclude_border;
    return p->y < border || p->x < border || p->y + border >= plan->shape.height ||
           p->x + border >= plan->shape.width;
}

/* Reads a pixel near the peak; returns false if the pixel is outside the frame or not finite. */
static bool pixel_beside(const clv_blob_plan *plan, size_t frame, const clv_blob_peak *p,
                         int64_t dy, int64_t dx, double *value)
{
    const int64_t y = (int64_t)p->y + dy, x = (int64_t)p->x + dx;
    if (y < 0 || x < 0 || y >= (int64_t)plan->shape.height || x >= (int64_t)plan->shape.width)
        return false;
    *value = (double)plan->gain * clv_blob_pixel_at(plan, frame, (size_t)y, (size_t)x);
    return isfinite(*value);
}

/* Returns true for a single pixel that is brighter than optics allow. In a spot of the smallest sigma, the four
 * neighbours have a known fraction of the centre's light. A peak counts as a spot if they have at least half of that
 * fraction, less one standard deviation of their noise. `gain`: variance of the light divided by its mean. */
static bool is_hot(const clv_blob_plan *plan, size_t frame, const clv_blob_peak *p, double noise,
                   double gain)
{
    enum { REACH = 3, MOST = 8 * REACH };
    const double sigma = plan->sigma[0] * sqrt(2);
    const double asked = 0.5 * (erf(1.5 / sigma) - erf(0.5 / sigma)) / 2 / erf(0.5 / sigma);
    float ring[MOST];
    double v, middle, sum = 0;
    size_t count = 0, beside = 0;
    if (!pixel_beside(plan, frame, p, 0, 0, &middle)) return false;
    for (int64_t dy = -REACH; dy <= REACH; ++dy)
        for (int64_t dx = -REACH; dx <= REACH; ++dx) {
            const bool near = llabs(dy) + llabs(dx) == 1,
                       rim = llabs(dy) == REACH || llabs(dx) == REACH;
            if (!(near || rim) || !pixel_beside(plan, frame, p, dy, dx, &v)) continue;
            if (near)
                sum += v, ++beside;
            else
                ring[count++] = (float)v;
        }
    if (!count || !beside) return false;
    const double ground = (double)clv_nth_float(ring, count, count / 2);
    const double light = middle - ground, neighbours = sum / (double)beside - ground;
    const double own = noise * noise + gain * fmax(light, 0),
                 others = (noise * noise + gain * fmax(neighbours, 0)) / (double)beside;
    const double doubt = sqrt(others + asked * asked * own);
    return neighbours + doubt < asked * light;
}

static void mask_peak(const clv_blob_plan *plan, uint8_t *mask, const clv_blob_peak *p)
{
    const size_t across = (plan->shape.width >> CLV_BLOB_MASK_SHIFT) + 1,
                 reach = (size_t)ceil(3 * plan->sigma[p->k]) + 1;
    const size_t y0 = (p->y > reach ? p->y - reach : 0) >> CLV_BLOB_MASK_SHIFT,
                 x0 = (p->x > reach ? p->x - reach : 0) >> CLV_BLOB_MASK_SHIFT;
    const size_t y1 = CLV_MIN(p->y + reach, plan->shape.height - 1) >> CLV_BLOB_MASK_SHIFT,
                 x1 = CLV_MIN(p->x + reach, plan->shape.width - 1) >> CLV_BLOB_MASK_SHIFT;
    for (size_t y = y0; y <= y1; ++y)
        memset(mask + y * across + x0, 1, x1 - x0 + 1);
}

double clv_blob_times_threshold(const clv_blob_plan *plan, size_t frame, size_t k, double response,
                                double pixel, const clv_blob_skew *skew)
{
    return response / (clv_blob_noise(plan, frame, k, pixel) *
                       clv_blob_threshold(plan, frame, k, pixel, skew));
}

void clv_blob_climb(const clv_blob_plan *plan, size_t frame, size_t k, int steps, clv_blob_peak *p)
{
    for (int step = 0; step < steps; ++step) {
        size_t best = 4;
        clv_blob_responses_around(plan, frame, k, p->y, p->x, p->around);
        for (size_t i = 0; i < 9; ++i)
            if (p->around[i] > p->around[best]) best = i;
        if (best == 4 || step + 1 == steps) return;
        p->y = (uint32_t)(p->y + best / 3 - 1), p->x = (uint32_t)(p->x + best % 3 - 1);
    }
}

/* Returns whether a response of scale k is above its threshold after the contribution of an edge beside the peak has
 * been subtracted. */
static bool beyond_edge(const clv_blob_plan *plan, size_t frame, size_t k, const clv_blob_peak *p,
                        double response, double pixel, const clv_blob_skew *skew)
{
    const clv_blob_edge edge = clv_blob_edge_at(plan, frame, k, p, pixel, skew->variance);
    if (!(edge.response > 0)) return true;
    return clv_blob_times_threshold(plan, frame, k, response - edge.response, edge.noise, skew) > 1;
}

/* Returns whether the S/N at the next scale is lower than at the peak's own scale. This never happens for a spot,
 * because the next scale gathers more of its light. */
static bool narrows(const clv_blob_plan *plan, size_t frame, const clv_blob_peak *p, double pixel)
{
    return !(p->above > 0) || (double)p->above / clv_blob_noise(plan, frame, p->k + 1, pixel) <
                                  (double)p->own / clv_blob_noise(plan, frame, p->k, pixel);
}

/* Returns whether a larger scale confirms the peak; if so, moves the peak to that scale. A spot has its largest
 * response at its own scale, but larger scales have less noise: there a faint spot has its highest S/N and its most
 * precise position. So a peak counts if its response, or that of a larger scale at the same position, is above the
 * threshold. If the larger scale's response exceeds the peak's, however, that response belongs to another spot. */
static bool larger_is_certain(const clv_blob_plan *plan, size_t frame, clv_blob_peak *p,
                              double pixel, const clv_blob_skew *skew, double least)
{
    enum { STEPS = 3, MOST_LARGER = 4, MOST_RADIUS = 48 };
    const size_t last = CLV_MIN(p->k + (size_t)MOST_LARGER, plan->scales - 1);
    size_t best_k = p->k;
    double best = 0;
    for (size_t k = p->k + 1; k <= last && plan->radius[k] <= MOST_RADIUS; ++k) {
        const double response =
            k == p->k + 1u ? (double)p->above : clv_blob_response_at(plan, frame, k, p->y, p->x);
        const double times = clv_blob_times_threshold(plan, frame, k, response, pixel, skew);
        if (times < promising || response > (double)p->own) break;
        if (times > best) best = times, best_k = k;
    }
    if (best < close_by) return false;
    clv_blob_peak moved = *p;
    clv_blob_climb(plan, frame, best_k, STEPS, &moved);
    if (!(clv_blob_times_threshold(plan, frame, best_k, (double)moved.around[4], pixel, skew) >
          least))
        return false;
    if (!beyond_edge(plan, frame, best_k, &moved, (double)moved.around[4], pixel, skew))
        return false;
    *p = moved;
    return true;
}

/* Returns whether the peak's own scale or a larger one confirms it as a spot. *hot: the own scale exceeds its
 * threshold, but the peak is a single hot pixel. */
static bool is_spot(const clv_blob_plan *plan, size_t frame, clv_blob_peak *p,
                    const clv_blob_skew *skew, bool *hot)
{
    const double pixel = clv_blob_pixel_noise(plan, frame, p->y, p->x);
    const double own = clv_blob_times_threshold(plan, frame, p->k, (double)p->own, pixel, skew);
    const bool narrow = p->k == 0 && own > 1 && !plan->options.keep_hot_pixels &&
                        narrows(plan, frame, p, pixel) &&
                        is_hot(plan, frame, p, pixel * sqrt(skew->variance), skew->third);
    if (own > 1 && !narrow && beyond_edge(plan, frame, p->k, p, (double)p->own, pixel, skew))
        return true;
    if (larger_is_certain(plan, frame, p, pixel, skew, fmax(own, 1))) return true;
    *hot = narrow;
    return false;
}

/* Keeps peaks above the threshold for the local noise; where the noise is skewed, the threshold is higher. */
static size_t above_noise(const clv_blob_plan *plan, size_t frame, clv_blob_finisher *f,
                          clv_blob_peak *peaks, size_t count)
{
    static const clv_blob_skew none = { 0, 1 };
    size_t kept = 0;
    memset(f->mask, 0,
           ((plan->shape.height >> CLV_BLOB_MASK_SHIFT) + 1) *
               ((plan->shape.width >> CLV_BLOB_MASK_SHIFT) + 1));
    for (size_t i = 0; i < count; ++i) {
        const clv_blob_peak *p = &peaks[i];
        const double pixel = clv_blob_pixel_noise(plan, frame, p->y, p->x);
        double times =
            clv_blob_times_threshold(plan, frame, p->k, (double)p->around[4], pixel, &none);
        if (p->above > 0)
            times = fmax(times, clv_blob_times_threshold(plan, frame, p->k + 1, (double)p->above,
                                                         pixel, &none));
        if (times < promising) continue;
        if (times > bright) mask_peak(plan, f->mask, p);
        peaks[kept++] = *p;
    }
    if (!kept) return 0;
    const clv_blob_skew skew = clv_blob_find_skew(plan, frame, f->mask);
    f->skew = skew;
    count = kept, kept = 0;
    for (size_t i = 0; i < count; ++i) {
        clv_blob_peak *p = &peaks[i];
        bool hot = false;
        if (is_spot(plan, frame, p, &skew, &hot))
            peaks[kept++] = *p;
        else
            f->hot += hot;
    }
    return kept;
}

size_t clv_blob_judge(const clv_blob_plan *plan, size_t frame, clv_blob_finisher *f,
                      clv_blob_peak *peaks, size_t count)
{
    static const float usual_part =
        0.2f; /* fraction of the largest response, for frames without any noise */
    const bool noise = plan->by_noise && !clv_blob_noiseless(plan, frame);
    const float part = plan->by_noise && !noise ? usual_part : plan->relative;
    const float low = fmaxf(plan->floor, part * plan->max_response[frame]);
    size_t kept = 0;
    f->dropped_bad = f->hot = 0;
    f->skew = (clv_blob_skew){ 0 };
    for (size_t i = 0; i < count; ++i) {
        const clv_blob_peak *p = &peaks[i];
        if (!(p->around[4] > low) || outside(plan, p)) continue;
        if (plan->bad_pixels[frame] && clv_blob_bad_within(plan, frame, p, 2 * plan->sigma[p->k])) {
            ++f->dropped_bad;
            continue;
        }
        peaks[kept] = *p;
        peaks[kept].own = p->around[4];
        ++kept;
    }
    return noise ? above_noise(plan, frame, f, peaks, kept) : kept;
}
