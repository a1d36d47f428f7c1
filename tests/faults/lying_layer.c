/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL layer (OPENCL_LAYERS) under which every device lies: each buffer that is read back has
 * one bit flipped. It says on stderr that it is at work. */
#include "layer.h"

#include <stdio.h>

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

bool layer_install(cl_icd_dispatch *own)
{
    own->clEnqueueReadBuffer = read_buffer;
    fprintf(stderr, "lying layer at work\n");
    return true;
}
