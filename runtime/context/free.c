/* SPDX-License-Identifier: Apache-2.0 */
/* Frees contexts. A context whose device hangs in its driver is kept, and freed when a later call finds that
 * the device has come back. */
#include "runtime/context/free.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/team.h"
#include "runtime/context/devices.h"
#include "runtime/job/backlog.h"
#include "runtime/job/plain.h"
#include "runtime/job/run.h"
#include "runtime/offload/engine.h"
#include "runtime/offload/table.h"
#include "runtime/program/cache.h"
#include "runtime/program/texts.h"

static clv_mutex lock = PTHREAD_MUTEX_INITIALIZER; /* guards `left_behind` */
static clv_context *left_behind;                   /* list of contexts; reachable, so no leak */

/* Frees a context that nobody uses any more. */
static void free_now(clv_context *context)
{
    clv_devices_clear(context);
    clv_notes_close(&context->speeds);
    clv_notes_close(&context->tuned);
    clv_runs_free(context);
    clv_backlog_free(context->backlog);
    clv_team_free(context->team);
    clv_free(context->spare);
    clv_texts_free(context);
    clv_probe_free(context->probe);
    clv_trace_free(context->trace);
    clv_free(context->cache);
    clv_free(context->helper);
    pthread_mutex_destroy(&context->job_lock);
    pthread_mutex_destroy(&context->array_lock);
    pthread_mutex_destroy(&context->shelf_lock);
    clv_free(context);
}

static void push(clv_context *context)
{
    pthread_mutex_lock(&lock);
    context->next_left = left_behind;
    left_behind = context;
    pthread_mutex_unlock(&lock);
}

static void leave(clv_context *context)
{
    for (size_t i = 0; i < context->device_count; ++i)
        if (!context->devices[i].closed)
            clv_log(CLV_LOG_ERROR,
                    "%s is hanging in its driver, so the memory of its context is kept; a later "
                    "clv_context_create or clv_context_free frees it once the driver has returned",
                    context->devices[i].label);
    push(context);
}

/* Frees those of the contexts left behind whose devices have come back, without waiting for the others. */
static void free_what_came_back(void)
{
    pthread_mutex_lock(&lock);
    clv_context *list = left_behind;
    left_behind = NULL;
    pthread_mutex_unlock(&lock);
    while (list) {
        clv_context *context = list;
        list = context->next_left;
        if (!clv_devices_close(context, 0)) {
            push(context);
            continue;
        }
        clv_log(CLV_LOG_INFO, "%s is no longer hanging in its driver: its context is freed",
                context->devices[0].label);
        free_now(context);
    }
}

void clv_context_hold(clv_context *context)
{
    atomic_fetch_add(&context->holds, 1);
}

void clv_context_release(clv_context *context)
{
    static const double patience = 10; /* seconds to wait for commands that still run */
    if (context && clv_is_forked(context->born))
        return; /* threads and locks belong to the parent process: free nothing */
    if (context && atomic_fetch_sub(&context->holds, 1) > 1) return;
    free_what_came_back();
    if (!context) return;
    if (context->trace && *context->trace_path &&
        clv_trace_write(context->trace, context->trace_path))
        clv_log(CLV_LOG_WARN, "CLEAVE_TRACE: %s", clv_error_message());
    clv_engine_free(context->engine);
    context->engine = NULL;
    clv_offload_free(context);
    const bool all_closed = clv_devices_close(context, patience);
    clv_notes_save(&context->speeds);
    clv_notes_save(&context->tuned);
    clv_plain_join_late(context);
    if (all_closed)
        free_now(context);
    else
        leave(context); /* a thread is still inside a driver and may use the context */
}

/* Ends the asynchronous calls first: the thread that runs them could not wait for its own end. */
static void end_calls(clv_context *context)
{
    if (!context || clv_is_forked(context->born)) return;
    pthread_mutex_lock(&context->array_lock);
    clv_backlog *backlog = context->backlog;
    pthread_mutex_unlock(&context->array_lock);
    context->asynchronous = false;
    clv_backlog_stop(backlog);
}

void clv_context_free(clv_context *context)
{
    end_calls(context);
    clv_context_release(context);
}

size_t clv_contexts_left(void)
{
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (const clv_context *context = left_behind; context; context = context->next_left)
        ++count;
    pthread_mutex_unlock(&lock);
    return count;
}
