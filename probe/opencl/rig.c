/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the few OpenCL calls that are necessary to build and run a kernel. */
#include "probe/opencl/rig.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "probe/opencl/query.h"

#include <string.h>

clv_status clv_rig_fail(const char *call, cl_int code)
{
    const clv_status status =
        code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES
            ? CLV_E_DEVICE_MEMORY
        : code == CL_OUT_OF_HOST_MEMORY ? CLV_E_MEMORY
                                        : CLV_E_DEVICE;
    return clv_fail(status, "%s gave %d (%s)", call, code, clv_cl_status_name(code));
}

clv_status clv_rig_open(clv_rig *rig, const clv_probe_device *device)
{
    const cl_context_properties properties[] = { CL_CONTEXT_PLATFORM,
                                                 (cl_context_properties)device->native_platform,
                                                 0 };
    cl_int code;
    rig->device = device->native_device;
    rig->profiling = device->profiling && !device->flags.no_event_times;
    rig->context = clCreateContext(properties, 1, &rig->device, NULL, NULL, &code);
    if (!rig->context) return clv_rig_fail("clCreateContext", code);
    rig->queue = clCreateCommandQueue(rig->context, rig->device,
                                      rig->profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
    if (!rig->queue) return clv_rig_fail("clCreateCommandQueue", code);
    return CLV_OK;
}

void clv_rig_close(clv_rig *rig)
{
    for (size_t i = 0; i < CLV_LEN(rig->buffers); ++i)
        if (rig->buffers[i]) clReleaseMemObject(rig->buffers[i]);
    if (rig->program) clReleaseProgram(rig->program);
    if (rig->queue) clReleaseCommandQueue(rig->queue);
    if (rig->context) clReleaseContext(rig->context);
    *rig = (clv_rig){ 0 };
}

static clv_status build_failure(clv_rig *rig, const char *name, cl_int code)
{
    enum { LOG_LIMIT = 1 << 20 };
    size_t length = 0;
    clGetProgramBuildInfo(rig->program, rig->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &length);
    char *log = length && length < LOG_LIMIT ? clv_zalloc(length + 1, 1) : NULL;
    if (log)
        clGetProgramBuildInfo(rig->program, rig->device, CL_PROGRAM_BUILD_LOG, length, log, NULL);
    const clv_status status = clv_fail_detail(CLV_E_BUILD, log, "%s does not compile: %d (%s)",
                                              name, code, clv_cl_status_name(code));
    clv_free(log);
    return status;
}

clv_status clv_rig_build(clv_rig *rig, const clv_cl_source *source, const char *options)
{
    cl_int code;
    clv_text all = { 0 };
    if (rig->program) clReleaseProgram(rig->program);
    rig->program = clCreateProgramWithSource(rig->context, 1, (const char *[]){ source->text },
                                             &source->length, &code);
    if (!rig->program) return clv_rig_fail("clCreateProgramWithSource", code);
    clv_text_add(&all, "-cl-std=CL1.2 %s", options);
    if (all.failed)
        code = CL_OUT_OF_HOST_MEMORY;
    else
        code = clBuildProgram(rig->program, 1, &rig->device, all.data, NULL, NULL);
    clv_text_clear(&all);
    return code == CL_SUCCESS ? CLV_OK : build_failure(rig, source->name, code);
}

clv_status clv_rig_buffer(clv_rig *rig, unsigned slot, size_t bytes, const void *data)
{
    cl_int code;
    if (rig->buffers[slot]) clReleaseMemObject(rig->buffers[slot]);
    rig->buffers[slot] = clCreateBuffer(rig->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    if (!rig->buffers[slot]) return clv_rig_fail("clCreateBuffer", code);
    if (!data) return CLV_OK;
    code = clEnqueueWriteBuffer(rig->queue, rig->buffers[slot], CL_TRUE, 0, bytes, data, 0, NULL,
                                NULL);
    return code == CL_SUCCESS ? CLV_OK : clv_rig_fail("clEnqueueWriteBuffer", code);
}

clv_status clv_rig_read(clv_rig *rig, unsigned slot, void *out, size_t bytes)
{
    const cl_int code =
        clEnqueueReadBuffer(rig->queue, rig->buffers[slot], CL_TRUE, 0, bytes, out, 0, NULL, NULL);
    return code == CL_SUCCESS ? CLV_OK : clv_rig_fail("clEnqueueReadBuffer", code);
}

clv_status clv_rig_kernel(clv_rig *rig, const clv_rig_launch *launch, cl_kernel *kernel)
{
    cl_int code;
    *kernel = clCreateKernel(rig->program, launch->kernel, &code);
    if (!*kernel) return clv_rig_fail("clCreateKernel", code);
    cl_uint index = 0;
    for (; code == CL_SUCCESS && index < launch->buffer_count; ++index)
        code = clSetKernelArg(*kernel, index, sizeof(cl_mem), &rig->buffers[index]);
    for (size_t i = 0; code == CL_SUCCESS && i < launch->arg_count; ++i)
        code = clSetKernelArg(*kernel, index++, launch->args[i].bytes, launch->args[i].value);
    if (code == CL_SUCCESS) return CLV_OK;
    clReleaseKernel(*kernel);
    *kernel = NULL;
    return clv_rig_fail("clSetKernelArg", code);
}

clv_status clv_rig_time(clv_rig *rig, const clv_rig_launch *launch, cl_kernel kernel,
                        double *seconds)
{
    cl_event event = NULL;
    cl_int ended = CL_QUEUED;
    const double start = clv_now();
    cl_int code = clEnqueueNDRangeKernel(rig->queue, kernel, launch->dimensions, NULL,
                                         launch->global, launch->local, 0, NULL, &event);
    if (code != CL_SUCCESS) return clv_rig_fail("clEnqueueNDRangeKernel", code);
    code = clWaitForEvents(1, &event);
    if (seconds) *seconds = clv_now() - start;
    if (code == CL_SUCCESS)
        code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof ended, &ended, NULL);
    clReleaseEvent(event);
    if (code != CL_SUCCESS) return clv_rig_fail("clWaitForEvents", code);
    if (ended < 0) return clv_rig_fail("the kernel", ended);
    if (ended != CL_COMPLETE)
        return clv_fail(CLV_E_WRONG_RESULT, "clWaitForEvents returned before %s was done",
                        launch->kernel);
    return CLV_OK;
}

clv_status clv_rig_run(clv_rig *rig, const clv_rig_launch *launch)
{
    cl_kernel kernel;
    CLV_TRY(clv_rig_kernel(rig, launch, &kernel));
    const clv_status status = clv_rig_time(rig, launch, kernel, NULL);
    clReleaseKernel(kernel);
    return status;
}
