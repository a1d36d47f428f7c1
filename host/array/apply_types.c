/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the names, the numbers of operands and the types of the operations in ops.h. */
#include "host/array/apply.h"
#include "host/array/ops.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

typedef enum op_class { SAME, TRUTH, FLOAT, PART } op_class;

#define ROW(NAME, name, count, class, integers, reals, complexes) \
    [CLV_OP_##NAME] = { #name, count, class, #integers, #reals, #complexes },
static const struct {
    const char *name;
    size_t inputs;
    op_class class;
    const char *integers, *reals, *complexes;
} ops[CLV_OPS] = { CLV_OPS_DO(ROW) };

const char *clv_op_name(clv_op op)
{
    return (size_t)op < CLV_LEN(ops) ? ops[op].name : "unknown";
}

size_t clv_op_inputs(clv_op op)
{
    return (size_t)op < CLV_LEN(ops) ? ops[op].inputs : 0;
}

bool clv_dtype_is_complex(clv_dtype type)
{
    return type == CLV_C64 || type == CLV_C128;
}

bool clv_dtype_needs_fp64(clv_dtype type)
{
    return type == CLV_F64 || type == CLV_C128;
}

clv_number_kind clv_kind_of(clv_dtype type)
{
    static const clv_number_kind kinds[CLV_DTYPES] = {
        [CLV_F32] = KIND_FLOAT,   [CLV_BOOL] = KIND_UINT,   [CLV_I8] = KIND_INT,
        [CLV_I16] = KIND_INT,     [CLV_I32] = KIND_INT,     [CLV_I64] = KIND_INT,
        [CLV_U8] = KIND_UINT,     [CLV_U16] = KIND_UINT,    [CLV_U32] = KIND_UINT,
        [CLV_U64] = KIND_UINT,    [CLV_F16] = KIND_FLOAT,   [CLV_F64] = KIND_DOUBLE,
        [CLV_C64] = KIND_COMPLEX, [CLV_C128] = KIND_COMPLEX
    };
    return kinds[type];
}

const char *clv_op_text(clv_op op, clv_dtype compute)
{
    const clv_number_kind kind = clv_kind_of(compute);
    const char *text = kind <= KIND_UINT      ? ops[op].integers
                       : kind == KIND_COMPLEX ? ops[op].complexes
                                              : ops[op].reals;
    return strcmp(text, "NONE") ? text : NULL;
}

bool clv_op_has_kernel(clv_op op, clv_dtype compute)
{
    const char *text = clv_op_text(op, compute);
    return text && strncmp(text, "HOST_", 5) != 0;
}

clv_dtype clv_kind_type(clv_number_kind kind)
{
    static const clv_dtype types[] = { CLV_I64, CLV_U64, CLV_F32, CLV_F64, CLV_C128 };
    return types[kind];
}

clv_status clv_op_types(clv_op op, const clv_dtype *types, size_t count, clv_dtype *compute,
                        clv_dtype *result)
{
    if ((size_t)op >= CLV_LEN(ops) || !types || !compute || !result || count != ops[op].inputs)
        return clv_fail(CLV_E_ARGUMENT, "operation %d (%s): got %zu operands, expected %zu",
                        (int)op, clv_op_name(op), count, clv_op_inputs(op));
    for (size_t i = 0; i < count; ++i)
        if (!clv_dtype_bytes(types[i]))
            return clv_fail(CLV_E_ARGUMENT, "%s: %d is not one of clv_dtype", ops[op].name,
                            (int)types[i]);
    const size_t first = op == CLV_OP_WHERE;
    clv_dtype in = types[first];
    for (size_t i = first + 1; i < count; ++i)
        in = clv_dtype_promote(in, types[i]);
    if (first && types[0] != CLV_BOOL)
        return clv_fail(CLV_E_UNSUPPORTED,
                        "where: the condition has the type %s, but it must be bool",
                        clv_dtype_name(types[0]));
    if (ops[op].class == FLOAT && clv_kind_of(in) <= KIND_UINT) in = CLV_F64;
    const bool numeric = op == CLV_OP_SUBTRACT || op == CLV_OP_NEGATE;
    if (!clv_op_text(op, in) || (in == CLV_BOOL && numeric))
        return clv_fail(CLV_E_UNSUPPORTED, "%s is not defined for the type %s", ops[op].name,
                        clv_dtype_name(in));
    const bool part = ops[op].class == PART && clv_dtype_is_complex(in);
    *compute = in;
    *result = ops[op].class == TRUTH ? CLV_BOOL : !part ? in : in == CLV_C64 ? CLV_F32 : CLV_F64;
    return CLV_OK;
}
