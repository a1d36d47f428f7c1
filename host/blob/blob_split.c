/* SPDX-License-Identifier: Apache-2.0 */
/* Splits two close spots that share a maximum in scale space. The maximum lies between them or on one of them, but at
 * some scale the two spots have separate maxima in y and x. */
#include "host/blob/blob_job.h"
#include "host/blob/blob_noise.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { APART = 2 /* least distance of two spots in pixels */, MOST = 16 /* maxima in a patch */ };

/* A peak with a roundness of at least `round_enough` is certainly one spot; below `longish` it probably is not. */
static const double round_enough = 0.8, longish = 0.6;
/* Smallest dip between the two parts, in standard deviations: of a longish peak, and of a rounder one. Round spots
 * rarely show such a dip, so the values only separate pairs from elongated spots. A value of 0.3 finds 74 % of the
 * pairs of sigma 1.5 that are 4 pixels apart with peaks of 8 times the noise, and splits 5 % of ellipses with sigmas of
 * 3 and 1.5. */
static const double certain = 0.3, certain_if_round = 1.5;
static const double alike = 0.4; /* smallest ratio of the smaller response to the larger one */
static const double beside =
    1.5; /* largest distance of the peak from the line between its parts, in pixels */

/* Returns the weakest curvature divided by the strongest; 1 for a round peak. */
static double roundness(const float v[9])
{
    double cyy = 0, cxx = 0;
    for (int i = 0; i < 3; ++i) {
        cxx += ((double)v[3 * i + 2] - 2 * (double)v[3 * i + 1] + (double)v[3 * i]) / 3;
        cyy += ((double)v[6 + i] - 2 * (double)v[3 + i] + (double)v[i]) / 3;
    }
    const double cxy = ((double)v[8] - (double)v[6] - (double)v[2] + (double)v[0]) / 4;
    const double mean = (cyy + cxx) / 2, root = hypot((cxx - cyy) / 2, cxy), strong = mean - root;
    return isfinite(strong) && strong < 0 ? (mean + root) / strong : 1;
}

/* The responses of one scale around a peak: [side][side], starting at pixel (y, x). */
typedef struct patch {
    int64_t y, x;
    size_t side;
    double v[CLV_BLOB_PATCH * CLV_BLOB_PATCH];
} patch;

/* A maximum within a patch. */
typedef struct top {
    int64_t y, x;
    double own;
} top;

static double at(const patch *m, int64_t y, int64_t x)
{
    return m->v[(size_t)(y - m->y) * m->side + (size_t)(x - m->x)];
}

static double distance(const top *a, const top *b)
{
    return hypot((double)(a->y - b->y), (double)(a->x - b->x));
}

/* Returns the smallest response between two maxima. */
static double lowest_between(const patch *m, const top *a, const top *b)
{
    const double dy = (double)(b->y - a->y), dx = (double)(b->x - a->x);
    const int steps = (int)fmax(fabs(dy), fabs(dx));
    double least = INFINITY;
    for (int i = 1; i < steps; ++i) {
        const double part = (double)i / steps;
        least = fmin(least, at(m, a->y + lround(part * dy), a->x + lround(part * dx)));
    }
    return least;
}

/* Returns whether the response at `v` is a maximum; of adjacent equal responses, the last one counts. */
static bool is_top(const double *v, size_t side)
{
    const double *up = v - side, *down = v + side, own = *v;
    return own >= up[-1] && own >= up[0] && own >= up[1] && own >= v[-1] && own > v[1] &&
           own > down[-1] && own > down[0] && own > down[1];
}

/* Lists the maxima of a patch that are above `low` and within `reach` of its middle; returns their number. */
static size_t list_tops(const patch *m, double reach, double low, top tops[MOST])
{
    size_t count = 0;
    const top middle = { m->y + (int64_t)m->side / 2, m->x + (int64_t)m->side / 2, 0 };
    for (size_t i = 1; i + 1 < m->side; ++i)
        for (size_t j = 1; j + 1 < m->side; ++j) {
            const double *v = m->v + i * m->side + j;
            if (!(*v > low) || !is_top(v, m->side)) continue;
            const top t = { m->y + (int64_t)i, m->x + (int64_t)j, *v };
            if (distance(&t, &middle) <= reach && count < MOST) tops[count++] = t;
        }
    return count;
}

/* Returns the distance of the peak from the line between two maxima. */
static double off_line(const clv_blob_peak *p, const top *a, const top *b)
{
    const double dy = (double)(b->y - a->y), dx = (double)(b->x - a->x);
    const double py = (double)((int64_t)p->y - a->y), px = (double)((int64_t)p->x - a->x);
    const double part = fmin(fmax((py * dy + px * dx) / (dy * dy + dx * dx), 0), 1);
    return hypot(py - part * dy, px - part * dx);
}

/* Finds the two maxima that can be the parts of a peak. If several pairs qualify, the pair whose weaker maximum is
 * strongest wins. */
static bool find_pair(const clv_blob_plan *plan, const clv_blob_peak *p, size_t k, const top *tops,
                      size_t count, top pair[2])
{
    const double radius = sqrt(2) * plan->sigma[k];
    double strongest = 0;
    for (size_t i = 0; i < count; ++i)
        for (size_t j = i + 1; j < count; ++j) {
            const top *a = &tops[i], *b = &tops[j];
            const double weak = fmin(a->own, b->own), apart = distance(a, b);
            if (!(weak > strongest) || weak < alike * fmax(a->own, b->own) || apart < APART ||
                clv_blob_overlap(apart, radius, radius) > plan->options.overlap ||
                off_line(p, a, b) > beside)
                continue;
            strongest = weak, pair[0] = *a, pair[1] = *b;
        }
    return strongest > 0;
}

/* Returns the noise of the responses of scale k, including the shot noise of the peak's light. */
static double noise_in(const clv_blob_plan *plan, size_t frame, size_t k, const clv_blob_skew *skew,
                       const clv_blob_peak *p)
{
    const double pixel = clv_blob_pixel_noise(plan, frame, p->y, p->x);
    const double light = (double)plan->gain * (clv_blob_pixel_at(plan, frame, p->y, p->x) -
                                               (double)plan->pedestal[frame]);
    const double dark = pixel * pixel * skew->variance;
    return clv_blob_noise(plan, frame, k, pixel) *
           sqrt(1 + (dark > 0 && light > 0 ? skew->third * light / dark : 0));
}

/* Turns a maximum of the patch into a peak of scale k. */
static clv_blob_peak peak_of(const clv_blob_plan *plan, size_t frame, size_t k, const patch *m,
                             const top *t, const clv_blob_peak *whole)
{
    clv_blob_peak part = *whole;
    part.y = (uint32_t)t->y, part.x = (uint32_t)t->x, part.k = (uint32_t)k;
    for (int i = 0; i < 9; ++i)
        part.around[i] = (float)at(m, t->y + i / 3 - 1, t->x + i % 3 - 1);
    part.own = part.around[4];
    part.below = k ? (float)clv_blob_response_at(plan, frame, k - 1, part.y, part.x) : -INFINITY;
    part.above = k + 1 < plan->scales
                     ? (float)clv_blob_response_at(plan, frame, k + 1, part.y, part.x)
                     : -INFINITY;
    return part;
}

/* Finds both parts of a peak, at the largest scale that shows a significant dip between them. At the smallest scale,
 * noise can cause a maximum between two spots; a peak of that scale is therefore searched from the next larger scale
 * on. */
static bool split(const clv_blob_plan *plan, size_t frame, const clv_blob_skew *skew,
                  const clv_blob_peak *p, clv_blob_peak parts[2])
{
    enum { USUAL = 6, MOST_REACH = (CLV_BLOB_PATCH - 3) / 2 };
    const double round = roundness(p->around), sigma = plan->sigma[p->k];
    if (!(round < round_enough)) return false;
    const double least = round < longish ? certain : certain_if_round;
    /* if the peak is on one of the spots, the other is up to 4 sigma away; if it is between them, both are in its
     * disc */
    const double reach = fmin(fmin(4 * sigma, fmax(sqrt(2) * sigma + 1, USUAL)), MOST_REACH);
    const int64_t half = (int64_t)ceil(reach) + 1;
    const double pixel = clv_blob_pixel_noise(plan, frame, p->y, p->x);
    const size_t first = CLV_MIN(CLV_MAX(p->k, 1u), plan->scales - 1);
    /* other scales take time and reveal few pairs */
    const size_t last = round < longish ? 0 : first;
    patch m;
    m.y = (int64_t)p->y - half, m.x = (int64_t)p->x - half, m.side = (size_t)(2 * half + 1);
    for (size_t k = first + 1; k-- > last;) {
        top tops[MOST], pair[2];
        clv_blob_responses_patch(plan, frame, k, m.y, m.x, m.side, m.v);
        const double low = 1 / clv_blob_times_threshold(plan, frame, k, 1, pixel, skew);
        const size_t count = list_tops(&m, reach, low, tops);
        if (count < 2 || !find_pair(plan, p, k, tops, count, pair)) continue;
        const double dip = fmin(pair[0].own, pair[1].own) - lowest_between(&m, &pair[0], &pair[1]);
        if (!(dip > least * sqrt(2) * noise_in(plan, frame, k, skew, p))) continue;
        for (int i = 0; i < 2; ++i)
            parts[i] = peak_of(plan, frame, k, &m, &pair[i], p);
        return true;
    }
    return false;
}

clv_status clv_blob_split(const clv_blob_plan *plan, size_t frame, clv_blob_finisher *f,
                          clv_blob_peak **peaks, size_t *count)
{
    size_t total = *count;
    if (!clv_reserve(&f->peaks, &f->peaks_room, 2 * *count, sizeof *f->peaks))
        return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for %zu spots", *count);
    memcpy(f->peaks, *peaks, *count * sizeof *f->peaks);
    for (size_t i = 0; i < *count; ++i) {
        clv_blob_peak parts[2];
        if (!split(plan, frame, &f->skew, &f->peaks[i], parts)) continue;
        f->peaks[i] = parts[0], f->peaks[total++] = parts[1];
    }
    *peaks = f->peaks, *count = total;
    return CLV_OK;
}
