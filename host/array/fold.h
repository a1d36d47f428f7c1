/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces dense arrays [outer,len,inner] along their middle axis. */
#ifndef CLEAVE_HOST_ARRAY_FOLD_H
#define CLEAVE_HOST_ARRAY_FOLD_H

#include "host/array/data.h"

#include <cleave/array_fold.h>

typedef struct clv_fold_shape {
    size_t outer, len, inner;
} clv_fold_shape;

/* Computes one level of a reduction, as cl/array/fold.cl does: `out` is [outer,chunks,inner]. */
void clv_fold_level(clv_fold what, clv_dtype type, clv_fold_shape shape, size_t chunks,
                    const void *in, void *out);
/* Computes running sums or products along the middle axis of a dense array. */
void clv_scan_rows(bool products, clv_dtype type, clv_fold_shape shape, const void *in, void *out);

/* Sets *dense to a dense array of type `type` with the elements of `in`, its axes in the order `order`. This is `in`
 * itself if it already has that type and order, otherwise a copy, which the caller frees. */
clv_status clv_array_arrange(clv_array *in, clv_dtype type, const size_t *order, clv_array **dense);
/* Does what clv_array_arrange does, without changing the order of the axes. */
clv_status clv_array_dense(clv_array *in, clv_dtype type, clv_array **dense);
/* Writes the elements of the dense array `from` into `out`, which has as many elements. */
clv_status clv_array_pour(clv_array *from, clv_array *out);

#endif
