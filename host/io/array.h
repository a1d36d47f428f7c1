/* SPDX-License-Identifier: Apache-2.0 */
/* An array as it came from a file or goes into one: type, shape, owned memory in C order. */
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

/* Zero-initialise; data is host-endian, page-aligned (fit for zero-copy), freed by clear. */
typedef struct clv_file_array {
    clv_type type;
    size_t rank, shape[CLV_MAX_RANK]; /* outermost first; rank 0 is one number */
    void *data;
} clv_file_array;

size_t clv_type_size(clv_type type);
const char *clv_type_name(clv_type type);                 /* "float32" */
size_t clv_file_array_count(const clv_file_array *array); /* elements */
size_t clv_file_array_bytes(const clv_file_array *array);

/* Elements and bytes of such an array; false when they do not fit size_t. */
bool clv_shape_size(clv_type type, size_t rank, const size_t *shape, size_t *count, size_t *bytes);

/* Sets type and shape and allocates (contents undefined); what the array held before is not
 * freed. `what` names it in messages. CLV_E_MEMORY, CLV_E_SHAPE (rank, overflow): zero then. */
clv_status clv_file_array_create(clv_file_array *array, const char *what, clv_type type,
                                 size_t rank, const size_t *shape);

/* To CLV_F32 or CLV_F64: nothing happens where types agree, else a new array replaces the old.
 * Numbers become the nearest float, beyond its range an infinity; NaN stays NaN. CLV_E_MEMORY,
 * CLV_E_ARGUMENT (another type): the array is as before then. */
clv_status clv_file_array_convert(clv_file_array *array, const char *what, clv_type type);

void clv_file_array_clear(clv_file_array *array);

/* "[61,60,60]", rank 0 "[]"; `out` holds at least CLV_SHAPE_TEXT bytes and is returned. */
const char *clv_shape_text(size_t rank, const size_t *shape, char *out);

#endif
