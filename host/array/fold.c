/* SPDX-License-Identifier: Apache-2.0 */
/* clv_array_fold: moves the axes to reduce next to each other, then combines up to 256 elements at a time, level by
 * level. */
#include "host/array/fold.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl/array/shared.clh"
#include "cl_embedded.h"
#include "host/array/apply.h"
#include "host/array/call.h"
#include "host/array/group.h"
#include "host/array/later.h"

#include <stdio.h>

_Static_assert((int)CLV_FOLD_OP_ALL == (int)CLV_FOLD_ALL, "the kernel's numbers are the header's");
_Static_assert((int)CLV_FOLD_C128 == (int)CLV_C128, "the kernel's numbers are the header's");

static const char *const names[CLV_FOLDS] = { "sum", "prod", "min", "max", "any", "all" };

const char *clv_fold_name(clv_fold what)
{
    return (size_t)what < CLV_LEN(names) ? names[what] : "unknown";
}

typedef struct fold {
    clv_fold what;
    clv_dtype type; /* the type in which elements are combined */
    clv_fold_shape shape;
    clv_array *in, *out; /* both dense */
} fold;

static size_t chunks_of(size_t len)
{
    return (len + CLV_FOLD_CHUNK - 1) / CLV_FOLD_CHUNK;
}

/* ---- on a device and on the host --------------------------------------------------------------- */

static clv_status on_device(clv_engine *engine, void *user)
{
    const fold *f = user;
    const clv_buffer *from = f->in->at;
    size_t offset = f->in->offset;
    clv_fold_shape s = f->shape;
    for (unsigned level = 0;; ++level) {
        const size_t chunks = chunks_of(s.len), made = s.outer * chunks * s.inner;
        clv_buffer *to = f->out->at;
        if (chunks > 1)
            CLV_TRY(clv_engine_scratch(engine, CALL_SCRATCH + level % 2,
                                       made * clv_dtype_bytes(f->type), &to));
        const size_t group =
            clv_array_group(clv_device_facts(clv_queue_device(engine->queue)), made);
        const clv_launch launch = { .size = sizeof(clv_launch),
                                    .source = &clv_cl_array_fold,
                                    .kernel = "clv_fold",
                                    .defines = { { "TYPE", (long)f->type },
                                                 { "OP", (long)f->what },
                                                 { "FP64", clv_dtype_needs_fp64(f->type) } },
                                    .global = { clv_round_up(made, group) },
                                    .local = { group } };
        const clv_arg args[] = { clv_arg_buffer(from),
                                 clv_arg_u64(offset),
                                 clv_arg_buffer(to),
                                 clv_arg_u64(chunks > 1 ? 0 : f->out->offset),
                                 clv_arg_u32((uint32_t)s.outer),
                                 clv_arg_u32((uint32_t)s.len),
                                 clv_arg_u32((uint32_t)s.inner),
                                 clv_arg_u32((uint32_t)chunks) };
        CLV_TRY(clv_launch_enqueue(engine->queue, &launch, args, CLV_LEN(args), NULL));
        if (chunks == 1) return CLV_OK;
        from = to;
        offset = 0;
        s.len = chunks;
    }
}

static const void *start_of(const clv_array *array)
{
    return (const char *)array->storage->host + array->offset * clv_dtype_bytes(array->type);
}

static clv_status on_host(void *user)
{
    const fold *f = user;
    const size_t bytes = clv_dtype_bytes(f->type);
    clv_fold_shape s = f->shape;
    const void *from = start_of(f->in);
    void *last = (char *)f->out->storage->host + f->out->offset * bytes, *held = NULL;
    while (chunks_of(s.len) > 1) {
        const size_t chunks = chunks_of(s.len);
        void *to = clv_alloc(s.outer * chunks * s.inner, bytes);
        if (to) clv_fold_level(f->what, f->type, s, chunks, from, to);
        clv_free(held);
        if (!to) return clv_fail(CLV_E_MEMORY, "%s: out of memory", clv_fold_name(f->what));
        from = held = to;
        s.len = chunks;
    }
    clv_fold_level(f->what, f->type, s, 1, from, last);
    clv_free(held);
    return CLV_OK;
}

static clv_status run(clv_context *context, fold *f)
{
    char kind[64];
    if (f->in->elements <= CALL_AT_ONCE) {
        const clv_small_call small = { .operation = clv_fold_name(f->what),
                                       .flops = (double)f->in->elements,
                                       .host_flops = 1e9,
                                       .array = { f->in, f->out },
                                       .count = 2,
                                       .host = on_host,
                                       .user = f };
        bool done;
        const clv_status status = clv_array_call_at_once(context, &small, &done);
        if (status || done) return status;
    }
    snprintf(kind, sizeof kind, "fold %s %s", clv_fold_name(f->what), clv_dtype_name(f->type));
    const double elements = (double)f->in->elements;
    clv_array_call c = { .count = 0 };
    c.call = (clv_call){ .operation = clv_fold_name(f->what),
                         .work = { .kind = kind,
                                   .amount = elements,
                                   .flops = elements,
                                   .host_flops = 1e9,
                                   .least = 1024,
                                   .most = 1 << 23 } };
    if (clv_dtype_needs_fp64(f->type)) c.call.host_only = clv_array_why_no_fp64(context);
    c.device = on_device;
    c.host = on_host;
    c.user = f;
    clv_array_call_add(&c, f->in, true, false);
    clv_array_call_add(&c, f->out, false, true);
    return clv_array_call_run(context, &c);
}

/* ---- shapes ------------------------------------------------------------------------------------ */

/* Returns whether the axes to reduce follow each other; fills in the extents before them, of them and after them. */
static bool adjoin(const clv_array *in, uint32_t axes, clv_fold_shape *s)
{
    bool begun = false, ended = false;
    *s = (clv_fold_shape){ 1, 1, 1 };
    for (size_t i = 0; i < in->rank; ++i) {
        const bool goes = axes >> i & 1;
        if (in->shape[i] == 1) continue;
        if (goes && ended) return false;
        begun |= goes;
        ended |= begun && !goes;
        *(goes ? &s->len : begun ? &s->inner : &s->outer) *= in->shape[i];
    }
    return true;
}

static clv_status check(const char *what, clv_context *context, const clv_array *in, uint32_t axes,
                        const clv_array *out)
{
    CLV_TRY(clv_array_check_any(what, context, in));
    CLV_TRY(clv_array_check_any(what, context, out));
    if (axes >> in->rank)
        return clv_fail(CLV_E_SHAPE,
                        "%s: the axes are 0x%x (one bit per axis), but the array has only %zu",
                        what, axes, in->rank);
    size_t k = 0;
    bool fits = true;
    const size_t left = in->rank - (size_t)__builtin_popcount(axes);
    const bool keeps = out->rank == in->rank;
    for (size_t i = 0; i < in->rank && fits; ++i) {
        const bool goes = axes >> i & 1;
        if (!goes || keeps) fits = k < out->rank && out->shape[k++] == (goes ? 1 : in->shape[i]);
    }
    if (!fits || (!keeps && out->rank != left))
        return clv_fail(
            CLV_E_SHAPE,
            "%s: the result has %zu axes and %zu elements, but it must have the operand's shape, "
            "with the axes 0x%x (one bit per axis) left out or of length 1",
            what, out->rank, out->elements, axes);
    if (clv_array_overlap(in, out) || in == out)
        return clv_fail(CLV_E_ARGUMENT, "%s: the result shares memory with the operand", what);
    return CLV_OK;
}

static clv_status fill(clv_fold what, clv_array *out)
{
    const bool one = what == CLV_FOLD_PROD || what == CLV_FOLD_ALL;
    const clv_operand number = { .type = CLV_I64, .whole = one };
    if (what == CLV_FOLD_MIN || what == CLV_FOLD_MAX)
        return clv_fail(CLV_E_SHAPE, "%s is not defined for an empty array", clv_fold_name(what));
    return clv_array_apply(out->context, CLV_OP_COPY, &number, 1, out);
}

/* Converts the operand to the type of the sums and moves the axes to reduce behind the axes that stay, where they do
 * not follow each other already. */
static clv_status arrange(fold *f, uint32_t axes, clv_array **dense)
{
    size_t order[CLV_ARRAY_RANK], count = 0;
    const bool adjoins = adjoin(f->in, axes, &f->shape);
    if (adjoins) return clv_array_dense(f->in, f->type, dense);
    f->shape = (clv_fold_shape){ 1, 1, 1 };
    for (int goes = 0; goes < 2; ++goes)
        for (size_t i = 0; i < f->in->rank; ++i)
            if ((axes >> i & 1) == (uint32_t)goes) {
                order[count++] = i;
                *(goes ? &f->shape.len : &f->shape.outer) *= f->in->shape[i];
            }
    return clv_array_arrange(f->in, f->type, order, dense);
}

typedef struct arguments {
    clv_context *context;
    clv_fold what;
    uint32_t axes;
} arguments;

static clv_status run_later(const clv_later *call)
{
    const arguments *a = call->arguments;
    return clv_array_fold(a->context, a->what, call->array[0], a->axes, call->array[1]);
}

clv_status clv_array_fold(clv_context *context, clv_fold what, clv_array *in, uint32_t axes,
                          clv_array *out)
{
    const char *name = clv_fold_name(what);
    if ((size_t)what >= CLV_FOLDS)
        return clv_fail(CLV_E_ARGUMENT, "fold: %d is not one of clv_fold", (int)what);
    CLV_TRY(check(name, context, in, axes, out));
    fold f = { .what = what, .in = in };
    f.type = what <= CLV_FOLD_PROD ? out->type : what <= CLV_FOLD_MAX ? in->type : CLV_BOOL;
    if (f.type == CLV_F16) f.type = CLV_F32;
    if (f.type == CLV_BOOL && what <= CLV_FOLD_PROD)
        return clv_fail(CLV_E_UNSUPPORTED,
                        "%s: a result of bool is not supported; give a result with a numeric type",
                        name);
    if (clv_dtype_is_complex(f.type) && (what == CLV_FOLD_MIN || what == CLV_FOLD_MAX))
        return clv_fail(CLV_E_UNSUPPORTED, "%s is not defined for the type %s", name,
                        clv_dtype_name(f.type));
    if (!out->elements) return CLV_OK;
    if (!in->elements) return fill(what, out);
    bool added;
    const arguments copy = { context, what, axes };
    CLV_TRY(clv_later_add_one(in, out, name, run_later, &copy, sizeof copy, &added));
    if (added) return CLV_OK;
    clv_array *dense, *made = NULL;
    CLV_TRY(arrange(&f, axes, &dense));
    f.in = dense;
    const bool direct = out->type == f.type && clv_array_is_whole(out);
    clv_status status =
        direct ? CLV_OK : clv_array_begin(name, context, f.type, out->rank, out->shape, &made);
    f.out = direct ? out : made;
    if (!status) status = run(context, &f);
    if (!status && made) status = clv_array_pour(made, out);
    clv_array_free(made);
    clv_array_free(dense);
    return status;
}

/* ---- running sums ------------------------------------------------------------------------------ */

clv_status clv_array_scan(clv_context *context, clv_fold what, clv_array *in, size_t axis,
                          clv_array *out)
{
    if (what != CLV_FOLD_SUM && what != CLV_FOLD_PROD)
        return clv_fail(CLV_E_ARGUMENT, "scan: got %s, but only sum and prod are possible",
                        clv_fold_name(what));
    CLV_TRY(clv_array_check_any("scan", context, in));
    CLV_TRY(clv_array_check_any("scan", context, out));
    bool fits = in->rank == out->rank && axis < in->rank;
    for (size_t i = 0; i < in->rank && fits; ++i)
        fits = in->shape[i] == out->shape[i];
    if (!fits)
        return clv_fail(CLV_E_SHAPE,
                        "scan: axis %zu must lie below the %zu axes of the array, and the result "
                        "must have the array's shape",
                        axis, in->rank);
    const clv_dtype type = out->type == CLV_F16 ? CLV_F32 : out->type;
    if (type == CLV_BOOL)
        return clv_fail(
            CLV_E_UNSUPPORTED,
            "scan: a result of bool is not supported; give a result with a numeric type");
    if (!in->elements) return CLV_OK;
    clv_fold_shape s;
    adjoin(in, 1u << axis, &s);
    clv_array *held, *made;
    CLV_TRY(clv_array_dense(in, type, &held));
    clv_status status = clv_array_begin("scan", context, type, in->rank, in->shape, &made);
    void *room = status ? NULL : clv_alloc(in->elements, clv_dtype_bytes(type));
    if (!status && !room) status = clv_fail(CLV_E_MEMORY, "scan: out of memory");
    if (!status) status = clv_array_copy_to(held, room);
    if (!status) clv_scan_rows(what == CLV_FOLD_PROD, type, s, room, room);
    if (!status) status = clv_array_fill_from(made, room);
    if (!status) status = clv_array_pour(made, out);
    clv_free(room);
    if (held) clv_array_free(held);
    clv_array_free(made);
    return status;
}
