/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the parts of clv_array_apply share: the layout of operands over the result, the types, and the
 * functions that compute on the host and on a device. */
#ifndef CLEAVE_HOST_ARRAY_APPLY_H
#define CLEAVE_HOST_ARRAY_APPLY_H

#include "host/array/layout.h"

enum { APPLY_ARRAYS = CLV_OP_INPUTS + 1 }; /* the result is the last array */

typedef struct clv_apply {
    clv_op op;
    size_t inputs;
    clv_operand operand[CLV_OP_INPUTS];
    clv_array *array[APPLY_ARRAYS]; /* NULL: the operand is a number */
    clv_array *out;
    clv_dtype compute, result;
    clv_layout layout;
    char kind[64]; /* name of the class of calls that cost the same per element */
} clv_apply;

/* ---- types: apply_types.c ---- */
typedef enum clv_number_kind {
    KIND_INT,
    KIND_UINT,
    KIND_FLOAT,
    KIND_DOUBLE,
    KIND_COMPLEX
} clv_number_kind;
/* the kind of number as which the host computes elements of `type` */
clv_number_kind clv_kind_of(clv_dtype type);
bool clv_dtype_is_complex(clv_dtype type);
bool clv_dtype_needs_fp64(clv_dtype type);
/* NULL: the operation has no meaning for the type */
const char *clv_op_text(clv_op op, clv_dtype compute);
/* false: only the host computes the operation */
bool clv_op_has_kernel(clv_op op, clv_dtype compute);
/* the element type that stores numbers of this kind */
clv_dtype clv_kind_type(clv_number_kind kind);

/* ---- on the host and on a device ---- */
clv_status clv_apply_host(const clv_apply *a);                        /* apply_host.c */
clv_status clv_apply_enqueue(const clv_apply *a, clv_engine *engine); /* apply_kernel.c */

/* Clamp numbers outside the range to its limits and turn NaN into 0, since C leaves both conversions undefined; numbers
 * below 0 have the bits of int64. */
int64_t clv_to_int(double x);
uint64_t clv_to_uint(double x);
/* Converts `count` elements between a type in memory and the kind in which the host computes: apply_convert.c. */
void clv_apply_load(clv_dtype type, clv_number_kind kind, const void *from, ptrdiff_t stride,
                    size_t count, void *to);
void clv_apply_store(clv_number_kind kind, clv_dtype type, const void *from, size_t count, void *to,
                     ptrdiff_t stride);
/* Computes one block of operands of one kind (apply_ops.c). `place` is the index of the block's first element. */
void clv_apply_block(clv_op op, clv_number_kind kind, const void *x, const void *y, const void *z,
                     size_t place, size_t count, void *out);

#endif
