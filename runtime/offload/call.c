/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one call: decides on a side, carries the call out there, lets the host do what the device could not, and
 * learns from the time it took. */
#include "runtime/offload/call.h"

#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "runtime/job/turn.h"
#include "runtime/offload/carry.h"
#include "runtime/offload/rates.h"
#include "runtime/offload/table.h"
#include "runtime/record/context.h"

#include <stdio.h>

void clv_call_take_orders(clv_call *call)
{
    clv_call_orders *orders = clv_call_orders_here();
    call->orders = orders;
    if (!orders) return;
    call->forced = orders->forced;
    call->plan = orders->plans;
}

static clv_status by_host(clv_context *context, const clv_call *call)
{
    if (clv_work_is_short(&call->work)) /* reading the clock would take longer */
        return clv_carry_to_host(context, call);
    const double started = clv_jobs_clock();
    CLV_TRY(clv_carry_to_host(context, call));
    clv_offload_learn(context, call, CLV_SIDE_HOST, clv_jobs_clock() - started);
    return CLV_OK;
}

static void fall_back(clv_context *context, clv_call *call, const char *why)
{
    call->fell_back = true;
    call->told.of.side = CLV_SIDE_HOST;
    snprintf(call->told.of.reason, sizeof call->told.of.reason,
             "host, since the device could not: %.140s", why);
    clv_offload_failed(context, call);
}

static clv_status by_device(clv_context *context, clv_call *call)
{
    bool host_helped;
    const double started = clv_jobs_clock();
    const clv_status status = clv_carry_to_device(context, call, &host_helped);
    if (!status && !host_helped)
        clv_offload_learn(context, call, CLV_SIDE_DEVICE, clv_jobs_clock() - started);
    else if (!status)
        fall_back(context, call, "no device was left for the rest");
    /* a job has already let the host help */
    if (!status || call->told.of.forced || call->job || call->spent || status == CLV_E_CANCELLED)
        return status;
    clv_log(CLV_LOG_WARN, "%s: the host computes it, because: %s", call->operation,
            clv_error_message());
    fall_back(context, call, clv_error_message());
    return clv_carry_to_host(context, call);
}

static clv_status decide_and_do(clv_context *context, clv_call *call)
{
    CLV_TRY(clv_offload_decide(context, call));
    if (call->plan) {
        if (call->told.of.side == CLV_SIDE_DEVICE && atomic_load(&context->preparing))
            return clv_carry_rehearse(context, call);
        return CLV_OK;
    }
    return call->told.of.side == CLV_SIDE_HOST ? by_host(context, call) : by_device(context, call);
}

clv_status clv_call_run(clv_context *context, clv_call *call)
{
    CLV_TRY(clv_fork_check(context->born, call->operation));
    const clv_status status = decide_and_do(context, call);
    if (call->orders && call->told.of.side) call->orders->latest = call->told;
    return status;
}

bool clv_call_at_once(clv_context *context, const char *operation, double flops, double host_flops,
                      double bytes)
{
    clv_call_orders *orders = clv_call_orders_here();
    if (!orders || orders->forced != CLV_SIDE_AUTO || orders->plans || !context->device_count)
        return false;
    const clv_work work = {
        .flops = flops, .host_flops = host_flops, .bytes = bytes, .transfer_bytes = bytes
    };
    clv_decision_guess(&context->devices[0], operation, &work, &orders->latest);
    return true;
}
