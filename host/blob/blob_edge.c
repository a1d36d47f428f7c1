/* SPDX-License-Identifier: Apache-2.0 */
/* Finds edges beside peaks: lines where the brightness jumps, such as the border between two amplifiers of a camera or
 * the rim of a cell. The responses on the bright side of such a line are positive all along it, and noise turns this
 * ridge into a row of maxima. What the ridge itself contributes is measured farther along the edge. */
#include "host/blob/blob_noise.h"

#include "base/alloc.h"
#include "base/sort.h"

#include <math.h>

enum {
    ANGLES = 16,
    RINGS = CLV_BLOB_RING_PIXELS / ANGLES,
    ALONG = 4,
    FEWEST = 6 /* fewest pixels on either side of the edge, for peaks in a corner of the frame */
};

/* Radii of the rings, and distances along the edge, in units of sigma. At these distances a spot's own response is
 * negative. */
static const double ring[RINGS] = { 3, 4.25, 5.5 }, along[ALONG] = { 2.5, 3.75, 5, 6.25 };
/* Smallest brightness step of an edge, in standard deviations of the difference between the medians of two half
 * rings. */
static const double least_jump = 3;
/* Smallest length of the sum of the pixels times their directions, in standard deviations. A step of least_jump at the
 * middle of whole rings gives 3.4. */
static const double clearly = 2.5;
/* Smallest response of a ridge, in standard deviations. Without a ridge, the maxima of noise in 3x3 pixels reach about
 * 1. */
static const double ridge = 1.5;
/* Distance, in pixels, at which the noise of the bright side is looked up: one and a half cells of the map. */
static const double aside = 1.5 * (1 << CLV_BLOB_CELL_SHIFT);

typedef struct pixel {
    double value, uy, ux; /* direction of the pixel from the peak */
} pixel;

static double median(float *values, size_t count)
{
    return (double)clv_nth_float(values, count, count / 2);
}

static bool inside(const clv_blob_plan *plan, double y, double x)
{
    return y >= 0 && x >= 0 && y < (double)plan->shape.height && x < (double)plan->shape.width;
}

/* Returns a component of the direction number `angle`: the x component if `along_x`, otherwise the y component. */
static double way(size_t angle, bool along_x)
{
    /* sines of multiples of 22.5 degrees */
    static const double s1 = 0.3826834323650898, s2 = 0.7071067811865476, s3 = 0.9238795325112867;
    const double sine[ANGLES + ANGLES / 4] = { 0,   s1,  s2, s3,  1,   s3,  s2, s1, 0,  -s1,
                                               -s2, -s3, -1, -s3, -s2, -s1, 0,  s1, s2, s3 };
    return sine[angle + (along_x ? ANGLES / 4 : 0)];
}

void clv_blob_edge_plan(clv_blob_plan *plan)
{
    for (size_t k = 0; k < plan->scales; ++k)
        for (size_t i = 0; i < ANGLES * RINGS; ++i) {
            const double far = ring[i % RINGS] * plan->sigma[k];
            plan->ring[k][i][0] = (int32_t)lrint(far * way(i / RINGS, false));
            plan->ring[k][i][1] = (int32_t)lrint(far * way(i / RINGS, true));
        }
}

/* Reads the pixels of the rings around the peak that lie inside the frame; returns their number. */
static size_t read_rings(const clv_blob_plan *plan, size_t frame, const clv_blob_peak *p, size_t k,
                         pixel *pixels)
{
    size_t count = 0;
    double value[ANGLES * RINGS];
    /* reads in a separate loop, so that the loads do not wait for each other */
    for (size_t i = 0; i < ANGLES * RINGS; ++i) {
        const int64_t y = (int64_t)p->y + plan->ring[k][i][0],
                      x = (int64_t)p->x + plan->ring[k][i][1];
        const bool there =
            y >= 0 && x >= 0 && y < (int64_t)plan->shape.height && x < (int64_t)plan->shape.width;
        value[i] = there ? clv_blob_pixel_at(plan, frame, (size_t)y, (size_t)x) : NAN;
    }
    for (size_t a = 0; a < ANGLES; ++a) {
        const double uy = way(a, false), ux = way(a, true);
        for (size_t i = a * RINGS; i < (a + 1) * RINGS; ++i)
            if (isfinite(value[i]))
                pixels[count++] = (pixel){ (double)plan->gain * value[i], uy, ux };
    }
    return count;
}

/* Finds the direction (uy, ux) in which the pixels get brighter. Returns false if the two sides do not differ clearly.
 * The sides are compared by their medians, so that single bright neighbours do not decide. */
static bool find_jump(const pixel *pixels, size_t count, double noise, double *uy, double *ux)
{
    float bright[ANGLES * RINGS], dark[ANGLES * RINGS];
    size_t brights = 0, darks = 0;
    double mean = 0, y = 0, x = 0;
    for (size_t i = 0; i < count; ++i)
        mean += pixels[i].value;
    mean /= (double)CLV_MAX(count, (size_t)1);
    for (size_t i = 0; i < count; ++i)
        y += (pixels[i].value - mean) * pixels[i].uy, x += (pixels[i].value - mean) * pixels[i].ux;
    const double length = sqrt(y * y + x * x);
    /* a step of least_jump makes the sum longer than this, so most spots are done before the medians */
    if (!(length > clearly * noise * sqrt(0.5 * (double)count))) return false;
    *uy = y / length, *ux = x / length;
    for (size_t i = 0; i < count; ++i) {
        const double side = pixels[i].uy * *uy + pixels[i].ux * *ux;
        if (side > 0)
            bright[brights++] = (float)pixels[i].value;
        else
            dark[darks++] = (float)pixels[i].value;
    }
    if (brights < FEWEST || darks < FEWEST) return false;
    const double doubt = 1.2533 * noise * sqrt(1 / (double)brights + 1 / (double)darks);
    return median(bright, brights) - median(dark, darks) > least_jump * doubt;
}

clv_blob_edge clv_blob_edge_at(const clv_blob_plan *plan, size_t frame, size_t k,
                               const clv_blob_peak *p, double noise, double variance)
{
    clv_blob_edge edge = { 0, noise };
    pixel pixels[ANGLES * RINGS];
    float responses[2 * ALONG];
    double uy, ux;
    size_t count = 0;
    const double sigma = plan->sigma[k];
    const size_t read = read_rings(plan, frame, p, k, pixels);
    if (!find_jump(pixels, read, noise * sqrt(variance), &uy, &ux)) return edge;
    for (int i = 0; i < 2 * ALONG; ++i) {
        const double far = (i & 1 ? -1 : 1) * along[i / 2] * sigma;
        const double y = floor(p->y + far * ux + 0.5), x = floor(p->x - far * uy + 0.5);
        if (!inside(plan, y, x)) continue;
        float around[9];
        clv_blob_responses_around(plan, frame, k, (size_t)y, (size_t)x, around);
        for (size_t n = 0; n < 9; ++n)
            around[4] = fmaxf(around[4], around[n]);
        responses[count++] = around[4];
    }
    if (count < ALONG) return edge;
    edge.response = median(responses, count);
    if (!(edge.response > ridge * clv_blob_noise(plan, frame, k, noise))) edge.response = 0;
    const double y = fmin(fmax(p->y + aside * uy, 0), (double)(plan->shape.height - 1)),
                 x = fmin(fmax(p->x + aside * ux, 0), (double)(plan->shape.width - 1));
    /* adds the standard deviation of the median to that of the peak */
    if (edge.response > 0)
        edge.noise =
            fmax(noise, clv_blob_pixel_noise(plan, frame, y, x)) * sqrt(1 + 1.5708 / (double)count);
    return edge;
}
