/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the width of a spot from the responses of neighbouring scales. */
#ifndef CLEAVE_HOST_BLOB_BLOB_SIZES_H
#define CLEAVE_HOST_BLOB_BLOB_SIZES_H

#include <cleave/status.h>

#include <stddef.h>

struct clv_blob_plan;

enum { CLV_BLOB_WIDTHS = 48 };

/* A table of log(response of the next larger scale / response of the next smaller scale), for Gaussian spots of several
 * widths, integrated over the pixels. */
typedef struct clv_blob_sizes {
    double width[CLV_BLOB_WIDTHS];
    double *ratio; /* [scales][CLV_BLOB_WIDTHS], ascending */
} clv_blob_sizes;

clv_status clv_blob_sizes_create(const struct clv_blob_plan *plan, clv_blob_sizes *sizes);
void clv_blob_sizes_clear(clv_blob_sizes *sizes);

/* Returns the width of a spot whose largest response is that of scale k. `below` and `above` are the responses of the
 * adjacent scales, where these exist. */
double clv_blob_width(const struct clv_blob_plan *plan, size_t k, double below, double here,
                      double above);

#endif
