/* SPDX-License-Identifier: Apache-2.0 */
/* The fault layer: commands, and the events by which they end. */
#include "fault_calls.h"

#include <math.h>
#include <string.h>

/* ---- commands -------------------------------------------------------------------------------- */

static cl_int begin(cl_command_queue queue, bool kernel)
{
    enter();
    const cl_int code = fault_commands(fault_device_of(queue, SEEN_QUEUE), kernel);
    leave();
    return code;
}

/* Notes until when the kernel uses its buffers. */
static void use_buffers(cl_kernel kernel, double ready)
{
    const seen *k = fault_find(kernel, SEEN_KERNEL);
    for (size_t i = 0; k && i < MOST_ARGUMENTS; ++i) {
        seen *buffer = k->arguments[i] ? fault_find(k->arguments[i], SEEN_BUFFER) : NULL;
        if (buffer && buffer->ready < ready) buffer->ready = ready;
    }
}

/* The command, which launches `kernel` unless that is NULL, was accepted: its event ends when those before it
 * in the queue have. */
static void accepted(cl_command_queue queue, cl_kernel kernel, cl_event *event, double extra_s,
                     cl_int result)
{
    enter();
    seen *q = fault_find(queue, SEEN_QUEUE);
    const double now = fault_now(), from = q && q->ready > now ? q->ready : now;
    const double ready = extra_s > 0 ? from + extra_s : q ? q->ready : 0;
    const int device = q ? q->device : 0;
    if (q) q->ready = ready;
    if (kernel) use_buffers(kernel, ready);
    if (event) {
        seen *e = fault_note(*event, SEEN_EVENT, device);
        e->ready = ready;
        e->result = result;
        ++fault.stats.live;
    }
    leave();
}

/* A blocking command waits for what is delayed before it. */
static void wait_for_queue(cl_command_queue queue)
{
    enter();
    const seen *q = fault_find(queue, SEEN_QUEUE);
    const double ready = q ? q->ready : 0;
    leave();
    fault_sleep_until(ready);
}

/* What the plan has in store for this kernel. */
static void plan_kernel(cl_command_queue queue, double items, double *extra_s, cl_int *result)
{
    enter();
    ++fault.stats.kernels;
    if (fault_applies(fault_device_of(queue, SEEN_QUEUE))) {
        const unsigned long n = ++fault.kernels;
        *extra_s = fault.plan.throttle * items;
        if (n == (unsigned long)fault.plan.hang) *extra_s += fault.plan.hang_s;
        if (n == (unsigned long)fault.plan.event) *result = fault.plan.code;
        if (n == (unsigned long)fault.plan.hold) *extra_s = INFINITY, ++fault.holding;
        fault.stats.injected += *extra_s > 0 || *result != CL_SUCCESS;
    }
    leave();
}

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                 const size_t *offset, const size_t *global, const size_t *local,
                                 cl_uint count, const cl_event *events, cl_event *event)
{
    cl_int code = begin(queue, true), result = CL_SUCCESS;
    if (code == CL_SUCCESS)
        code = layer_below->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                                   count, events, event);
    if (code != CL_SUCCESS) return code;
    double items = 1, extra_s = 0;
    for (cl_uint d = 0; d < dimensions; ++d)
        items *= (double)global[d];
    plan_kernel(queue, items, &extra_s, &result);
    accepted(queue, kernel, event, extra_s, result);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL native(cl_command_queue queue, void(CL_CALLBACK *body)(void *),
                                 void *argument, size_t bytes, cl_uint buffers,
                                 const cl_mem *buffer, const void **places, cl_uint count,
                                 const cl_event *events, cl_event *event)
{
    cl_int code = begin(queue, false);
    if (code == CL_SUCCESS)
        code = layer_below->clEnqueueNativeKernel(queue, body, argument, bytes, buffers, buffer,
                                                  places, count, events, event);
    if (code == CL_SUCCESS) accepted(queue, NULL, event, 0, CL_SUCCESS);
    return code;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                      size_t offset, size_t bytes, void *out, cl_uint count,
                                      const cl_event *events, cl_event *event)
{
    cl_int code = begin(queue, false);
    enter();
    const bool mine = fault_applies(fault_device_of(queue, SEEN_QUEUE)) && fault.plan.wrong >= 0;
    const bool wrong =
        mine && (++fault.reads == (unsigned long)fault.plan.wrong || !fault.plan.wrong);
    fault.stats.injected += wrong;
    leave();
    if (blocking) wait_for_queue(queue);
    if (code == CL_SUCCESS)
        code = layer_below->clEnqueueReadBuffer(queue, buffer, blocking || wrong, offset, bytes,
                                                out, count, events, event);
    if (code != CL_SUCCESS) return code;
    if (wrong && bytes) ((unsigned char *)out)[bytes / 2] ^= 0x10;
    accepted(queue, NULL, event, 0, CL_SUCCESS);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                       size_t offset, size_t bytes, const void *in, cl_uint count,
                                       const cl_event *events, cl_event *event)
{
    cl_int code = begin(queue, false);
    if (blocking) wait_for_queue(queue);
    if (code == CL_SUCCESS)
        code = layer_below->clEnqueueWriteBuffer(queue, buffer, blocking, offset, bytes, in, count,
                                                 events, event);
    if (code == CL_SUCCESS) accepted(queue, NULL, event, 0, CL_SUCCESS);
    return code;
}

static cl_int CL_API_CALL write_box(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                    const size_t *to, const size_t *from, const size_t *region,
                                    size_t row, size_t slice, size_t host_row, size_t host_slice,
                                    const void *in, cl_uint count, const cl_event *events,
                                    cl_event *event)
{
    cl_int code = begin(queue, false);
    if (code == CL_SUCCESS)
        code = layer_below->clEnqueueWriteBufferRect(queue, buffer, blocking, to, from, region, row,
                                                     slice, host_row, host_slice, in, count, events,
                                                     event);
    if (code == CL_SUCCESS) accepted(queue, NULL, event, 0, CL_SUCCESS);
    return code;
}

static cl_int CL_API_CALL read_box(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                   const size_t *from, const size_t *to, const size_t *region,
                                   size_t row, size_t slice, size_t host_row, size_t host_slice,
                                   void *out, cl_uint count, const cl_event *events,
                                   cl_event *event)
{
    cl_int code = begin(queue, false);
    if (code == CL_SUCCESS)
        code = layer_below->clEnqueueReadBufferRect(queue, buffer, blocking, from, to, region, row,
                                                    slice, host_row, host_slice, out, count, events,
                                                    event);
    if (code == CL_SUCCESS) accepted(queue, NULL, event, 0, CL_SUCCESS);
    return code;
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem buffer, const void *pattern,
                                      size_t pattern_bytes, size_t offset, size_t bytes,
                                      cl_uint count, const cl_event *events, cl_event *event)
{
    cl_int code = begin(queue, false);
    if (code == CL_SUCCESS)
        code = layer_below->clEnqueueFillBuffer(queue, buffer, pattern, pattern_bytes, offset,
                                                bytes, count, events, event);
    if (code == CL_SUCCESS) accepted(queue, NULL, event, 0, CL_SUCCESS);
    return code;
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                      size_t from_offset, size_t to_offset, size_t bytes,
                                      cl_uint count, const cl_event *events, cl_event *event)
{
    cl_int code = begin(queue, false);
    if (code == CL_SUCCESS)
        code = layer_below->clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes,
                                                count, events, event);
    if (code == CL_SUCCESS) accepted(queue, NULL, event, 0, CL_SUCCESS);
    return code;
}

static void *CL_API_CALL map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                    cl_map_flags flags, size_t offset, size_t bytes, cl_uint count,
                                    const cl_event *events, cl_event *event, cl_int *code)
{
    const cl_int fails = begin(queue, false);
    if (fails != CL_SUCCESS) {
        if (code) *code = fails;
        return NULL;
    }
    if (blocking) wait_for_queue(queue);
    void *mapped = layer_below->clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes,
                                                   count, events, event, code);
    if (mapped) accepted(queue, NULL, event, 0, CL_SUCCESS);
    return mapped;
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint count,
                                const cl_event *events, cl_event *event)
{
    cl_int code = begin(queue, false);
    if (code == CL_SUCCESS)
        code = layer_below->clEnqueueUnmapMemObject(queue, buffer, mapped, count, events, event);
    if (code == CL_SUCCESS) accepted(queue, NULL, event, 0, CL_SUCCESS);
    return code;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* How an event ends as things stand, and when. */
static cl_int fate(cl_event event, double *ready)
{
    enter();
    const seen *e = fault_find(event, SEEN_EVENT);
    *ready = e ? e->ready : 0;
    const cl_int result = e && fault_is_lost(e->device) ? fault.plan.code
                          : e                           ? e->result
                                                        : CL_SUCCESS;
    leave();
    return result;
}

static cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event *events)
{
    cl_int code = layer_below->clWaitForEvents(count, events);
    for (cl_uint i = 0; i < count; ++i) {
        double ready;
        const cl_int result = fate(events[i], &ready);
        fault_sleep_until(ready);
        if (code == CL_SUCCESS && result != CL_SUCCESS)
            code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    }
    enter();
    if (fault_calls()) code = fault.plan.code;
    leave();
    return code;
}

/* Where commands are late, it returns before they are done, as one driver does. */
static cl_int CL_API_CALL finish(cl_command_queue queue)
{
    cl_int code = layer_below->clFinish(queue);
    enter();
    if (fault_calls()) code = fault.plan.code;
    leave();
    return code;
}

static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t room, void *out,
                                     size_t *length)
{
    const cl_int code = layer_below->clGetEventInfo(event, what, room, out, length);
    if (code != CL_SUCCESS || what != CL_EVENT_COMMAND_EXECUTION_STATUS || !out) return code;
    double ready;
    const cl_int result = fate(event, &ready);
    cl_int state;
    memcpy(&state, out, sizeof state);
    if (state <= CL_COMPLETE && fault_now() < ready)
        state = CL_RUNNING;
    else if (state == CL_COMPLETE && result != CL_SUCCESS)
        state = result;
    memcpy(out, &state, sizeof state);
    return code;
}

static cl_int CL_API_CALL retain_event(cl_event event)
{
    enter();
    seen *e = fault_find(event, SEEN_EVENT);
    if (e) ++e->held;
    ++fault.stats.live;
    leave();
    return layer_below->clRetainEvent(event);
}

static cl_int CL_API_CALL release_event(cl_event event)
{
    enter();
    seen *e = fault_find(event, SEEN_EVENT);
    if (e && e->held-- == 1) fault_forget(event, SEEN_EVENT);
    --fault.stats.live;
    leave();
    return layer_below->clReleaseEvent(event);
}

/* Reports, as one driver does, that every command took a nanosecond. */
static cl_int CL_API_CALL event_times(cl_event event, cl_profiling_info what, size_t room,
                                      void *out, size_t *length)
{
    const cl_int code = layer_below->clGetEventProfilingInfo(event, what, room, out, length);
    enter();
    const bool lies = fault.plan.times != 0;
    fault.stats.injected += lies;
    leave();
    if (!lies || code != CL_SUCCESS || !out) return code;
    const cl_ulong moment = 1000 + (what == CL_PROFILING_COMMAND_END);
    memcpy(out, &moment, sizeof moment);
    return code;
}

void fault_commands_install(cl_icd_dispatch *layer)
{
    layer->clEnqueueNDRangeKernel = launch;
    layer->clEnqueueNativeKernel = native;
    layer->clEnqueueReadBuffer = read_buffer;
    layer->clEnqueueWriteBuffer = write_buffer;
    layer->clEnqueueWriteBufferRect = write_box;
    layer->clEnqueueReadBufferRect = read_box;
    layer->clEnqueueFillBuffer = fill_buffer;
    layer->clEnqueueCopyBuffer = copy_buffer;
    layer->clEnqueueMapBuffer = map_buffer;
    layer->clEnqueueUnmapMemObject = unmap;
    layer->clWaitForEvents = wait_for_events;
    layer->clFinish = finish;
    layer->clGetEventInfo = event_info;
    layer->clRetainEvent = retain_event;
    layer->clReleaseEvent = release_event;
    layer->clGetEventProfilingInfo = event_times;
}
