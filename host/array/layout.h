/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the layout of a call: the axes of the result, merged if the strides of all arrays allow it, and every
 * array's strides along the merged axes. */
#ifndef CLEAVE_HOST_ARRAY_LAYOUT_H
#define CLEAVE_HOST_ARRAY_LAYOUT_H

#include "host/array/data.h"

enum { LAYOUT_ARRAYS = 16 };

typedef struct clv_layout {
    size_t axes; /* at least 1 */
    size_t arrays;
    size_t extent[CLV_ARRAY_RANK];
    ptrdiff_t stride[LAYOUT_ARRAYS][CLV_ARRAY_RANK];
} clv_layout;

/* Lays out arrays that broadcast to the shape of `out`. An array that is NULL (a number) has strides of 0. Returns
 * CLV_E_SHAPE if an array does not broadcast. */
clv_status clv_layout_make(const char *what, const clv_array *out, clv_array *const *arrays,
                           size_t count, clv_layout *layout);
/* Returns whether the array is one row without gaps, or a single element that repeats. */
static inline bool clv_layout_is_flat(const clv_layout *l, size_t array)
{
    const ptrdiff_t step = l->stride[array][0];
    return l->axes == 1 && (step == 0 || step == 1);
}

/* ---- memory that a result and operands share: alias.c ---- */

/* Returns whether two elements of a result may share memory. */
bool clv_array_repeats(const clv_array *out);
/* Returns whether the byte ranges from the first to the last element of the two arrays overlap. */
bool clv_array_meets(const clv_array *a, const clv_array *b);
/* Returns whether writing `out` could change elements of `in` before they are read. */
bool clv_array_interferes(const clv_array *out, const clv_array *in);

#endif
