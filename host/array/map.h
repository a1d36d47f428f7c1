/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the axes of broadcast shapes, so that as few axes as possible are left. */
#ifndef CLEAVE_HOST_ARRAY_MAP_H
#define CLEAVE_HOST_ARRAY_MAP_H

#include "host/array/data.h"

#include <cleave/array_math.h>

/* The result's axes and every input's strides. Neighbouring axes are merged where every input's strides allow it, so
 * each stride of the last of the four axes is 0 or 1. If fewer than four axes remain, the leading extents are 1. */
typedef struct clv_spread {
    size_t axes; /* number of axes after merging, at least 1 */
    size_t extent[CLV_ARRAY_AXES];
    size_t stride[CLV_MAP_INPUTS][CLV_ARRAY_AXES];
} clv_spread;

/* Computes the spread. Arrays that are NULL stand for numbers. Returns CLV_E_SHAPE if the shapes do not broadcast. */
clv_status clv_spread_make(const char *what, const clv_array *out, const clv_array *const *arrays,
                           const char *const *names, size_t count, clv_spread *spread);

/* Returns the number of elements per vector of a work-item: more than 1 on CPU cores that support vectors; 1 elsewhere,
 * where neighbouring work-items compute neighbouring elements. */
size_t clv_array_lanes(const clv_device *device);

#endif
