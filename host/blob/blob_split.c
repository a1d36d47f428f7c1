/* SPDX-License-Identifier: Apache-2.0 */
/* Splits two close spots that have only one maximum in scale space, between them. */
#include "host/blob/blob_job.h"
#include "host/blob/blob_noise.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { STEPS = 4, APART = 2 }; /* moves of a climb; least distance of two spots in pixels */

static const double round_enough = 0.6; /* from this roundness on a peak is certainly one spot */
static const double alike = 0.4;        /* least ratio of the smaller response to the larger one */
/* Least dip between the two parts, in deviations. Round spots rarely show such a dip, so the value only separates pairs
 * from elongated spots: 0.3 finds 0.65 of the pairs of sigma 1.5 that are 4 pixels apart with peaks of 8 times the
 * noise (0.5 finds 0.61, 2 finds 0.43), and splits 0.08 of ellipses of sigmas 3 and 1.5 (0.5: 0.07, 2: 0.01). */
static const double certain = 0.3;

/* Returns the weakest curvature over the strongest (1 if round), and the direction of the weakest. */
static double roundness(const float v[9], double *dy, double *dx)
{
    double cyy = 0, cxx = 0;
    for (int i = 0; i < 3; ++i) {
        cxx += ((double)v[3 * i + 2] - 2 * (double)v[3 * i + 1] + (double)v[3 * i]) / 3;
        cyy += ((double)v[6 + i] - 2 * (double)v[3 + i] + (double)v[i]) / 3;
    }
    const double cxy = ((double)v[8] - (double)v[6] - (double)v[2] + (double)v[0]) / 4;
    const double mean = (cyy + cxx) / 2, root = hypot((cxx - cyy) / 2, cxy), strong = mean - root;
    const double angle = 0.5 * atan2(2 * cxy, cxx - cyy);
    *dy = sin(angle), *dx = cos(angle);
    return isfinite(strong) && strong < 0 ? (mean + root) / strong : 1;
}

/* Returns the smallest response between two maxima. */
static double dip_between(const clv_blob_plan *plan, size_t frame, const clv_blob_peak *a,
                          const clv_blob_peak *b)
{
    const double dy = (double)b->y - a->y, dx = (double)b->x - a->x;
    const int steps = (int)fmax(fabs(dy), fabs(dx));
    double least = INFINITY;
    for (int i = 1; i < steps; ++i) {
        const double part = (double)i / steps;
        least =
            fmin(least, clv_blob_response_at(plan, frame, a->k, (size_t)lround(a->y + part * dy),
                                             (size_t)lround(a->x + part * dx)));
    }
    return least;
}

/* Climbs to the maximum of scale k from a position beside the peak; returns false if none is near and above its
 * threshold. */
static bool find_part(const clv_blob_plan *plan, size_t frame, const clv_blob_skew *skew,
                      const clv_blob_peak *p, size_t k, double y, double x, clv_blob_peak *part)
{
    if (!(y >= 0 && x >= 0 && y <= (double)plan->shape.height - 1 &&
          x <= (double)plan->shape.width - 1))
        return false;
    *part = *p;
    part->y = (uint32_t)lround(y), part->x = (uint32_t)lround(x), part->k = (uint32_t)k;
    clv_blob_climb(plan, frame, k, STEPS, part);
    const double dy = (double)part->y - p->y, dx = (double)part->x - p->x;
    if (hypot(dy, dx) > sqrt(2) * plan->sigma[p->k] + 1) return false;
    for (int i = 0; i < 9; ++i)
        if (part->around[i] > part->around[4]) return false; /* not at a maximum yet */
    part->own = part->around[4];
    const double pixel = clv_blob_pixel_noise(plan, frame, part->y, part->x);
    return clv_blob_times_threshold(plan, frame, k, (double)part->own, pixel, skew) > 1;
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

/* Finds both parts of a peak that is longer than wide, at the scale with the most significant dip between them. */
static bool split(const clv_blob_plan *plan, size_t frame, const clv_blob_skew *skew,
                  const clv_blob_peak *p, clv_blob_peak parts[2])
{
    double dy, dx, best = certain;
    if (!p->k || !(roundness(p->around, &dy, &dx) < round_enough)) return false;
    const double far = fmax(plan->sigma[p->k] * 0.8, 1);
    for (size_t k = p->k; k-- > 0;) {
        clv_blob_peak two[2];
        if (!find_part(plan, frame, skew, p, k, p->y + far * dy, p->x + far * dx, &two[0]) ||
            !find_part(plan, frame, skew, p, k, p->y - far * dy, p->x - far * dx, &two[1]))
            continue;
        const double low = fmin((double)two[0].own, (double)two[1].own),
                     high = fmax((double)two[0].own, (double)two[1].own);
        if (hypot((double)two[0].y - two[1].y, (double)two[0].x - two[1].x) < APART ||
            low < alike * high)
            continue;
        const double dip = low - dip_between(plan, frame, &two[0], &two[1]);
        const double times = dip / (sqrt(2) * noise_in(plan, frame, k, skew, p));
        if (!(times > best)) continue;
        best = times;
        memcpy(parts, two, sizeof two);
    }
    for (int i = 0; i < 2 && best > certain; ++i) {
        clv_blob_peak *q = &parts[i];
        q->below =
            q->k ? (float)clv_blob_response_at(plan, frame, q->k - 1, q->y, q->x) : -INFINITY;
        q->above = (float)clv_blob_response_at(plan, frame, q->k + 1, q->y, q->x);
    }
    return best > certain;
}

clv_status clv_blob_split(const clv_blob_plan *plan, size_t frame, clv_blob_finisher *f,
                          clv_blob_peak **peaks, size_t *count)
{
    size_t total = *count;
    if (!clv_reserve(&f->peaks, &f->peaks_room, 2 * *count, sizeof *f->peaks))
        return clv_fail(CLV_E_MEMORY, "blobs: no memory for %zu spots", *count);
    memcpy(f->peaks, *peaks, *count * sizeof *f->peaks);
    for (size_t i = 0; i < *count; ++i) {
        clv_blob_peak parts[2];
        if (!split(plan, frame, &f->skew, &f->peaks[i], parts)) continue;
        f->peaks[i] = parts[0], f->peaks[total++] = parts[1];
    }
    *peaks = f->peaks, *count = total;
    return CLV_OK;
}
