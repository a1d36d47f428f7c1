/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the plain C path of a job on all cores, for `--mode reference` and as the last resort where no device
 * works. Its chunks do not depend on the number of threads. */
#include "runtime/job/plain.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/job/report.h"
#include "runtime/job/turn.h"
#include "runtime/record/context.h"

#include <stdio.h>
#include <string.h>

enum { MOST_THREADS = 64, CHUNKS = 512 };

typedef struct lane {
    clv_plain *plain;
    clv_slot slot;
    clv_thread thread;
    bool runs;  /* `thread` was started and is not joined yet; false for the caller's own lane */
    bool begun; /* guarded by plain's lock */
} lane;

/* The state of the plain C path of one run. It outlives the run while one of its threads has not begun, because
 * another process may hold that thread's core for milliseconds. Such a late thread touches only this struct. */
struct clv_plain {
    clv_run *run;
    size_t chunk;     /* units per chunk */
    unsigned lanes;   /* threads, plus the caller where `helps` is set */
    unsigned working; /* lanes that have not ended yet; guarded by the run's lock */
    bool helps;       /* the caller computes in the first lane */
    clv_mutex lock;
    bool closed;     /* threads that begin now are too late */
    clv_plain *next; /* next in the context's list of those with late threads */
    lane lane[];
};

/* Chooses chunks short enough to be shared out evenly and to stop soon, but never by a measured time. */
static size_t chunk_of(const clv_run *run)
{
    const clv_job *job = &run->job;
    const size_t align = CLV_MAX(job->align, (size_t)1);
    size_t chunk = CLV_MAX(job->units / CHUNKS, (size_t)1);
    if (run->context->batch) chunk = CLV_MIN(chunk, run->context->batch);
    return clv_round_up(CLV_MAX(chunk, job->min_chunk), align);
}

static clv_status do_chunk(lane *l, size_t first, size_t count)
{
    clv_run *run = l->plain->run;
    const double started = clv_now();
    CLV_TRY(run->job.reference(&l->slot, first, count, run->user));
    pthread_mutex_lock(&run->lock);
    const bool over = run->over;
    pthread_mutex_unlock(&run->lock);
    if (over) return CLV_OK; /* the result is not needed any more */
    pthread_mutex_lock(&run->commit_lock);
    const clv_status status = run->job.commit(&l->slot, first, count, run->user);
    pthread_mutex_unlock(&run->commit_lock);
    char name[64];
    snprintf(name, sizeof name, "%.16s [%zu, +%zu)", run->name, first, count);
    clv_trace_span(run->context->trace, NULL, 1 + (unsigned)(l - l->plain->lane), name, started,
                   clv_now(), 0);
    return status;
}

static void compute(lane *l)
{
    clv_run *run = l->plain->run;
    clv_worker *host = &run->workers[run->worker_count];
    size_t first, count;
    pthread_mutex_lock(&run->lock);
    while (!run->over && clv_balance_take(run->balance, l->plain->chunk, &first, &count)) {
        pthread_mutex_unlock(&run->lock);
        const clv_status status = do_chunk(l, first, count);
        pthread_mutex_lock(&run->lock);
        if (status) {
            clv_run_fail(run, status);
        } else if (!run->over) {
            run->committed += count;
            host->share.units += count;
            ++host->share.chunks;
        }
        pthread_cond_broadcast(&run->changed);
    }
    --l->plain->working;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    clv_keyed_free(l->slot.keyed, &l->slot.keyed_count);
}

static void *work(void *argument)
{
    lane *l = argument;
    pthread_mutex_lock(&l->plain->lock);
    const bool late = l->plain->closed;
    if (!late) l->begun = true;
    pthread_mutex_unlock(&l->plain->lock);
    if (late) return NULL;
    clv_jobs_serve(l->plain->run->context);
    compute(l);
    return NULL;
}

static unsigned threads_for(const clv_run *run, size_t chunk)
{
    const clv_context *context = run->context;
    size_t threads =
        context->plain_threads ? context->plain_threads : context->probe->host.threads_allowed;
    threads = CLV_MIN(threads, run->job.units / chunk + (run->job.units % chunk != 0));
    return (unsigned)CLV_MIN(CLV_MAX(threads, (size_t)1), (size_t)MOST_THREADS);
}

static void free_plain(clv_plain *plain)
{
    pthread_mutex_destroy(&plain->lock);
    clv_free(plain);
}

/* Joins threads of earlier jobs that had not begun in time, and returns how many have still not begun. With `wait` it
 * waits for all of them. */
static unsigned join_late(clv_context *context, bool wait)
{
    unsigned left = 0;
    for (clv_plain **at = &context->late; *at;) {
        clv_plain *plain = *at;
        unsigned here = 0;
        for (unsigned i = 0; i < plain->lanes; ++i) {
            lane *l = &plain->lane[i];
            if (l->runs && wait) pthread_join(l->thread, NULL);
            l->runs = l->runs && !wait && !clv_thread_try_join(l->thread);
            here += l->runs;
        }
        left += here;
        if (here) {
            at = &plain->next;
            continue;
        }
        *at = plain->next;
        free_plain(plain);
    }
    return left;
}

void clv_plain_join_late(clv_context *context)
{
    (void)join_late(context, true);
}

clv_status clv_plain_start(clv_run *run, clv_plain **out)
{
    *out = NULL;
    const size_t chunk = chunk_of(run);
    const unsigned wanted = threads_for(run, chunk), late = join_late(run->context, false);
    const unsigned lanes = wanted - CLV_MIN(late, wanted - 1); /* late threads may take cores */
    clv_plain *plain = clv_zalloc(1, sizeof *plain + lanes * sizeof *plain->lane);
    if (!plain || !clv_mutex_init(&plain->lock)) {
        clv_free(plain);
        return clv_fail(CLV_E_MEMORY, "job %s: not enough memory for the plain C path", run->name);
    }
    plain->run = run, plain->chunk = chunk;
    plain->helps = !run->job.progress && !run->worker_count; /* otherwise it watches the run */
    clv_worker *host = &run->workers[run->worker_count];
    for (unsigned i = 0; i < lanes; ++i) {
        lane *l = &plain->lane[i];
        l->plain = plain;
        l->slot.worker = host;
        const bool own = plain->helps && i == 0;
        l->runs = !own && clv_thread_start_apart(&l->thread, "cleave-plain", work, l, i);
        if (!own && !l->runs) break;
        ++plain->lanes, ++plain->working; /* safe: the lane waits for the run's lock */
    }
    if (!plain->lanes) {
        free_plain(plain);
        return clv_fail(CLV_E_MEMORY, "job %s: cannot start a thread for the plain C path",
                        run->name);
    }
    host->started = clv_now();
    snprintf(host->left_out, sizeof host->left_out, "the plain C path on %u thread%s", plain->lanes,
             plain->lanes == 1 ? "" : "s");
    clv_log(CLV_LOG_INFO, "%s: %s", run->name, host->left_out);
    *out = plain;
    return CLV_OK;
}

void clv_plain_help(clv_plain *plain)
{
    if (!plain->helps) return;
    pthread_mutex_unlock(&plain->run->lock);
    compute(&plain->lane[0]);
    pthread_mutex_lock(&plain->run->lock);
}

bool clv_plain_works(const clv_plain *plain)
{
    return plain->working > 0;
}

void clv_plain_stop(clv_plain *plain)
{
    if (!plain) return;
    clv_run *run = plain->run;
    unsigned late = 0;
    pthread_mutex_unlock(&run->lock);
    pthread_mutex_lock(&plain->lock);
    plain->closed = true;
    pthread_mutex_unlock(&plain->lock);
    for (unsigned i = 0; i < plain->lanes; ++i) {
        lane *l = &plain->lane[i];
        if (l->begun) pthread_join(l->thread, NULL);
        l->runs = l->runs && !l->begun;
        late += l->runs;
    }
    pthread_mutex_lock(&run->lock);
    clv_worker *host = &run->workers[run->worker_count];
    host->share.busy_s = clv_now() - host->started;
    if (!late) {
        free_plain(plain);
        return;
    }
    plain->next = run->context->late;
    run->context->late = plain;
}

clv_status clv_job_run_here(clv_context *context, const clv_job *job, void *user,
                            clv_report *report)
{
    clv_worker host = { 0 };
    clv_slot slot = { .worker = &host };
    const double started = clv_now();
    clv_status status = job->reference(&slot, 0, job->units, user);
    if (!status) status = job->commit(&slot, 0, job->units, user);
    clv_keyed_free(slot.keyed, &slot.keyed_count);
    if (status) return status;
    if (job->progress) (void)job->progress(job->name, job->units, job->units, job->progress_user);
    if (!report) return CLV_OK;
    const double took = clv_now() - started;
    const clv_share share = { .device = "host (reference)",
                              .units = job->units,
                              .chunks = 1,
                              .busy_s = took,
                              .kernel_s = -1 };
    clv_job_record record = { .name = job->name,
                              .signature = job->signature,
                              .units = job->units,
                              .seconds = took,
                              .efficiency = 1,
                              .schedule = context->schedule };
    clv_report_add_share(&record, &share, "the plain C path on the calling thread", 0, 0, 0);
    clv_report_add_job(report, context, &record);
    return CLV_OK;
}
