/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL layer (OPENCL_LAYERS) under which every device lies: each buffer that is read back has
 * one bit flipped. It says on stderr that it is at work. */
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#include <CL/cl_layer.h>

#include <stdio.h>
#include <string.h>

CL_API_ENTRY cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count,
                                                          const cl_icd_dispatch *target,
                                                          cl_uint *own_count,
                                                          const cl_icd_dispatch **own,
                                                          const void *properties);

static cl_icd_dispatch layer;
static const cl_icd_dispatch *below;

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                      size_t offset, size_t bytes, void *out, cl_uint count,
                                      const cl_event *events, cl_event *event)
{
    const cl_int status = below->clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes, out,
                                                     count, events, event);
    if (status == CL_SUCCESS && blocking && bytes) *(unsigned char *)out ^= 0x10;
    return status;
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t bytes, void *out,
                                               size_t *length)
{
    static const char name[] = "lying layer of Cleave's tests";
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
    below = target;
    memcpy(&layer, target, sizeof layer);
    layer.clEnqueueReadBuffer = read_buffer;
    *own = &layer;
    *own_count = entries;
    fprintf(stderr, "lying layer at work\n");
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
