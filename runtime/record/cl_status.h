/* SPDX-License-Identifier: Apache-2.0 */
/* Turns OpenCL's error codes into statuses and messages. */
#ifndef CLEAVE_RUNTIME_RECORD_CL_STATUS_H
#define CLEAVE_RUNTIME_RECORD_CL_STATUS_H

#include <cleave/runtime.h>

#include <CL/cl.h>

/* Fails with a message such as "AMD EPYC (pocl): clEnqueueNDRangeKernel for clv_paco_centre:
 * CL_OUT_OF_RESOURCES (-5)". `what` may be NULL. Codes that mean lack of memory give CLV_E_DEVICE_MEMORY,
 * others CLV_E_DEVICE. */
clv_status clv_cl_fail(const clv_device *device, const char *call, const char *what, cl_int code);
#ifdef __clang_analyzer__ /* the analyzer cannot see that a failure is never CLV_OK */
#define clv_cl_fail(device, call, what, code) \
    ((clv_cl_fail)((device), (call), (what), (code)), CLV_E_DEVICE)
#endif

bool clv_cl_is_memory(cl_int code); /* true for the codes that drivers use for "no room" */

#endif
