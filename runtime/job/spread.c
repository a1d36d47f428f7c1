/* SPDX-License-Identifier: Apache-2.0 */
/* clv_job_run: runs a job alone, or together with other processes if the context has a spread. */
#include "runtime/job/spread.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "runtime/job/packed.h"
#include "runtime/record/context.h"

#include <string.h>

/* A range of a job's units, run as a job of its own. */
typedef struct part {
    const clv_job *job;
    void *user;
    const clv_spread *spread;
    size_t first;
    clv_packed packed;
} part;

void clv_spread_set(clv_context *context, const clv_spread *spread)
{
    context->spread = spread;
}

static clv_cost part_cost(size_t first, size_t count, void *user)
{
    const part *p = user;
    return p->job->cost(p->first + first, count, p->user);
}

static clv_status part_setup(clv_worker *worker, void *user)
{
    const part *p = user;
    return p->job->setup(worker, p->user);
}

static clv_status part_enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const part *p = user;
    return p->job->enqueue(slot, p->first + first, count, p->user);
}

static clv_status part_reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const part *p = user;
    return p->job->reference(slot, p->first + first, count, p->user);
}

/* Commits a chunk in this process and hands its results to the spread. Packs the results first, because a commit may
 * use them up. */
static clv_status part_commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    part *p = user;
    CLV_TRY(clv_pack(slot, &p->packed));
    CLV_TRY(p->job->commit(slot, p->first + first, count, p->user));
    return p->spread->put(p->spread->self, p->first + first, count, p->packed.bytes,
                          p->packed.length);
}

static int part_progress(const char *name, size_t done, size_t total, void *user)
{
    const part *p = user;
    (void)total;
    return p->job->progress(name, p->first + done, p->job->units, p->job->progress_user);
}

static clv_status run_part(clv_context *context, part *p, size_t count, clv_report *report)
{
    clv_job job = *p->job;
    job.units = count;
    if (job.cost) job.cost = part_cost;
    if (job.setup) job.setup = part_setup;
    job.enqueue = part_enqueue;
    job.commit = part_commit;
    if (job.reference) job.reference = part_reference;
    if (job.progress) job.progress = part_progress, job.progress_user = p;
    return clv_job_run_by(context, &job, p, CLV_SIDE_AUTO, report, NULL);
}

/* Commits a chunk that another process has computed, or an earlier run. */
static clv_status commit_packed(const part *p, size_t first, size_t count, const void *bytes,
                                size_t length)
{
    clv_worker host = { 0 };
    clv_slot slot = { .worker = &host };
    if (!count || first > p->job->units || count > p->job->units - first)
        return clv_fail(CLV_E_FORMAT,
                        "job %s: a result is for units %zu to %zu, but the job has %zu",
                        p->job->name, first, first + count, p->job->units);
    CLV_TRY(clv_unpack(bytes, length, &slot));
    return p->job->commit(&slot, first, count, p->user);
}

static clv_status run_shared(clv_context *context, part *p, clv_report *report)
{
    const clv_spread *spread = p->spread;
    size_t count, length;
    const void *bytes;
    for (;;) {
        CLV_TRY(spread->lease(spread->self, &p->first, &count));
        if (!count) break;
        CLV_TRY(run_part(context, p, count, report));
    }
    for (size_t first;;) {
        CLV_TRY(spread->get(spread->self, &first, &count, &bytes, &length));
        if (!count) return CLV_OK;
        CLV_TRY(commit_packed(p, first, count, bytes, length));
    }
}

clv_status clv_job_run(clv_context *context, const clv_job *job, void *user, clv_report *report)
{
    clv_job own;
    if (!job) return clv_fail(CLV_E_ARGUMENT, "job: the description is NULL");
    CLV_TRY(clv_take_struct(&own, sizeof own, job, "clv_job_run", "clv_job"));
    const clv_spread *spread =
        context && own.name && own.enqueue && own.commit ? context->spread : NULL;
    bool shared = false;
    if (spread && own.units && !atomic_load(&context->preparing))
        CLV_TRY(spread->begin(spread->self, &own, &shared));
    if (!shared) return clv_job_run_by(context, &own, user, CLV_SIDE_AUTO, report, NULL);
    part p = { .job = &own, .user = user, .spread = spread };
    clv_status status = run_shared(context, &p, report);
    clv_free(p.packed.bytes);
    return spread->end(spread->self, status);
}
