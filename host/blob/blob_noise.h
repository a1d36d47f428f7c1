/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the noise of pixels and responses, for each scale and position. */
#ifndef CLEAVE_HOST_BLOB_BLOB_NOISE_H
#define CLEAVE_HOST_BLOB_BLOB_NOISE_H

#include "host/blob/blob_plan.h"

#include "base/alloc.h"

enum { CLV_BLOB_USUAL_SIGMAS = 6 }; /* default threshold, in standard deviations of the noise */

/* Sums of products of the values of two kernels, over both halves of the kernels. */
typedef struct clv_blob_sums {
    double gg, qq, gq, ggg, qqq, qqg, ggq;
} clv_blob_sums;
/* Computes the sums of products of two kernels, whose values are every second number from `g` and from `q` on. The
 * kernels are the Gaussian plan->tap and the curvature plan->tap + 1 of one level, or the Gaussians of two levels. */
clv_blob_sums clv_blob_sums_of(const double *g, size_t g_radius, const double *q, size_t q_radius);

/* Kernels list maxima above this fraction of the threshold for white noise; see blob_judge.c. */
#define CLV_BLOB_LISTED 0.55
#define CLV_BLOB_ROUNDING 0.2887 /* standard deviation of the rounding to integers */

/* Computes the cells, steps and factors of a plan whose ladder, taps and thresholds are set. */
void clv_blob_noise_plan(clv_blob_plan *plan);

/* Estimates the frame's noise map from its pixels. `work` has room for two maps. Several threads may call it for
 * different frames. */
void clv_blob_noise_map(clv_blob_plan *plan, size_t frame, float *work);

/* Returns the standard deviation from one scale's histogram: 1.4826 times the median, interpolated within its bin. */
float clv_blob_spread(const uint32_t *bins);

static inline size_t clv_blob_bins(const clv_blob_plan *plan, size_t frames)
{
    return plan->by_noise ? frames * plan->scales * CLV_BLOB_NOISE_BINS : frames;
}

/* Returns the noise of the pixels at (y, x): the map, interpolated between the centres of its cells. */
double clv_blob_pixel_noise(const clv_blob_plan *plan, size_t frame, double y, double x);
/* Returns the noise of the responses of scale k where the pixels have noise `pixel`. */
double clv_blob_noise(const clv_blob_plan *plan, size_t frame, size_t k, double pixel);
/* Returns true for a frame of floats without any noise; thresholds of such a frame are relative to its largest
 * response. */
bool clv_blob_noiseless(const clv_blob_plan *plan, size_t frame);

/* ---- blob_respond.c ---- */

/* Returns the response of scale k at a pixel, in float64; masked pixels count as the pedestal. */
double clv_blob_response_at(const clv_blob_plan *plan, size_t frame, size_t k, size_t y, size_t x);
/* Computes the responses of scale k at the pixel and its neighbours in rows y-1 to y+1; -inf outside the frame. */
void clv_blob_responses_around(const clv_blob_plan *plan, size_t frame, size_t k, size_t y,
                               size_t x, float around[9]);
enum { CLV_BLOB_PATCH = 33 }; /* largest side of a patch */
/* Computes the responses of a square of pixels, [side][side], whose first pixel is (y, x); -inf outside the frame. */
void clv_blob_responses_patch(const clv_blob_plan *plan, size_t frame, size_t k, int64_t y,
                              int64_t x, size_t side, double *responses);

/* ---- blob_edge.c ---- */

/* Computes the offsets of the pixels that are searched for edges. */
void clv_blob_edge_plan(clv_blob_plan *plan);

/* The contribution of an edge beside a peak to the response at the peak (0: no edge, or no contribution), and the noise
 * of the pixels on the edge's bright side. */
typedef struct clv_blob_edge {
    double response, noise;
} clv_blob_edge;
/* Looks for an edge beside the peak of scale k. `noise` is the value of the noise map at the peak; the noise in the
 * result is a value of the map as well. `variance`: variance of the pixels divided by map^2. */
clv_blob_edge clv_blob_edge_at(const clv_blob_plan *plan, size_t frame, size_t k,
                               const clv_blob_peak *peak, double noise, double variance);

/* ---- blob_noise.c ---- */

/* The third cumulant of the pixels' noise divided by its variance, and the variance divided by map^2. */
typedef struct clv_blob_skew {
    double third, variance;
} clv_blob_skew;

/* `mask` has one byte per 8x8 pixels; nonzero: the pixels are skipped */
enum { CLV_BLOB_MASK_SHIFT = 3 };
clv_blob_skew clv_blob_find_skew(const clv_blob_plan *plan, size_t frame, const uint8_t *mask);
/* Returns the threshold for a response of scale k, in standard deviations, at a place where the pixels have noise
 * `pixel`. */
double clv_blob_threshold(const clv_blob_plan *plan, size_t frame, size_t k, double pixel,
                          const clv_blob_skew *skew);

#endif
