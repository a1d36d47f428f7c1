/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program of clv_fuse_parse on the host: interprets the program one block of elements at a time, so that values
 * stay in the cache. */
#include "host/array/fuse.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/array/complex.h"

#include <string.h>

enum { BLOCK = 256, WIDEST = sizeof(double complex) };

typedef unsigned char block[BLOCK * WIDEST];

/* A run. It has one block of memory per value, one per converted argument, and one for results before their
 * conversion. */
typedef struct run {
    const clv_fusion *f;
    block *value, *argument, *result;
    const void *at[FUSE_VALUES]; /* block of every value, as numbers of the value's kind */
    const char *from[CLV_FUSE_INPUTS];
    char *to[CLV_FUSE_OUTPUTS];
} run;

static char *start_of(const clv_array *array)
{
    return (char *)array->storage->host + array->offset * clv_dtype_bytes(array->type);
}

/* Returns the kind of number that the operation of a value produces. */
static clv_number_kind made_by(const clv_fuse_value *v)
{
    if (clv_kind_of(v->compute) != KIND_COMPLEX) return clv_kind_of(v->result);
    return v->result == CLV_BOOL             ? KIND_UINT
           : clv_dtype_is_complex(v->result) ? KIND_COMPLEX
                                             : KIND_DOUBLE;
}

/* Returns the type to which a value is rounded. Intermediate float16 values stay in float32 precision. */
static clv_dtype kept_as(clv_dtype type)
{
    return type == CLV_F16 ? CLV_F32 : type;
}

static void do_step(run *r, size_t i, size_t place, size_t some)
{
    const clv_fused *p = r->f->program;
    const clv_fuse_value *v = &p->value[i];
    const clv_number_kind kind = clv_kind_of(v->compute), made = made_by(v);
    const clv_dtype type = kept_as(v->type);
    const void *x[CLV_OP_INPUTS] = { r->argument[0], r->argument[0], r->argument[0] };
    for (size_t k = 0; k < clv_op_inputs(v->op); ++k) {
        const clv_number_kind has = clv_kind_of(p->value[v->argument[k]].type);
        x[k] = r->at[v->argument[k]];
        if (has == kind) continue;
        clv_apply_load(clv_kind_type(has), kind, x[k], 1, some, r->argument[k]);
        x[k] = r->argument[k];
    }
    const bool direct = type == clv_kind_type(made) || (type == CLV_BOOL && v->result == CLV_BOOL);
    clv_apply_block(v->op, kind, x[0], x[1], x[2], place, some,
                    direct ? r->value[i] : r->result[0]);
    if (direct) return;
    clv_apply_store(made, type, r->result[0], some, r->argument[0], 1);
    clv_apply_load(type, clv_kind_of(type), r->argument[0], 1, some, r->value[i]);
}

/* Computes one row: all elements of the last axis. */
static void do_row(run *r, size_t place)
{
    const clv_fused *p = r->f->program;
    const clv_layout *l = &r->f->layout;
    const size_t last = l->axes - 1, count = l->extent[last];
    for (size_t first = 0; first < count; first += BLOCK) {
        const size_t some = count - first < BLOCK ? count - first : BLOCK;
        for (size_t i = 0; i < p->count; ++i) {
            const clv_fuse_value *v = &p->value[i];
            if (v->kind == FUSE_STEP) {
                do_step(r, i, place + first, some);
            } else if (v->kind == FUSE_INPUT && r->from[v->which]) {
                const ptrdiff_t step = l->stride[v->which][last];
                const ptrdiff_t bytes = (ptrdiff_t)clv_dtype_bytes(v->type);
                clv_apply_load(v->type, clv_kind_of(v->type),
                               r->from[v->which] + (ptrdiff_t)first * step * bytes, step, some,
                               r->value[i]);
            }
        }
        /* after all inputs of the block have been read, because outputs may share memory with them */
        for (size_t i = 0; i < p->outputs; ++i) {
            const clv_dtype type = p->output_type[i];
            const ptrdiff_t step = l->stride[p->inputs + i][last];
            clv_apply_store(clv_kind_of(type), type, r->at[p->output[i]], some,
                            r->to[i] + (ptrdiff_t)first * step * (ptrdiff_t)clv_dtype_bytes(type),
                            step);
        }
    }
}

/* Moves the pointers of all arrays by `turn` elements along an axis. */
static void move(run *r, size_t axis, ptrdiff_t turn)
{
    const clv_fused *p = r->f->program;
    const clv_layout *l = &r->f->layout;
    for (size_t i = 0; i < p->inputs; ++i)
        if (r->from[i])
            r->from[i] += turn * l->stride[i][axis] * (ptrdiff_t)clv_dtype_bytes(p->input_type[i]);
    for (size_t i = 0; i < p->outputs; ++i)
        r->to[i] +=
            turn * l->stride[p->inputs + i][axis] * (ptrdiff_t)clv_dtype_bytes(p->output_type[i]);
}

static void do_rows(run *r)
{
    const clv_layout *l = &r->f->layout;
    size_t at[CLV_ARRAY_RANK] = { 0 }, place = 0;
    for (;;) {
        do_row(r, place);
        place += l->extent[l->axes - 1];
        size_t axis = l->axes - 1;
        while (axis-- > 0) { /* advances to the next row, with a carry from axis to axis */
            const ptrdiff_t turn =
                ++at[axis] < l->extent[axis] ? 1 : 1 - (ptrdiff_t)l->extent[axis];
            move(r, axis, turn);
            if (turn == 1) break;
            at[axis] = 0;
        }
        if (axis == SIZE_MAX) return;
    }
}

/* Fills a block with a number, rounded to `type` and stored as that type's kind. */
static void fill(run *r, const clv_operand *number, clv_dtype type, void *to)
{
    const clv_number_kind given = clv_kind_of(number->type), kind = clv_kind_of(type);
    const double complex both = clv_complex(number->real, number->imaginary);
    const int64_t whole = number->type == CLV_BOOL ? number->whole != 0 : number->whole;
    const void *from = given <= KIND_UINT ? (const void *)&whole : &both;
    const clv_dtype as = given <= KIND_UINT ? clv_kind_type(given) : CLV_C128;
    clv_apply_load(as, kind, from, 0, BLOCK, to);
    clv_apply_store(kind, kept_as(type), to, BLOCK, r->result[0], 1);
    clv_apply_load(kept_as(type), kind, r->result[0], 1, BLOCK, to);
}

clv_status clv_fusion_host(const clv_fusion *f)
{
    const clv_fused *p = f->program;
    run r = { .f = f };
    r.value = clv_alloc_lines((p->count + CLV_OP_INPUTS + 1) * sizeof *r.value);
    if (!r.value) return clv_fail(CLV_E_MEMORY, "fuse: not enough memory for %zu values", p->count);
    r.argument = r.value + p->count;
    r.result = r.argument + CLV_OP_INPUTS;
    memset(r.argument, 0, sizeof *r.argument); /* unused operands point to zeros */
    for (size_t i = 0; i < p->inputs; ++i)
        if (f->array[i]) r.from[i] = start_of(f->array[i]);
    for (size_t i = 0; i < p->outputs; ++i)
        r.to[i] = start_of(f->array[p->inputs + i]);
    for (size_t i = 0; i < p->count; ++i) {
        const clv_fuse_value *v = &p->value[i];
        r.at[i] = r.value[i];
        if (v->kind == FUSE_NUMBER || (v->kind == FUSE_INPUT && !r.from[v->which]))
            fill(&r, v->kind == FUSE_NUMBER ? &v->number : &f->operand[v->which], v->type,
                 r.value[i]);
    }
    do_rows(&r);
    clv_free(r.value);
    return CLV_OK;
}
