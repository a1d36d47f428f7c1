/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes that broadcast, as few axes as possible. */
#ifndef CLEAVE_HOST_ARRAY_MAP_H
#define CLEAVE_HOST_ARRAY_MAP_H

#include "host/array/data.h"

#include <cleave/array_math.h>

/* Neighbouring axes are one where every input walks over both alike: the last of four axes has
 * strides 0 or 1 then. Leading extents are 1 where fewer are left. */
typedef struct clv_spread {
    size_t axes; /* that are left, at least 1 */
    size_t extent[CLV_ARRAY_AXES];
    size_t stride[CLV_MAP_INPUTS][CLV_ARRAY_AXES];
} clv_spread;

/* Arrays that are NULL are numbers. CLV_E_SHAPE. */
clv_status clv_spread_make(const char *what, const clv_array *out, const clv_array *const *arrays,
                           const char *const *names, size_t count, clv_spread *spread);

/* Vectors for cores that take them, neighbours in a work-group for the others. */
size_t clv_array_lanes(const clv_device *device);

#endif
