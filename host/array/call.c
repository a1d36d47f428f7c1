/* SPDX-License-Identifier: Apache-2.0 */
/* Runs calls on arrays: checks the operands, brings them to the side that executes the call, and marks results as
 * written. */
#include "host/array/call.h"

#include "base/error.h"
#include "base/fork.h"
#include "runtime/device/device.h"
#include "runtime/record/context.h"

#include <assert.h>

unsigned clv_call_octave(size_t n)
{
    unsigned octave = 0;
    while (n >> octave > 1)
        ++octave;
    return octave;
}

/* Returns the index of the call's first array on that storage, or `count` if there is none. */
static size_t place_of(const clv_array_call *c, const clv_storage *storage)
{
    size_t i = 0;
    while (i < c->count && c->array[i]->storage != storage)
        ++i;
    return i;
}

void clv_array_call_add(clv_array_call *c, clv_array *array, bool input, bool output)
{
    const size_t first = place_of(c, array->storage);
    c->input[first] |= input;
    c->output[first] |= output;
    for (size_t i = first; i < c->count; ++i)
        if (c->array[i] == array) return;
    assert(c->count < CALL_ARRAYS);
    c->again[c->count] = first < c->count;
    c->array[c->count++] = array;
}

/* Returns whether a storage's bytes are in the device's own memory, or would be after all planned calls. */
static bool is_there(const clv_storage *storage)
{
    if (clv_storage_is_shared(storage)) return false;
    return clv_storage_is_empty(storage) ? storage->planned == CLV_SIDE_DEVICE : storage->on_device;
}

static clv_status check(clv_context *context, const clv_array_call *c)
{
    const char *what = c->call.operation;
    for (size_t i = 0; i < c->count; ++i) {
        const clv_array *a = c->array[i];
        CLV_TRY(clv_array_check_any(what, context, a));
        if (c->again[i]) continue;
        if (c->input[i] && clv_storage_is_empty(a->storage) &&
            !(c->call.plan && a->storage->planned))
            return clv_fail(CLV_E_ARGUMENT, "%s: an operand has no values yet; fill it first",
                            what);
        for (size_t k = 0; k < c->count && !c->shares; ++k)
            if (c->output[i] && clv_array_overlap(a, c->array[k]))
                return clv_fail(
                    CLV_E_ARGUMENT,
                    "%s: a result shares memory with an operand; give it an array of its own",
                    what);
    }
    return CLV_OK;
}

/* ---- on a device and on the host ----------------------------------------------------------------- */

static clv_status on_device(clv_engine *engine, void *user)
{
    clv_array_call *c = user;
    for (size_t i = 0; i < c->count; ++i) {
        clv_storage *storage = c->array[i]->storage;
        if (!c->again[i])
            CLV_TRY(clv_storage_to_device(storage, engine, (unsigned)i, c->input[i], c->output[i]));
        c->array[i]->at = storage->at;
    }
    /* arrays that are both input and output may change from here on */
    for (size_t i = 0; i < c->count; ++i)
        c->call.spent |= c->input[i] && c->output[i];
    return c->device(engine, c->user);
}

static clv_status on_host(void *user)
{
    const clv_array_call *c = user;
    for (size_t i = 0; i < c->count; ++i) {
        clv_array *a = c->array[i];
        if (!c->again[i]) CLV_TRY(clv_storage_to_host(a->storage, c->input[i]));
        void *first = (char *)a->storage->host + a->offset * clv_dtype_bytes(a->type);
        a->host = first;
    }
    return c->host(c->user);
}

void clv_array_call_close(clv_array_call *c)
{
    clv_work *w = &c->call.work;
    c->call.host = on_host;
    c->call.device = on_device;
    c->call.user = c;
    for (size_t i = 0; i < c->count; ++i) {
        const clv_array *a = c->array[i];
        const double bytes = (double)clv_array_bytes(a);
        const clv_storage *storage = a->storage;
        w->bytes += bytes;
        for (size_t axis = 0; axis < a->rank; ++axis)
            w->shape = clv_call_shape(w->shape, a->shape[axis]);
        if (c->again[i]) continue;
        const double moved = (double)storage->bytes;
        if (c->input[i] && is_there(storage)) {
            w->resident_bytes += bytes;
            c->call.stays |= !storage->on_host;
        } else if (c->input[i]) {
            w->transfer_bytes += moved;
        }
        if (c->output[i] && storage->wraps) w->transfer_bytes += moved;
    }
}

const char *clv_array_why_no_fp64(clv_context *context)
{
    for (size_t i = 0; i < context->device_count; ++i)
        if (!clv_device_facts(clv_context_device(context, i))->fp64)
            return "host: a device has no float64";
    return NULL;
}

/* ---- the call ------------------------------------------------------------------------------------ */

static void count_call(clv_context *context, bool device, bool fell_back)
{
    pthread_mutex_lock(&context->array_lock);
    context->array_stats.calls_device += device;
    context->array_stats.calls_host += !device;
    context->array_stats.fallbacks += fell_back;
    pthread_mutex_unlock(&context->array_lock);
}

static clv_status run(clv_context *context, clv_array_call *c)
{
    CLV_TRY(check(context, c));
    clv_array_call_close(c);
    const clv_status status = clv_call_run(context, &c->call);
    const bool device = c->call.told.of.side == CLV_SIDE_DEVICE;
    for (size_t i = 0; i < c->count; ++i) {
        clv_storage *storage = c->array[i]->storage;
        c->array[i]->at = storage->at = NULL;
        if (status || !c->output[i] || c->again[i]) continue;
        if (c->call.plan) /* so that a later call on this call's results can be planned as well */
            storage->planned = c->call.told.of.side;
        else
            clv_storage_written(storage, device);
    }
    if (!status && !c->call.plan) count_call(context, device, c->call.fell_back);
    return status;
}

clv_status clv_array_call_run(clv_context *context, clv_array_call *c)
{
    clv_storage *storages[CALL_ARRAYS];
    for (size_t i = 0; i < c->count; ++i)
        storages[i] = c->array[i]->storage;
    clv_call_take_orders(&c->call);
    CLV_TRY(clv_storages_lock(storages, c->count));
    const clv_status status = run(context, c);
    clv_storages_unlock(storages, c->count);
    return status;
}

/* ---- small calls --------------------------------------------------------------------------------- */

/* Returns whether no operand has to be fetched and nobody asked for a side. */
static bool is_at_once(clv_context *context, const clv_small_call *small)
{
    double bytes = 0;
    for (size_t i = 0; i < small->count; ++i) {
        const clv_array *a = small->array[i];
        const bool input = i + 1 < small->count;
        if (!clv_storage_is_here(a->storage) || (input && clv_storage_is_empty(a->storage)))
            return false;
        bytes += (double)clv_array_bytes(a);
    }
    return clv_call_at_once(context, small->operation, small->flops, small->host_flops, bytes);
}

static clv_status do_at_once(clv_context *context, const clv_small_call *small)
{
    CLV_TRY(clv_fork_check(context->born, small->operation));
    for (size_t i = 0; i < small->count; ++i) {
        clv_array *a = small->array[i];
        CLV_TRY(clv_storage_to_host(a->storage, i + 1 < small->count));
        void *first = (char *)a->storage->host + a->offset * clv_dtype_bytes(a->type);
        a->host = first;
    }
    CLV_TRY(small->host(small->user));
    clv_storage_written(small->array[small->count - 1]->storage, false);
    count_call(context, false, false);
    return CLV_OK;
}

clv_status clv_array_call_at_once(clv_context *context, const clv_small_call *small, bool *done)
{
    clv_storage *storages[CALL_ARRAYS];
    for (size_t i = 0; i < small->count; ++i)
        storages[i] = small->array[i]->storage;
    *done = false;
    CLV_TRY(clv_storages_lock(storages, small->count));
    *done = is_at_once(context, small);
    const clv_status status = *done ? do_at_once(context, small) : CLV_OK;
    clv_storages_unlock(storages, small->count);
    return status;
}
