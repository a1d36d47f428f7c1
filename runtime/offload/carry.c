/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out a call on one side: in host memory, on a device's engine, or as a job on cores or devices. */
#include "runtime/offload/carry.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/job/run.h"
#include "runtime/job/turn.h"

/* For a job on the host: a job shorter than alone_s starts no threads; a chunk lasts about chunk_s. */
static const double alone_s = 100e-6, chunk_s = 25e-6;

static clv_status job_to_host(clv_context *context, const clv_call *call)
{
    const double flops = call->work.flops, rate = call->work.host_flops;
    clv_job finer = *call->job;
    if (flops < alone_s * rate || clv_jobs_held(context))
        return clv_job_run_here(context, call->job, call->user, call->report);
    /* the smallest useful chunk of a device is too much for a thread */
    finer.align = 1;
    finer.min_chunk = (size_t)CLV_MAX(chunk_s * rate * (double)finer.units / flops, 1);
    return clv_job_run_by(context, &finer, call->user, CLV_SIDE_HOST, call->report, NULL);
}

/* Runs a job that is smaller than two of its smallest chunks as one chunk, because the rest of a split takes as long
 * as its launch. */
static clv_status job_to_device(clv_context *context, const clv_call *call, bool *by_host)
{
    clv_job whole = *call->job;
    const clv_side side = call->forced == CLV_SIDE_DEVICE ? CLV_SIDE_DEVICE : CLV_SIDE_AUTO;
    if (whole.units < 2 * whole.min_chunk)
        whole.min_chunk = clv_round_up(whole.units, CLV_MAX(whole.align, (size_t)1));
    return clv_job_run_by(context, &whole, call->user, side, call->report, by_host);
}

static clv_status to_engine(clv_context *context, const clv_call *call)
{
    clv_engine *engine = clv_engine_lock(context);
    if (!engine) return clv_fail(CLV_E_NO_DEVICE, "%s: no device works", call->operation);
    const clv_status status = clv_engine_finish(engine, call->device(engine, call->user));
    clv_engine_unlock(engine);
    return status;
}

clv_status clv_carry_to_host(clv_context *context, const clv_call *call)
{
    clv_status status = call->prepare ? call->prepare(call->user) : CLV_OK;
    if (!status) status = call->job ? job_to_host(context, call) : call->host(call->user);
    if (call->finish) call->finish(call->user);
    return status;
}

clv_status clv_carry_to_device(clv_context *context, const clv_call *call, bool *by_host)
{
    *by_host = false;
    clv_status status = call->prepare ? call->prepare(call->user) : CLV_OK;
    if (!status)
        status = call->job ? job_to_device(context, call, by_host) : to_engine(context, call);
    if (call->finish) call->finish(call->user);
    return status;
}

clv_status clv_carry_rehearse(clv_context *context, const clv_call *call)
{
    clv_status status = call->prepare ? call->prepare(call->user) : CLV_OK;
    if (!status && call->job)
        status = clv_job_run_by(context, call->job, call->user, CLV_SIDE_DEVICE, NULL, NULL);
    else if (!status)
        status = clv_engine_rehearse(context, call->device, call->user);
    if (call->finish) call->finish(call->user);
    return status == CLV_E_CANCELLED ? CLV_OK : status;
}
