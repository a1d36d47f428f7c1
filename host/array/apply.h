/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of clv_array_apply share: the layout of operands over the result, the types, and what host and
 * device do. */
#ifndef CLEAVE_HOST_ARRAY_APPLY_H
#define CLEAVE_HOST_ARRAY_APPLY_H

#include "host/array/layout.h"

enum { APPLY_ARRAYS = CLV_OP_INPUTS + 1 }; /* the result is the last one */

typedef struct clv_apply {
    clv_op op;
    size_t inputs;
    clv_operand operand[CLV_OP_INPUTS];
    clv_array *array[APPLY_ARRAYS]; /* NULL: a number */
    clv_array *out;
    clv_dtype compute, result;
    clv_layout layout;
    char kind[64]; /* of calls with equal costs */
} clv_apply;

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
bool clv_op_has_kernel(clv_op op, clv_dtype compute);  /* some have a meaning on the host only */
clv_dtype clv_kind_type(clv_number_kind kind);         /* of a kind's numbers in memory */

/* ---- the two ways ---- */
clv_status clv_apply_host(const clv_apply *a);                        /* apply_host.c */
clv_status clv_apply_enqueue(const clv_apply *a, clv_engine *engine); /* apply_kernel.c */

/* Converts `count` elements between a type in memory and the kind in which the host computes: apply_convert.c. */
void clv_apply_load(clv_dtype type, clv_number_kind kind, const void *from, ptrdiff_t stride,
                    size_t count, void *to);
void clv_apply_store(clv_number_kind kind, clv_dtype type, const void *from, size_t count, void *to,
                     ptrdiff_t stride);
/* Computes one block of operands of one kind: apply_ops.c. `place` is the number of its first element. */
void clv_apply_block(clv_op op, clv_number_kind kind, const void *x, const void *y, const void *z,
                     size_t place, size_t count, void *out);

#endif
