/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the names and sizes of the element types, and finds the type in which two operands are computed together. */
#include "base/alloc.h"

#include <cleave/array_typed.h>

static const struct {
    const char *name;
    size_t bytes;
    char kind; /* as in NumPy: b, i, u, f or c */
} types[CLV_DTYPES] = {
    [CLV_F32] = { "float32", 4, 'f' },   [CLV_BOOL] = { "bool", 1, 'b' },
    [CLV_I8] = { "int8", 1, 'i' },       [CLV_I16] = { "int16", 2, 'i' },
    [CLV_I32] = { "int32", 4, 'i' },     [CLV_I64] = { "int64", 8, 'i' },
    [CLV_U8] = { "uint8", 1, 'u' },      [CLV_U16] = { "uint16", 2, 'u' },
    [CLV_U32] = { "uint32", 4, 'u' },    [CLV_U64] = { "uint64", 8, 'u' },
    [CLV_F16] = { "float16", 2, 'f' },   [CLV_F64] = { "float64", 8, 'f' },
    [CLV_C64] = { "complex64", 8, 'c' }, [CLV_C128] = { "complex128", 16, 'c' },
};

const char *clv_dtype_name(clv_dtype type)
{
    return (size_t)type < CLV_LEN(types) ? types[type].name : "unknown";
}

size_t clv_dtype_bytes(clv_dtype type)
{
    return (size_t)type < CLV_LEN(types) ? types[type].bytes : 0;
}

static clv_dtype signed_of(size_t bytes)
{
    return bytes == 1 ? CLV_I8 : bytes == 2 ? CLV_I16 : bytes == 4 ? CLV_I32 : CLV_I64;
}

/* Returns the float type in which bools and integers are computed: float16 for 8 bits, float32 for 16 bits, and float64
 * for more. The first two hold all such integers exactly. */
static clv_dtype float_of(clv_dtype integer)
{
    return types[integer].kind == 'b' || types[integer].bytes == 1 ? CLV_F16
           : types[integer].bytes == 2                             ? CLV_F32
                                                                   : CLV_F64;
}

/* Returns the common type of two different types. The kind of `a` is that of `b` or comes after it in "biufc". */
static clv_dtype join(clv_dtype a, clv_dtype b)
{
    const char ka = types[a].kind, kb = types[b].kind;
    const size_t na = types[a].bytes, nb = types[b].bytes;
    if (ka == kb) return na > nb ? a : b;
    if (kb == 'b') return a;
    if (ka == 'u') /* unsigned joined with signed */
        return nb > na ? b : na == 8 ? CLV_F64 : signed_of(2 * na);
    if (ka == 'f') return join(a, float_of(b));
    const clv_dtype part = kb == 'f' ? b : float_of(b);
    return a == CLV_C128 || part == CLV_F64 ? CLV_C128 : CLV_C64;
}

static int order_of(char kind)
{
    return kind == 'b' ? 0 : kind == 'i' ? 1 : kind == 'u' ? 2 : kind == 'f' ? 3 : 4;
}

clv_dtype clv_dtype_promote(clv_dtype a, clv_dtype b)
{
    if ((size_t)a >= CLV_LEN(types) || (size_t)b >= CLV_LEN(types) || a == b) return a;
    return order_of(types[a].kind) >= order_of(types[b].kind) ? join(a, b) : join(b, a);
}
