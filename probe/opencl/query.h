/* SPDX-License-Identifier: Apache-2.0 */
/* Single questions to a driver whose answers are not trusted. Only files of the probe that talk to
 * OpenCL include this. */
#ifndef CLEAVE_PROBE_QUERY_H
#define CLEAVE_PROBE_QUERY_H

#include "probe/machine.h"

#include <CL/cl.h>

/* Numbers, structures, arrays: true when the driver answered with 1 to `bytes` bytes; the rest of
 * `out` is zero then. After false `out` is untouched. `got` (may be NULL) is the answer's length. */
bool clv_query_device(cl_device_id device, cl_device_info what, void *out, size_t bytes,
                      size_t *got);

/* Texts; NULL when the driver does not say. */
const char *clv_query_device_text(clv_machine *machine, cl_device_id device, cl_device_info what);
const char *clv_query_platform_text(clv_machine *machine, cl_platform_id platform,
                                    cl_platform_info what);
/* "3.0.0" from a packed cl_version. */
const char *clv_query_platform_version(clv_machine *machine, cl_platform_id platform,
                                       cl_platform_info what);
const char *clv_query_device_version(clv_machine *machine, cl_device_id device,
                                     cl_device_info what);

/* Name of an OpenCL status, such as "CL_OUT_OF_RESOURCES"; "unknown status" otherwise. */
const char *clv_cl_status_name(cl_int status);

#endif
