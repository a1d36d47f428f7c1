/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL layer (OPENCL_LAYERS) under which every device lies: each buffer that is read back has
 * one bit flipped; or, with LYING_LAYER_SKIPS=KERNEL, kernels of that name do nothing. It says on stderr that it is at
 * work. */
#include "layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char layer_name[] = "lying layer of Cleave's tests";

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                      size_t offset, size_t bytes, void *out, cl_uint count,
                                      const cl_event *events, cl_event *event)
{
    const cl_int status = layer_below->clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes,
                                                           out, count, events, event);
    if (status == CL_SUCCESS && blocking && bytes) *(unsigned char *)out ^= 0x10;
    return status;
}

static cl_int CL_API_CALL skip_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                      const size_t *offset, const size_t *global,
                                      const size_t *local, cl_uint count, const cl_event *events,
                                      cl_event *event)
{
    char name[64] = "";
    layer_below->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    if (strcmp(name, getenv("LYING_LAYER_SKIPS")) == 0)
        return layer_below->clEnqueueMarkerWithWaitList(queue, count, events, event);
    return layer_below->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                               count, events, event);
}

bool layer_install(cl_icd_dispatch *own)
{
    if (getenv("LYING_LAYER_SKIPS"))
        own->clEnqueueNDRangeKernel = skip_kernel;
    else
        own->clEnqueueReadBuffer = read_buffer;
    fprintf(stderr, "lying layer at work\n");
    return true;
}
