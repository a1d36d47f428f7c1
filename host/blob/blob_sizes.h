/* SPDX-License-Identifier: Apache-2.0 */
/* The width of a spot from the responses of neighbouring scales. */
#ifndef CLEAVE_HOST_BLOB_BLOB_SIZES_H
#define CLEAVE_HOST_BLOB_BLOB_SIZES_H

#include <cleave/status.h>

#include <stddef.h>

struct clv_blob_plan;

enum { CLV_BLOB_WIDTHS = 48 };

/* For Gaussian spots of each of some widths, integrated over the pixels: the logarithm of how much larger
 * the response of the next scale is than that of the scale before. */
typedef struct clv_blob_sizes {
    double width[CLV_BLOB_WIDTHS];
    double *ratio; /* [scales][CLV_BLOB_WIDTHS], rising */
} clv_blob_sizes;

clv_status clv_blob_sizes_create(const struct clv_blob_plan *plan, clv_blob_sizes *sizes);
void clv_blob_sizes_clear(clv_blob_sizes *sizes);

/* The width of a spot whose largest response is that of scale k; `below` and `above` are the
 * responses of the scales beside it, where there are any. */
double clv_blob_width(const struct clv_blob_plan *plan, size_t k, double below, double here,
                      double above);

#endif
