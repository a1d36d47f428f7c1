/* SPDX-License-Identifier: Apache-2.0 */
/* clv_fuse_run: runs a program for every element, as one call on the host or on a device. */
#include "host/array/fuse.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/array/call.h"
#include "host/array/pending.h"

#include <stdio.h>
#include <string.h>

static clv_status on_device(clv_engine *engine, void *user)
{
    return clv_fusion_enqueue(user, engine);
}

static clv_status on_host(void *user)
{
    return clv_fusion_host(user);
}

static const char *why_host(clv_context *context, const clv_fused *p)
{
    if (!p->has_kernel) return "host: a function of complex numbers has no kernel";
    return p->fp64 ? clv_array_why_no_fp64(context) : NULL;
}

static clv_status lay_out(clv_fusion *f)
{
    const clv_fused *p = f->program;
    return clv_layout_make("fuse", f->array[p->inputs], f->array, p->inputs + p->outputs,
                           &f->layout);
}

static clv_status run(clv_context *context, clv_fusion *f)
{
    const clv_fused *p = f->program;
    const double elements = (double)f->array[p->inputs]->elements;
    char kind[64];
    snprintf(kind, sizeof kind, "fuse %016llx a%zu", (unsigned long long)p->hash, f->layout.axes);
    clv_array_call c = { .count = 0, .shares = true };
    c.call = (clv_call){ .operation = "fuse",
                         .host_only = why_host(context, p),
                         .work = { .kind = kind,
                                   .amount = elements,
                                   .flops = (p->flops + 1) * elements,
                                   .host_flops = 1e9,
                                   .least = 1024,
                                   .most = 1 << 23 } };
    c.device = on_device;
    c.host = on_host;
    c.user = f;
    for (size_t i = 0; i < p->inputs; ++i)
        if (f->array[i]) clv_array_call_add(&c, f->array[i], true, false);
    /* the call overwrites only the view's elements, so the rest of the storage must be brought in as well */
    for (size_t i = 0; i < p->outputs; ++i) {
        clv_array *out = f->array[p->inputs + i];
        clv_pending_settle_array(out);
        const bool keeps = !clv_array_is_whole(out) &&
                           (!clv_storage_is_empty(out->storage) || out->storage->planned);
        clv_array_call_add(&c, out, keeps, true);
    }
    return clv_array_call_run(context, &c);
}

/* ---- checks ------------------------------------------------------------------------------------ */

static clv_status check_type(const char *what, size_t i, clv_dtype is, clv_dtype wanted)
{
    return is == wanted ? CLV_OK
                        : clv_fail(CLV_E_ARGUMENT, "fuse: %s %zu is of %s, but it must be of %s",
                                   what, i, clv_dtype_name(is), clv_dtype_name(wanted));
}

static clv_status check_outputs(const clv_fusion *f)
{
    const clv_fused *p = f->program;
    clv_array *const *out = f->array + p->inputs;
    for (size_t i = 0; i < p->outputs; ++i) {
        CLV_TRY(check_type("output", i, out[i]->type, p->output_type[i]));
        if (out[i]->rank != out[0]->rank ||
            memcmp(out[i]->shape, out[0]->shape, sizeof out[0]->shape) != 0)
            return clv_fail(CLV_E_SHAPE, "fuse: outputs 0 and %zu have different shapes", i);
        if (out[i]->elements && clv_array_repeats(out[i]))
            return clv_fail(CLV_E_ARGUMENT,
                            "fuse: output %zu is a view in which elements share memory", i);
        for (size_t k = 0; k < i; ++k)
            if (out[i] == out[k] || clv_array_meets(out[i], out[k]))
                return clv_fail(CLV_E_ARGUMENT, "fuse: outputs %zu and %zu share memory", k, i);
    }
    return CLV_OK;
}

static clv_status read_operands(clv_context *context, clv_fusion *f)
{
    const clv_fused *p = f->program;
    for (size_t i = 0; i < p->inputs + p->outputs; ++i)
        if (f->array[i]) CLV_TRY(clv_array_check_any("fuse", context, f->array[i]));
    for (size_t i = 0; i < p->inputs; ++i) {
        if (f->array[i]) CLV_TRY(check_type("input", i, f->array[i]->type, p->input_type[i]));
        if (!f->array[i] && !clv_dtype_bytes(f->operand[i].type))
            return clv_fail(CLV_E_ARGUMENT, "fuse: input %zu: %d is not one of clv_dtype", i,
                            (int)f->operand[i].type);
    }
    CLV_TRY(check_outputs(f));
    return lay_out(f);
}

/* Replaces every input that an output would overwrite by a private copy. */
static clv_status set_apart(clv_context *context, clv_fusion *f)
{
    const clv_fused *p = f->program;
    for (size_t i = 0; i < p->inputs; ++i) {
        clv_array *const from = f->array[i];
        bool interferes = false;
        for (size_t k = 0; k < p->outputs && from; ++k)
            interferes |= clv_array_interferes(f->array[p->inputs + k], from);
        if (!interferes) continue;
        clv_array *copy;
        CLV_TRY(clv_array_begin("fuse", context, from->type, from->rank, from->shape, &copy));
        const clv_operand operand = { .array = from };
        const clv_status status = clv_array_apply(context, CLV_OP_COPY, &operand, 1, copy);
        if (status) {
            clv_array_free(copy);
            return status;
        }
        f->array[i] = copy;
    }
    return lay_out(f); /* the copies are dense, so the strides have changed */
}

clv_status clv_fuse_run(clv_context *context, const clv_fused *program, const clv_operand *inputs,
                        size_t input_count, clv_array *const *outputs, size_t output_count)
{
    if (!context || !program || (input_count && !inputs) || !outputs)
        return clv_fail(CLV_E_ARGUMENT, "fuse: context, program, an input or an output is NULL");
    if (input_count != program->inputs || output_count != program->outputs)
        return clv_fail(CLV_E_ARGUMENT,
                        "fuse: got %zu inputs and %zu outputs, expected %zu and %zu", input_count,
                        output_count, program->inputs, program->outputs);
    clv_fusion f = { .program = program };
    for (size_t i = 0; i < input_count; ++i)
        f.operand[i] = inputs[i], f.array[i] = inputs[i].array;
    for (size_t i = 0; i < output_count; ++i) {
        if (!outputs[i]) return clv_fail(CLV_E_ARGUMENT, "fuse: output %zu is NULL", i);
        f.array[input_count + i] = outputs[i];
    }
    CLV_TRY(read_operands(context, &f));
    if (!outputs[0]->elements) return CLV_OK;
    clv_status status = set_apart(context, &f);
    if (!status) status = run(context, &f);
    for (size_t i = 0; i < input_count; ++i)
        if (f.array[i] != inputs[i].array) clv_array_free(f.array[i]);
    return status;
}
