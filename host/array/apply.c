/* SPDX-License-Identifier: Apache-2.0 */
/* clv_array_apply: one operation for every element, on operands of any types and strides. */
#include "host/array/apply.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/array/call.h"
#include "runtime/device/device.h"
#include "runtime/record/context.h"

#include <stdio.h>
#include <string.h>

/* ---- layout ------------------------------------------------------------------------------------ */

/* Computes an operand's strides over the result's axes, which are aligned at the last. */
static clv_status spread(const clv_apply *a, size_t which, ptrdiff_t *stride)
{
    const clv_array *in = a->array[which], *out = a->out;
    for (size_t i = 0; i < in->rank; ++i) {
        const size_t extent = in->shape[in->rank - 1 - i];
        const size_t wanted = i < out->rank ? out->shape[out->rank - 1 - i] : 1;
        if (extent != 1 && extent != wanted)
            return clv_fail(CLV_E_SHAPE,
                            "%s: operand %zu has %zu elements in its axis %zu, the result %zu",
                            clv_op_name(a->op), which, extent, in->rank - 1 - i, wanted);
        if (i < out->rank) stride[out->rank - 1 - i] = in->stride[in->rank - 1 - i];
    }
    return CLV_OK;
}

/* Tells whether axis `k` continues axis `before` in every array. */
static bool can_join(const clv_apply_layout *l, size_t before, size_t k)
{
    for (size_t i = 0; i < APPLY_ARRAYS; ++i)
        if (l->stride[i][before] != l->stride[i][k] * (ptrdiff_t)l->extent[k]) return false;
    return true;
}

clv_status clv_apply_lay_out(clv_apply *a)
{
    clv_apply_layout all = { .axes = a->out->rank }, *l = &a->layout;
    memcpy(all.extent, a->out->shape, sizeof all.extent);
    memcpy(all.stride[CLV_OP_INPUTS], a->out->stride, sizeof a->out->stride);
    for (size_t i = 0; i < a->inputs; ++i)
        if (a->array[i]) CLV_TRY(spread(a, i, all.stride[i]));
    *l = (clv_apply_layout){ .axes = 0 };
    for (size_t k = 0; k < all.axes; ++k) {
        if (all.extent[k] == 1) continue;
        size_t to = l->axes;
        l->extent[to] = all.extent[k];
        for (size_t i = 0; i < APPLY_ARRAYS; ++i)
            l->stride[i][to] = all.stride[i][k];
        if (to && can_join(l, to - 1, to)) {
            l->extent[to - 1] *= l->extent[to];
            for (size_t i = 0; i < APPLY_ARRAYS; ++i)
                l->stride[i][to - 1] = l->stride[i][to];
        } else {
            ++l->axes;
        }
    }
    if (!l->axes) { /* one element */
        l->axes = 1;
        l->extent[0] = 1;
        for (size_t i = 0; i < APPLY_ARRAYS; ++i)
            l->stride[i][0] = 0;
    }
    return CLV_OK;
}

/* ---- checks ------------------------------------------------------------------------------------ */

/* Tells whether two elements of a result could be the same one: axes in order of their strides must not reach into each
 * other. */
static bool repeats(const clv_array *out)
{
    size_t order[CLV_ARRAY_RANK], count = 0;
    for (size_t k = 0; k < out->rank; ++k)
        if (out->shape[k] > 1) {
            size_t at = count++;
            for (; at && llabs(out->stride[order[at - 1]]) > llabs(out->stride[k]); --at)
                order[at] = order[at - 1];
            order[at] = k;
        }
    size_t reach = 0; /* of the axes so far */
    for (size_t i = 0; i < count; ++i) {
        const size_t step = (size_t)llabs(out->stride[order[i]]);
        if (step <= reach) return true;
        reach += step * (out->shape[order[i]] - 1);
    }
    return false;
}

static bool same_view(const clv_array *a, const clv_array *b)
{
    return a->storage == b->storage && a->offset == b->offset && a->type == b->type &&
           a->rank == b->rank && !memcmp(a->shape, b->shape, sizeof a->shape) &&
           !memcmp(a->stride, b->stride, sizeof a->stride);
}

/* Finds the bytes of a storage within which an array lies. */
static void find_bytes(const clv_array *a, size_t *first, size_t *end)
{
    const size_t size = clv_dtype_bytes(a->type);
    ptrdiff_t least = 0, most = 0;
    for (size_t k = 0; k < a->rank; ++k) {
        const ptrdiff_t reach = a->stride[k] * ((ptrdiff_t)a->shape[k] - 1);
        *(reach < 0 ? &least : &most) += reach;
    }
    *first = (a->offset - (size_t)-least) * size;
    *end = (a->offset + (size_t)most + 1) * size;
}

/* Tells whether writing `out` could change elements of `in` that are still to be read. */
static bool interferes(const clv_array *out, const clv_array *in)
{
    size_t a, a_end, b, b_end;
    if (!clv_array_overlap(out, in) || same_view(out, in)) return false;
    if (out->storage != in->storage) return true;
    find_bytes(out, &a, &a_end);
    find_bytes(in, &b, &b_end);
    return a < b_end && b < a_end;
}

/* ---- the call ---------------------------------------------------------------------------------- */

static clv_status on_device(clv_engine *engine, void *user)
{
    return clv_apply_enqueue(user, engine);
}

static clv_status on_host(void *user)
{
    return clv_apply_host(user);
}

/* Returns why no device may compute it, or NULL. */
static const char *why_host(clv_context *context, const clv_apply *a)
{
    bool doubles = clv_dtype_needs_fp64(a->compute) || clv_dtype_needs_fp64(a->out->type);
    for (size_t i = 0; i < a->inputs; ++i)
        doubles |= a->array[i] && clv_dtype_needs_fp64(a->array[i]->type);
    if (!clv_apply_has_kernel(a)) return "host: this function of complex numbers has no kernel";
    return doubles ? clv_array_why_no_fp64(context) : NULL;
}

static clv_status run(clv_context *context, clv_apply *a)
{
    char kind[64];
    snprintf(kind, sizeof kind, "apply %d %d a%zu", (int)a->op, (int)a->compute, a->layout.axes);
    const double elements = (double)a->out->elements;
    clv_array_call c = { .count = 0, .shares = true };
    c.call = (clv_call){ .operation = clv_op_name(a->op),
                         .work = { .kind = kind,
                                   .amount = elements,
                                   .flops = 2 * elements,
                                   .host_flops = 2e9,
                                   .least = 1024,
                                   .most = 1 << 23 } };
    c.call.host_only = why_host(context, a);
    c.device = on_device;
    c.host = on_host;
    c.user = a;
    for (size_t i = 0; i < a->inputs; ++i)
        if (a->array[i]) clv_array_call_add(&c, a->array[i], true, false);
    /* what a view does not cover has to be there, too */
    const clv_storage *storage = a->out->storage;
    const bool keeps =
        !clv_array_is_whole(a->out) && (!clv_storage_is_empty(storage) || storage->planned);
    clv_array_call_add(&c, a->out, keeps, true);
    return clv_array_call_run(context, &c);
}

/* Replaces an operand that the result would overwrite by a copy of its own. */
static clv_status set_apart(clv_context *context, clv_apply *a, size_t which)
{
    clv_array *from = a->array[which], *copy;
    CLV_TRY(
        clv_array_begin(clv_op_name(a->op), context, from->type, from->rank, from->shape, &copy));
    clv_apply move = { .op = CLV_OP_COPY,
                       .inputs = 1,
                       .out = copy,
                       .array = { [0] = from, [CLV_OP_INPUTS] = copy },
                       .compute = from->type,
                       .result = from->type };
    clv_status status = clv_apply_lay_out(&move);
    if (!status) status = run(context, &move);
    if (status)
        clv_array_free(copy);
    else
        a->array[which] = copy;
    return status;
}

static clv_status read_operands(clv_context *context, clv_apply *a)
{
    const char *what = clv_op_name(a->op);
    clv_dtype types[CLV_OP_INPUTS];
    CLV_TRY(clv_array_check_any(what, context, a->out));
    for (size_t i = 0; i < a->inputs; ++i) {
        a->array[i] = a->operand[i].array;
        if (a->array[i]) CLV_TRY(clv_array_check_any(what, context, a->array[i]));
        types[i] = a->array[i] ? a->array[i]->type : a->operand[i].type;
    }
    CLV_TRY(clv_op_types(a->op, types, a->inputs, &a->compute, &a->result));
    if (a->op == CLV_OP_BIT_NOT && a->compute == CLV_BOOL) a->op = CLV_OP_LOGICAL_NOT;
    CLV_TRY(clv_apply_lay_out(a));
    if (a->out->elements && repeats(a->out))
        return clv_fail(CLV_E_ARGUMENT, "%s: elements of the result share memory", what);
    return CLV_OK;
}

clv_status clv_array_apply(clv_context *context, clv_op op, const clv_operand *operands,
                           size_t count, clv_array *out)
{
    if (!context || !operands || !out)
        return clv_fail(CLV_E_ARGUMENT, "%s: a NULL context, operand or result", clv_op_name(op));
    if (!clv_op_inputs(op) || count != clv_op_inputs(op))
        return clv_fail(CLV_E_ARGUMENT, "operation %d (%s) of %zu operands: %zu expected", (int)op,
                        clv_op_name(op), count, clv_op_inputs(op));
    clv_apply a = { .op = op, .inputs = count, .out = out };
    memcpy(a.operand, operands, count * sizeof *operands);
    a.array[CLV_OP_INPUTS] = out;
    CLV_TRY(read_operands(context, &a));
    if (!out->elements) return CLV_OK;
    clv_status status = CLV_OK;
    for (size_t i = 0; i < count && !status; ++i)
        if (a.array[i] && interferes(out, a.array[i])) status = set_apart(context, &a, i);
    if (!status) status = clv_apply_lay_out(&a); /* the copies are dense */
    if (!status) status = run(context, &a);
    for (size_t i = 0; i < count; ++i)
        if (a.array[i] != operands[i].array) clv_array_free(a.array[i]);
    return status;
}
