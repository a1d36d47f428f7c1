/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of clv_array_apply share: the layout of operands over the result, the types, the two ways. */
#ifndef CLEAVE_HOST_ARRAY_APPLY_H
#define CLEAVE_HOST_ARRAY_APPLY_H

#include "base/text.h"
#include "host/array/data.h"

enum { APPLY_ARRAYS = CLV_OP_INPUTS + 1 }; /* the result is the last one */

/* The result's axes, merged where the strides of all arrays allow it, and the strides of every array over them. */
typedef struct clv_apply_layout {
    size_t axes; /* at least 1 */
    size_t extent[CLV_ARRAY_RANK];
    ptrdiff_t stride[APPLY_ARRAYS][CLV_ARRAY_RANK];
} clv_apply_layout;

typedef struct clv_apply {
    clv_op op;
    size_t inputs;
    clv_operand operand[CLV_OP_INPUTS];
    clv_array *array[APPLY_ARRAYS]; /* NULL: a number */
    clv_array *out;
    clv_dtype compute, result;
    clv_apply_layout layout;
} clv_apply;

clv_status clv_apply_lay_out(clv_apply *a);

/* ---- types: apply_types.c ---- */
typedef enum clv_number_kind {
    KIND_INT,
    KIND_UINT,
    KIND_FLOAT,
    KIND_DOUBLE,
    KIND_COMPLEX
} clv_number_kind;
clv_number_kind clv_kind_of(clv_dtype type); /* in which the host computes it */
bool clv_dtype_is_complex(clv_dtype type);
bool clv_dtype_needs_fp64(clv_dtype type);
const char *clv_op_text(clv_op op, clv_dtype compute); /* NULL: it has no meaning for the type */

/* ---- the two ways ---- */
clv_status clv_apply_host(const clv_apply *a);            /* apply_host.c */
void clv_apply_write(const clv_apply *a, clv_text *text); /* apply_kernel.c */
bool clv_apply_has_kernel(const clv_apply *a);
clv_status clv_apply_enqueue(const clv_apply *a, clv_engine *engine);

/* Converts `count` elements between a type in memory and the kind in which the host computes: apply_convert.c. */
void clv_apply_load(clv_dtype type, clv_number_kind kind, const void *from, ptrdiff_t stride,
                    size_t count, void *to);
void clv_apply_store(clv_number_kind kind, clv_dtype type, const void *from, size_t count, void *to,
                     ptrdiff_t stride);
/* Computes one block of operands of one kind: apply_ops.c. `place` is the number of its first element. */
void clv_apply_block(clv_op op, clv_number_kind kind, const void *x, const void *y, const void *z,
                     size_t place, size_t count, void *out);

#endif
