/* SPDX-License-Identifier: Apache-2.0 */
/* The noise of pixels and responses, for each scale and place. */
#ifndef CLEAVE_HOST_BLOB_BLOB_NOISE_H
#define CLEAVE_HOST_BLOB_BLOB_NOISE_H

#include "host/blob/blob_plan.h"

#include "base/alloc.h"

enum { CLV_BLOB_USUAL_SIGMAS = 6 }; /* the threshold where none is given */

/* Sums of products of a kernel's values, over both halves. */
typedef struct clv_blob_sums {
    double gg, qq, gq, ggg, qqq, qqg, ggq;
} clv_blob_sums;
/* Values are every second number from `g` and from `q` on: plan->tap and plan->tap + 1, or two levels. */
clv_blob_sums clv_blob_sums_of(const double *g, size_t g_radius, const double *q, size_t q_radius);

/* Maxima are listed above this part of the threshold for white noise: see blob_judge.c. */
#define CLV_BLOB_LISTED 0.5
#define CLV_BLOB_ROUNDING 0.2887 /* deviation of what integers round away */

/* Cells, steps and factors of a plan whose ladder, taps and thresholds are there. */
void clv_blob_noise_plan(clv_blob_plan *plan);

/* The frame's map, from the pixels themselves. `work` holds twice a map. Any thread. */
void clv_blob_noise_map(clv_blob_plan *plan, size_t frame, float *work);

/* Deviation from one scale's bins: 1.4826 times the median, which is interpolated in its bin. */
float clv_blob_spread(const uint32_t *bins);

static inline size_t clv_blob_bins(const clv_blob_plan *plan, size_t frames)
{
    return plan->by_noise ? frames * plan->scales * CLV_BLOB_NOISE_BINS : frames;
}

/* Noise of the pixels at (y, x): the map, between the middles of its cells. */
double clv_blob_pixel_noise(const clv_blob_plan *plan, size_t frame, double y, double x);
/* Noise of the responses of scale k where the pixels have noise `pixel`. */
double clv_blob_noise(const clv_blob_plan *plan, size_t frame, size_t k, double pixel);
/* A frame of floats without any noise: thresholds are relative to its largest response. */
bool clv_blob_noiseless(const clv_blob_plan *plan, size_t frame);

/* The response of scale k at a pixel, in float64; a mask counts as the pedestal. */
double clv_blob_response_at(const clv_blob_plan *plan, size_t frame, size_t k, size_t y, size_t x);

/* Third cumulant over variance of the pixels' noise, and their variance over map^2. */
typedef struct clv_blob_skew {
    double third, variance;
} clv_blob_skew;

enum {
    CLV_BLOB_MASK_SHIFT = 3
}; /* `mask` has a byte for 8x8 pixels; other than 0: not looked at */
clv_blob_skew clv_blob_find_skew(const clv_blob_plan *plan, size_t frame, const uint8_t *mask);
/* What a response of scale k has to be above, in deviations, where the pixels have noise `pixel`. */
double clv_blob_threshold(const clv_blob_plan *plan, size_t frame, size_t k, double pixel,
                          const clv_blob_skew *skew);

#endif
