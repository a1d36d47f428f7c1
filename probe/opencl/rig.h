/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the few OpenCL calls that are necessary to build and run a kernel. The check and the bench use them, because
 * they must not depend on the runtime. */
#ifndef CLEAVE_PROBE_RIG_H
#define CLEAVE_PROBE_RIG_H

#include <cleave/runtime.h>

#include <CL/cl.h>

typedef struct clv_rig {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue; /* in-order, with event times if the device supports them */
    cl_program program;
    cl_mem buffers[4];
    bool profiling;
} clv_rig;

/* Opens a rig that is zero-initialised. Call clv_rig_close even after a failure. */
clv_status clv_rig_open(clv_rig *rig, const clv_probe_device *device);
void clv_rig_close(clv_rig *rig);

/* Builds a program, which replaces the previous one. `options` follow -cl-std=CL1.2. After a failure, the build log is
 * the error's detail. */
clv_status clv_rig_build(clv_rig *rig, const clv_cl_source *source, const char *options);

/* Creates or replaces buffer `slot`, of `bytes` bytes, and copies `data` into it unless `data` is NULL. */
clv_status clv_rig_buffer(clv_rig *rig, unsigned slot, size_t bytes, const void *data);
clv_status clv_rig_read(clv_rig *rig, unsigned slot, void *out, size_t bytes);

typedef struct clv_rig_arg {
    const void *value;
    size_t bytes;
} clv_rig_arg;

/* A kernel launch. The kernel's arguments are the first `buffer_count` buffers, then `args`. `work` is the number of
 * dimensions, followed by the global and local sizes. */
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
/* Enqueues a kernel and waits for its event. `seconds`, which may be NULL, receives the time by the host's clock. */
clv_status clv_rig_time(clv_rig *rig, const clv_rig_launch *launch, cl_kernel kernel,
                        double *seconds);
/* Creates a kernel, runs it once and releases it. */
clv_status clv_rig_run(clv_rig *rig, const clv_rig_launch *launch);

/* Sets the error "clEnqueueNDRangeKernel gave -5 (CL_OUT_OF_RESOURCES)" and returns the status that fits the code. */
clv_status clv_rig_fail(const char *call, cl_int code);

#endif
