/* SPDX-License-Identifier: Apache-2.0 */
/* The fault layer: calls that make and release objects. */
#include "fault_calls.h"

#include <stdlib.h>
#include <string.h>

static const char build_log[] = "fault layer: this is the build log";
static cl_program unbuilt; /* whose build failed */

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

/* Some drivers crash when they are asked for binaries. */
static cl_int CL_API_CALL program_info(cl_program program, cl_program_info what, size_t room,
                                       void *value, size_t *length)
{
    if (fault.plan.save && what == CL_PROGRAM_BINARIES) abort();
    return layer_below->clGetProgramInfo(program, what, room, value, length);
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
    const cl_int code = layer_below->clCreateSubDevices(device, how, room, parts, &count);
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
    return layer_below->clReleaseDevice(device);
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
    cl_context context =
        layer_below->clCreateContext(properties, count, devices, notify, user, code);
    if (context) created(context, SEEN_CONTEXT, number);
    return context;
}

static cl_int CL_API_CALL release_context(cl_context context)
{
    forgotten(context, SEEN_CONTEXT);
    return layer_below->clReleaseContext(context);
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
    cl_command_queue queue = layer_below->clCreateCommandQueue(context, device, properties, code);
    if (queue) created(queue, SEEN_QUEUE, number);
    return queue;
}

static cl_int CL_API_CALL release_queue(cl_command_queue queue)
{
    forgotten(queue, SEEN_QUEUE);
    return layer_below->clReleaseCommandQueue(queue);
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
    cl_mem buffer = layer_below->clCreateBuffer(context, flags, bytes, host, code);
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
        if (fault_now() < s->ready) ++fault.stats.early;
        fault_forget(buffer, SEEN_BUFFER);
    }
    --fault.stats.live;
    leave();
    return layer_below->clReleaseMemObject(buffer);
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
    cl_program program =
        layer_below->clCreateProgramWithSource(context, count, texts, lengths, code);
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
    cl_program program = layer_below->clCreateProgramWithBinary(context, count, devices, lengths,
                                                                binaries, each, code);
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
                 : layer_below->clBuildProgram(program, count, devices, options, notify, user);
}

static cl_int CL_API_CALL build_info(cl_program program, cl_device_id device,
                                     cl_program_build_info what, size_t room, void *out,
                                     size_t *length)
{
    enter();
    const bool ours = program == unbuilt && what == CL_PROGRAM_BUILD_LOG;
    leave();
    if (!ours) return layer_below->clGetProgramBuildInfo(program, device, what, room, out, length);
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
    return layer_below->clReleaseProgram(program);
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
    cl_kernel kernel = layer_below->clCreateKernel(program, name, code);
    if (kernel) created(kernel, SEEN_KERNEL, 0);
    return kernel;
}

static cl_int CL_API_CALL release_kernel(cl_kernel kernel)
{
    forgotten(kernel, SEEN_KERNEL);
    return layer_below->clReleaseKernel(kernel);
}

static cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t bytes,
                                       const void *value)
{
    enter();
    const bool fails = fault_calls();
    void *buffer = NULL;
    if (bytes == sizeof(cl_mem) && value) memcpy(&buffer, value, sizeof buffer);
    seen *s = fault_find(kernel, SEEN_KERNEL);
    if (s && index < MOST_ARGUMENTS)
        s->arguments[index] = buffer && fault_find(buffer, SEEN_BUFFER) ? buffer : NULL;
    leave();
    return fails ? CL_OUT_OF_HOST_MEMORY : layer_below->clSetKernelArg(kernel, index, bytes, value);
}

void fault_objects_install(cl_icd_dispatch *layer)
{
    layer->clCreateSubDevices = create_sub_devices;
    layer->clReleaseDevice = release_device;
    layer->clCreateContext = create_context;
    layer->clReleaseContext = release_context;
    layer->clCreateCommandQueue = create_queue;
    layer->clReleaseCommandQueue = release_queue;
    layer->clCreateBuffer = create_buffer;
    layer->clReleaseMemObject = release_buffer;
    layer->clCreateProgramWithSource = create_program;
    layer->clCreateProgramWithBinary = create_from_binary;
    layer->clBuildProgram = build_program;
    layer->clGetProgramBuildInfo = build_info;
    layer->clGetProgramInfo = program_info;
    layer->clReleaseProgram = release_program;
    layer->clCreateKernel = create_kernel;
    layer->clReleaseKernel = release_kernel;
    layer->clSetKernelArg = set_argument;
}
