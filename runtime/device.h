/* SPDX-License-Identifier: Apache-2.0 */
/* A device as the runtime sees it: its OpenCL context, features, budget, pool, programs. */
#ifndef CLEAVE_RUNTIME_DEVICE_H
#define CLEAVE_RUNTIME_DEVICE_H

#include "base/error.h"
#include "base/thread.h"
#include "runtime/pool.h"
#include "runtime/program.h"

#include <cleave/runtime.h>

#include <CL/cl.h>

typedef enum clv_device_state {
    CLV_DEVICE_CLOSED, /* not looked at yet */
    CLV_DEVICE_READY,
    CLV_DEVICE_QUARANTINED, /* failed to open, failed its check, or was lost; `trouble` says why */
} clv_device_state;

struct clv_device {
    clv_context *context;
    const clv_probe_device *facts;
    char label[96];
    char key[160];        /* names device, driver and sub-device in the caches */
    cl_device_id id;      /* the root device, or one of its parts */
    unsigned part, parts; /* 1-based part of a device that was split; 0 of 0: whole */

    clv_mutex lock;         /* state and pool */
    clv_mutex program_lock; /* the program table; held while a program builds */
    clv_device_state state;
    clv_error trouble;
    cl_context cl;

    bool zero_copy;       /* kernels work on host memory in place */
    bool nap;             /* waiting spins a core: poll and sleep instead */
    bool trust_profiling; /* event times can be used */
    unsigned depth;       /* chunks in flight in a job */
    uint64_t loop_limit;  /* loop turns a work-item survives; CLV_UNKNOWN: no limit */
    int pool_group;       /* devices with one number share their cores; -1: none */

    clv_pool pool;
    clv_program_table programs;
    struct clv_feeder *feeder; /* its thread; made by the first job */
};

/* For the context: fills the plain fields; opens nothing. */
void clv_device_init(clv_device *device, clv_context *context, const clv_probe_device *facts);
/* Frees everything but the struct; false when its thread hangs in the driver: then all stays. */
bool clv_device_close(clv_device *device);
/* From now on the device is not used; keeps the first reason. */
void clv_device_quarantine(clv_device *device, clv_status status);

#endif
