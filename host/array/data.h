/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of clv_array: a view (type, shape, strides) of a storage. */
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
    /* of a whole array during a call; `host` of one that wraps memory at all times: */
    float *host;
    clv_buffer *at;
};

/* Checks for operations that take whole arrays of float32 only: dense, all of their storage, not empty. */
clv_status clv_array_check(const char *what, const clv_context *context, const clv_array *array);
/* Checks for operations on arrays of every kind. */
clv_status clv_array_check_any(const char *what, const clv_context *context,
                               const clv_array *array);
/* Creates an owned, dense array, as clv_array_make. */
clv_status clv_array_begin(const char *what, clv_context *context, clv_dtype type, size_t rank,
                           const size_t *shape, clv_array **out);
/* Returns why the host has to compute float64, or NULL. */
const char *clv_array_why_no_fp64(clv_context *context);
size_t clv_array_bytes(const clv_array *array);                 /* of its elements */
bool clv_array_is_dense(const clv_array *array);                /* row-major, without gaps */
bool clv_array_is_whole(const clv_array *array);                /* dense, and all of its storage */
bool clv_array_overlap(const clv_array *a, const clv_array *b); /* share memory, and are not one */

#endif
