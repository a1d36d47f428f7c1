/* SPDX-License-Identifier: Apache-2.0 */
/* Implements an in-order queue that checks, times and counts every command.
 *
 * Drivers lie: one returns from clFinish before the kernel has run, another reports a kernel's error only at
 * its event. So every command keeps its event until a thread has waited for it and checked its status. */
#include "runtime/device/queue.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "runtime/device/bind.h"
#include "runtime/device/held.h"
#include "runtime/device/kernel.h"
#include "runtime/record/cl_status.h"
#include "runtime/record/trace.h"

#include <string.h>

enum { MAX_PENDING = 1024 };

/* How long a waiting thread polls a card before it sleeps: a thread that sleeps for 20 us wakes after 70 to
 * 90 us, which is longer than most kernels take. */
static const double spin_s = 100e-6, first_nap_s = 20e-6, longest_nap_s = 1e-3;

struct clv_event {
    clv_device *device;
    cl_event cl;
    const char *name;
};

static clv_status create(clv_device *device, bool timed, clv_queue **out)
{
    *out = NULL;
    CLV_TRY(clv_device_open(device));
    clv_queue *queue = clv_zalloc(1, sizeof *queue);
    if (!queue) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a queue", device->label);
    cl_int code = CL_INVALID_VALUE;
    queue->device = device;
    queue->timed = timed && device->trust_profiling;
    if (queue->timed)
        queue->cl = clCreateCommandQueue(device->cl, device->id, CL_QUEUE_PROFILING_ENABLE, &code);
    if (queue->timed && code != CL_SUCCESS) /* the device works without profiling too */
        device->trust_profiling = queue->timed = false;
    if (!queue->timed) queue->cl = clCreateCommandQueue(device->cl, device->id, 0, &code);
    if (code != CL_SUCCESS) {
        clv_free(queue);
        return clv_cl_fail(device, "clCreateCommandQueue", NULL, code);
    }
    queue->held = clv_held_create(device->label);
    *out = queue;
    return CLV_OK;
}

clv_status clv_queue_create(clv_device *device, clv_queue **out)
{
    return create(device, device && device->event_times, out);
}

clv_status clv_queue_create_timed(clv_device *device, clv_queue **out)
{
    return create(device, true, out);
}

clv_device *clv_queue_device(const clv_queue *queue)
{
    return queue->device;
}

/* Computes when the command ran, on the host's clock. If nobody needs its `place` in time, only the difference of the
 * two results is right. Returns false when the driver's times make no sense. */
static bool event_times(const clv_pending *p, bool place, double *start, double *end)
{
    cl_ulong queued = 0, started, ended;
    if (clGetEventProfilingInfo(p->event, CL_PROFILING_COMMAND_START, sizeof started, &started,
                                NULL) ||
        clGetEventProfilingInfo(p->event, CL_PROFILING_COMMAND_END, sizeof ended, &ended, NULL) ||
        ended < started || ended - started < 2)
        return false;
    if (place && clGetEventProfilingInfo(p->event, CL_PROFILING_COMMAND_QUEUED, sizeof queued,
                                         &queued, NULL))
        return false;
    /* a device's clock has its own zero; only the moment of enqueueing is known on both clocks */
    *start = p->enqueued + (place && started > queued ? 1e-9 * (double)(started - queued) : 0);
    *end = *start + 1e-9 * (double)(ended - started);
    return true;
}

static void account(clv_queue *queue, const clv_pending *p)
{
    clv_queue_stats *stats = &queue->stats;
    double start, end;
    if (p->command == CLV_COMMAND_KERNEL) ++stats->launches;
    if (p->command == CLV_COMMAND_UPLOAD) stats->bytes_to_device += p->bytes;
    if (p->command == CLV_COMMAND_DOWNLOAD) stats->bytes_from_device += p->bytes;
    const bool place = queue->device->trace != NULL;
    if (!queue->timed || !queue->device->trust_profiling || !event_times(p, place, &start, &end)) {
        if (p->command == CLV_COMMAND_KERNEL) stats->kernel_s = -1;
        return;
    }
    if (p->command != CLV_COMMAND_KERNEL)
        stats->transfer_s += end - start;
    else if (stats->kernel_s >= 0)
        stats->kernel_s += end - start;
    clv_trace_span(queue->device->trace, queue->device, queue->track, p->name, start, end,
                   p->bytes);
}

/* Hands the commands to the device before a wait. With Intel's CPU runtime a thread that waits for the event
 * of a map or a copy is put to sleep in up to half of the calls, and in a virtual machine it takes 75 us to
 * wake it; in clFinish it works along instead. For a single kernel the event is 1 us faster, and the thread
 * is not put to sleep. */
static cl_int hand_over(const clv_queue *queue, size_t count)
{
    const bool all = count == queue->pending_count;
    const bool alone = count == 1 && queue->pending[0].command == CLV_COMMAND_KERNEL;
    if (all && !alone && !queue->device->nap) return clFinish(queue->cl);
    clFlush(queue->cl);
    return CL_SUCCESS;
}

static bool is_under_way(cl_event event)
{
    cl_int state = CL_QUEUED;
    return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) ==
               CL_SUCCESS &&
           state > CL_COMPLETE;
}

/* Polls an event, at first without a pause, so that short waits end at once, then with naps. It does not wait in the
 * driver, because drivers of cards keep a core busy while they wait. */
static void spin_then_nap(cl_event event)
{
    const double until = clv_now() + spin_s;
    while (is_under_way(event) && clv_now() < until)
        continue;
    for (double nap = first_nap_s; is_under_way(event); nap = CLV_MIN(nap * 1.5, longest_nap_s))
        clv_sleep(nap);
}

/* Waits for the first `count` pending commands, checks their status and accounts for them. */
static clv_status settle(clv_queue *queue, size_t count)
{
    clv_status status = CLV_OK;
    if (!count) return CLV_OK;
    const clv_bind_stay stay = clv_bind_come(queue->device->home);
    clv_held_begin(queue->held, queue->pending[0].name);
    const cl_int finished = hand_over(queue, count);
    cl_event last = queue->pending[count - 1].event;
    if (queue->device->nap) spin_then_nap(last);
    const cl_int waited = clWaitForEvents(1, &last);
    for (size_t i = 0; i < count; ++i) {
        const clv_pending *p = &queue->pending[i];
        cl_int state = CL_COMPLETE;
        const cl_int asked =
            clGetEventInfo(p->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if (asked == CL_SUCCESS && state > CL_COMPLETE) { /* not complete, though a later one is */
            clWaitForEvents(1, &p->event);
            clGetEventInfo(p->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        }
        if (!status && asked != CL_SUCCESS)
            status = clv_cl_fail(queue->device, "clGetEventInfo", p->name, asked);
        if (!status && state < 0) status = clv_cl_fail(queue->device, "execution", p->name, state);
        if (!status && state == CL_COMPLETE) account(queue, p);
        clReleaseEvent(p->event);
    }
    if (!status && waited != CL_SUCCESS)
        status = clv_cl_fail(queue->device, "clWaitForEvents", NULL, waited);
    if (!status && finished != CL_SUCCESS)
        status = clv_cl_fail(queue->device, "clFinish", NULL, finished);
    clv_held_end(queue->held);
    clv_bind_leave(&stay);
    queue->pending_count -= count;
    memmove(queue->pending, queue->pending + count, queue->pending_count * sizeof *queue->pending);
    return status;
}

clv_status clv_queue_wait(clv_queue *queue)
{
    if (!queue) return clv_fail(CLV_E_ARGUMENT, "wait: queue is NULL");
    CLV_TRY(clv_fork_check(queue->device->born, "wait"));
    return settle(queue, queue->pending_count);
}

void clv_queue_drain(clv_queue *queue)
{
    clv_error last = { 0 };
    clv_error_take(&last, CLV_OK);
    (void)clv_queue_wait(queue);
    (void)clv_error_give(&last);
    clv_error_clear(&last);
}

clv_status clv_queue_finish(clv_queue *queue, clv_status status)
{
    if (!status) return clv_queue_wait(queue);
    clv_queue_drain(queue);
    return status;
}

void clv_queue_flush(clv_queue *queue)
{
    clFlush(queue->cl);
}

clv_status clv_queue_note(clv_queue *queue, cl_event event, clv_command command, const char *name,
                          size_t bytes, clv_event **done)
{
    clv_event *handle = NULL;
    clv_status status = CLV_OK;
    if (done) {
        *done = NULL;
        handle = clv_zalloc(1, sizeof *handle);
        if (!handle) status = clv_fail(CLV_E_MEMORY, "not enough memory for an event");
    }
    if (!status && queue->pending_count == MAX_PENDING) status = settle(queue, MAX_PENDING / 2);
    if (!status && !clv_reserve(&queue->pending, &queue->pending_capacity, queue->pending_count + 1,
                                sizeof *queue->pending))
        status = clv_fail(CLV_E_MEMORY, "not enough memory for an event");
    if (status) { /* the command runs already: wait, so that no command is in flight unnoticed */
        clWaitForEvents(1, &event);
        clReleaseEvent(event);
        clv_free(handle);
        return status;
    }
    queue->pending[queue->pending_count++] = (clv_pending){
        .event = event, .command = command, .name = name, .bytes = bytes, .enqueued = clv_now()
    };
    if (handle) {
        clRetainEvent(event);
        *handle = (clv_event){ .device = queue->device, .cl = event, .name = name };
        *done = handle;
    }
    return CLV_OK;
}

static void free_kernels(clv_queue *queue)
{
    while (queue->kernels) {
        clv_kernel *kernel = queue->kernels;
        queue->kernels = kernel->next;
        clReleaseKernel(kernel->cl);
        clv_free(kernel->set);
        clv_free(kernel);
    }
}

void clv_queue_free(clv_queue *queue)
{
    if (!queue || clv_is_forked(queue->device->born)) return;
    clv_queue_drain(queue);
    clv_held_free(queue->held);
    free_kernels(queue);
    clReleaseCommandQueue(queue->cl);
    clv_free(queue->pending);
    clv_free(queue);
}

clv_status clv_event_wait(clv_event *event)
{
    cl_int state = CL_COMPLETE;
    const cl_int code = clWaitForEvents(1, &event->cl);
    clGetEventInfo(event->cl, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (state < 0) return clv_cl_fail(event->device, "execution", event->name, state);
    return code == CL_SUCCESS ? CLV_OK
                              : clv_cl_fail(event->device, "clWaitForEvents", event->name, code);
}

void clv_event_free(clv_event *event)
{
    if (!event) return;
    clReleaseEvent(event->cl);
    clv_free(event);
}
