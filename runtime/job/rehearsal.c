/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearses a job: calls its functions without data, to learn which kernels the job will launch. */
#include "runtime/job/rehearsal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/device/queue.h"
#include "runtime/job/turn.h"
#include "runtime/program/ahead.h"

#include <string.h>

/* Returns the FNV-1a hash of the job's name and signature. */
static uint64_t name_of(const clv_job *job)
{
    uint64_t name = 0xCBF29CE484222325u;
    const char *const parts[] = { job->name, job->signature ? job->signature : "" };
    for (size_t i = 0; i < CLV_LEN(parts); ++i)
        for (const char *c = parts[i]; *c || c == parts[i]; ++c) {
            name = (name ^ (unsigned char)*c) * 0x100000001B3u;
            if (!*c) break;
        }
    return name;
}

/* Returns whether the device has not rehearsed the job yet, and notes the job. The oldest of many jobs are
 * forgotten. */
static bool is_new(clv_device *device, const clv_job *job)
{
    const uint64_t name = name_of(job);
    const size_t known = CLV_MIN(device->rehearsed_count, (unsigned)CLV_REHEARSED);
    for (size_t i = 0; i < known; ++i)
        if (device->rehearsed[i] == name) return false;
    device->rehearsed[device->rehearsed_count++ % CLV_REHEARSED] = name;
    return true;
}

/* Calls the job's functions without data, then frees the worker's memory, so that a real setup finds everything new. */
static void note_kernels(clv_worker *worker)
{
    const clv_run *run = worker->run;
    const clv_job *job = &run->job;
    clv_slot *slot = &worker->slots[0];
    const size_t least = CLV_MAX(CLV_MAX(job->min_chunk, job->align), (size_t)1);
    slot->queue->rehearsing = true;
    clv_slot_begin(slot);
    clv_status status = job->setup ? job->setup(worker, run->user) : CLV_OK;
    if (!status) status = job->enqueue(slot, 0, CLV_MIN(least, job->units), run->user);
    slot->queue->rehearsing = false;
    if (status)
        clv_log(CLV_LOG_DEBUG, "%s: the rehearsal of %s failed: %s", worker->device->label,
                run->name, clv_error_message());
    clv_keyed_free(slot->keyed, &slot->keyed_count);
    clv_keyed_free(worker->keyed, &worker->keyed_count);
}

static int is_over(size_t done, size_t all, void *user)
{
    clv_run *run = user;
    (void)done, (void)all;
    pthread_mutex_lock(&run->lock);
    const bool over = run->over;
    pthread_mutex_unlock(&run->lock);
    return over;
}

void clv_job_rehearse(clv_worker *worker)
{
    clv_device *device = worker->device;
    if (!worker->run->job.rehearse || !clv_ahead_helps(device) ||
        !is_new(device, &worker->run->job))
        return;
    note_kernels(worker);
    clv_ahead_compile(device, false, is_over, worker->run);
}

/* ---- for a whole context ------------------------------------------------------------------------- */

static void note_only(void *argument)
{
    clv_worker *worker = argument;
    clv_run *run = worker->run;
    clv_jobs_serve(run->context);
    const clv_status status = clv_worker_open(worker);
    pthread_mutex_lock(&run->lock);
    if (!status && !run->over) {
        worker->inside = true;
        pthread_mutex_unlock(&run->lock);
        note_kernels(worker);
        pthread_mutex_lock(&run->lock);
        worker->inside = false;
    }
    worker->gone = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    clv_jobs_serve(NULL);
    clv_run_let_go(run);
}

/* Returns whether to wait longer: at first for every device, but when it is `late` only for devices that run one of
 * the caller's functions, and not for a device that hangs while it is opened. */
static bool is_worth_waiting(const clv_run *run, bool late)
{
    for (size_t i = 0; i < run->worker_count; ++i)
        if (late ? run->workers[i].inside : !run->workers[i].gone) return true;
    return false;
}

clv_status clv_job_note_kernels(clv_run *run)
{
    static const double patience_s = 60, look_s = 0.5;
    const double started = clv_now();
    if (!run->job.rehearse) return CLV_OK;
    for (size_t i = 0; i < run->worker_count; ++i)
        (void)clv_worker_start(&run->workers[i], note_only);
    pthread_mutex_lock(&run->lock);
    while (is_worth_waiting(run, clv_now() > started + patience_s))
        clv_cond_wait_until(&run->changed, &run->lock, clv_now() + look_s);
    run->over = true;
    pthread_mutex_unlock(&run->lock);
    return clv_fail(CLV_E_CANCELLED, "job %s: nothing was computed; only its kernels were recorded",
                    run->name);
}
