/* SPDX-License-Identifier: Apache-2.0 */
/* clv_array_compute: an operation of one or two operands, and an array for its result. */
#include "host/array/apply.h"

#include "base/alloc.h"
#include "base/error.h"

#include <cleave/array_typed.h>

/* Gets the shape to which two arrays broadcast, aligned at the last axes. clv_array_apply checks that they do. */
static size_t broadcast(const clv_array *x, const clv_array *y, size_t shape[CLV_ARRAY_RANK])
{
    const size_t rank = CLV_MAX(x->rank, y->rank);
    for (size_t i = 0; i < rank; ++i) {
        const size_t a = i < x->rank ? x->shape[x->rank - 1 - i] : 1;
        const size_t b = i < y->rank ? y->shape[y->rank - 1 - i] : 1;
        shape[rank - 1 - i] = a == 1 ? b : a;
    }
    return rank;
}

static clv_operand operand_of(clv_array *array, clv_dtype type, double number)
{
    return (clv_operand){ .array = array,
                          .type = type,
                          .whole = clv_kind_of(type) <= KIND_UINT ? (int64_t)number : 0,
                          .real = number };
}

static clv_status compute(clv_op op, clv_array *x, clv_array *y, double number, clv_array **out)
{
    const size_t inputs = clv_op_inputs(op);
    const clv_array *one = x ? x : y, *other = inputs == 2 && y ? y : one;
    size_t shape[CLV_ARRAY_RANK];
    clv_dtype in, result;
    if (inputs < 1 || inputs > 2 || !one || (inputs == 1 && !x))
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: got %s, but expected an operation of one or two operands",
                        clv_op_name(op), one ? "one operand" : "no array");
    const clv_dtype types[] = { x ? x->type : y->type, y ? y->type : one->type };
    const clv_operand operands[] = { operand_of(x, types[0], number),
                                     operand_of(y, types[1], number) };
    CLV_TRY(clv_op_types(op, types, inputs, &in, &result));
    const size_t rank = broadcast(one, other, shape);
    CLV_TRY(clv_array_begin(clv_op_name(op), one->context, result, rank, shape, out));
    return clv_array_apply(one->context, op, operands, inputs, *out);
}

clv_array *clv_array_compute(clv_op op, clv_array *x, clv_array *y, double number)
{
    clv_array *out = NULL;
    if (!compute(op, x, y, number, &out)) return out;
    clv_array_free(out);
    return NULL;
}
