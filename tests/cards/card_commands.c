/* SPDX-License-Identifier: Apache-2.0 */
/* Commands, and the card's clock: when each of them begins and ends there. */
#include "card.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum engine { COMPUTE, TO_CARD, FROM_CARD, ENGINES } engine;

/* When a command was queued, began and ended, on the host's clock. */
typedef struct times {
    double queued, start, end;
} times;

/* Queues, with the end of their last command, and events. */
typedef struct entry {
    const void *handle;
    times at;
    int held; /* references to an event; 0: a queue */
} entry;

static struct {
    pthread_mutex_t lock;
    double free_at[ENGINES];
    entry *items;
    size_t count, room;
} on_card = { .lock = PTHREAD_MUTEX_INITIALIZER };

double card_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_until(double when)
{
    for (double left; (left = when - card_now()) > 0;) {
        const struct timespec t = { .tv_sec = (time_t)left,
                                    .tv_nsec = (long)((left - (double)(time_t)left) * 1e9) };
        nanosleep(&t, NULL);
    }
}

/* The lock is held. */
static entry *find(const void *handle)
{
    for (size_t i = on_card.count; i-- > 0;)
        if (on_card.items[i].handle == handle) return &on_card.items[i];
    return NULL;
}

static entry *find_or_add(const void *handle)
{
    entry *found = find(handle);
    if (found) return found;
    if (on_card.count == on_card.room) {
        on_card.room = on_card.room ? 2 * on_card.room : 1024;
        on_card.items = realloc(on_card.items, on_card.room * sizeof *on_card.items);
        if (!on_card.items) abort();
    }
    on_card.items[on_card.count] = (entry){ .handle = handle };
    return &on_card.items[on_card.count++];
}

static bool has_clock(void)
{
    return card.clock.bytes_per_s > 0 || card.clock.launch_s > 0 || card.clock.item_s > 0;
}

/* The command was accepted: its place on the card's clock. Returns when it ends. */
static double place(cl_command_queue queue, engine on, double seconds, const cl_event *event)
{
    if (!has_clock()) return 0;
    pthread_mutex_lock(&on_card.lock);
    times t = { .queued = card_now() };
    entry *q = find_or_add(queue);
    t.start = fmax(t.queued + card.clock.launch_s, q->at.end);
    if (seconds > 0) t.start = fmax(t.start, on_card.free_at[on]);
    t.end = t.start + seconds;
    if (seconds > 0) on_card.free_at[on] = t.end;
    q->at = t;
    if (event) {
        entry *e = find_or_add(*event);
        e->at = t;
        e->held = 1;
    }
    pthread_mutex_unlock(&on_card.lock);
    return t.end;
}

static double end_of(const void *handle)
{
    pthread_mutex_lock(&on_card.lock);
    const entry *e = find(handle);
    const double end = e ? e->at.end : 0;
    pthread_mutex_unlock(&on_card.lock);
    return end;
}

/* The call itself lasts until the copy is done where it waits, or where the driver has to copy through
 * a buffer of its own. */
static void copied(cl_command_queue queue, engine on, const void *host, size_t bytes, bool waits,
                   cl_event *event)
{
    if (!has_clock() || !card_plays_queue(queue)) return;
    const bool pinned = card_is_pinned(host, bytes), small = bytes <= 4096;
    const double rate = card.clock.bytes_per_s * (pinned || small ? 1 : 0.5);
    const double end = place(queue, on, rate > 0 ? (double)bytes / rate : 0, event);
    if (waits || (!pinned && !small)) sleep_until(end);
}

/* ---- commands -------------------------------------------------------------------------------- */

static cl_int refusal(cl_kernel kernel, cl_uint dimensions, const size_t *global,
                      const size_t *local)
{
    const size_t most_groups = 65535; /* in the second and third dimension on NVIDIA's cards */
    cl_ulong bytes = 0;
    size_t items = 1;
    cl_device_id device = NULL;
    cl_context context = NULL;
    for (cl_uint d = 0; local && d < dimensions; ++d)
        items *= local[d];
    for (cl_uint d = 1; d < dimensions; ++d)
        if (global[d] / (local ? local[d] : 1) > most_groups) return CL_INVALID_GLOBAL_WORK_SIZE;
    if (items > card.facts.max_work_group) return CL_INVALID_WORK_GROUP_SIZE;
    layer_below->clGetKernelInfo(kernel, CL_KERNEL_CONTEXT, sizeof context, &context, NULL);
    layer_below->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof device, &device, NULL);
    layer_below->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes,
                                          &bytes, NULL);
    if (bytes > card.facts.local_bytes) return CL_OUT_OF_RESOURCES;
    return card_is_full() ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS;
}

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                 const size_t *offset, const size_t *global, const size_t *local,
                                 cl_uint count, const cl_event *events, cl_event *event)
{
    cl_event own = NULL;
    if (!card_plays_queue(queue))
        return layer_below->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                                   count, events, event);
    cl_int code = refusal(kernel, dimensions, global, local);
    if (code != CL_SUCCESS) return code;
    double items = 1;
    for (cl_uint d = 0; d < dimensions; ++d)
        items *= (double)global[d];
    const double seconds = card.clock.item_s * items;
    if (card.clock.watchdog_s > 0 && seconds > card.clock.watchdog_s) {
        fprintf(stderr, "simulated card: the watchdog ended a launch of %.3g s\n", seconds);
        return CL_OUT_OF_RESOURCES;
    }
    card_launched(kernel, dimensions, global, local);
    code =
        items <= card.run_up_to
            ? layer_below->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                                  count, events, event ? event : &own)
            : layer_below->clEnqueueMarkerWithWaitList(queue, count, events, event ? event : &own);
    if (code == CL_SUCCESS) {
        card_accepted(kernel);
        place(queue, COMPUTE, seconds, event);
    }
    if (own) layer_below->clReleaseEvent(own);
    return code;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                      size_t offset, size_t bytes, void *out, cl_uint count,
                                      const cl_event *events, cl_event *event)
{
    const cl_int code = layer_below->clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes,
                                                         out, count, events, event);
    if (code == CL_SUCCESS) copied(queue, FROM_CARD, out, bytes, blocking, event);
    return code;
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                       size_t offset, size_t bytes, const void *in, cl_uint count,
                                       const cl_event *events, cl_event *event)
{
    if (card_plays_queue(queue) && card_is_full()) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    const cl_int code = layer_below->clEnqueueWriteBuffer(queue, buffer, blocking, offset, bytes,
                                                          in, count, events, event);
    if (code == CL_SUCCESS) copied(queue, TO_CARD, in, bytes, blocking, event);
    return code;
}

/* A box costs what its bytes cost, and 1 us for each row that does not follow the one before it. */
static void box_copied(cl_command_queue queue, engine on, const void *host, const size_t *region,
                       size_t row, bool waits, cl_event *event)
{
    const size_t bytes = region[0] * region[1] * region[2];
    if (!has_clock() || !card_plays_queue(queue)) return;
    const double rows = row > region[0] ? (double)(region[1] * region[2]) : 1;
    const bool pinned = card_is_pinned(host, bytes);
    const double rate = card.clock.bytes_per_s * (pinned ? 1 : 0.5);
    const double end = place(queue, on, rate > 0 ? (double)bytes / rate + 1e-6 * rows : 0, event);
    if (waits || !pinned) sleep_until(end);
}

static cl_int CL_API_CALL write_box(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                    const size_t *to, const size_t *from, const size_t *region,
                                    size_t row, size_t slice, size_t host_row, size_t host_slice,
                                    const void *in, cl_uint count, const cl_event *events,
                                    cl_event *event)
{
    const cl_int code =
        layer_below->clEnqueueWriteBufferRect(queue, buffer, blocking, to, from, region, row, slice,
                                              host_row, host_slice, in, count, events, event);
    if (code == CL_SUCCESS) box_copied(queue, TO_CARD, in, region, host_row, blocking, event);
    return code;
}

static cl_int CL_API_CALL read_box(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                   const size_t *from, const size_t *to, const size_t *region,
                                   size_t row, size_t slice, size_t host_row, size_t host_slice,
                                   void *out, cl_uint count, const cl_event *events,
                                   cl_event *event)
{
    const cl_int code =
        layer_below->clEnqueueReadBufferRect(queue, buffer, blocking, from, to, region, row, slice,
                                             host_row, host_slice, out, count, events, event);
    if (code == CL_SUCCESS) box_copied(queue, FROM_CARD, out, region, host_row, blocking, event);
    return code;
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem buffer, const void *pattern,
                                      size_t pattern_bytes, size_t offset, size_t bytes,
                                      cl_uint count, const cl_event *events, cl_event *event)
{
    const cl_int code = layer_below->clEnqueueFillBuffer(queue, buffer, pattern, pattern_bytes,
                                                         offset, bytes, count, events, event);
    if (code == CL_SUCCESS && card_plays_queue(queue)) place(queue, COMPUTE, 0, event);
    return code;
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                      size_t from_offset, size_t to_offset, size_t bytes,
                                      cl_uint count, const cl_event *events, cl_event *event)
{
    const cl_int code = layer_below->clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset,
                                                         bytes, count, events, event);
    if (code == CL_SUCCESS && card_plays_queue(queue)) place(queue, COMPUTE, 0, event);
    return code;
}

static void *CL_API_CALL map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                    cl_map_flags flags, size_t offset, size_t bytes, cl_uint count,
                                    const cl_event *events, cl_event *event, cl_int *code)
{
    void *mapped = layer_below->clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes,
                                                   count, events, event, code);
    if (!mapped || !card_plays_queue(queue)) return mapped;
    if (card_is_host_buffer(buffer)) card_pinned(mapped, bytes);
    const double end = place(queue, COMPUTE, 0, event);
    if (blocking) sleep_until(end);
    return mapped;
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint count,
                                const cl_event *events, cl_event *event)
{
    const cl_int code =
        layer_below->clEnqueueUnmapMemObject(queue, buffer, mapped, count, events, event);
    if (code != CL_SUCCESS || !card_plays_queue(queue)) return code;
    card_unpinned(mapped);
    place(queue, COMPUTE, 0, event);
    return code;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event *events)
{
    const cl_int code = layer_below->clWaitForEvents(count, events);
    for (cl_uint i = 0; i < count && has_clock(); ++i)
        sleep_until(end_of(events[i]));
    return code;
}

static cl_int CL_API_CALL finish(cl_command_queue queue)
{
    const cl_int code = layer_below->clFinish(queue);
    if (has_clock()) sleep_until(end_of(queue));
    return code;
}

static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t room, void *out,
                                     size_t *length)
{
    const cl_int code = layer_below->clGetEventInfo(event, what, room, out, length);
    if (code != CL_SUCCESS || what != CL_EVENT_COMMAND_EXECUTION_STATUS || !out || !has_clock())
        return code;
    cl_int state;
    memcpy(&state, out, sizeof state);
    if (state <= CL_COMPLETE && card_now() < end_of(event)) state = CL_RUNNING;
    memcpy(out, &state, sizeof state);
    return code;
}

static cl_int CL_API_CALL event_times(cl_event event, cl_profiling_info what, size_t room,
                                      void *out, size_t *length)
{
    const cl_int code = layer_below->clGetEventProfilingInfo(event, what, room, out, length);
    if (code != CL_SUCCESS || !out || !has_clock()) return code;
    pthread_mutex_lock(&on_card.lock);
    const entry *e = find(event);
    if (e) {
        const double moment = what == CL_PROFILING_COMMAND_START ? e->at.start
                              : what == CL_PROFILING_COMMAND_END ? e->at.end
                                                                 : e->at.queued;
        const cl_ulong ns = (cl_ulong)(moment * 1e9);
        memcpy(out, &ns, sizeof ns);
    }
    pthread_mutex_unlock(&on_card.lock);
    return code;
}

static cl_int CL_API_CALL retain_event(cl_event event)
{
    pthread_mutex_lock(&on_card.lock);
    entry *e = find(event);
    if (e) ++e->held;
    pthread_mutex_unlock(&on_card.lock);
    return layer_below->clRetainEvent(event);
}

static cl_int CL_API_CALL release_event(cl_event event)
{
    pthread_mutex_lock(&on_card.lock);
    entry *e = find(event);
    if (e && --e->held <= 0) *e = on_card.items[--on_card.count];
    pthread_mutex_unlock(&on_card.lock);
    return layer_below->clReleaseEvent(event);
}

void card_commands_install(cl_icd_dispatch *layer)
{
    layer->clEnqueueNDRangeKernel = launch;
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
    layer->clGetEventProfilingInfo = event_times;
    layer->clRetainEvent = retain_event;
    layer->clReleaseEvent = release_event;
}
