/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL layer under which drivers fail, lie and hang as fault_layer.h says. Every call goes to
 * the driver below unless a fault wants otherwise. */
#include "fault_calls.h"

#include <stdlib.h>
#include <string.h>

CL_API_ENTRY cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count,
                                                          const cl_icd_dispatch *target,
                                                          cl_uint *own_count,
                                                          const cl_icd_dispatch **own,
                                                          const void *properties);
fault_set fault_layer_set;
fault_get fault_layer_get;

const cl_icd_dispatch *fault_below;
static cl_icd_dispatch layer;

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
    fault_below = target;
    memcpy(&layer, target, sizeof layer);
    fault_objects_install(&layer);
    fault_commands_install(&layer);
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
