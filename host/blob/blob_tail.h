/* SPDX-License-Identifier: Apache-2.0 */
/* Computes thresholds for responses to noise that is not Gaussian. */
#ifndef CLEAVE_HOST_BLOB_BLOB_TAIL_H
#define CLEAVE_HOST_BLOB_BLOB_TAIL_H

#include <stddef.h>

enum { CLV_BLOB_TAIL_STEPS = 25 };

/* Thresholds in standard deviations, for skewness 0, 1/8, 2/8, ... The false-alarm probability is that of Gaussian
 * noise above `sigmas`. */
typedef struct clv_blob_tail {
    double at[CLV_BLOB_TAIL_STEPS];
} clv_blob_tail;

/* Fills in the thresholds of a kernel. `tap`: two half kernels of `radius` + 1 values, in pairs as in
 * clv_blob_plan.tap. */
void clv_blob_tail_make(const double *tap, size_t radius, double sigmas, clv_blob_tail *tail);

double clv_blob_tail_at(const clv_blob_tail *tail, double skewness);

#endif
