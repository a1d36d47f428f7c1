/* SPDX-License-Identifier: Apache-2.0 */
/* One operation made of units: the host's cores or the balancer's devices. */
#include "host/array/call.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/job/run.h"
#include "runtime/job/turn.h"
#include "runtime/record/context.h"

/* Threads are not worth starting for less; a chunk of one. */
static const double alone_s = 100e-6, chunk_s = 25e-6;

static clv_status on_host(clv_context *context, const clv_offload_request *r, const clv_job *job,
                          void *user, clv_report *report)
{
    clv_job finer = *job;
    if (r->flops < alone_s * r->host_flops || clv_jobs_held(context))
        return clv_job_run_here(context, job, user, report);
    /* what a device wants at once is much for a thread */
    finer.align = 1;
    finer.min_chunk = (size_t)CLV_MAX(chunk_s * r->host_flops * (double)job->units / r->flops, 1);
    return clv_job_run_by(context, &finer, user, CLV_SIDE_HOST, report, NULL);
}

/* What is less than two chunks is one: the rest of a split takes as long as its launch. */
static clv_status on_device(clv_context *context, const clv_job *job, void *user, clv_side side,
                            clv_report *report, bool *plain)
{
    clv_job whole = *job;
    if (job->units < 2 * job->min_chunk)
        whole.min_chunk = clv_round_up(job->units, CLV_MAX(job->align, (size_t)1));
    return clv_job_run_by(context, &whole, user, side, report, plain);
}

clv_status clv_call_job(clv_context *context, clv_offload_request *request, const clv_job *job,
                        clv_status (*prepare)(void *user), void *user, clv_report *report)
{
    clv_offload plan;
    request->transfer_bytes = request->bytes;
    CLV_TRY(clv_offload_decide(context, request, &plan));
    if (clv_offload_is_dry()) return CLV_OK;
    const double started = clv_jobs_clock();
    bool plain = false;
    if (prepare) CLV_TRY(prepare(user));
    if (plan.side == CLV_SIDE_HOST)
        CLV_TRY(on_host(context, request, job, user, report));
    else
        CLV_TRY(on_device(context, job, user, plan.forced ? CLV_SIDE_DEVICE : CLV_SIDE_AUTO, report,
                          &plain));
    if (plain)
        clv_offload_fell_back(context, request, "no device was left for the rest");
    else if (job->units)
        clv_offload_took(context, request, plan.side, clv_jobs_clock() - started);
    return CLV_OK;
}
