/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes that broadcast, reduced to as few axes as possible. */
#ifndef CLEAVE_HOST_ARRAY_MAP_H
#define CLEAVE_HOST_ARRAY_MAP_H

#include "host/array/data.h"

#include <cleave/array_math.h>

/* The result's axes and every input's strides. Neighbouring axes are merged if every input's strides allow it, so the
 * last of the four axes has strides 0 or 1. If fewer axes are left, the leading extents are 1. */
typedef struct clv_spread {
    size_t axes; /* that are left, at least 1 */
    size_t extent[CLV_ARRAY_AXES];
    size_t stride[CLV_MAP_INPUTS][CLV_ARRAY_AXES];
} clv_spread;

/* Makes the spread; arrays that are NULL stand for numbers. Returns CLV_E_SHAPE if the shapes do not broadcast. */
clv_status clv_spread_make(const char *what, const clv_array *out, const clv_array *const *arrays,
                           const char *const *names, size_t count, clv_spread *spread);

/* Returns the lanes of a work-item: vectors for CPU cores that support them, 1 (neighbouring work-items) elsewhere. */
size_t clv_array_lanes(const clv_device *device);

#endif
