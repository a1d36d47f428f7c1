/* SPDX-License-Identifier: Apache-2.0 */
/* A device as the runtime sees it: its OpenCL context, features, budget, pool, programs. It knows
 * nothing of the context that owns it but what that one put here. */
#ifndef CLEAVE_RUNTIME_DEVICE_DEVICE_H
#define CLEAVE_RUNTIME_DEVICE_DEVICE_H

#include "base/error.h"
#include "base/thread.h"
#include "probe/measure/measure.h"
#include "runtime/program/cache.h"
#include "runtime/device/pool.h"
#include "runtime/program/program.h"
#include "runtime/device/tensor_cache.h"

#include <cleave/runtime.h>

#include <CL/cl.h>
#include <stdatomic.h>

typedef enum clv_device_state {
    CLV_DEVICE_CLOSED, /* not looked at yet */
    CLV_DEVICE_READY,
    CLV_DEVICE_QUARANTINED, /* failed to open, failed its check, or was lost; `trouble` says why */
} clv_device_state;

struct clv_device {
    /* from its context, before anybody uses it */
    const clv_probe_report *probe;
    size_t probe_index; /* of the device in it */
    const clv_probe_device *facts;
    char *identity;          /* all that a binary for it depends on */
    const clv_cache *cache;  /* of programs */
    struct clv_trace *trace; /* NULL: none is kept */
    bool check;              /* it works only after its qualification */
    bool bind;               /* its threads may be bound to cores */
    char label[96];
    char key[160];        /* names device and driver in notes; equal parts share theirs */
    cl_device_id id;      /* the root device, or one of its parts */
    unsigned part, parts; /* 1-based part of a device that was split; 0 of 0: whole */

    clv_mutex lock;       /* state, budget, pool and tensors */
    clv_mutex use_lock;   /* which commands use which buffer; may be taken under `lock` */
    clv_mutex check_lock; /* the qualification; of the first part, for all parts */
    bool checked;
    clv_qualification found;        /* once `checked`, for all parts */
    double check_s;                 /* what the check cost this device; 0: it was on record */
    clv_mutex program_lock;         /* the program table; held while a program builds */
    _Atomic clv_device_state state; /* written under the lock */
    clv_error trouble;
    cl_context cl;

    bool zero_copy;        /* kernels work on host memory in place */
    bool slow_fma;         /* hundreds of instructions */
    bool nap;              /* waiting spins a core: poll and sleep instead */
    bool bound;            /* each of its driver's threads has a core of its own */
    int home;              /* core for a thread that waits and so computes with it; -1: any */
    bool trust_profiling;  /* event times can be used */
    unsigned depth;        /* chunks in flight in a job */
    uint64_t loop_limit;   /* loop turns a work-item survives; CLV_UNKNOWN: no limit */
    atomic_bool compiling; /* its thread waits for the driver's compiler */
    atomic_bool hung; /* its thread is inside the driver and was given up: no job counts on it */
    int pool_group;   /* devices with one number share their cores; -1: none */

    /* bytes of its memory that we allow ourselves; lowered when they prove too many */
    _Atomic uint64_t budget;
    clv_pool pool;
    clv_tensor_cache tensors;
    clv_program_table programs;
    struct clv_feeder *feeder; /* its thread; made by the first job */
};

/* For the context: fills the plain fields; opens nothing. */
void clv_device_init(clv_device *device, const clv_probe_report *probe, size_t index);
/* Frees everything but the struct; false when its thread hangs in the driver: then all stays. */
bool clv_device_close(clv_device *device);
/* From now on the device is not used; keeps the first reason. */
void clv_device_quarantine(clv_device *device, clv_status status);
/* Does the device still do the simplest thing, a small copy there and back? After an error that may
 * mean "no room" as well as "gone". Quarantines it and passes the failure on when it does not. */
clv_status clv_device_still_works(clv_device *device);

#endif
