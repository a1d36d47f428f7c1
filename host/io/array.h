/* SPDX-License-Identifier: Apache-2.0 */
/* Declares an array in memory that was read from a file or will be written to one: its type, its shape, and its
 * elements in C order. */
#ifndef CLEAVE_HOST_IO_ARRAY_H
#define CLEAVE_HOST_IO_ARRAY_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum clv_type {
    CLV_U8,
    CLV_I16,
    CLV_U16,
    CLV_I32,
    CLV_U32,
    CLV_I64,
    CLV_F32,
    CLV_F64
} clv_type;

enum { CLV_MAX_RANK = 4, CLV_SHAPE_TEXT = 100 };

/* Zero-initialise; clv_file_array_clear frees `data`. The elements are in the host's byte order, and `data` is
 * page-aligned, so that a device can use it without a copy. */
typedef struct clv_file_array {
    clv_type type;
    size_t rank, shape[CLV_MAX_RANK]; /* outermost first; rank 0 is a single number */
    void *data;
} clv_file_array;

size_t clv_type_size(clv_type type);
const char *clv_type_name(clv_type type);                 /* "float32" */
size_t clv_file_array_count(const clv_file_array *array); /* elements */
size_t clv_file_array_bytes(const clv_file_array *array);

/* Computes the number of elements and of bytes of an array of this type and shape; returns false if either does not fit
 * size_t. */
bool clv_shape_size(clv_type type, size_t rank, const size_t *shape, size_t *count, size_t *bytes);

/* Sets the array's type and shape and allocates its elements, whose values are undefined; does not free what the array
 * held before. `what` names the array in messages. Returns CLV_OK, CLV_E_MEMORY or CLV_E_SHAPE (rank, overflow); the
 * array is zero after a failure. */
clv_status clv_file_array_create(clv_file_array *array, const char *what, clv_type type,
                                 size_t rank, const size_t *shape);

/* Converts the array's elements to `type`, CLV_F32 or CLV_F64; does nothing if the array already has this type. A value
 * is rounded to the nearest float; a value beyond the range becomes an infinity; NaN stays NaN. Returns CLV_OK,
 * CLV_E_MEMORY or CLV_E_ARGUMENT (another type); the array is unchanged after a failure. */
clv_status clv_file_array_convert(clv_file_array *array, const char *what, clv_type type);

void clv_file_array_clear(clv_file_array *array);

/* Writes a shape as text, such as "[61,60,60]", or "[]" for rank 0, to `out`, which must hold at least CLV_SHAPE_TEXT
 * bytes. Returns `out`. */
const char *clv_shape_text(size_t rank, const size_t *shape, char *out);

#endif
