/* SPDX-License-Identifier: Apache-2.0 */
/* One operation on arrays: who does it, operands brought, work done, else by the host. */
#include "host/array/call.h"

#include "base/error.h"
#include "base/log.h"
#include "runtime/job/turn.h"
#include "runtime/record/context.h"

#include <assert.h>

unsigned clv_call_octave(size_t n)
{
    unsigned octave = 0;
    while (n >> octave > 1)
        ++octave;
    return octave;
}

void clv_call_add(clv_call *call, clv_array *array, bool input, bool output)
{
    for (size_t i = 0; i < call->count; ++i)
        if (call->array[i] == array) {
            call->input[i] |= input;
            call->output[i] |= output;
            return;
        }
    assert(call->count < CALL_ARRAYS);
    call->array[call->count] = array;
    call->input[call->count] = input;
    call->output[call->count++] = output;
}

static bool is_empty(const clv_array *array)
{
    return !array->on_host && !array->on_device;
}

/* Where its elements are, or would be, had the calls that were only planned been made. */
static bool is_there(const clv_array *array)
{
    return is_empty(array) ? array->planned == CLV_SIDE_DEVICE : array->on_device;
}

static clv_status check(clv_context *context, const clv_call *call)
{
    for (size_t i = 0; i < call->count; ++i) {
        const clv_array *a = call->array[i];
        CLV_TRY(clv_array_check(call->operation, context, a));
        if (call->input[i] && is_empty(a) && !(clv_offload_is_dry() && a->planned))
            return clv_fail(CLV_E_ARGUMENT, "%s: an operand has no contents yet", call->operation);
        for (size_t k = 0; k < call->count; ++k)
            if ((call->output[i] || call->output[k]) && clv_array_overlap(a, call->array[k]))
                return clv_fail(CLV_E_ARGUMENT, "%s: a result shares memory with an operand",
                                call->operation);
    }
    return CLV_OK;
}

static clv_offload_request request_of(const clv_call *call)
{
    clv_offload_request r = { .operation = call->operation,
                              .kind = call->kind,
                              .work = call->work,
                              .shape = call->shape,
                              .flops = call->flops,
                              .host_flops = call->host_flops,
                              .least_work = call->least_work,
                              .most_work = call->most_work,
                              .brief = true,
                              .trial = call->trial,
                              .user = call->user };
    for (size_t i = 0; i < call->count; ++i) {
        const clv_array *a = call->array[i];
        const double bytes = (double)clv_array_bytes(a);
        r.bytes += bytes;
        for (size_t axis = 0; axis < a->rank; ++axis)
            r.shape = clv_offload_shape(r.shape, a->shape[axis]);
        if (call->input[i] && is_there(a)) {
            r.resident_bytes += bytes;
            r.stays |= !a->on_host;
        } else if (call->input[i]) {
            r.transfer_bytes += bytes;
        }
        if (call->output[i] && a->wraps) r.transfer_bytes += bytes;
    }
    return r;
}

static clv_status bring_and_do(clv_engine *engine, clv_call *call)
{
    for (size_t i = 0; i < call->count; ++i)
        CLV_TRY(clv_array_to_device(call->array[i], engine, (unsigned)i, call->input[i],
                                    call->output[i]));
    call->begun = true;
    return call->device(engine, call->user);
}

static clv_status on_device(clv_context *context, clv_call *call)
{
    clv_engine *engine = clv_engine_lock(context);
    if (!engine) return clv_fail(CLV_E_NO_DEVICE, "%s: no device works", call->operation);
    const clv_status status = clv_engine_finish(engine, bring_and_do(engine, call));
    clv_engine_unlock(engine);
    for (size_t i = 0; i < call->count; ++i) {
        call->array[i]->at = NULL;
        if (!status && call->output[i]) clv_array_written(call->array[i], true);
    }
    return status;
}

static clv_status on_host(clv_call *call)
{
    for (size_t i = 0; i < call->count; ++i)
        CLV_TRY(clv_array_to_host(call->array[i], call->input[i]));
    CLV_TRY(call->host(call->user));
    for (size_t i = 0; i < call->count; ++i)
        if (call->output[i]) clv_array_written(call->array[i], false);
    return CLV_OK;
}

static void count(clv_context *context, bool device, bool fell_back)
{
    pthread_mutex_lock(&context->array_lock);
    context->array_stats.calls_device += device;
    context->array_stats.calls_host += !device;
    context->array_stats.fallbacks += fell_back;
    pthread_mutex_unlock(&context->array_lock);
}

/* Operands that were changed in place on the device, maybe: a second attempt would do it twice. */
static bool may_repeat(const clv_call *call)
{
    for (size_t i = 0; i < call->count; ++i)
        if (call->begun && call->input[i] && call->output[i]) return false;
    return true;
}

/* So that a call on what this one would have made can be planned as well. */
static clv_status note_plan(const clv_call *call, clv_side side)
{
    for (size_t i = 0; i < call->count; ++i)
        if (call->output[i]) call->array[i]->planned = side;
    return CLV_OK;
}

clv_status clv_call_run(clv_context *context, clv_call *call)
{
    clv_offload plan;
    CLV_TRY(check(context, call));
    const clv_offload_request request = request_of(call);
    CLV_TRY(clv_offload_decide(context, &request, &plan));
    if (clv_offload_is_dry()) return note_plan(call, plan.side);
    bool fell_back = false;
    const double started = clv_jobs_clock();
    if (plan.side == CLV_SIDE_DEVICE) {
        const clv_status status = on_device(context, call);
        if (!status)
            clv_offload_took(context, &request, CLV_SIDE_DEVICE, clv_jobs_clock() - started);
        if (!status) count(context, true, false);
        if (!status || plan.forced || !may_repeat(call)) return status;
        clv_log(CLV_LOG_WARN, "%s: the host computes, since: %s", call->operation,
                clv_error_message());
        clv_offload_fell_back(context, &request, clv_error_message());
        fell_back = true;
    }
    CLV_TRY(on_host(call));
    if (!fell_back) clv_offload_took(context, &request, CLV_SIDE_HOST, clv_jobs_clock() - started);
    count(context, false, fell_back);
    return CLV_OK;
}
