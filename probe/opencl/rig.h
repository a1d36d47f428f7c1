/* SPDX-License-Identifier: Apache-2.0 */
/* The minimum of OpenCL that is needed to build and run a kernel: for the check and the bench, which are below the
 * runtime. */
#ifndef CLEAVE_PROBE_RIG_H
#define CLEAVE_PROBE_RIG_H

#include <cleave/runtime.h>

#include <CL/cl.h>

typedef struct clv_rig {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue; /* in-order, with event times if the device offers them */
    cl_program program;
    cl_mem buffers[4];
    bool profiling;
} clv_rig;

/* Opens a rig that was zero-initialised; call clv_rig_close in any case. */
clv_status clv_rig_open(clv_rig *rig, const clv_probe_device *device);
void clv_rig_close(clv_rig *rig);

/* Builds a program, replacing the previous one; `options` come after -cl-std=CL1.2. The build log becomes the error's
 * detail. */
clv_status clv_rig_build(clv_rig *rig, const clv_cl_source *source, const char *options);

/* (Re)creates buffer `slot` with `bytes` bytes, filled with a copy of `data` unless that is NULL. */
clv_status clv_rig_buffer(clv_rig *rig, unsigned slot, size_t bytes, const void *data);
clv_status clv_rig_read(clv_rig *rig, unsigned slot, void *out, size_t bytes);

typedef struct clv_rig_arg {
    const void *value;
    size_t bytes;
} clv_rig_arg;

/* The kernel's arguments are the first `buffer_count` buffers, then `args`. `work` is the number of dimensions; then
 * come the global and local sizes. */
typedef struct clv_rig_launch {
    const char *kernel;
    unsigned buffer_count;
    const clv_rig_arg *args;
    size_t arg_count;
    unsigned dimensions;
    size_t global[2], local[2];
} clv_rig_launch;

/* Creates the kernel and sets its arguments; the caller releases the kernel. */
clv_status clv_rig_kernel(clv_rig *rig, const clv_rig_launch *launch, cl_kernel *kernel);
/* Enqueues a kernel and waits for its event; `seconds` (may be NULL) is measured by the host's clock. */
clv_status clv_rig_time(clv_rig *rig, const clv_rig_launch *launch, cl_kernel kernel,
                        double *seconds);
/* Creates, runs and releases a kernel once. */
clv_status clv_rig_run(clv_rig *rig, const clv_rig_launch *launch);

/* Sets the error "clEnqueueNDRangeKernel gave -5 (CL_OUT_OF_RESOURCES)" and returns the status that fits the code. */
clv_status clv_rig_fail(const char *call, cl_int code);

#endif
