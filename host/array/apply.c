/* SPDX-License-Identifier: Apache-2.0 */
/* clv_array_apply: computes one operation for every element, on operands of any types and strides. */
#include "host/array/apply.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/array/call.h"
#include "host/array/later.h"
#include "runtime/device/device.h"
#include "runtime/record/context.h"

#include <stdio.h>
#include <string.h>

static const double most_bytes = 96e6; /* largest size of a trial, over all operands */
static const double host_flops = 2e9;

static clv_status lay_out(clv_apply *a)
{
    return clv_layout_make(clv_op_name(a->op), a->out, a->array, APPLY_ARRAYS, &a->layout);
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

/* Returns the reason why only the host can compute the call, or NULL if a device can. */
static const char *why_host(clv_context *context, const clv_apply *a)
{
    bool doubles = clv_dtype_needs_fp64(a->compute) || clv_dtype_needs_fp64(a->out->type);
    for (size_t i = 0; i < a->inputs; ++i)
        doubles |= a->array[i] && clv_dtype_needs_fp64(a->array[i]->type);
    if (!clv_op_has_kernel(a->op, a->compute))
        return "host: this function of complex numbers has no kernel";
    return doubles ? clv_array_why_no_fp64(context) : NULL;
}

static clv_status sample(clv_context *context, const clv_call *like, double amount,
                         clv_sample *out);

/* Names the class of calls that cost the same per element: operation, types, and which operands repeat. */
static void name_kind(const clv_apply *a, char kind[64])
{
    int used = snprintf(kind, 64, "apply %s %s a%zu", clv_op_name(a->op),
                        clv_dtype_name(a->out->type), a->layout.axes);
    for (size_t i = 0; i < a->inputs; ++i) {
        const bool repeats = a->array[i] && !a->layout.stride[i][a->layout.axes - 1];
        used += snprintf(kind + used, 64 - (size_t)used, " %d%s",
                         a->array[i] ? (int)a->array[i]->type : -1, repeats ? "r" : "");
    }
}

/* Fills in the call, which refers to `kind`: `kind` must exist for as long as the call. */
static void describe(clv_apply *a, clv_array_call *c, clv_context *context)
{
    const double elements = (double)a->out->elements;
    double bytes = (double)clv_dtype_bytes(a->out->type);
    bool flat = true;
    name_kind(a, a->kind);
    for (size_t i = 0; i < APPLY_ARRAYS; ++i) {
        flat &= clv_layout_is_flat(&a->layout, i);
        if (a->array[i]) bytes += (double)clv_dtype_bytes(a->array[i]->type);
    }
    c->shares = true;
    c->call = (clv_call){ .operation = clv_op_name(a->op),
                          .work = { .kind = a->kind,
                                    .amount = elements,
                                    .flops = 2 * elements,
                                    .host_flops = host_flops,
                                    .least = 1024,
                                    .most = most_bytes / bytes },
                          .sample = flat ? sample : NULL };
    c->call.host_only = why_host(context, a);
    c->device = on_device;
    c->host = on_host;
    c->user = a;
    for (size_t i = 0; i < a->inputs; ++i)
        if (a->array[i]) clv_array_call_add(c, a->array[i], true, false);
    /* the call overwrites only the view's elements, so the rest of the storage must be brought in as well */
    const clv_storage *storage = a->out->storage;
    const bool keeps =
        !clv_array_is_whole(a->out) && (!clv_storage_is_empty(storage) || storage->planned);
    clv_array_call_add(c, a->out, keeps, true);
}

/* Makes a sample for timing: the same operation on dense arrays of the same types. */
static clv_status sample(clv_context *context, const clv_call *like, double amount, clv_sample *out)
{
    const clv_apply *a = ((const clv_array_call *)like->user)->user;
    clv_array_sample *s = clv_array_sample_begin(context, a, sizeof *a);
    if (!s)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a trial run", clv_op_name(a->op));
    clv_apply *mine = (clv_apply *)s->user;
    const size_t elements = (size_t)amount;
    clv_status status = CLV_OK;
    for (size_t i = 0; i < APPLY_ARRAYS && !status; ++i)
        if (a->array[i])
            status = clv_array_sample_add_typed(
                s, a->array[i]->type, a->layout.stride[i][0] ? elements : 1, &mine->array[i]);
    mine->out = mine->array[CLV_OP_INPUTS];
    if (!status) status = lay_out(mine);
    if (!status) describe(mine, &s->call, context);
    *out = (clv_sample){ 0 };
    return clv_array_sample_end(s, status, out);
}

static clv_status run(clv_context *context, clv_apply *a)
{
    if (a->out->elements <= CALL_AT_ONCE && !why_host(context, a)) {
        clv_small_call small = { .operation = clv_op_name(a->op),
                                 .flops = 2.0 * (double)a->out->elements,
                                 .host_flops = host_flops,
                                 .host = on_host,
                                 .user = a };
        for (size_t i = 0; i < APPLY_ARRAYS; ++i) /* the last one is the result */
            if (a->array[i]) small.array[small.count++] = a->array[i];
        bool done;
        const clv_status status = clv_array_call_at_once(context, &small, &done);
        if (status || done) return status;
    }
    clv_array_call c = { .count = 0 };
    describe(a, &c, context);
    return clv_array_call_run(context, &c);
}

/* Replaces an operand that the result would overwrite by a private copy. */
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
    clv_status status = lay_out(&move);
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
    CLV_TRY(lay_out(a));
    if (a->out->elements && clv_array_repeats(a->out))
        return clv_fail(CLV_E_ARGUMENT, "%s: elements of the result share memory", what);
    return CLV_OK;
}

/* ---- asynchronous calls ------------------------------------------------------------------------- */

typedef struct arguments {
    clv_context *context;
    clv_op op;
    size_t count;
    clv_operand operand[CLV_OP_INPUTS];
} arguments;

static clv_status run_later(const clv_later *call)
{
    arguments a = *(const arguments *)call->arguments;
    for (size_t i = 0; i < a.count; ++i)
        a.operand[i].array = call->array[i];
    return clv_array_apply(a.context, a.op, a.operand, a.count, call->array[CLV_OP_INPUTS]);
}

/* Returns whether the host can compute the call in less time than it takes to enqueue it. */
static bool is_at_hand(const clv_apply *a)
{
    if (a->out->elements > CALL_AT_ONCE) return false;
    for (size_t i = 0; i < APPLY_ARRAYS; ++i)
        if (a->array[i] &&
            (a->array[i]->storage->pending || !clv_storage_is_here(a->array[i]->storage)))
            return false;
    return true;
}

static clv_status enqueue(clv_context *context, const clv_apply *a, clv_op op, bool *added)
{
    *added = false;
    if (!clv_later_is_on(context) || is_at_hand(a)) return CLV_OK;
    arguments copy = { .context = context, .op = op, .count = a->inputs };
    memcpy(copy.operand, a->operand, sizeof copy.operand);
    const clv_later_call call = { .operation = clv_op_name(op),
                                  .run = run_later,
                                  .array = a->array,
                                  .count = APPLY_ARRAYS,
                                  .arguments = &copy,
                                  .bytes = sizeof copy };
    return clv_later_add(context, &call, added);
}

clv_status clv_array_apply(clv_context *context, clv_op op, const clv_operand *operands,
                           size_t count, clv_array *out)
{
    if (!context || !operands || !out)
        return clv_fail(CLV_E_ARGUMENT, "%s: context, operand or result is NULL", clv_op_name(op));
    if (!clv_op_inputs(op) || count != clv_op_inputs(op))
        return clv_fail(CLV_E_ARGUMENT, "operation %d (%s): got %zu operands, expected %zu",
                        (int)op, clv_op_name(op), count, clv_op_inputs(op));
    clv_apply a = { .op = op, .inputs = count, .out = out };
    memcpy(a.operand, operands, count * sizeof *operands);
    a.array[CLV_OP_INPUTS] = out;
    CLV_TRY(read_operands(context, &a));
    if (!out->elements) return CLV_OK;
    bool moved = false, added;
    clv_status status = enqueue(context, &a, op, &added);
    if (status || added) return status;
    clv_pending_settle_array(
        out); /* how the call is described depends on whether it has contents */
    for (size_t i = 0; i < count && !status; ++i) {
        const bool apart = a.array[i] && clv_array_interferes(out, a.array[i]);
        if (apart) status = set_apart(context, &a, i);
        moved |= apart;
    }
    if (!status && moved) status = lay_out(&a); /* the copies are dense: the strides have changed */
    if (!status) status = run(context, &a);
    for (size_t i = 0; i < count; ++i)
        if (a.array[i] != operands[i].array) clv_array_free(a.array[i]);
    return status;
}
