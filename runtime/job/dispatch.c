/* SPDX-License-Identifier: Apache-2.0 */
/* clv_job_run_by: the caller's side of a job. It hands the run to the devices' threads, watches the run, lets the
 * plain C path compute what no device could compute, and collects the results for the report. */
#include "runtime/job/rehearsal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "runtime/device/device.h"
#include "runtime/job/balance/balance.h"
#include "runtime/job/history.h"
#include "runtime/job/plain.h"
#include "runtime/job/report.h"
#include "runtime/job/turn.h"
#include "runtime/record/context.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double progress_interval_s = 0.1, look_s = 0.5;

static clv_status check_job(const clv_context *context, const clv_job *job)
{
    if (!context || !job || !job->name || !job->enqueue || !job->commit)
        return clv_fail(CLV_E_ARGUMENT, "job: the context, the name, enqueue or commit is missing");
    if (!job->cost && !job->unit_cost.memory_bytes)
        return clv_fail(
            CLV_E_ARGUMENT,
            "job %s: its cost is not known; set cost, or unit_cost with memory_bytes above 0",
            job->name);
    if (job->align && job->min_chunk % job->align)
        return clv_fail(CLV_E_ARGUMENT, "job %s: min_chunk %zu is not a multiple of align %zu",
                        job->name, job->min_chunk, job->align);
    return CLV_OK;
}

static clv_cost cost_of(const clv_job *job, size_t first, size_t count, void *user)
{
    if (job->cost) return job->cost(first, count, user);
    const clv_cost *unit = &job->unit_cost;
    return (clv_cost){ .flops = unit->flops * (double)count,
                       .traffic_bytes = unit->traffic_bytes * (double)count,
                       .transfer_bytes = unit->transfer_bytes * (double)count,
                       .memory_bytes = unit->memory_bytes * count,
                       .buffer_bytes = unit->buffer_bytes * count };
}

size_t clv_job_fitting_chunk(const clv_device *device, const clv_job *job, void *user)
{
    const size_t step = CLV_MAX(job->align, (size_t)1);
    /* the pool rounds the sizes of buffers up */
    const uint64_t budget = device->budget, room = (budget - budget / 32) / device->depth;
    const uint64_t largest = device->facts->max_alloc_bytes; /* CLV_UNKNOWN is no limit */
    size_t fits = 0, beyond = job->units / step + 1;
    while (beyond - fits > 1) {
        const size_t middle = fits + (beyond - fits) / 2;
        const size_t count =
            CLV_MIN(middle * step, job->units); /* chunks in the middle have most neighbours */
        const clv_cost cost = cost_of(job, (job->units - count) / 2 / step * step, count, user);
        if (cost.memory_bytes <= room && cost.buffer_bytes <= largest)
            fits = middle;
        else
            beyond = middle;
    }
    return CLV_MAX(fits * step,
                   CLV_MAX(job->min_chunk, step)); /* still too large: the device reports it */
}

/* Returns the fixed work of a chunk in units, computed from the estimates of one unit and of all units. */
static double fixed_units(const clv_job *job, void *user)
{
    const size_t many = job->units;
    if (many < 2) return 0;
    const clv_cost one = cost_of(job, 0, 1, user), all = cost_of(job, 0, many, user);
    const double per_unit = (all.flops - one.flops) / (double)(many - 1);
    return per_unit > 0 ? fmax(one.flops / per_unit - 1, 0) : 0;
}

/* Estimates the device's units per second from its measured rates, of which a kernel reaches only a part; 0:
 * unknown. */
static double guess_speed(const clv_device *device, const clv_job *job, void *user)
{
    static const double reached = 0.25; /* part of the measured peaks that ordinary kernels reach */
    const clv_probe_rates *rates = &device->facts->measured;
    if (!(rates->fp32_gflops > 0) || !(rates->global_gb_s > 0)) return 0;
    const clv_cost all = cost_of(job, 0, job->units, user);
    double seconds = fmax(all.flops / (reached * 1e9 * rates->fp32_gflops),
                          all.traffic_bytes / (reached * 1e9 * rates->global_gb_s));
    if (!device->zero_copy && rates->h2d_gb_s > 0)
        seconds += all.transfer_bytes / (1e9 * rates->h2d_gb_s);
    return seconds > 0 ? (double)job->units / seconds : 0;
}

static clv_status make_balance(clv_run *run, size_t device_count)
{
    clv_context *context = run->context;
    const clv_job *job = &run->job;
    clv_balance_device facts[CLV_BALANCE_MAX_DEVICES];
    static const double unknown_setup_s = 1;
    for (size_t i = 0; i < device_count; ++i) {
        clv_device *device = run->workers[i].device;
        clv_job_speed speed;
        const bool known = clv_history_get(&context->speeds, job, device->key, &speed);
        const bool open = device->state == CLV_DEVICE_READY; /* only a hint, so it takes no lock */
        facts[i] = (clv_balance_device){
            .units_per_s = speed.units_per_s,
            .chunk_s = speed.chunk_s,
            .guess_units_per_s = known ? 0 : guess_speed(device, job, run->user),
            .setup_s = known  ? speed.setup_s
                       : open ? 0
                              : unknown_setup_s,
            .max_chunk = clv_job_fitting_chunk(device, job, run->user),
            .longest_s = device->facts->flags.short_launches ? CLV_SHORT_LAUNCH_S : 0,
            .depth = device->depth,
            .pool = device->pool_group,
        };
    }
    const clv_balance_job plan = {
        .units = job->units,
        .align = job->align,
        .min_chunk = job->min_chunk,
        .batch = context->batch,
        .chunk_units = fixed_units(job, run->user),
        .schedule = context->schedule,
    };
    return run->balance
               ? clv_balance_restart(run->balance, &plan, facts, device_count, run->started)
               : clv_balance_create(&plan, facts, device_count, run->started, &run->balance);
}

static clv_status make_run(clv_context *context, const clv_job *job, void *user, clv_side side,
                           clv_run **out)
{
    clv_run *run = clv_run_take(context, job, user);
    if (!run) return clv_fail(CLV_E_MEMORY, "job %s: out of memory", job->name);
    run->side = side;
    for (size_t i = 0; i < context->device_count && side != CLV_SIDE_HOST; ++i) {
        clv_device *device = &context->devices[i];
        if (device->state == CLV_DEVICE_QUARANTINED || atomic_load(&device->hung)) continue;
        clv_worker *worker = &run->workers[run->worker_count];
        *worker = (clv_worker){ .run = run, .device = device, .index = run->worker_count++ };
    }
    run->workers[run->worker_count] =
        (clv_worker){ .run = run, .index = run->worker_count }; /* the host's worker */
    const clv_status status = make_balance(run, run->worker_count);
    if (status)
        clv_run_let_go(run);
    else
        *out = run;
    return status;
}

/* Returns whether a device, or its thread, may still read the caller's memory. */
static bool is_in_use(const clv_worker *worker)
{
    if (worker->inside) return true;
    for (unsigned i = 0; i < CLV_MAX_DEPTH; ++i) {
        const clv_slot *slot = &worker->slots[i];
        if (!slot->in_flight || !slot->reads_caller) continue;
        cl_int state;
        if (!slot->upload ||
            clGetEventInfo(slot->upload, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state,
                           NULL) != CL_SUCCESS ||
            state > CL_COMPLETE)
            return true;
    }
    return false;
}

static bool caller_is_in_use(const clv_run *run)
{
    for (size_t i = 0; i < run->worker_count; ++i)
        if (is_in_use(&run->workers[i])) return true;
    return false;
}

static const clv_error *first_error(const clv_run *run)
{
    for (size_t i = 0; i < run->worker_count; ++i)
        if (run->workers[i].error.status) return &run->workers[i].error;
    return NULL;
}

static clv_status no_room_anywhere(const clv_run *run, const clv_error *error)
{
    const clv_job *job = &run->job;
    char needed[16];
    const size_t least = CLV_MIN(CLV_MAX(CLV_MAX(job->min_chunk, job->align), 1), job->units);
    return clv_fail(CLV_E_DEVICE_MEMORY,
                    "job %s: its smallest chunk of %zu units needs about %s: %s", run->name, least,
                    clv_format_bytes(cost_of(job, 0, least, run->user).memory_bytes, needed),
                    error->message);
}

/* Checks a job whose caller named devices: returns CLV_E_NO_DEVICE with the first device's reason if not even one
 * device could be opened. */
static clv_status check_order(const clv_run *run)
{
    const clv_context *context = run->context;
    if (!context->ordered || run->side == CLV_SIDE_HOST) return CLV_OK;
    for (size_t i = 0; i < context->device_count; ++i)
        if (context->devices[i].state != CLV_DEVICE_QUARANTINED || context->devices[i].cl)
            return CLV_OK;
    return clv_fail(CLV_E_NO_DEVICE, "job %s: the device that was asked for cannot work: %s",
                    run->name, context->devices[0].trouble.message);
}

/* Starts the plain C path for the rest of the units when no device is left, or fails the run. The lock is held. */
static clv_plain *do_the_rest(clv_run *run)
{
    clv_plain *plain = NULL;
    clv_status status = check_order(run);
    if (!status && run->job.reference && run->side != CLV_SIDE_DEVICE) {
        if (run->worker_count)
            clv_log(CLV_LOG_WARN, "job %s: no device is left; the plain C path continues",
                    run->name);
        status = clv_plain_start(run, &plain);
    } else if (!status) {
        status = clv_fail(CLV_E_NO_DEVICE, "job %s: no device can run it and %s", run->name,
                          run->job.reference ? "the host may not" : "it has no plain C path");
        const clv_error *first = first_error(run);
        if (first && first->status == CLV_E_DEVICE_MEMORY)
            status = no_room_anywhere(run, first);
        else if (first)
            status = clv_error_give(first);
    }
    if (status) clv_run_fail(run, status);
    return plain;
}

/* Calls the caller's progress function when it is due, without the lock. */
static void tell_progress(clv_run *run, double *next)
{
    const double now = clv_now();
    if (!run->job.progress || now < *next) return;
    const size_t done = run->committed;
    *next = now + progress_interval_s;
    pthread_mutex_unlock(&run->lock);
    const int stop = run->job.progress(run->name, done, run->job.units, run->job.progress_user);
    pthread_mutex_lock(&run->lock);
    if (stop)
        clv_run_fail(run, clv_fail(CLV_E_CANCELLED, "job %s: cancelled after %zu of %zu units",
                                   run->name, done, run->job.units));
}

/* Marks as hung the devices that the balance has given up but whose threads have not returned. */
static void give_up_hung(clv_run *run)
{
    for (size_t i = 0; i < run->worker_count; ++i) {
        clv_worker *worker = &run->workers[i];
        if (worker->gone || !clv_balance_get_stats(run->balance, i).out) continue;
        worker->gone = true;
        atomic_store(&worker->device->hung, true);
        clv_error_take(&worker->error, clv_fail(CLV_E_DEVICE, "%s has not finished its chunk",
                                                worker->device->label));
        clv_log(CLV_LOG_WARN, "%s: %s: the device is dropped", run->name, clv_error_message());
        clv_trace_note(run->context->trace, worker->device, clv_now(), "given up: hangs");
    }
}

static void watch(clv_run *run)
{
    double next_progress = run->started + progress_interval_s, until;
    clv_plain *plain = NULL;
    pthread_mutex_lock(&run->lock);
    while (!run->over) {
        if (run->committed == run->job.units) break;
        if (clv_balance_tick(run->balance, clv_run_now(run), &until)) {
            give_up_hung(run);
            pthread_cond_broadcast(&run->changed);
            continue;
        }
        if (!plain && clv_balance_stuck(run->balance)) {
            plain = do_the_rest(run);
            if (plain) clv_plain_help(plain);
            continue;
        }
        if (plain && !clv_plain_works(plain)) { /* units are still missing */
            clv_run_fail(
                run, clv_fail(CLV_E_MEMORY, "job %s: not enough memory to continue", run->name));
            break;
        }
        /* wakes often enough to notice when this process does not get to run */
        if (!isinf(until)) until = fmin(until, clv_run_now(run) + look_s);
        if (run->job.progress) until = fmin(until, next_progress - run->asleep);
        if (until > clv_run_now(run)) clv_run_wait(run, until);
        tell_progress(run, &next_progress);
    }
    run->over = true;
    pthread_cond_broadcast(&run->changed);
    clv_plain_stop(plain);
    while (caller_is_in_use(run))
        clv_cond_wait_until(&run->changed, &run->lock, clv_now() + 1e-3);
    pthread_mutex_unlock(&run->lock);
    if (!run->error.status &&
        run->job.progress) /* the end is always reported; nothing is left to cancel */
        (void)run->job.progress(run->name, run->job.units, run->job.units, run->job.progress_user);
}

static void start(clv_run *run)
{
    for (size_t i = 0; i < run->worker_count; ++i) {
        if (clv_worker_start(&run->workers[i], clv_worker_body)) continue;
        pthread_mutex_lock(&run->lock);
        clv_balance_failed(run->balance, i, 0, clv_run_now(run), CLV_BALANCE_LOST);
        pthread_mutex_unlock(&run->lock);
    }
}

/* Notes the speeds for the next job and fills the report. The lock is held because a late chunk may still
 * run. */
static void conclude(clv_run *run, clv_report *report, double ended)
{
    clv_job_record record = { .name = run->name,
                              .signature = run->job.signature,
                              .units = run->job.units,
                              .seconds = ended - run->started,
                              .schedule = run->context->schedule };
    clv_balance_quality(run->balance, ended, &record.imbalance, &record.efficiency);
    for (size_t i = 0; i < run->worker_count; ++i) {
        clv_worker *worker = &run->workers[i];
        const clv_balance_stats stats = clv_balance_get_stats(run->balance, i);
        clv_text *why = &run->why;
        clv_text_restart(why);
        if (!worker->error.status || stats.chunks) clv_balance_explain(run->balance, i, why);
        if (worker->error.status)
            clv_text_add(why, "%s%s", why->length ? "; " : "", worker->error.message);
        clv_copy_string(worker->left_out, sizeof worker->left_out, clv_text_get(why));
        clv_share *share = &worker->share;
        share->device = worker->device->label;
        share->units = stats.units, share->chunks = stats.chunks;
        share->dropped = stats.dropped, share->failed = stats.failed;
        share->busy_s = stats.busy_s;
        share->left_out = stats.chunks ? NULL : worker->left_out;
        clv_report_add_share(&record, share, worker->left_out, worker->setup_s, stats.units_per_s,
                             stats.max_chunk);
        if (stats.samples && !run->error.status)
            clv_history_put(&run->context->speeds, &run->job, worker->device->key,
                            &(clv_job_speed){ stats.units_per_s, stats.chunk_s, worker->setup_s });
        if (!run->over || clv_log_wants(CLV_LOG_INFO))
            clv_log(CLV_LOG_INFO, "%s: %s: %s", run->name, worker->device->label, worker->left_out);
    }
    clv_worker *host = &run->workers[run->worker_count];
    if (host->share.chunks) {
        host->share.device = "host (reference)";
        host->share.kernel_s = -1;
        clv_report_add_share(&record, &host->share, host->left_out, 0, 0, 0);
    }
    if (report) clv_report_add_job(report, run->context, &record);
}

clv_status clv_job_run_by(clv_context *context, const clv_job *job, void *user, clv_side side,
                          clv_report *report, bool *plain)
{
    clv_run *run = NULL;
    if (plain) *plain = false;
    CLV_TRY(check_job(context, job));
    CLV_TRY(clv_fork_check(context->born, job->name));
    if (!job->units) return CLV_OK;
    if (!clv_jobs_lock(context)) return clv_jobs_refuse(job->name);
    clv_status status = make_run(context, job, user, side, &run);
    if (!status && atomic_load(&context->preparing)) {
        status = clv_job_note_kernels(run);
        clv_run_let_go(run);
    } else if (!status) {
        start(run);
        watch(run);
        const double ended = clv_now();
        pthread_mutex_lock(&run->lock);
        conclude(run, report, ended);
        if (plain) *plain = run->workers[run->worker_count].share.chunks > 0;
        if (run->error.status) status = clv_error_give(&run->error);
        pthread_mutex_unlock(&run->lock);
        clv_run_let_go(run);
    }
    clv_jobs_unlock(context);
    return status;
}
