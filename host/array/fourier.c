/* SPDX-License-Identifier: Apache-2.0 */
/* clv_array_fourier: a Fourier transform of an array by the caller's library, and an array for its result. */
#include "host/array/fourier.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "host/array/call.h"
#include "host/array/team.h"

#include <math.h>
#include <string.h>

static bool is_real_or_complex(clv_dtype type)
{
    return type == CLV_F32 || type == CLV_F64 || type == CLV_C64 || type == CLV_C128;
}

/* Returns the bytes of an array; 0: it has no elements, or too many. */
static size_t bytes_of(clv_dtype type, size_t rank, const size_t *shape)
{
    size_t bytes = clv_dtype_bytes(type);
    for (size_t i = 0; i < rank; ++i)
        if (!clv_size_mul(bytes, shape[i], &bytes)) return 0;
    return bytes;
}

static clv_status check_rows(const clv_fourier *t)
{
    const clv_fourier_options *o = &t->o;
    const size_t elements = t->bytes / clv_dtype_bytes(o->from);
    const size_t rows = o->rank ? elements / o->shape[o->rank - 1] : 0;
    const size_t blocks = rows / CLV_FOURIER_ROWS;
    if (!rows || rows % CLV_FOURIER_ROWS || t->bytes / blocks % CLV_FOURIER_ALIGN ||
        t->result_bytes % blocks || t->result_bytes / blocks % CLV_FOURIER_ALIGN)
        return clv_fail(CLV_E_SHAPE,
                        "fourier: the array has %zu rows, but a multiple of %d is expected, and so "
                        "many rows must have a multiple of %d bytes",
                        rows, CLV_FOURIER_ROWS, CLV_FOURIER_ALIGN);
    return CLV_OK;
}

static clv_status check_order(const clv_fourier *t, size_t count)
{
    const clv_fourier_options *o = &t->o;
    if (!o->order || !o->factors)
        return clv_fail(CLV_E_ARGUMENT, "fourier: the order or the factors are NULL");
    for (size_t i = 0; i < count; ++i)
        if (!o->order[i] || o->order[i] > count)
            return clv_fail(CLV_E_ARGUMENT, "fourier: place %zu of the order is %u of %zu", i,
                            (unsigned)o->order[i], count);
    return CLV_OK;
}

static clv_status check_steps(const clv_fourier *t)
{
    const clv_fourier_options *o = &t->o;
    const size_t more = o->form == CLV_FOURIER_BY_PRIME; /* the first element */
    size_t elements;
    if (o->from != CLV_C64 || o->to != CLV_C64)
        return clv_fail(CLV_E_ARGUMENT, "fourier: got %s to %s in steps, but complex64 is expected",
                        clv_dtype_name(o->from), clv_dtype_name(o->to));
    if (!clv_size_mul(o->length[0], o->length[1], &elements) || !elements ||
        elements + more != t->bytes / sizeof(clv_c64) || t->bytes != t->result_bytes)
        return clv_fail(CLV_E_SHAPE,
                        "fourier: the steps are of %zu times %zu elements, but the array and its "
                        "result have %zu and %zu",
                        o->length[0], o->length[1], t->bytes / sizeof(clv_c64),
                        t->result_bytes / sizeof(clv_c64));
    if (!o->plan[1])
        return clv_fail(CLV_E_ARGUMENT, "fourier: the plan of the second step is NULL");
    return more ? check_order(t, elements) : CLV_OK;
}

static clv_status check_axes(const clv_fourier *t)
{
    const clv_fourier_options *o = &t->o;
    const size_t elements = t->bytes / clv_dtype_bytes(o->from);
    const size_t made = t->result_bytes / sizeof(clv_c64);
    size_t each;
    if (o->to != CLV_C64 || (o->from != CLV_C64 && o->from != CLV_F32))
        return clv_fail(CLV_E_ARGUMENT,
                        "fourier: got %s to %s along axes, but complex64 is expected",
                        clv_dtype_name(o->from), clv_dtype_name(o->to));
    if (!clv_size_mul(o->length[0], o->length[1], &each) || !each || made % each)
        return clv_fail(
            CLV_E_SHAPE,
            "fourier: columns of %zu elements, %zu apart, do not divide a result of %zu",
            o->length[0], o->length[1], made);
    const size_t blocks = o->block ? elements / o->block : 0;
    if (!blocks || elements % o->block || t->bytes / blocks % CLV_FOURIER_ALIGN ||
        t->result_bytes % blocks || t->result_bytes / blocks % CLV_FOURIER_ALIGN)
        return clv_fail(CLV_E_SHAPE,
                        "fourier: blocks of %zu elements do not divide an array of %zu into "
                        "multiples of %d bytes",
                        o->block, elements, CLV_FOURIER_ALIGN);
    return o->plan[1] ? CLV_OK
                      : clv_fail(CLV_E_ARGUMENT, "fourier: the plan of the second step is NULL");
}

static clv_status check_transform(clv_fourier *t)
{
    const clv_fourier_options *o = &t->o;
    if (!o->run || !o->plan[0])
        return clv_fail(CLV_E_ARGUMENT, "fourier: the function or its plan is NULL");
    if ((unsigned)o->form > CLV_FOURIER_BY_PRIME)
        return clv_fail(CLV_E_ARGUMENT, "fourier: %d is not one of clv_fourier_form", (int)o->form);
    if (!is_real_or_complex(o->from) || !is_real_or_complex(o->to) || !isfinite(o->scale))
        return clv_fail(CLV_E_ARGUMENT,
                        "fourier: got the types %s and %s and the factor %g, but float32, float64 "
                        "or complex types and a finite factor are expected",
                        clv_dtype_name(o->from), clv_dtype_name(o->to), o->scale);
    if (o->rank <= CLV_ARRAY_RANK) t->bytes = bytes_of(o->from, o->rank, o->shape);
    if (o->result_rank <= CLV_ARRAY_RANK)
        t->result_bytes = bytes_of(o->to, o->result_rank, o->result_shape);
    if (!t->bytes || !t->result_bytes)
        return clv_fail(CLV_E_SHAPE,
                        "fourier: array and result must have elements, and at most %d axes",
                        CLV_ARRAY_RANK);
    return o->form == CLV_FOURIER_BY_ROWS   ? check_rows(t)
           : clv_fourier_has_steps(t)       ? check_steps(t)
           : o->form == CLV_FOURIER_BY_AXES ? check_axes(t)
                                            : CLV_OK;
}

void clv_fourier_free(clv_fourier *t)
{
    if (!t) return;
    clv_free(t->low);
    clv_free(t->high);
    clv_free(t);
}

clv_status clv_fourier_create(const clv_fourier_options *options, clv_fourier **transform)
{
    if (!transform || !options)
        return clv_fail(CLV_E_ARGUMENT, "fourier: the options or the result is NULL");
    *transform = NULL;
    clv_fourier *t = clv_zalloc(1, sizeof *t);
    if (!t) return clv_fail(CLV_E_MEMORY, "fourier: out of memory");
    clv_status status =
        clv_take_struct(&t->o, sizeof t->o, options, "clv_fourier_create", "clv_fourier_options");
    if (!status) status = check_transform(t);
    if (!status && clv_fourier_has_steps(t) && !clv_fourier_make_powers(t))
        status = clv_fail(CLV_E_MEMORY, "fourier: out of memory");
    if (status)
        clv_fourier_free(t);
    else
        *transform = t;
    return status;
}

/* ---- the call ----------------------------------------------------------------------------------- */

typedef struct call {
    const clv_fourier *t;
    clv_array *in, *out, *room;
} call;

static bool is_aligned(const void *memory)
{
    return (uintptr_t)memory % CLV_FOURIER_ALIGN == 0;
}

static clv_status on_host(void *user)
{
    const call *c = user;
    if (!clv_fourier_has_steps(c->t) && (!is_aligned(c->in->host) || !is_aligned(c->out->host)))
        return clv_fail(CLV_E_UNSUPPORTED,
                        "fourier: the elements at %p are not aligned to %d bytes: copy the array",
                        (void *)c->in->host, CLV_FOURIER_ALIGN);
    if (c->room) CLV_TRY(clv_storage_to_host(c->room->storage, false));
    clv_team *team = c->t->o.form == CLV_FOURIER_BY_WHOLE ? NULL : clv_array_team(c->in->context);
    void *in = c->in->host, *out = c->out->host, *room = c->room ? c->room->storage->host : NULL;
    if (c->t->o.form == CLV_FOURIER_BY_PRIME)
        clv_fourier_prime(c->t, team, in, out, room);
    else
        clv_fourier_compute(c->t, team, in, out, room);
    return CLV_OK;
}

static clv_status on_device(clv_engine *engine, void *user)
{
    (void)engine, (void)user;
    return clv_fail(CLV_E_UNSUPPORTED, "fourier: only the host computes transforms");
}

static double operations(const clv_array *x)
{
    return 5 * (double)x->elements * log2((double)CLV_MAX(x->elements, (size_t)2));
}

static clv_status run(call *c)
{
    static const double host_flops = 8e9;
    const clv_small_call small = { .operation = "fourier",
                                   .flops = operations(c->in),
                                   .host_flops = host_flops,
                                   .array = { c->in, c->out },
                                   .count = 2,
                                   .host = on_host,
                                   .user = c };
    bool done;
    const clv_status status = clv_array_call_at_once(c->in->context, &small, &done);
    if (status || done) return status;
    clv_array_call whole = { .host = on_host, .device = on_device, .user = c };
    whole.call = (clv_call){ .operation = "fourier",
                             .work = { .kind = "fourier",
                                       .amount = small.flops,
                                       .flops = small.flops,
                                       .host_flops = host_flops },
                             .host_only = "host: transforms have no kernel" };
    clv_array_call_add(&whole, c->in, true, false);
    clv_array_call_add(&whole, c->out, false, true);
    return clv_array_call_run(c->in->context, &whole);
}

static clv_status check_array(const clv_array *x, const clv_fourier *t)
{
    if (!x || !t) return clv_fail(CLV_E_ARGUMENT, "fourier: the array or the transform is NULL");
    if (x->type != t->o.from || x->rank != t->o.rank ||
        memcmp(x->shape, t->o.shape, x->rank * sizeof *x->shape) != 0)
        return clv_fail(CLV_E_SHAPE,
                        "fourier: the array has another type or shape than the transform");
    return clv_array_is_dense(x)
               ? CLV_OK
               : clv_fail(CLV_E_UNSUPPORTED, "fourier: the array is not dense: copy it");
}

clv_array *clv_array_fourier(clv_array *x, const clv_fourier *t)
{
    call c = { .t = t, .in = x };
    clv_status status = check_array(x, t);
    const size_t room = status                              ? 0
                        : t->o.form == CLV_FOURIER_BY_PRIME ? clv_fourier_prime_room(t)
                                                            : clv_fourier_room(t);
    if (!status)
        status = clv_array_begin("fourier", x->context, t->o.to, t->o.result_rank,
                                 t->o.result_shape, &c.out);
    if (!status && room) status = clv_array_begin("fourier", x->context, CLV_U8, 1, &room, &c.room);
    if (!status) status = run(&c);
    clv_array_free(c.room);
    if (!status) return c.out;
    clv_array_free(c.out);
    return NULL;
}
