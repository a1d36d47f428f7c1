/* SPDX-License-Identifier: Apache-2.0 */
/* clv_array_apply on the host: computes the innermost axis in blocks that stay in the cache. */
#include "host/array/apply.h"
#include "host/array/complex.h"

#include <string.h>

enum { BLOCK = 256, WIDEST = sizeof(double complex) };

typedef struct blocks {
    _Alignas(64) unsigned char of[APPLY_ARRAYS][BLOCK * WIDEST];
} blocks;

static const char *start_of(const clv_array *array)
{
    return (const char *)array->storage->host + array->offset * clv_dtype_bytes(array->type);
}

/* Repeats a number over a block. */
static void fill(const clv_operand *number, clv_number_kind kind, void *to)
{
    const clv_number_kind given = clv_kind_of(number->type);
    const double complex both = clv_complex(number->real, number->imaginary);
    const int64_t whole = number->type == CLV_BOOL ? number->whole != 0 : number->whole;
    const uint64_t bits = (uint64_t)whole;
    const void *from = given == KIND_INT ? (const void *)&whole : &bits;
    if (given <= KIND_UINT)
        clv_apply_load(clv_kind_type(given), kind, from, 0, BLOCK, to);
    else
        clv_apply_load(CLV_C128, kind, &both, 0, BLOCK, to);
}

/* Returns the kind of number that the operation produces. */
static clv_number_kind result_kind(const clv_apply *a)
{
    if (clv_kind_of(a->compute) != KIND_COMPLEX) return clv_kind_of(a->result);
    return a->result == CLV_BOOL             ? KIND_UINT
           : clv_dtype_is_complex(a->result) ? KIND_COMPLEX
                                             : KIND_DOUBLE;
}

/* Computes one row: all elements of the last axis. */
static void do_row(const clv_apply *a, blocks *b, const char *const *from, char *to, size_t place)
{
    const size_t last = a->layout.axes - 1, count = a->layout.extent[last];
    const clv_number_kind kind = clv_kind_of(a->compute), made = result_kind(a);
    const size_t out_bytes = clv_dtype_bytes(a->out->type);
    const ptrdiff_t out_step = a->layout.stride[CLV_OP_INPUTS][last];
    const bool direct = a->out->type == clv_kind_type(made) && out_step == 1;
    for (size_t first = 0; first < count; first += BLOCK) {
        const size_t some = count - first < BLOCK ? count - first : BLOCK;
        const void *at[CLV_OP_INPUTS] = { b->of[0], b->of[0], b->of[0] };
        for (size_t i = 0; i < a->inputs; ++i) {
            at[i] = b->of[i];
            if (!a->array[i]) continue; /* constants are filled in once */
            const clv_dtype type = a->array[i]->type;
            const ptrdiff_t step = a->layout.stride[i][last];
            const char *source =
                from[i] + (ptrdiff_t)first * step * (ptrdiff_t)clv_dtype_bytes(type);
            if (type == clv_kind_type(kind) && step == 1)
                at[i] = source;
            else
                clv_apply_load(type, kind, source, step, some, b->of[i]);
        }
        char *target = to + (ptrdiff_t)first * out_step * (ptrdiff_t)out_bytes;
        void *result = direct ? (void *)target : b->of[CLV_OP_INPUTS];
        clv_apply_block(a->op, kind, at[0], at[1], at[2], place + first, some, result);
        if (!direct) clv_apply_store(made, a->out->type, result, some, target, out_step);
    }
}

clv_status clv_apply_host(const clv_apply *a)
{
    blocks b;
    const clv_layout *l = &a->layout;
    const char *from[CLV_OP_INPUTS] = { 0 };
    size_t at[CLV_ARRAY_RANK] = { 0 }, place = 0;
    memset(&b.of[0], 0, sizeof b.of[0]); /* unused operands point to zeros */
    for (size_t i = 0; i < a->inputs; ++i) {
        if (a->array[i])
            from[i] = start_of(a->array[i]);
        else
            fill(&a->operand[i], clv_kind_of(a->compute), b.of[i]);
    }
    char *to = (char *)a->out->storage->host + a->out->offset * clv_dtype_bytes(a->out->type);
    for (;;) {
        do_row(a, &b, from, to, place);
        place += l->extent[l->axes - 1];
        size_t axis = l->axes - 1;
        while (axis-- > 0) { /* advances to the next row, with a carry from axis to axis */
            const ptrdiff_t turn =
                ++at[axis] < l->extent[axis] ? 1 : 1 - (ptrdiff_t)l->extent[axis];
            for (size_t i = 0; i < a->inputs; ++i)
                if (a->array[i])
                    from[i] +=
                        turn * l->stride[i][axis] * (ptrdiff_t)clv_dtype_bytes(a->array[i]->type);
            to += turn * l->stride[CLV_OP_INPUTS][axis] * (ptrdiff_t)clv_dtype_bytes(a->out->type);
            if (turn == 1) break;
            at[axis] = 0;
        }
        if (axis == SIZE_MAX) return CLV_OK;
    }
}
