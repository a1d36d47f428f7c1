/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a device's side of a job: the device joins, sets the job up, and then computes chunk after chunk until no unit
 * is left.
 *
 * All functions of this file run on the device's thread. The lock is held except around the job's functions, calls of
 * the driver, and waits. */
#include "runtime/job/run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/device/device.h"
#include "runtime/device/memory.h"
#include "runtime/job/rehearsal.h"
#include "runtime/job/turn.h"
#include "runtime/program/program.h"
#include "runtime/record/context.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_admitted(clv_worker *worker)
{
    clv_run *run = worker->run;
    while (!run->over) {
        const clv_balance_lease answer =
            clv_balance_admit(run->balance, worker->index, clv_run_now(run));
        if (answer.act == CLV_BALANCE_WORK) return true;
        if (answer.act == CLV_BALANCE_LEAVE) return false;
        clv_run_wait(run, answer.until);
    }
    return false;
}

/* Returns the seconds spent in compilers so far. Set-up times exclude them, because they say nothing about
 * the next set-up. */
static double compiled_s(clv_device *device)
{
    pthread_mutex_lock(&device->program_lock);
    const double seconds = device->compiled.seconds;
    pthread_mutex_unlock(&device->program_lock);
    return seconds;
}

/* Opens the device and sets the job up on it. Called without the lock. */
static clv_status set_up(clv_worker *worker)
{
    clv_run *run = worker->run;
    clv_device *device = worker->device;
    const double started = clv_now(), compiled = compiled_s(device);
    const bool was_open = device->state != CLV_DEVICE_CLOSED; /* only this thread opens it */
    CLV_TRY(clv_worker_open(worker));
    const double checked_s = was_open ? 0 : device->check_s; /* a device is checked only once */
    clv_job_rehearse(worker);
    if (run->job.setup) {
        CLV_TRY(run->job.setup(worker, run->user));
        CLV_TRY(clv_queue_wait(worker->queue)); /* so that every queue finds the shared inputs */
    }
    worker->setup_s = clv_now() - started - checked_s - (compiled_s(device) - compiled);
    clv_trace_span(run->context->trace, device, 8, "set up", started, clv_now(), 0);
    return CLV_OK;
}

/* Copies the figures into the report's share. Called under the lock, so that the caller can read them at any
 * time. */
static void publish(clv_worker *worker)
{
    clv_share *share = &worker->share;
    share->kernel_s = 0;
    share->bytes_to_device = share->bytes_from_device = 0;
    for (unsigned i = 0; i < worker->device->depth && worker->slots[i].queue; ++i) {
        const clv_queue_stats *now = &worker->slots[i].queue->stats,
                              *before = &worker->stats_before[i];
        share->bytes_to_device += now->bytes_to_device - before->bytes_to_device;
        share->bytes_from_device += now->bytes_from_device - before->bytes_from_device;
        if (now->kernel_s < 0 || share->kernel_s < 0)
            share->kernel_s = -1;
        else
            share->kernel_s += now->kernel_s;
    }
    share->memory_peak_bytes = clv_device_memory(worker->device).peak_bytes;
}

static void slot_is_free(clv_slot *slot)
{
    slot->in_flight = slot->reads_caller = false;
    if (slot->upload) clReleaseEvent(slot->upload);
    slot->upload = NULL;
    pthread_cond_broadcast(&slot->worker->run->changed);
}

/* Decides what a failed chunk means for the balance. "Out of resources" may mean that a smaller chunk would fit, but
 * also that the device is lost. The device is therefore tested first; otherwise a lost one would get smaller and
 * smaller chunks forever. Called without the lock. */
static clv_balance_failure judge_failure(clv_worker *worker, clv_slot *slot, clv_status status)
{
    clv_device *device = worker->device;
    if (clv_device_still_works(device)) return CLV_BALANCE_LOST;
    if (status != CLV_E_DEVICE_MEMORY) return CLV_BALANCE_FAILED;
    clv_keyed_free(slot->keyed, &slot->keyed_count);
    clv_device_lower_budget(device, device->budget / 2);
    return CLV_BALANCE_NO_MEMORY;
}

/* Handles a device's error: gives the chunk back to the balance and decides whether the worker goes on. */
static void chunk_failed(clv_worker *worker, clv_slot *slot, clv_status status)
{
    clv_run *run = worker->run;
    clv_device *device = worker->device;
    clv_balance_failure failure = CLV_BALANCE_LOST;
    clv_error error = { 0 };
    switch (status) {
    case CLV_E_DEVICE_MEMORY:
    case CLV_E_DEVICE:
    case CLV_E_WRONG_RESULT:
        clv_error_take(&error, status);
        pthread_mutex_unlock(&run->lock);
        failure = judge_failure(worker, slot, status);
        pthread_mutex_lock(&run->lock);
        (void)clv_error_give(&error);
        clv_error_clear(&error);
        if (failure == CLV_BALANCE_NO_MEMORY) worker->depth = 1;
        break;
    case CLV_E_BUILD: /* the build would fail again */
        break;
    default: /* not the device's fault: the chunk would fail on any other one as well */
        clv_run_fail(run, status);
        return;
    }
    if (run->over) return;
    clv_error_take(&worker->error, status);
    clv_log(CLV_LOG_WARN, "%s: chunk [%zu, +%zu) of %s: %s", device->label, slot->lease.first,
            slot->lease.count, run->name, clv_error_message());
    if (!clv_balance_failed(run->balance, worker->index, slot->lease.id, clv_run_now(run),
                            failure)) {
        worker->gone = true;
        if (status == CLV_E_DEVICE) clv_device_quarantine(device, status);
    }
    pthread_cond_broadcast(&run->changed);
}

static clv_status enqueue_chunk(clv_slot *slot)
{
    const clv_run *run = slot->worker->run;
    clv_slot_begin(slot);
    CLV_TRY(run->job.enqueue(slot, slot->lease.first, slot->lease.count, run->user));
    return clv_slot_finish(slot);
}

static void end_chunk(clv_worker *worker, clv_slot *slot);

/* Retries a chunk for which there was no room: enqueues it once more, alone on the device, after freeing all memory
 * that was kept for later. Called without the lock. */
static clv_status enqueue_alone(clv_worker *worker, clv_slot *slot)
{
    clv_run *run = worker->run;
    pthread_mutex_lock(&run->lock);
    for (unsigned i = 0; i < CLV_MAX_DEPTH; ++i)
        if (&worker->slots[i] != slot && worker->slots[i].in_flight)
            end_chunk(worker, &worker->slots[i]);
    const bool pointless = run->over || worker->gone;
    worker->inside = true;
    pthread_mutex_unlock(&run->lock);
    clv_keyed_free(slot->keyed, &slot->keyed_count);
    clv_device_trim(worker->device);
    return pointless ? clv_fail(CLV_E_DEVICE_MEMORY, "%s: no room", worker->device->label)
                     : enqueue_chunk(slot);
}

static void start_chunk(clv_worker *worker, clv_slot *slot, const clv_balance_lease *lease)
{
    clv_run *run = worker->run;
    slot->lease = *lease;
    slot->started = clv_now();
    slot->cold_before = slot->queue->stats.cold_launches;
    slot->in_flight = slot->reads_caller = worker->inside = true;
    pthread_mutex_unlock(&run->lock);
    clv_error error = { 0 };
    clv_status status = enqueue_chunk(slot);
    for (int attempt = 0; status; ++attempt) {
        /* a part of the chunk may be running: let it end before its buffers are freed */
        clv_error_take(&error, status);
        (void)clv_queue_wait(slot->queue);
        clv_slot_done(slot);
        if (status != CLV_E_DEVICE_MEMORY || attempt) break;
        status = enqueue_alone(worker, slot);
    }
    bool wraps = false;
    for (size_t i = 0; i < slot->keyed_count; ++i)
        wraps |= slot->keyed[i].used && slot->keyed[i].wraps;
    pthread_mutex_lock(&run->lock);
    worker->inside = false;
    slot->reads_caller = wraps || slot->upload;
    if (wraps && slot->upload) { /* then the whole chunk reads the caller's memory */
        clReleaseEvent(slot->upload);
        slot->upload = NULL;
    }
    pthread_cond_broadcast(&run->changed);
    if (status) {
        (void)clv_error_give(&error);
        chunk_failed(worker, slot, status);
        slot_is_free(slot);
    }
    clv_error_clear(&error);
}

static void commit(clv_worker *worker, const clv_slot *slot)
{
    clv_run *run = worker->run;
    worker->inside = true;
    pthread_mutex_unlock(&run->lock);
    pthread_mutex_lock(&run->commit_lock);
    const clv_status status =
        run->job.commit(slot, slot->lease.first, slot->lease.count, run->user);
    pthread_mutex_unlock(&run->commit_lock);
    pthread_mutex_lock(&run->lock);
    worker->inside = false;
    if (status)
        clv_run_fail(run, status);
    else
        run->committed += slot->lease.count;
}

static void trace_chunk(const clv_slot *slot, const char *verdict)
{
    clv_run *run = slot->worker->run;
    char name[48];
    snprintf(name, sizeof name, "%s%.16s [%zu, +%zu)", verdict, run->name, slot->lease.first,
             slot->lease.count);
    clv_trace_span(run->context->trace, slot->worker->device,
                   9 + (unsigned)(slot - slot->worker->slots), name, slot->started, clv_now(), 0);
}

/* Waits for the chunk, then commits it, drops it or handles its error. */
static void end_chunk(clv_worker *worker, clv_slot *slot)
{
    clv_run *run = worker->run;
    pthread_mutex_unlock(&run->lock);
    const clv_status status = clv_queue_wait(slot->queue);
    pthread_mutex_lock(&run->lock);

    const char *verdict = "late: ";
    if (!run->over && !worker->gone) {
        if (status) {
            chunk_failed(worker, slot, status);
            verdict = "failed: ";
        } else {
            const bool steady = slot->queue->stats.cold_launches == slot->cold_before;
            if (clv_balance_done(run->balance, worker->index, slot->lease.id, clv_run_now(run),
                                 steady)) {
                commit(worker, slot);
                verdict = "";
            }
        }
    }
    pthread_mutex_unlock(&run->lock);
    trace_chunk(slot, verdict);
    clv_slot_done(slot);
    pthread_mutex_lock(&run->lock);
    publish(worker);
    slot_is_free(slot);
}

/* Returns the slot whose chunk was started first, or NULL. */
static clv_slot *oldest_in_flight(clv_worker *worker)
{
    clv_slot *oldest = NULL;
    for (unsigned i = 0; i < CLV_MAX_DEPTH; ++i) {
        clv_slot *slot = &worker->slots[i];
        if (slot->in_flight && (!oldest || slot->started < oldest->started)) oldest = slot;
    }
    return oldest;
}

static clv_slot *free_slot(clv_worker *worker)
{
    for (unsigned i = 0; i < worker->depth; ++i)
        if (!worker->slots[i].in_flight) return &worker->slots[i];
    return NULL;
}

static void work(clv_worker *worker)
{
    clv_run *run = worker->run;
    bool leave = false;
    while (!run->over && !worker->gone) {
        clv_slot *slot = leave ? NULL : free_slot(worker), *running = oldest_in_flight(worker);
        double until = INFINITY;
        if (slot) {
            const clv_balance_lease lease =
                clv_balance_next(run->balance, worker->index, clv_run_now(run));
            if (lease.act == CLV_BALANCE_WORK) {
                if (lease.speculative)
                    clv_trace_note(run->context->trace, worker->device, clv_now(),
                                   "does a late chunk again");
                start_chunk(worker, slot, &lease);
                continue;
            }
            leave = lease.act == CLV_BALANCE_LEAVE;
            until = lease.until;
        }
        if (running)
            end_chunk(worker, running);
        else if (leave)
            break;
        else
            clv_run_wait(run, until);
    }
    for (clv_slot *late; (late = oldest_in_flight(worker));)
        end_chunk(worker, late);
}

void clv_worker_body(void *argument)
{
    clv_worker *worker = argument;
    clv_run *run = worker->run;
    clv_jobs_serve(run->context);
    pthread_mutex_lock(&run->lock);
    if (is_admitted(worker)) {
        worker->inside = true;
        pthread_mutex_unlock(&run->lock);
        const clv_status status = set_up(worker);
        pthread_mutex_lock(&run->lock);
        worker->inside = false;
        pthread_cond_broadcast(&run->changed);
        if (!status) {
            work(worker);
        } else if (!run->over) {
            clv_error_take(&worker->error, status);
            clv_log(CLV_LOG_WARN, "%s: %s cannot be set up: %s", worker->device->label, run->name,
                    clv_error_message());
            clv_balance_failed(run->balance, worker->index, 0, clv_run_now(run), CLV_BALANCE_LOST);
        }
    }
    worker->gone = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    for (unsigned i = 0; i < CLV_MAX_DEPTH; ++i)
        clv_keyed_free(worker->slots[i].keyed, &worker->slots[i].keyed_count);
    clv_keyed_free(worker->keyed, &worker->keyed_count);
    clv_programs_save(worker->device, false);
    atomic_store(&worker->device->hung, false); /* the device has come back */
    clv_jobs_serve(NULL);
    clv_run_let_go(run);
}
