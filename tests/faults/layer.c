/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of a layer of the tests, by which the loader finds it. */
#include "layer.h"

#include <string.h>

CL_API_ENTRY cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count,
                                                          const cl_icd_dispatch *target,
                                                          cl_uint *own_count,
                                                          const cl_icd_dispatch **own,
                                                          const void *properties);

const cl_icd_dispatch *layer_below;

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t bytes, void *out,
                                               size_t *length)
{
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *value = what == CL_LAYER_NAME ? (const void *)layer_name : &version;
    const size_t needed = what == CL_LAYER_NAME ? strlen(layer_name) + 1 : sizeof version;
    if (what != CL_LAYER_NAME && what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
    if (out && bytes < needed) return CL_INVALID_VALUE;
    if (out) memcpy(out, value, needed);
    if (length) *length = needed;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *target,
                                            cl_uint *own_count, const cl_icd_dispatch **own)
{
    static cl_icd_dispatch layer;
    const cl_uint entries = sizeof layer / sizeof(void *);
    if (!target || count < entries || !own_count || !own) return CL_INVALID_VALUE;
    layer_below = target;
    memcpy(&layer, target, sizeof layer);
    if (!layer_install(&layer)) return CL_INVALID_VALUE;
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
