/* SPDX-License-Identifier: Apache-2.0 */
/* Turns OpenCL's error codes into statuses and messages. */
#include "runtime/record/cl_status.h"

#include "base/error.h"
#include "probe/opencl/query.h"
#include "runtime/record/device.h"

bool clv_cl_is_memory(cl_int code)
{
    return code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
           code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
}

clv_status(clv_cl_fail)(const clv_device *device, const char *call, const char *what, cl_int code)
{
    return clv_fail(clv_cl_is_memory(code) ? CLV_E_DEVICE_MEMORY : CLV_E_DEVICE,
                    "%s: %s%s%s: %s (%d)", device->label, call, what ? " for " : "",
                    what ? what : "", clv_cl_status_name(code), (int)code);
}
