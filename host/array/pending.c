/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for asynchronous calls on arrays. A storage's failure is written under the storage's lock, by the thread that
 * runs the calls, while the storage is pending; callers take it under the lock when it is not pending. */
#include "host/array/pending.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "runtime/job/backlog.h"
#include "runtime/job/turn.h"
#include "runtime/record/context.h"

#include <cleave/array_async.h>

/* ---- failures ------------------------------------------------------------------------------------ */

static void free_failure(struct clv_pending_failure *failure)
{
    if (failure) clv_error_clear(&failure->error);
    clv_free(failure);
}

void clv_pending_forgive(clv_storage *storage)
{
    free_failure(storage->failure);
}

clv_status clv_pending_check(clv_storage *const *storages, size_t count)
{
    clv_status status = CLV_OK;
    for (size_t i = 0; i < count && !status; ++i) {
        struct clv_pending_failure *failure = storages[i]->failure;
        clv_backlog *backlog = storages[i]->context->backlog;
        if (!failure || storages[i]->pending || clv_backlog_is_mine(backlog)) continue;
        storages[i]->failure = NULL;
        clv_backlog_forget(backlog, failure->serial);
        status = clv_error_give(&failure->error);
        free_failure(failure);
    }
    return status;
}

struct clv_pending_failure *clv_pending_prepare(void)
{
    return clv_zalloc(1, sizeof(struct clv_pending_failure));
}

void clv_pending_mark(clv_storage *storage, struct clv_pending_failure *failure, uint64_t serial,
                      clv_status status)
{
    failure->serial = serial;
    clv_error_take(&failure->error, status);
    pthread_mutex_lock(&storage->lock);
    free_failure(atomic_exchange(&storage->failure, failure));
    pthread_mutex_unlock(&storage->lock);
}

/* ---- waiting --------------------------------------------------------------------------------------- */

clv_status clv_pending_settle(clv_storage *const *storages, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        clv_context *context = storages[i]->context;
        if (!storages[i]->pending) continue;
        CLV_TRY(clv_fork_check(context->born, "array"));
        if (clv_backlog_is_mine(context->backlog)) continue;
        if (clv_jobs_held(context)) return clv_jobs_refuse("an array of a pending call");
        clv_backlog_wait(context->backlog, &storages[i]->pending);
    }
    return CLV_OK;
}

void clv_pending_settle_array(const clv_array *array)
{
    if (array->storage->pending) (void)clv_pending_settle(&array->storage, 1);
}

bool clv_array_is_pending(const clv_array *array)
{
    return array && array->storage->pending;
}

bool clv_array_is_asynchronous(const clv_context *context)
{
    return context && context->asynchronous;
}

/* Returns the backlog of the context; NULL if no call was ever asynchronous, or to the thread that runs the calls. */
static clv_backlog *backlog_of(clv_context *context)
{
    pthread_mutex_lock(&context->array_lock);
    clv_backlog *backlog = context->backlog;
    pthread_mutex_unlock(&context->array_lock);
    return backlog && !clv_backlog_is_mine(backlog) ? backlog : NULL;
}

void clv_pending_settle_all(clv_context *context)
{
    if (clv_is_forked(context->born)) return;
    clv_backlog *backlog = backlog_of(context);
    if (backlog && !clv_jobs_held(context)) clv_backlog_wait(backlog, NULL);
}

clv_status clv_array_synchronize(clv_context *context)
{
    if (!context) return clv_fail(CLV_E_ARGUMENT, "synchronize: context is NULL");
    CLV_TRY(clv_fork_check(context->born, "synchronize"));
    clv_backlog *backlog = backlog_of(context);
    if (!backlog) return CLV_OK;
    if (clv_jobs_held(context)) return clv_jobs_refuse("synchronize");
    clv_backlog_wait(backlog, NULL);
    return clv_backlog_report(backlog);
}

clv_status clv_array_set_asynchronous(clv_context *context, bool on)
{
    if (!context) return clv_fail(CLV_E_ARGUMENT, "asynchronous: context is NULL");
    CLV_TRY(clv_fork_check(context->born, "asynchronous"));
    if (!on) {
        context->asynchronous = false;
        return clv_array_synchronize(context);
    }
    pthread_mutex_lock(&context->array_lock);
    if (!context->backlog) context->backlog = clv_backlog_start();
    if (context->backlog) context->asynchronous = true;
    pthread_mutex_unlock(&context->array_lock);
    return context->asynchronous
               ? CLV_OK
               : clv_fail(CLV_E_MEMORY, "asynchronous: no thread could be started");
}
