/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL layer under which drivers fail, lie and hang as fault_layer.h says. Every call goes to
 * the driver below unless a fault wants otherwise. */
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#include "fault_state.h"

#include <CL/cl_layer.h>

#include <stdlib.h>
#include <string.h>

CL_API_ENTRY cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count,
                                                          const cl_icd_dispatch *target,
                                                          cl_uint *own_count,
                                                          const cl_icd_dispatch **own,
                                                          const void *properties);
fault_set fault_layer_set;
fault_get fault_layer_get;

static cl_icd_dispatch layer;
static const cl_icd_dispatch *below;
static const char build_log[] = "fault layer: this is the build log";
static cl_program unbuilt; /* whose build failed */

static void enter(void)
{
    pthread_mutex_lock(&fault.lock);
}

static void leave(void)
{
    pthread_mutex_unlock(&fault.lock);
}

/* ---- control --------------------------------------------------------------------------------- */

int fault_layer_set(const char *faults)
{
    fault_plan plan;
    if (!fault_parse(faults, &plan)) return 0;
    enter();
    fault.plan = plan;
    fault.stats = (fault_stats){ .live = fault.stats.live };
    fault.buffers = fault.enqueues = fault.kernels = fault.builds = fault.reads = 0;
    memset(fault.commands, 0, sizeof fault.commands);
    memset(fault.busy_until, 0, sizeof fault.busy_until);
    fault.random = (unsigned long long)plan.seed;
    leave();
    return 1;
}

fault_stats fault_layer_get(void)
{
    enter();
    const fault_stats stats = fault.stats;
    leave();
    return stats;
}

/* ---- objects --------------------------------------------------------------------------------- */

/* A call that makes something for a device: true when it is to fail. */
static bool refuses(int device)
{
    const bool lost = fault_is_lost(device);
    if (lost) ++fault.stats.injected;
    return fault_calls() || lost;
}

static void created(void *object, fault_kind kind, int device)
{
    enter();
    fault_note(object, kind, device);
    ++fault.stats.live;
    leave();
}

static void forgotten(const void *object, fault_kind kind)
{
    enter();
    fault_forget(object, kind);
    --fault.stats.live;
    leave();
}

static void counted(long difference)
{
    enter();
    fault.stats.live += difference;
    leave();
}

static cl_int CL_API_CALL create_sub_devices(cl_device_id device,
                                             const cl_device_partition_property *how, cl_uint room,
                                             cl_device_id *parts, cl_uint *made)
{
    enter();
    const bool fails = fault_calls();
    leave();
    if (fails) return fault.plan.code;
    cl_uint count = 0;
    const cl_int code = below->clCreateSubDevices(device, how, room, parts, &count);
    if (made) *made = count;
    for (cl_uint i = 0; code == CL_SUCCESS && parts && i < count && i < room; ++i)
        created(parts[i], SEEN_DEVICE, (int)i + 1);
    return code;
}

static cl_int CL_API_CALL release_device(cl_device_id device)
{
    enter();
    if (fault_find(device, SEEN_DEVICE)) --fault.stats.live; /* roots are not counted */
    fault_forget(device, SEEN_DEVICE);
    leave();
    return below->clReleaseDevice(device);
}

static cl_context CL_API_CALL create_context(
    const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code)
{
    enter();
    const int number = fault_device_of(devices[0], SEEN_DEVICE);
    const bool fails = refuses(number);
    leave();
    if (fails) {
        if (code) *code = fault.plan.code;
        return NULL;
    }
    cl_context context = below->clCreateContext(properties, count, devices, notify, user, code);
    if (context) created(context, SEEN_CONTEXT, number);
    return context;
}

static cl_int CL_API_CALL release_context(cl_context context)
{
    forgotten(context, SEEN_CONTEXT);
    return below->clReleaseContext(context);
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties,
                                                 cl_int *code)
{
    enter();
    const int number = fault_device_of(context, SEEN_CONTEXT);
    const bool fails = refuses(number);
    leave();
    if (fails) {
        if (code) *code = fault.plan.code;
        return NULL;
    }
    cl_command_queue queue = below->clCreateCommandQueue(context, device, properties, code);
    if (queue) created(queue, SEEN_QUEUE, number);
    return queue;
}

static cl_int CL_API_CALL release_queue(cl_command_queue queue)
{
    forgotten(queue, SEEN_QUEUE);
    return below->clReleaseCommandQueue(queue);
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                        void *host, cl_int *code)
{
    enter();
    const int number = fault_device_of(context, SEEN_CONTEXT);
    bool fails = refuses(number);
    if (fault_applies(number) && ++fault.buffers == (unsigned long)fault.plan.buffer) {
        ++fault.stats.injected;
        fails = true;
    }
    leave();
    if (fails) {
        if (code) *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        return NULL;
    }
    cl_mem buffer = below->clCreateBuffer(context, flags, bytes, host, code);
    if (buffer) {
        created(buffer, SEEN_BUFFER, number);
        enter();
        const size_t held = flags & CL_MEM_USE_HOST_PTR ? 0 : bytes;
        fault_find(buffer, SEEN_BUFFER)->bytes = held;
        fault.held[number] += (double)held;
        leave();
    }
    return buffer;
}

static cl_int CL_API_CALL release_buffer(cl_mem buffer)
{
    enter();
    const seen *s = fault_find(buffer, SEEN_BUFFER);
    if (s) {
        fault.held[s->device] -= (double)s->bytes;
        if (fault_now() < fault.busy_until[s->device]) ++fault.stats.early;
        fault_forget(buffer, SEEN_BUFFER);
    }
    --fault.stats.live;
    leave();
    return below->clReleaseMemObject(buffer);
}

/* ---- programs -------------------------------------------------------------------------------- */

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **texts,
                                             const size_t *lengths, cl_int *code)
{
    enter();
    const bool fails = refuses(fault_device_of(context, SEEN_CONTEXT));
    leave();
    if (fails) {
        if (code) *code = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    cl_program program = below->clCreateProgramWithSource(context, count, texts, lengths, code);
    if (program) counted(1);
    return program;
}

static cl_program CL_API_CALL create_from_binary(cl_context context, cl_uint count,
                                                 const cl_device_id *devices, const size_t *lengths,
                                                 const unsigned char **binaries, cl_int *each,
                                                 cl_int *code)
{
    enter();
    const bool fails = fault_calls() || fault.plan.binary;
    fault.stats.injected += fault.plan.binary != 0;
    leave();
    if (fails) {
        if (code) *code = CL_INVALID_BINARY;
        if (each) *each = CL_INVALID_BINARY;
        return NULL;
    }
    cl_program program =
        below->clCreateProgramWithBinary(context, count, devices, lengths, binaries, each, code);
    if (program) counted(1);
    return program;
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint count,
                                        const cl_device_id *devices, const char *options,
                                        void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    enter();
    bool fails = fault_calls();
    if (++fault.builds == (unsigned long)fault.plan.build) {
        ++fault.stats.injected;
        fails = true;
    }
    if (fails) unbuilt = program;
    leave();
    return fails ? CL_BUILD_PROGRAM_FAILURE
                 : below->clBuildProgram(program, count, devices, options, notify, user);
}

static cl_int CL_API_CALL build_info(cl_program program, cl_device_id device,
                                     cl_program_build_info what, size_t room, void *out,
                                     size_t *length)
{
    enter();
    const bool ours = program == unbuilt && what == CL_PROGRAM_BUILD_LOG;
    leave();
    if (!ours) return below->clGetProgramBuildInfo(program, device, what, room, out, length);
    if (out && room < sizeof build_log) return CL_INVALID_VALUE;
    if (out) memcpy(out, build_log, sizeof build_log);
    if (length) *length = sizeof build_log;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_program(cl_program program)
{
    enter();
    if (program == unbuilt) unbuilt = NULL;
    --fault.stats.live;
    leave();
    return below->clReleaseProgram(program);
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *code)
{
    enter();
    const bool fails = fault_calls();
    leave();
    if (fails) {
        if (code) *code = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    cl_kernel kernel = below->clCreateKernel(program, name, code);
    if (kernel) counted(1);
    return kernel;
}

static cl_int CL_API_CALL release_kernel(cl_kernel kernel)
{
    counted(-1);
    return below->clReleaseKernel(kernel);
}

static cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t bytes,
                                       const void *value)
{
    enter();
    const bool fails = fault_calls();
    leave();
    return fails ? CL_OUT_OF_HOST_MEMORY : below->clSetKernelArg(kernel, index, bytes, value);
}

/* ---- commands -------------------------------------------------------------------------------- */

static cl_int begin(cl_command_queue queue, bool kernel)
{
    enter();
    const cl_int code = fault_commands(fault_device_of(queue, SEEN_QUEUE), kernel);
    leave();
    return code;
}

/* The command was accepted: its event ends when those before it in the queue have. */
static void accepted(cl_command_queue queue, cl_event *event, double extra_s, cl_int result)
{
    enter();
    seen *q = fault_find(queue, SEEN_QUEUE);
    const double now = fault_now(), from = q && q->ready > now ? q->ready : now;
    const double ready = extra_s > 0 ? from + extra_s : q ? q->ready : 0;
    const int device = q ? q->device : 0;
    if (q) q->ready = ready;
    if (extra_s > 0) fault.busy_until[device] = ready;
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
        code = below->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                             count, events, event);
    if (code != CL_SUCCESS) return code;
    double items = 1, extra_s = 0;
    for (cl_uint d = 0; d < dimensions; ++d)
        items *= (double)global[d];
    plan_kernel(queue, items, &extra_s, &result);
    accepted(queue, event, extra_s, result);
    return CL_SUCCESS;
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
        code = below->clEnqueueReadBuffer(queue, buffer, blocking || wrong, offset, bytes, out,
                                          count, events, event);
    if (code != CL_SUCCESS) return code;
    if (wrong && bytes) ((unsigned char *)out)[bytes / 2] ^= 0x10;
    accepted(queue, event, 0, CL_SUCCESS);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                       size_t offset, size_t bytes, const void *in, cl_uint count,
                                       const cl_event *events, cl_event *event)
{
    cl_int code = begin(queue, false);
    if (blocking) wait_for_queue(queue);
    if (code == CL_SUCCESS)
        code = below->clEnqueueWriteBuffer(queue, buffer, blocking, offset, bytes, in, count,
                                           events, event);
    if (code == CL_SUCCESS) accepted(queue, event, 0, CL_SUCCESS);
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
        code =
            below->clEnqueueWriteBufferRect(queue, buffer, blocking, to, from, region, row, slice,
                                            host_row, host_slice, in, count, events, event);
    if (code == CL_SUCCESS) accepted(queue, event, 0, CL_SUCCESS);
    return code;
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem buffer, const void *pattern,
                                      size_t pattern_bytes, size_t offset, size_t bytes,
                                      cl_uint count, const cl_event *events, cl_event *event)
{
    cl_int code = begin(queue, false);
    if (code == CL_SUCCESS)
        code = below->clEnqueueFillBuffer(queue, buffer, pattern, pattern_bytes, offset, bytes,
                                          count, events, event);
    if (code == CL_SUCCESS) accepted(queue, event, 0, CL_SUCCESS);
    return code;
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                      size_t from_offset, size_t to_offset, size_t bytes,
                                      cl_uint count, const cl_event *events, cl_event *event)
{
    cl_int code = begin(queue, false);
    if (code == CL_SUCCESS)
        code = below->clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, count,
                                          events, event);
    if (code == CL_SUCCESS) accepted(queue, event, 0, CL_SUCCESS);
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
    void *mapped = below->clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes, count,
                                             events, event, code);
    if (mapped) accepted(queue, event, 0, CL_SUCCESS);
    return mapped;
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint count,
                                const cl_event *events, cl_event *event)
{
    cl_int code = begin(queue, false);
    if (code == CL_SUCCESS)
        code = below->clEnqueueUnmapMemObject(queue, buffer, mapped, count, events, event);
    if (code == CL_SUCCESS) accepted(queue, event, 0, CL_SUCCESS);
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
    cl_int code = below->clWaitForEvents(count, events);
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

static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t room, void *out,
                                     size_t *length)
{
    const cl_int code = below->clGetEventInfo(event, what, room, out, length);
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
    return below->clRetainEvent(event);
}

static cl_int CL_API_CALL release_event(cl_event event)
{
    enter();
    seen *e = fault_find(event, SEEN_EVENT);
    if (e && e->held-- == 1) fault_forget(event, SEEN_EVENT);
    --fault.stats.live;
    leave();
    return below->clReleaseEvent(event);
}

/* ---- the layer ------------------------------------------------------------------------------- */

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t bytes, void *out,
                                               size_t *length)
{
    static const char name[] = "fault layer of Cleave's tests";
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *value = what == CL_LAYER_NAME ? (const void *)name : &version;
    const size_t needed = what == CL_LAYER_NAME ? sizeof name : sizeof version;
    if (what != CL_LAYER_NAME && what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
    if (out && bytes < needed) return CL_INVALID_VALUE;
    if (out) memcpy(out, value, needed);
    if (length) *length = needed;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *target,
                                            cl_uint *own_count, const cl_icd_dispatch **own)
{
    const cl_uint entries = sizeof layer / sizeof(void *);
    if (!target || count < entries || !own_count || !own) return CL_INVALID_VALUE;
    const char *faults = getenv("CLEAVE_FAULTS");
    if (!fault_layer_set(faults ? faults : "")) return CL_INVALID_VALUE;
    below = target;
    memcpy(&layer, target, sizeof layer);
    layer.clCreateSubDevices = create_sub_devices;
    layer.clReleaseDevice = release_device;
    layer.clCreateContext = create_context;
    layer.clReleaseContext = release_context;
    layer.clCreateCommandQueue = create_queue;
    layer.clReleaseCommandQueue = release_queue;
    layer.clCreateBuffer = create_buffer;
    layer.clReleaseMemObject = release_buffer;
    layer.clCreateProgramWithSource = create_program;
    layer.clCreateProgramWithBinary = create_from_binary;
    layer.clBuildProgram = build_program;
    layer.clGetProgramBuildInfo = build_info;
    layer.clReleaseProgram = release_program;
    layer.clCreateKernel = create_kernel;
    layer.clReleaseKernel = release_kernel;
    layer.clSetKernelArg = set_argument;
    layer.clEnqueueNDRangeKernel = launch;
    layer.clEnqueueReadBuffer = read_buffer;
    layer.clEnqueueWriteBuffer = write_buffer;
    layer.clEnqueueWriteBufferRect = write_box;
    layer.clEnqueueFillBuffer = fill_buffer;
    layer.clEnqueueCopyBuffer = copy_buffer;
    layer.clEnqueueMapBuffer = map_buffer;
    layer.clEnqueueUnmapMemObject = unmap;
    layer.clWaitForEvents = wait_for_events;
    layer.clGetEventInfo = event_info;
    layer.clRetainEvent = retain_event;
    layer.clReleaseEvent = release_event;
    *own = &layer;
    *own_count = entries;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count,
                                                          const cl_icd_dispatch *target,
                                                          cl_uint *own_count,
                                                          const cl_icd_dispatch **own,
                                                          const void *properties)
{
    (void)properties;
    return clInitLayer(count, target, own_count, own);
}
