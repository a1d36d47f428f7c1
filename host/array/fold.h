/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of dense arrays [outer,len,inner] along their middle axis. */
#ifndef CLEAVE_HOST_ARRAY_FOLD_H
#define CLEAVE_HOST_ARRAY_FOLD_H

#include "host/array/data.h"

#include <cleave/array_fold.h>

typedef struct clv_fold_shape {
    size_t outer, len, inner;
} clv_fold_shape;

/* One level, as cl/array/fold.cl: `out` is [outer,chunks,inner]. */
void clv_fold_level(clv_fold what, clv_dtype type, clv_fold_shape shape, size_t chunks,
                    const void *in, void *out);
/* Running sums or products of dense rows [len,inner]. */
void clv_scan_rows(bool products, clv_dtype type, clv_fold_shape shape, const void *in, void *out);

/* Makes `dense` an array of that type whose elements are those of `in`, its axes in that order, row by row: `in` itself
 * if it is one already, else a copy, which the caller frees. */
clv_status clv_array_arrange(clv_array *in, clv_dtype type, const size_t *order, clv_array **dense);
/* Does the same, but keeps the order of the axes. */
clv_status clv_array_dense(clv_array *in, clv_dtype type, clv_array **dense);
/* Writes the elements of the dense array `from`, which has as many, into `out`. */
clv_status clv_array_pour(clv_array *from, clv_array *out);

#endif
