/* SPDX-License-Identifier: Apache-2.0 */
/* Sends single queries to a driver, and does not trust the answers. Only files of the probe that call OpenCL include
 * this header. */
#ifndef CLEAVE_PROBE_QUERY_H
#define CLEAVE_PROBE_QUERY_H

#include "probe/machine.h"

#include <CL/cl.h>

/* Queries numbers, structures or arrays. Returns true if the driver answered with 1 to `bytes` bytes; the rest of `out`
 * is zero then. If it returns false, `out` is unchanged. `got` receives the answer's length and may be NULL. */
bool clv_query_device(cl_device_id device, cl_device_info what, void *out, size_t bytes,
                      size_t *got);

/* Return the answer to a query for a text, which exists as long as the report; NULL if the driver does not answer. */
const char *clv_query_device_text(clv_machine *machine, cl_device_id device, cl_device_info what);
const char *clv_query_platform_text(clv_machine *machine, cl_platform_id platform,
                                    cl_platform_info what);
/* Return the answer to a query for a cl_version as text, such as "3.0.0". */
const char *clv_query_platform_version(clv_machine *machine, cl_platform_id platform,
                                       cl_platform_info what);
const char *clv_query_device_version(clv_machine *machine, cl_device_id device,
                                     cl_device_info what);

/* Returns the name of an OpenCL status, such as "CL_OUT_OF_RESOURCES", or "unknown status". */
const char *clv_cl_status_name(cl_int status);

#endif
