/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the internals of clv_array: a view (type, shape, strides) of a storage. */
#ifndef CLEAVE_HOST_ARRAY_DATA_H
#define CLEAVE_HOST_ARRAY_DATA_H

#include "host/array/storage.h"

#include <cleave/array_typed.h>

struct clv_array {
    clv_context *context;
    clv_storage *storage;
    clv_dtype type;
    size_t rank, shape[CLV_ARRAY_RANK], elements; /* extents beyond the rank are 1 */
    ptrdiff_t stride[CLV_ARRAY_RANK];             /* in elements; 0 for extents of 1 */
    size_t offset;                                /* of the first element, in elements */
    /* valid for a whole array during a call; `host` is always valid if the array wraps the caller's memory */
    float *host;
    clv_buffer *at;
};

/* Checks an array for operations that accept only dense, non-empty float32 arrays that cover their storage. */
clv_status clv_array_check(const char *what, const clv_context *context, const clv_array *array);
/* Checks an array for operations that accept every type and stride. */
clv_status clv_array_check_any(const char *what, const clv_context *context,
                               const clv_array *array);
/* Creates an owned, dense array, like clv_array_make; `what` names the caller in messages. */
clv_status clv_array_begin(const char *what, clv_context *context, clv_dtype type, size_t rank,
                           const size_t *shape, clv_array **out);
/* Returns the reason why the host must compute float64 calls, or NULL if every device supports float64. */
const char *clv_array_why_no_fp64(clv_context *context);
size_t clv_array_bytes(const clv_array *array);  /* size of all elements, without gaps */
bool clv_array_is_dense(const clv_array *array); /* row-major, without gaps */
bool clv_array_is_whole(const clv_array *array); /* dense, and covers its storage */
/* two different arrays that share memory */
bool clv_array_overlap(const clv_array *a, const clv_array *b);

#endif
