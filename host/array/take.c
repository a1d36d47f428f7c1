/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes slices of arrays by their indices. The host reads and checks the indices; the elements stay on the
 * host or device that holds them. */
#include <cleave/array_take.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"
#include "host/array/call.h"
#include "host/array/pending.h"
#include "host/array/fold.h"
#include "host/array/group.h"

#include <stdio.h>
#include <string.h>

typedef struct take {
    bool takes;
    size_t outer, len, inner, count;
    clv_array *from, *places, *to; /* all dense; `places` is int64, the others share a type */
} take;

/* ---- on a device and on the host --------------------------------------------------------------- */

static clv_status on_device(clv_engine *engine, void *user)
{
    const take *t = user;
    const size_t items = t->outer * t->count * t->inner;
    const size_t group = clv_array_group(clv_device_facts(clv_queue_device(engine->queue)), items);
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = &clv_cl_array_take,
                                .kernel = "clv_take",
                                .defines = { { "BYTES", (long)clv_dtype_bytes(t->to->type) },
                                             { "TAKE", t->takes } },
                                .global = { clv_round_up(items, group) },
                                .local = { group } };
    const clv_arg args[] = { clv_arg_buffer(t->from->at),     clv_arg_u64(t->from->offset),
                             clv_arg_buffer(t->places->at),   clv_arg_buffer(t->to->at),
                             clv_arg_u64(t->to->offset),      clv_arg_u32((uint32_t)t->outer),
                             clv_arg_u32((uint32_t)t->count), clv_arg_u32((uint32_t)t->inner),
                             clv_arg_u32((uint32_t)t->len) };
    return clv_launch_enqueue(engine->queue, &launch, args, CLV_LEN(args), NULL);
}

static char *start_of(const clv_array *array)
{
    return (char *)array->storage->host + array->offset * clv_dtype_bytes(array->type);
}

static clv_status on_host(void *user)
{
    const take *t = user;
    const size_t bytes = t->inner * clv_dtype_bytes(t->to->type);
    const char *from = start_of(t->from);
    char *to = start_of(t->to);
    const int64_t *places = (const void *)start_of(t->places);
    for (size_t o = 0; o < t->outer; ++o)
        for (size_t j = 0; j < t->count; ++j) {
            if (places[j] < 0) continue;
            const size_t far = (o * t->len + (size_t)places[j]) * bytes;
            const size_t near = (o * t->count + j) * bytes;
            memcpy(to + (t->takes ? near : far), from + (t->takes ? far : near), bytes);
        }
    return CLV_OK;
}

static clv_status run(clv_context *context, take *t)
{
    char kind[64];
    const double elements = (double)(t->outer * t->count * t->inner);
    snprintf(kind, sizeof kind, "%s %zu", t->takes ? "take" : "put", clv_dtype_bytes(t->to->type));
    clv_array_call c = { .count = 0 };
    c.call = (clv_call){ .operation = t->takes ? "take" : "put",
                         .work = { .kind = kind,
                                   .amount = elements,
                                   .flops = elements,
                                   .host_flops = 5e8,
                                   .least = 1024,
                                   .most = 1 << 23 } };
    c.device = on_device;
    c.host = on_host;
    c.user = t;
    clv_array_call_add(&c, t->from, true, false);
    clv_array_call_add(&c, t->places, true, false);
    /* slices that no index names keep their contents, which must be brought in */
    const clv_storage *storage = t->to->storage;
    clv_pending_settle_array(t->to);
    const bool keeps = !t->takes && (!clv_storage_is_empty(storage) || storage->planned);
    clv_array_call_add(&c, t->to, keeps, true);
    return clv_array_call_run(context, &c);
}

/* ---- indices of slices ------------------------------------------------------------------------- */

/* If several slices go to one place, keeps only the last: the indices of the earlier ones become -1. */
static clv_status drop_repeated(int64_t *places, size_t count, size_t len)
{
    unsigned char *seen = clv_zalloc(len, 1);
    if (!seen) return clv_fail(CLV_E_MEMORY, "put: not enough memory for the indices");
    for (size_t j = count; j-- > 0;) {
        if (seen[places[j]])
            places[j] = -1;
        else
            seen[places[j]] = 1;
    }
    clv_free(seen);
    return CLV_OK;
}

/* Makes a dense int64 array of the indices, after checking them and counting negative ones from the end. */
static clv_status read_places(const char *what, clv_array *places, size_t len, bool takes,
                              clv_array **out)
{
    clv_array *whole;
    const size_t count = places->elements;
    if (places->type == CLV_BOOL || places->type >= CLV_F16 || places->type == CLV_F32)
        return clv_fail(CLV_E_ARGUMENT, "%s: the indices are of %s, but they must be integers",
                        what, clv_dtype_name(places->type));
    int64_t *all = clv_alloc(count, sizeof *all);
    if (!all) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the indices", what);
    clv_status status = clv_array_dense(places, CLV_I64, &whole);
    if (!status) {
        status = clv_array_copy_to(whole, all);
        clv_array_free(whole);
    }
    for (size_t j = 0; j < count && !status; ++j) {
        const int64_t place = all[j] < 0 ? all[j] + (int64_t)len : all[j];
        if (all[j] < 0 && places->type == CLV_U64) /* 2^63 or more, which counts from no end */
            status = clv_fail(CLV_E_SHAPE,
                              "%s: index %llu (number %zu of the indices) is out of range for an "
                              "axis of %zu elements",
                              what, (unsigned long long)all[j], j, len);
        if (status) break;
        if (place < 0 || place >= (int64_t)len)
            status = clv_fail(CLV_E_SHAPE,
                              "%s: index %lld (number %zu of the indices) is out of range for an "
                              "axis of %zu elements",
                              what, (long long)all[j], j, len);
        all[j] = place;
    }
    if (!status && !takes) status = drop_repeated(all, count, len);
    if (!status) status = clv_array_make_from(places->context, CLV_I64, all, 1, &count, out);
    clv_free(all);
    return status;
}

static clv_status read_shapes(const char *what, const clv_array *whole, size_t axis,
                              const clv_array *places, const clv_array *slices, take *t)
{
    if (axis >= whole->rank)
        return clv_fail(CLV_E_SHAPE, "%s: axis %zu is out of range for an array of %zu axes", what,
                        axis, whole->rank);
    t->outer = t->inner = 1;
    t->len = whole->shape[axis];
    t->count = places->elements;
    for (size_t i = 0; i < whole->rank; ++i)
        if (i != axis) *(i < axis ? &t->outer : &t->inner) *= whole->shape[i];
    if (slices->elements != t->outer * t->count * t->inner)
        return clv_fail(CLV_E_SHAPE,
                        "%s: got %zu elements, but there are %zu slices of %zu elements each", what,
                        slices->elements, t->count, t->outer * t->inner);
    return CLV_OK;
}

/* ---- the public functions ---------------------------------------------------------------------- */

clv_status clv_array_take(clv_context *context, clv_array *in, size_t axis, clv_array *places,
                          clv_array *out)
{
    take t = { .takes = true };
    clv_array *made = NULL;
    CLV_TRY(clv_array_check_any("take", context, in));
    CLV_TRY(clv_array_check_any("take", context, places));
    CLV_TRY(clv_array_check_any("take", context, out));
    CLV_TRY(read_shapes("take", in, axis, places, out, &t));
    if (!clv_array_is_dense(out))
        return clv_fail(CLV_E_SHAPE,
                        "take: the result is a view that is not dense; give a dense array");
    if (clv_array_overlap(out, in) || out == in || clv_array_overlap(out, places))
        return clv_fail(CLV_E_ARGUMENT, "take: the result shares memory with an operand");
    if (!places->elements) return CLV_OK;
    CLV_TRY(read_places("take", places, t.len, true, &t.places));
    clv_status status = out->elements ? clv_array_dense(in, in->type, &t.from) : CLV_OK;
    const bool direct = out->type == in->type && clv_array_is_whole(out);
    if (!status && !direct)
        status = clv_array_begin("take", context, in->type, out->rank, out->shape, &made);
    t.to = direct ? out : made;
    if (!status && out->elements) status = run(context, &t);
    if (!status && made && out->elements) status = clv_array_pour(made, out);
    clv_array_free(made), clv_array_free(t.from), clv_array_free(t.places);
    return status;
}

clv_status clv_array_put_at(clv_context *context, clv_array *out, size_t axis, clv_array *places,
                            clv_array *values)
{
    take t = { .takes = false };
    clv_array *held = NULL;
    CLV_TRY(clv_array_check_any("put", context, out));
    CLV_TRY(clv_array_check_any("put", context, places));
    CLV_TRY(clv_array_check_any("put", context, values));
    CLV_TRY(read_shapes("put", out, axis, places, values, &t));
    if (!places->elements) return CLV_OK;
    CLV_TRY(read_places("put", places, t.len, false, &t.places));
    const bool shares = clv_array_overlap(values, out) || values == out;
    clv_status status = CLV_OK;
    if (values->elements) {
        status = shares ? clv_array_cast(values, out->type, &t.from)
                        : clv_array_dense(values, out->type, &t.from);
        const bool direct = clv_array_is_dense(out);
        if (!status && !direct) status = clv_array_cast(out, out->type, &held);
        t.to = direct ? out : held;
        if (!status) status = run(context, &t);
        if (!status && held) status = clv_array_pour(held, out);
    }
    clv_array_free(held), clv_array_free(t.from), clv_array_free(t.places);
    return status;
}

clv_status clv_array_find(clv_context *context, clv_array *in, clv_array **out)
{
    clv_array *truth;
    if (out) *out = NULL;
    CLV_TRY(clv_array_check_any("find", context, in));
    if (!out) return clv_fail(CLV_E_ARGUMENT, "find: the pointer for the result is NULL");
    CLV_TRY(clv_array_dense(in, CLV_BOOL, &truth));
    const size_t all = in->elements;
    unsigned char *bytes = clv_alloc(all ? all : 1, 1);
    clv_status status =
        bytes ? clv_array_copy_to(truth, bytes) : clv_fail(CLV_E_MEMORY, "find: out of memory");
    clv_array_free(truth);
    size_t count = 0;
    for (size_t i = 0; i < all && !status; ++i)
        count += bytes[i] != 0;
    int64_t *found = status ? NULL : clv_alloc(count ? count : 1, sizeof *found);
    if (!status && !found) status = clv_fail(CLV_E_MEMORY, "find: out of memory");
    size_t at = 0;
    for (size_t i = 0; i < all && !status; ++i)
        if (bytes[i]) found[at++] = (int64_t)i;
    if (!status) status = clv_array_make_from(context, CLV_I64, found, 1, &count, out);
    clv_free(bytes);
    clv_free(found);
    return status;
}
