/* SPDX-License-Identifier: Apache-2.0 */
/* clv_reduce: reduces along one axis or over all elements, in the same order on every device. */
#include "host/array/reduce.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl/array/shared.clh"
#include "cl_embedded.h"
#include "host/array/call.h"
#include "host/array/group.h"
#include "host/array/later.h"
#include "host/array/map.h"

#include <stdio.h>
#include <string.h>

enum { P, Q, MEAN };

static const char *const names[] = {
    "sum", "mean", "var", "std", "min", "max", "argmin", "argmax"
};

const char *clv_reduction_name(clv_reduction what)
{
    return (size_t)what < CLV_LEN(names) ? names[what] : "unknown";
}

clv_status clv_reduction_parse(const char *name, clv_reduction *what)
{
    for (size_t i = 0; name && what && i < CLV_LEN(names); ++i)
        if (strcmp(name, names[i]) == 0) {
            *what = (clv_reduction)i;
            return CLV_OK;
        }
    return clv_fail(
        CLV_E_ARGUMENT,
        "the reduction is \"%s\"; expected sum, mean, var, std, min, max, argmin or argmax",
        name ? name : "");
}

/* ---- on a device ----------------------------------------------------------------------------- */

/* Makes groups of single lanes. There may be fewer lanes than a wave has work-items, so that a group takes several rows
 * or, if there are few rows, several blocks. Returns the number of rows per work-item. */
static size_t fill_groups(const clv_device *device, size_t lanes, clv_launch *launch)
{
    const int more = launch->global[2] > 1 ? 2 : 1; /* there are at most 1025 blocks */
    const clv_array_grid grid =
        clv_array_grid_of(clv_device_facts(device), lanes, launch->global[more]);
    launch->local[0] = grid.local[0], launch->local[more] = grid.local[1];
    launch->global[0] = grid.global[0], launch->global[more] = grid.global[1];
    return more == 2 ? grid.each : 1;
}

static clv_status one_pass(clv_engine *engine, unsigned key, clv_reduction what, bool squares,
                           const clv_reduce_shape *s, const clv_buffer *in, const clv_buffer *mean,
                           clv_buffer *out)
{
    const clv_device *device = clv_queue_device(engine->queue);
    const size_t vector = clv_array_lanes(device);
    const bool dense = s->inner == 1, ranks = what >= CLV_REDUCE_MIN;
    const bool largest = what == CLV_REDUCE_MAX || what == CLV_REDUCE_ARGMAX;
    const long op = !ranks    ? squares ? CLV_REDUCE_OP_SQUARES : CLV_REDUCE_OP_SUM
                    : largest ? CLV_REDUCE_OP_LARGEST
                              : CLV_REDUCE_OP_LEAST;
    const size_t lanes = dense ? CLV_REDUCE_LANES : s->inner, block = clv_reduce_block(s);
    const size_t blocks = (s->len + block - 1) / block;
    size_t each = vector > 1 ? CLV_MAX((size_t)4096 / s->len, (size_t)1) : 1;
    const size_t partial = s->outer * blocks * lanes * sizeof(float);
    clv_buffer *p, *q;
    CLV_TRY(clv_engine_scratch(engine, key + P, partial, &p));
    CLV_TRY(clv_engine_scratch(engine, key + Q, partial, &q));
    clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_array_reduce,
        .kernel = "clv_reduce_blocks",
        .defines = { { "LANES", (long)vector }, { "OP", op }, { "DENSE", dense } },
        .global = { (lanes + vector - 1) / vector, blocks, (s->outer + each - 1) / each },
        .local = { 1, 1, 1 },
    };
    if (vector == 1) each = fill_groups(device, lanes, &launch);
    const clv_arg args[] = { clv_arg_buffer(in),
                             clv_arg_buffer(mean),
                             clv_arg_buffer(p),
                             clv_arg_buffer(q),
                             clv_arg_u32((uint32_t)s->outer),
                             clv_arg_u32((uint32_t)s->len),
                             clv_arg_u32((uint32_t)s->inner),
                             clv_arg_u32((uint32_t)block),
                             clv_arg_u32((uint32_t)blocks),
                             clv_arg_u32((uint32_t)each) };
    CLV_TRY(clv_launch_enqueue(engine->queue, &launch, args, CLV_LEN(args), NULL));

    const size_t outputs = s->outer * s->inner;
    float high, low;
    clv_reduce_scale(s->len, &high, &low);
    const bool index = what == CLV_REDUCE_ARGMIN || what == CLV_REDUCE_ARGMAX;
    const uint32_t finish = what == CLV_REDUCE_STD                              ? CLV_REDUCE_ROOT
                            : what == CLV_REDUCE_MEAN || what == CLV_REDUCE_VAR ? CLV_REDUCE_SCALED
                            : index                                             ? CLV_REDUCE_PLACE
                                    : CLV_REDUCE_AS_IT_IS;
    launch.kernel = "clv_reduce_join";
    launch.local[0] = clv_array_group(clv_device_facts(device), outputs);
    launch.global[0] = clv_round_up(outputs, launch.local[0]);
    launch.global[1] = launch.global[2] = launch.local[1] = launch.local[2] = 0;
    const clv_arg join[] = { clv_arg_buffer(p),
                             clv_arg_buffer(q),
                             clv_arg_buffer(out),
                             clv_arg_u32((uint32_t)outputs),
                             clv_arg_u32((uint32_t)s->inner),
                             clv_arg_u32((uint32_t)blocks),
                             clv_arg_f32(high),
                             clv_arg_f32(low),
                             clv_arg_u32(finish) };
    return clv_launch_enqueue(engine->queue, &launch, join, CLV_LEN(join), NULL);
}

clv_status clv_reduce_enqueue(clv_engine *engine, unsigned key, clv_reduction what,
                              const clv_reduce_shape *s, const clv_buffer *in, clv_buffer *out)
{
    clv_buffer *mean;
    if (what != CLV_REDUCE_VAR && what != CLV_REDUCE_STD)
        return one_pass(engine, key, what, false, s, in, in, out);
    CLV_TRY(clv_engine_scratch(engine, key + MEAN, s->outer * s->inner * sizeof(float), &mean));
    CLV_TRY(one_pass(engine, key, CLV_REDUCE_MEAN, false, s, in, in, mean));
    return one_pass(engine, key, what, true, s, in, mean, out);
}

/* ---- the public function --------------------------------------------------------------------- */

typedef struct reduction {
    clv_reduction what;
    clv_reduce_shape shape;
    clv_array *in, *out;
    char kind[64];
} reduction;

static clv_status on_device(clv_engine *engine, void *user)
{
    const reduction *r = user;
    return clv_reduce_enqueue(engine, CALL_SCRATCH, r->what, &r->shape, r->in->at, r->out->at);
}

static clv_status on_host(void *user)
{
    const reduction *r = user;
    return clv_reduce_host(r->what, &r->shape, r->in->host, r->out->host);
}

static clv_status read_shapes(reduction *r, int axis)
{
    const clv_array *in = r->in, *out = r->out;
    r->shape = (clv_reduce_shape){ 1, in->elements, 1 };
    if (axis < -1 || axis >= (int)in->rank)
        return clv_fail(CLV_E_SHAPE,
                        "reduce: axis %d is out of range; expected -1 (all axes) to %d", axis,
                        (int)in->rank - 1);
    if (axis >= 0) {
        r->shape.len = in->shape[axis];
        for (int i = 0; i < axis; ++i)
            r->shape.outer *= in->shape[i];
        for (size_t i = (size_t)axis + 1; i < in->rank; ++i)
            r->shape.inner *= in->shape[i];
    }
    const bool keeps = out->rank == in->rank;
    size_t k = 0;
    bool fits = axis >= 0 ? keeps || out->rank + 1 == in->rank : true;
    for (size_t i = 0; i < in->rank && axis >= 0 && fits; ++i) {
        if ((int)i != axis)
            fits = out->shape[k++] == in->shape[i];
        else if (keeps)
            fits = out->shape[k++] == 1;
    }
    if (!fits || out->elements != r->shape.outer * r->shape.inner)
        return clv_fail(CLV_E_SHAPE,
                        "reduce: the result has %zu elements and %zu axes, but it must have %zu "
                        "elements and the input's axes without axis %d",
                        out->elements, out->rank, r->shape.outer * r->shape.inner, axis);
    const bool index = r->what >= CLV_REDUCE_ARGMIN;
    if (index && r->shape.len > (size_t)1 << 24)
        return clv_fail(CLV_E_SHAPE, "reduce: indices above 2^24 cannot be given as float32");
    return CLV_OK;
}

static clv_status sample(clv_context *context, const clv_call *like, double amount,
                         clv_sample *out);

static void describe(reduction *r, clv_array_call *c)
{
    static const double effort[] = { 6, 6, 14, 14, 4, 4, 4, 4 };
    static const char *const classes[] = { "sum", "sum", "var", "var", "min", "min", "min", "min" };
    const unsigned width = clv_call_octave(r->shape.inner), length = clv_call_octave(r->shape.len);
    if (r->shape.outer == 1)
        snprintf(r->kind, sizeof r->kind, "reduce %s w%u", classes[r->what], width);
    else
        snprintf(r->kind, sizeof r->kind, "reduce %s w%u n%u", classes[r->what], width, length);
    const double elements = (double)r->in->elements;
    c->call = (clv_call){ .operation = clv_reduction_name(r->what),
                          .work = { .kind = r->kind,
                                    .amount = elements,
                                    .flops = effort[r->what] * elements,
                                    .least = 1024,
                                    .most = 1 << 23 },
                          .sample = sample };
    c->device = on_device;
    c->host = on_host;
    c->user = r;
    clv_array_call_add(c, r->in, true, false);
    clv_array_call_add(c, r->out, false, true);
}

/* Makes a sample with the call's length and width and as many rows as `amount` requires, or with one long row. */
static clv_status sample(clv_context *context, const clv_call *like, double amount, clv_sample *out)
{
    const reduction *r = ((const clv_array_call *)like->user)->user;
    size_t shape[3] = { 1, r->shape.len, r->shape.inner };
    const double row = (double)(r->shape.len * r->shape.inner);
    if (r->shape.outer > 1 && amount > row)
        shape[0] = (size_t)(amount / row);
    else
        shape[1] = CLV_MAX((size_t)(amount / (double)r->shape.inner), (size_t)1);
    const size_t result[2] = { shape[0], shape[2] };
    clv_array_sample *s = clv_array_sample_begin(context, r, sizeof *r);
    if (!s) return clv_fail(CLV_E_MEMORY, "reduce: not enough memory for a trial run");
    reduction *mine = (reduction *)s->user;
    mine->shape = (clv_reduce_shape){ shape[0], shape[1], shape[2] };
    clv_status status = clv_array_sample_add(s, 3, shape, 0, 0.03f, &mine->in);
    if (!status) status = clv_array_sample_add(s, 2, result, 0, 0, &mine->out);
    if (!status) describe(mine, &s->call);
    *out = (clv_sample){ .result = status ? NULL : mine->out->host,
                         .results = result[0] * result[1],
                         .tolerance = 1e-5 };
    return clv_array_sample_end(s, status, out);
}

typedef struct arguments {
    clv_context *context;
    clv_reduction what;
    int axis;
} arguments;

static clv_status run_later(const clv_later *call)
{
    const arguments *a = call->arguments;
    return clv_reduce(a->context, a->what, call->array[0], a->axis, call->array[1]);
}

/* Computes a reduction of few elements, which takes the host less time than any launch. */
static clv_status try_at_once(clv_context *context, reduction *r, bool *done)
{
    const clv_small_call small = { .operation = clv_reduction_name(r->what),
                                   .flops = 6.0 * (double)r->in->elements,
                                   .host_flops = 2e9,
                                   .array = { r->in, r->out },
                                   .count = 2,
                                   .host = on_host,
                                   .user = r };
    return clv_array_call_at_once(context, &small, done);
}

clv_status clv_reduce(clv_context *context, clv_reduction what, clv_array *in, int axis,
                      clv_array *out)
{
    CLV_TRY(clv_array_check("reduce", context, in));
    CLV_TRY(clv_array_check("reduce", context, out));
    if ((size_t)what >= CLV_LEN(names))
        return clv_fail(CLV_E_ARGUMENT, "reduce: %d is not one of clv_reduction", (int)what);
    if (in == out)
        return clv_fail(CLV_E_ARGUMENT, "reduce: the result and the operand are the same array");
    reduction r = { .what = what, .in = in, .out = out };
    CLV_TRY(read_shapes(&r, axis));
    bool added;
    const arguments copy = { context, what, axis };
    const clv_status status =
        clv_later_add_one(in, out, clv_reduction_name(what), run_later, &copy, sizeof copy, &added);
    if (status || added) return status;
    if (in->elements <= CALL_AT_ONCE) {
        bool done;
        CLV_TRY(try_at_once(context, &r, &done));
        if (done) return CLV_OK;
    }
    clv_array_call call = { .count = 0 };
    describe(&r, &call);
    return clv_array_call_run(context, &call);
}

clv_array *clv_array_reduce(clv_reduction what, clv_array *in, int axis)
{
    clv_array *out = NULL;
    size_t shape[CLV_ARRAY_RANK], rank = 0;
    clv_status status = in ? CLV_OK : clv_fail(CLV_E_ARGUMENT, "reduce: the array is NULL");
    for (size_t i = 0; !status && axis >= 0 && i < in->rank; ++i)
        if ((int)i != axis) shape[rank++] = in->shape[i];
    if (!status) status = clv_array_make(in->context, CLV_F32, rank, shape, &out);
    if (!status) status = clv_reduce(in->context, what, in, axis, out);
    if (!status) return out;
    clv_array_free(out);
    return NULL;
}
