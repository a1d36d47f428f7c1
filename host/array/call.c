/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on arrays: checks the operands, brings them to the side that executes the call, and marks results as
 * written. */
#include "host/array/call.h"

#include "base/error.h"
#include "runtime/record/context.h"

#include <assert.h>

unsigned clv_call_octave(size_t n)
{
    unsigned octave = 0;
    while (n >> octave > 1)
        ++octave;
    return octave;
}

void clv_array_call_add(clv_array_call *c, clv_array *array, bool input, bool output)
{
    for (size_t i = 0; i < c->count; ++i)
        if (c->array[i] == array) {
            c->input[i] |= input;
            c->output[i] |= output;
            return;
        }
    assert(c->count < CALL_ARRAYS);
    c->array[c->count] = array;
    c->input[c->count] = input;
    c->output[c->count++] = output;
}

static bool is_empty(const clv_array *array)
{
    return !array->on_host && !array->on_device;
}

/* Tells whether an array's elements are on the device, or would be if all planned calls had been executed. */
static bool is_there(const clv_array *array)
{
    return is_empty(array) ? array->planned == CLV_SIDE_DEVICE : array->on_device;
}

static clv_status check(clv_context *context, const clv_array_call *c)
{
    const char *what = c->call.operation;
    for (size_t i = 0; i < c->count; ++i) {
        const clv_array *a = c->array[i];
        CLV_TRY(clv_array_check(what, context, a));
        if (c->input[i] && is_empty(a) && !(c->call.plan && a->planned))
            return clv_fail(CLV_E_ARGUMENT, "%s: an operand has no contents yet", what);
        for (size_t k = 0; k < c->count; ++k)
            if ((c->output[i] || c->output[k]) && clv_array_overlap(a, c->array[k]))
                return clv_fail(CLV_E_ARGUMENT, "%s: a result shares memory with an operand", what);
    }
    return CLV_OK;
}

/* ---- the two ways -------------------------------------------------------------------------------- */

static clv_status on_device(clv_engine *engine, void *user)
{
    clv_array_call *c = user;
    for (size_t i = 0; i < c->count; ++i)
        CLV_TRY(clv_array_to_device(c->array[i], engine, (unsigned)i, c->input[i], c->output[i]));
    for (size_t i = 0; i < c->count; ++i) /* from now on kernels may change them */
        c->call.spent |= c->input[i] && c->output[i];
    return c->device(engine, c->user);
}

static clv_status on_host(void *user)
{
    const clv_array_call *c = user;
    for (size_t i = 0; i < c->count; ++i)
        CLV_TRY(clv_array_to_host(c->array[i], c->input[i]));
    return c->host(c->user);
}

void clv_array_call_close(clv_array_call *c)
{
    clv_work *w = &c->call.work;
    c->call.host = on_host;
    c->call.device = on_device;
    c->call.user = c;
    for (size_t i = 0; i < c->count; ++i) {
        const clv_array *a = c->array[i];
        const double bytes = (double)clv_array_bytes(a);
        w->bytes += bytes;
        for (size_t axis = 0; axis < a->rank; ++axis)
            w->shape = clv_call_shape(w->shape, a->shape[axis]);
        if (c->input[i] && is_there(a)) {
            w->resident_bytes += bytes;
            c->call.stays |= !a->on_host;
        } else if (c->input[i]) {
            w->transfer_bytes += bytes;
        }
        if (c->output[i] && a->wraps) w->transfer_bytes += bytes;
    }
}

/* ---- the call ------------------------------------------------------------------------------------ */

static void count(clv_context *context, bool device, bool fell_back)
{
    pthread_mutex_lock(&context->array_lock);
    context->array_stats.calls_device += device;
    context->array_stats.calls_host += !device;
    context->array_stats.fallbacks += fell_back;
    pthread_mutex_unlock(&context->array_lock);
}

clv_status clv_array_call_run(clv_context *context, clv_array_call *c)
{
    clv_call_take_orders(&c->call);
    CLV_TRY(check(context, c));
    clv_array_call_close(c);
    const clv_status status = clv_call_run(context, &c->call);
    const bool device = c->call.told.of.side == CLV_SIDE_DEVICE;
    for (size_t i = 0; i < c->count; ++i) {
        clv_array *a = c->array[i];
        a->at = NULL;
        if (status || !c->output[i]) continue;
        if (c->call
                .plan) /* so that a call on what this one would have made can be planned as well */
            a->planned = c->call.told.of.side;
        else
            clv_array_written(a, device);
    }
    if (!status && !c->call.plan) count(context, device, c->call.fell_back);
    return status;
}
