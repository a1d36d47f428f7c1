/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous calls on arrays. A call keeps copies of its arrays, so that their owner may free them at any time, and
 * counts as pending in every storage that it uses. */
#include "host/array/later.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "runtime/job/backlog.h"
#include "runtime/job/turn.h"
#include "runtime/offload/orders.h"
#include "runtime/record/context.h"

#include <string.h>

enum { LATER_ARRAYS = 16 };

typedef struct record {
    clv_backlog_entry entry;
    const char *operation;
    clv_status (*run)(const clv_later *call);
    clv_backlog *backlog;
    clv_side forced;
    void *arguments;
    struct clv_pending_failure *failure; /* room for it, in case the call fails */
    size_t count;
    clv_array *array[LATER_ARRAYS]; /* NULL, or one of `copies` */
    clv_array copies[];
} record;

/* Returns the failure of an operand. */
static clv_status inherit(const record *r, uint64_t *serial)
{
    for (size_t i = 0; i < r->count; ++i) {
        const struct clv_pending_failure *failure =
            r->array[i] ? r->array[i]->storage->failure : NULL;
        if (!failure) continue;
        *serial = failure->serial;
        return clv_fail(failure->error.status,
                        "%s was not computed, for an operand has no values: %s", r->operation,
                        failure->error.message);
    }
    return CLV_OK;
}

/* ---- the thread that runs the calls ---------------------------------------------------------------- */

static void finish(record *r)
{
    for (size_t i = 0; i < r->count; ++i) {
        if (!r->array[i]) continue;
        clv_storage *storage = r->array[i]->storage;
        atomic_fetch_sub(&storage->pending, 1); /* the array's owner may free it from now on */
        clv_storage_release(storage);
    }
    clv_free(r->failure);
    clv_free(r->arguments);
    clv_free(r);
}

static void run_record(clv_backlog_entry *entry)
{
    record *r = (record *)entry;
    const clv_later call = { r->array, r->arguments };
    uint64_t serial = entry->serial;
    clv_status status = inherit(r, &serial);
    if (!status) {
        (void)clv_offload_force(r->forced);
        status = r->run(&call);
    }
    if (status) {
        clv_error error = { 0 };
        clv_pending_mark(r->array[r->count - 1]->storage, r->failure, serial, status);
        r->failure = NULL;
        clv_error_take(&error, status);
        clv_backlog_keep(r->backlog, serial, &error);
        clv_error_clear(&error);
    }
    finish(r);
}

/* ---- enqueueing ---------------------------------------------------------------------------------- */

bool clv_later_is_on(clv_context *context)
{
    if (!context->asynchronous || clv_is_forked(context->born) ||
        clv_backlog_is_mine(context->backlog) || clv_jobs_held(context))
        return false;
    const clv_call_orders *orders = clv_call_orders_here();
    return !orders || !orders->plans;
}

static bool is_suitable(const clv_later_call *call)
{
    for (size_t i = 0; i < call->count; ++i) {
        if (!call->array[i]) continue;
        clv_storage *storage = call->array[i]->storage;
        if (storage->wraps || storage->exposed) return false;
        if (storage->pending) continue;
        if (storage->failure || (i + 1 < call->count && clv_storage_is_empty(storage)))
            return false;
    }
    return true;
}

/* Copies the call. The same array given twice is copied once. */
static record *copy_call(const clv_later_call *call)
{
    record *r = clv_alloc(1, sizeof *r + call->count * sizeof *r->copies);
    void *arguments = r ? clv_alloc(1, call->bytes) : NULL;
    struct clv_pending_failure *failure = arguments ? clv_pending_prepare() : NULL;
    if (!failure) {
        clv_free(arguments);
        clv_free(r);
        return NULL;
    }
    r->failure = failure;
    r->arguments = memcpy(arguments, call->arguments, call->bytes);
    r->operation = call->operation;
    r->run = call->run;
    r->count = call->count;
    r->entry.run = run_record;
    r->entry.bytes = 0;
    for (size_t i = 0; i < call->count; ++i) {
        size_t same = 0;
        while (same < i && call->array[same] != call->array[i])
            ++same;
        if (call->array[i] && same == i) r->copies[i] = *call->array[i];
        r->array[i] = call->array[i] ? &r->copies[same] : NULL;
        if (!call->array[i]) continue;
        clv_storage_retain(r->copies[same].storage);
        atomic_fetch_add(&r->copies[same].storage->pending, 1);
        r->entry.bytes += same == i ? clv_array_bytes(&r->copies[i]) : 0;
    }
    return r;
}

clv_status clv_later_add(clv_context *context, const clv_later_call *call, bool *added)
{
    *added = false;
    if (!clv_later_is_on(context) || call->count > LATER_ARRAYS || !is_suitable(call))
        return CLV_OK;
    record *r = copy_call(call);
    if (!r) return clv_fail(CLV_E_MEMORY, "%s: out of memory", call->operation);
    const clv_call_orders *orders = clv_call_orders_here();
    r->forced = orders ? orders->forced : CLV_SIDE_AUTO;
    r->backlog = context->backlog;
    *added = clv_backlog_add(r->backlog, &r->entry);
    if (!*added) finish(r);
    return CLV_OK;
}

clv_status clv_later_add_one(clv_array *in, clv_array *out, const char *operation,
                             clv_status (*run)(const clv_later *call), const void *arguments,
                             size_t bytes, bool *added)
{
    clv_array *const arrays[] = { in, out };
    const clv_later_call call = { operation, run, arrays, CLV_LEN(arrays), arguments, bytes };
    return clv_later_add(out->context, &call, added);
}
