/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a spot's sub-pixel position and its light. */
#include "host/blob/blob_job.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { MOST_RING = 512 }; /* most pixels of the background's ring that are sampled */

/* Returns the offset of the vertex of the parabola through three values, or 0 if no vertex lies within one pixel. */
static double top_of(double before, double here, double after)
{
    const double curve = before - 2 * here + after;
    if (!isfinite(curve) || !(curve < 0)) return 0;
    const double offset = (before - after) / (2 * curve);
    return fabs(offset) <= 1 ? offset : 0;
}

/* Finds the offset by a least-squares quadratic through the nine responses. At an edge of the frame, only the offset
 * along the edge is found. */
static void place_quad(const clv_blob_plan *plan, const clv_blob_peak *p, double *oy, double *ox)
{
    const float *v = p->around;
    const bool free_y = p->y > 0 && p->y + 1 < plan->shape.height,
               free_x = p->x > 0 && p->x + 1 < plan->shape.width;
    *oy = *ox = 0;
    if (!free_y && free_x) *ox = top_of((double)v[3], (double)v[4], (double)v[5]);
    if (!free_x && free_y) *oy = top_of((double)v[1], (double)v[4], (double)v[7]);
    if (!free_y || !free_x) return;
    double by = 0, bx = 0, cyy = 0, cxx = 0;
    for (int i = 0; i < 3; ++i) {
        bx += ((double)v[3 * i + 2] - (double)v[3 * i]) / 6;
        by += ((double)v[6 + i] - (double)v[i]) / 6;
        cxx += ((double)v[3 * i + 2] - 2 * (double)v[3 * i + 1] + (double)v[3 * i]) / 3;
        cyy += ((double)v[6 + i] - 2 * (double)v[3 + i] + (double)v[i]) / 3;
    }
    const double cxy = ((double)v[8] - (double)v[6] - (double)v[2] + (double)v[0]) / 4;
    const double det = cxx * cyy - cxy * cxy;
    if (!(det > 0) || !(cxx < 0)) return; /* the quadratic has no maximum */
    const double y = -(cxx * by - cxy * bx) / det, x = -(cyy * bx - cxy * by) / det;
    if (fabs(y) <= 1 && fabs(x) <= 1) *oy = y, *ox = x;
}

void clv_blob_refine(const clv_blob_plan *plan, const clv_blob_peak *peak, clv_spot *spot)
{
    const double value = (double)peak->own;
    spot->response = (float)value;
    double oy = 0, ox = 0, sigma = plan->sigma[peak->k];
    if (plan->options.subpixel != CLV_BLOB_SUBPIXEL_NONE) {
        place_quad(plan, peak, &oy, &ox);
        sigma = clv_blob_width(plan, peak->k, (double)peak->below, value, (double)peak->above);
    }
    spot->y = (float)(peak->y + oy), spot->x = (float)(peak->x + ox);
    spot->sigma = (float)sigma;
}

/* Returns the value whose 0-based rank is k; reorders the values. */
static double of_rank(float *v, size_t count, size_t k)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        const float pivot = v[(low + high) / 2];
        size_t i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot)
                ++i;
            while (v[j] > pivot)
                --j;
            if (i > j) break;
            const float t = v[i];
            v[i++] = v[j], v[j] = t;
            if (!j) break;
            --j;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return (double)v[k];
}

typedef struct sums {
    float ring[MOST_RING];
    size_t ring_count, disc_count;
    double disc;
    bool saturated;
} sums;

static void add_row(const clv_blob_plan *plan, size_t frame, size_t y, size_t x0, size_t x1,
                    double cy, double cx, double inner, double outer, sums *s)
{
    enum { PART = 64 };
    const double dy = (double)y - cy;
    float row[PART];
    for (size_t x = x0; x <= x1; ++x) {
        if ((x - x0) % PART == 0)
            clv_blob_pixel_row(plan, frame, y, x, CLV_MIN((size_t)PART, x1 + 1 - x), row);
        const double dx = (double)x - cx, d2 = dy * dy + dx * dx;
        if (d2 > outer * outer) continue;
        const double v = (double)row[(x - x0) % PART];
        if (!isfinite(v)) continue;
        if (d2 <= inner * inner) {
            s->disc += v, ++s->disc_count;
            s->saturated = s->saturated || v >= plan->largest;
        } else if (s->ring_count < MOST_RING) {
            s->ring[s->ring_count++] = (float)v;
        }
    }
}

void clv_blob_measure(const clv_blob_plan *plan, size_t frame, const clv_blob_peak *peak,
                      clv_spot *spot)
{
    const size_t height = plan->shape.height, width = plan->shape.width;
    const double sigma = plan->sigma[peak->k], inner = 3 * sigma, outer = inner + 2;
    const double cy = (double)spot->y, cx = (double)spot->x;
    const size_t y0 = (size_t)fmax(0, ceil(cy - outer)), x0 = (size_t)fmax(0, ceil(cx - outer));
    const size_t y1 = (size_t)fmin((double)height - 1, floor(cy + outer));
    const size_t x1 = (size_t)fmin((double)width - 1, floor(cx + outer));
    const double radius = sqrt(2) * sigma;
    sums s;
    s.ring_count = s.disc_count = 0, s.disc = 0, s.saturated = false;
    for (size_t y = y0; y <= y1; ++y)
        add_row(plan, frame, y, x0, x1, cy, cx, inner, outer, &s);
    double background = (double)plan->pedestal[frame], noise = 0;
    if (s.ring_count) {
        background = of_rank(s.ring, s.ring_count, s.ring_count / 2);
        for (size_t i = 0; i < s.ring_count; ++i)
            s.ring[i] = fabsf(s.ring[i] - (float)background);
        noise = 1.4826 * of_rank(s.ring, s.ring_count, s.ring_count / 2);
    }
    const double mass = s.disc - background * (double)s.disc_count;
    spot->background = (float)background;
    spot->mass = (float)(plan->options.invert ? -mass : mass);
    if (noise > 0 && s.disc_count)
        spot->snr = (float)((double)spot->mass / (noise * sqrt((double)s.disc_count)));
    if (s.saturated) spot->flags |= CLV_SPOT_SATURATED;
    if (cy < radius || cx < radius || cy + radius > (double)height - 1 ||
        cx + radius > (double)width - 1)
        spot->flags |= CLV_SPOT_BORDER;
}
