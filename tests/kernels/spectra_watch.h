/* SPDX-License-Identifier: Apache-2.0 */
/* A fit whose inner arrays come back, on one device. */
#ifndef CLEAVE_TESTS_SPECTRA_WATCH_H
#define CLEAVE_TESTS_SPECTRA_WATCH_H

#include "device.h"

#include "host/spectra/spectra_job.h"

extern struct watched {
    float *watched; /* [stars,per_star] */
    float *states;  /* [stars,starts,CLV_SPECTRA_STATE] */
    float *found;   /* [stars,CLV_SPECTRA_FOUND_BY_STAR] */
    size_t per_star;
} watched;

/* On the device or not at all; what comes back is freed by watch_forget. */
void watch_run(test_device *device, clv_spectra_plan *plan, const double *points, size_t count,
               clv_spectra_watch watch, size_t per_star);
void watch_forget(clv_spectra_plan *plan);

/* Lane `lane` of points [from, from + n) of item `item`. */
void watch_lane(size_t item, size_t pitch, size_t from, size_t n, size_t lane, double *out);

#endif
