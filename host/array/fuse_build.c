/* SPDX-License-Identifier: Apache-2.0 */
/* Adds values to a program: finds their types, and computes operations whose operands are all numbers of the text. */
#include "host/array/fuse.h"

#include "base/digest.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

static clv_status add(clv_fused *f, const clv_fuse_value *value, clv_fuse_term *out)
{
    if (f->count >= FUSE_VALUES)
        return clv_fail(CLV_E_FORMAT, "the program is too long: it may have at most %d values",
                        FUSE_VALUES);
    *out = (clv_fuse_term){ .is = TERM_VALUE, .value = (unsigned)f->count };
    f->value[f->count++] = *value;
    return CLV_OK;
}

static bool is_real_type(clv_dtype type)
{
    return clv_kind_of(type) > KIND_UINT;
}

/* ---- numbers of the text ------------------------------------------------------------------------ */

/* Returns the type that a number of the text takes beside an operand of type `other`: `other` if it can hold the
 * number's kind. Otherwise whole numbers are int64; others are float32 beside bool and float64 beside integers. */
static clv_dtype beside(const clv_fuse_term *t, clv_dtype other)
{
    if (t->is == TERM_WHOLE) return other == CLV_BOOL ? CLV_I64 : other;
    return is_real_type(other) ? other : other == CLV_BOOL ? CLV_F32 : CLV_F64;
}

static clv_dtype alone(const clv_fuse_term *t)
{
    return t->is == TERM_WHOLE ? CLV_I64 : CLV_F32;
}

static bool holds(clv_dtype type, int64_t whole)
{
    const int bits = 8 * (int)clv_dtype_bytes(type);
    if (is_real_type(type) || type == CLV_I64 || type == CLV_BOOL) return true;
    if (clv_kind_of(type) == KIND_UINT) return whole >= 0 && (bits == 64 || whole >> bits == 0);
    return whole >= -((int64_t)1 << (bits - 1)) && whole < (int64_t)1 << (bits - 1);
}

/* Adds a number of the text as a value of the given type. */
static clv_status settle(clv_fused *f, const clv_fuse_term *t, clv_dtype type, clv_fuse_term *out)
{
    const bool whole = t->is == TERM_WHOLE;
    clv_fuse_value v = { .kind = FUSE_NUMBER, .type = type, .number = { .type = type } };
    if (whole && !holds(type, t->whole))
        return clv_fail(CLV_E_FORMAT,
                        "%lld does not fit into %s; convert the other operand, as in "
                        "(int64)x",
                        (long long)t->whole, clv_dtype_name(type));
    if (is_real_type(type))
        v.number.real = whole ? (double)t->whole : t->real;
    else
        v.number.whole = type == CLV_BOOL ? (whole ? t->whole != 0 : t->real != 0) : t->whole;
    return add(f, &v, out);
}

/* Computes an operation whose operands are numbers of the text: integers as int64, all others as float64. */
static clv_status fold(clv_op op, const clv_fuse_term *terms, size_t count, clv_fuse_term *out)
{
    int64_t whole[CLV_OP_INPUTS + 1] = { 0 };
    double real[CLV_OP_INPUTS + 1] = { 0 };
    bool wholes = true;
    clv_dtype types[CLV_OP_INPUTS], compute, result;
    for (size_t i = 0; i < count; ++i) {
        wholes &= terms[i].is == TERM_WHOLE;
        whole[i] = terms[i].whole;
        real[i] = terms[i].is == TERM_WHOLE ? (double)terms[i].whole : terms[i].real;
    }
    for (size_t i = 0; i < count; ++i)
        types[i] = wholes ? CLV_I64 : CLV_F64;
    CLV_TRY(clv_op_types(op, types, count, &compute, &result));
    uint64_t truth = 0;
    const bool in_wholes = compute == CLV_I64;
    const void *x = in_wholes ? (const void *)whole : real;
    const size_t step = sizeof(double); /* int64 and float64 have the same size */
    void *to = result == CLV_BOOL ? (void *)&truth : in_wholes ? (void *)&whole[3] : &real[3];
    clv_apply_block(op, clv_kind_of(compute), x, (const char *)x + step, (const char *)x + 2 * step,
                    0, 1, to);
    const bool is_whole = result == CLV_BOOL || in_wholes;
    *out = (clv_fuse_term){ .is = is_whole ? TERM_WHOLE : TERM_REAL,
                            .whole = result == CLV_BOOL ? (int64_t)truth : whole[3],
                            .real = real[3] };
    return CLV_OK;
}

/* ---- operations --------------------------------------------------------------------------------- */

/* Finds the type in which the operands are computed together. Returns false if all operands are numbers of the text. */
static bool joined_type(const clv_fused *f, clv_op op, const clv_fuse_term *terms, size_t count,
                        clv_dtype *type)
{
    bool found = false;
    for (size_t i = op == CLV_OP_WHERE; i < count; ++i) {
        if (terms[i].is != TERM_VALUE) continue;
        const clv_dtype its = f->value[terms[i].value].type;
        *type = found ? clv_dtype_promote(*type, its) : its;
        found = true;
    }
    return found;
}

clv_status clv_fuse_apply(clv_fused *f, clv_op op, const clv_fuse_term *terms, size_t count,
                          clv_fuse_term *out)
{
    clv_dtype shared = CLV_F32, types[CLV_OP_INPUTS];
    clv_fuse_term all[CLV_OP_INPUTS];
    clv_fuse_value v = { .kind = FUSE_STEP, .op = op };
    const bool condition = op == CLV_OP_WHERE && terms[0].is == TERM_VALUE;
    if (!joined_type(f, op, terms, count, &shared)) {
        if (!condition) return fold(op, terms, count, out);
        shared = alone(&terms[terms[1].is == TERM_WHOLE ? 2 : 1]);
    }
    for (size_t i = 0; i < count; ++i) {
        all[i] = terms[i];
        if (terms[i].is != TERM_VALUE)
            CLV_TRY(settle(f, &terms[i],
                           op == CLV_OP_WHERE && !i ? CLV_BOOL : beside(&terms[i], shared),
                           &all[i]));
        types[i] = f->value[all[i].value].type;
        v.argument[i] = all[i].value;
    }
    CLV_TRY(clv_op_types(op, types, count, &v.compute, &v.result));
    if (op == CLV_OP_BIT_NOT && v.compute == CLV_BOOL) v.op = CLV_OP_LOGICAL_NOT;
    v.type = v.result;
    return add(f, &v, out);
}

static bool is_whole(const clv_fused *f, const clv_fuse_term *t)
{
    return t->is == TERM_WHOLE || (t->is == TERM_VALUE && !is_real_type(f->value[t->value].type));
}

clv_status clv_fuse_quotient(clv_fused *f, const clv_fuse_term terms[2], clv_fuse_term *out)
{
    const char *name[2];
    if (!is_whole(f, &terms[0]) || !is_whole(f, &terms[1]))
        return clv_fuse_apply(f, CLV_OP_DIVIDE, terms, 2, out);
    for (int i = 0; i < 2; ++i)
        name[i] = terms[i].is == TERM_VALUE ? clv_dtype_name(f->value[terms[i].value].type)
                                            : "a whole number";
    return clv_fail(CLV_E_UNSUPPORTED,
                    "\"/\" of %s and %s: C truncates the quotient and NumPy does "
                    "not; write floor_divide(a, b), divide(a, b) or (float)a / b",
                    name[0], name[1]);
}

clv_status clv_fuse_convert(clv_fused *f, const clv_fuse_term *from, clv_dtype to,
                            clv_fuse_term *out)
{
    if (from->is == TERM_REAL && !is_real_type(to) && to != CLV_BOOL) {
        if (!(fabs(from->real) < 0x1p63))
            return clv_fail(CLV_E_FORMAT, "%g does not fit into %s", from->real,
                            clv_dtype_name(to));
        const clv_fuse_term cut = { .is = TERM_WHOLE, .whole = (int64_t)from->real };
        return settle(f, &cut, to, out);
    }
    if (from->is != TERM_VALUE) return settle(f, from, to, out);
    const clv_dtype type = f->value[from->value].type;
    *out = *from;
    if (type == to) return CLV_OK;
    const clv_fuse_value v = { .kind = FUSE_STEP,
                               .op = CLV_OP_COPY,
                               .argument = { from->value },
                               .compute = type,
                               .result = type,
                               .type = to };
    return add(f, &v, out);
}

/* Computes whole exponents up to 4 with products. */
clv_status clv_fuse_power(clv_fused *f, const clv_fuse_term *base, const clv_fuse_term *exponent,
                          clv_fuse_term *out)
{
    clv_fuse_term square;
    const int64_t n = exponent->is == TERM_WHOLE ? exponent->whole : 0;
    if (base->is != TERM_VALUE || n < 2 || n > 4)
        return clv_fuse_apply(f, CLV_OP_POW, (clv_fuse_term[]){ *base, *exponent }, 2, out);
    CLV_TRY(clv_fuse_apply(f, CLV_OP_SQUARE, base, 1, &square));
    *out = square;
    return n == 2 ? CLV_OK
                  : clv_fuse_apply(f, CLV_OP_MULTIPLY,
                                   (clv_fuse_term[]){ square, n == 3 ? *base : square }, 2, out);
}

clv_status clv_fuse_choose(clv_fused *f, const clv_fuse_term terms[3], clv_fuse_term *out)
{
    clv_fuse_term all[3] = { terms[0], terms[1], terms[2] };
    CLV_TRY(clv_fuse_convert(f, &terms[0], CLV_BOOL, &all[0]));
    return clv_fuse_apply(f, CLV_OP_WHERE, all, 3, out);
}

/* ---- the finished program ----------------------------------------------------------------------- */

void clv_fuse_close(clv_fused *f)
{
    f->has_kernel = true;
    f->hash = clv_fnv1a(CLV_FNV1A, f->output, f->outputs * sizeof *f->output);
    for (size_t i = 0; i < f->count; ++i) {
        const clv_fuse_value *v = &f->value[i];
        f->fp64 |= clv_dtype_needs_fp64(v->type);
        if (v->kind == FUSE_STEP) {
            f->fp64 |= clv_dtype_needs_fp64(v->compute);
            f->has_kernel &= clv_op_has_kernel(v->op, v->compute);
            f->flops += v->op >= CLV_OP_SQRT && v->op <= CLV_OP_ATANH ? 15 : 1;
        }
        const uint64_t words[] = {
            (uint64_t)v->kind, (uint64_t)v->type,    v->which,
            (uint64_t)v->op,   v->argument[0],       v->argument[1],
            v->argument[2],    (uint64_t)v->compute, (uint64_t)v->number.whole
        };
        f->hash = clv_fnv1a(f->hash, words, sizeof words);
        f->hash = clv_fnv1a(f->hash, &v->number.real, sizeof v->number.real);
    }
}
