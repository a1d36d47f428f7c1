/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a device: what is known of it, what it may use, its OpenCL handles, and one pointer to
 * each of its parts.
 *
 * All of runtime/ reads it. context/devices.c makes it, makes its parts and frees both. Only the file
 * that a part is named for looks inside that part, and no part calls its owner. */
#ifndef CLEAVE_RUNTIME_RECORD_DEVICE_H
#define CLEAVE_RUNTIME_RECORD_DEVICE_H

#include "base/error.h"
#include "base/thread.h"
#include "probe/measure/measure.h"

#include <cleave/runtime.h>

#include <CL/cl.h>
#include <stdatomic.h>

enum { CLV_REHEARSED = 32 };

typedef enum clv_device_state {
    CLV_DEVICE_CLOSED, /* not looked at yet */
    CLV_DEVICE_READY,
    CLV_DEVICE_QUARANTINED, /* failed to open, failed its check, or was lost; `trouble` says why */
} clv_device_state;

/* What compilers cost since the device was opened: seconds that somebody waited for them. */
typedef struct clv_compile_cost {
    size_t programs, kernels;
    double seconds;
} clv_compile_cost;

struct clv_device {
    /* ---- facts and wishes: set before anybody uses the device, and constant from then on ---- */
    const clv_probe_report *probe;
    size_t probe_index; /* of the device in it */
    unsigned born;      /* base/fork.h */
    const clv_probe_device *facts;
    char *identity;                /* all that a binary for it depends on */
    const struct clv_cache *cache; /* of programs; program/cache.h */
    struct clv_trace *trace;       /* NULL: none is kept; record/trace.h */
    bool check;                    /* it works only after its qualification */
    bool bind;                     /* its threads may be bound to cores */
    char *
        driver_cache; /* where the driver keeps compiled kernels itself, as a text; NULL: it does not */
    const char *helper; /* program that compiles in another process; NULL: the installed one */
    unsigned compilers; /* such processes at once; below 2: none */
    char label[96];
    char key[160];        /* names device and driver in notes; equal parts share theirs */
    unsigned part, parts; /* 1-based part of a device that was split; 0 of 0: whole */
    bool zero_copy;       /* kernels work on host memory in place */
    bool slow_fma;        /* fma() takes hundreds of instructions */
    bool nap;             /* waiting spins a core: poll and sleep instead */
    bool event_times; /* queues have their commands timed, which costs cards time of their own */
    unsigned depth;   /* chunks in flight in a job */
    int pool_group;   /* devices with one number share their cores; -1: none */

    /* ---- handles and state: device/device.c ---- */
    clv_mutex lock;       /* guards state, budget, pool and tensors */
    clv_mutex check_lock; /* guards the qualification; of the first part, for all parts */
    bool checked;
    clv_qualification found;        /* once `checked`, for all parts */
    double check_s;                 /* what the check cost this device; 0: it was on record */
    _Atomic clv_device_state state; /* written under the lock */
    clv_error trouble;
    cl_device_id id; /* the root device, or one of its parts */
    cl_context cl;
    bool bound;            /* each of its driver's threads has a core of its own */
    int home;              /* core for a thread that waits and so computes with it; -1: any */
    bool trust_profiling;  /* event times can be used */
    uint64_t loop_limit;   /* loop turns a work-item survives; CLV_UNKNOWN: no limit */
    atomic_bool compiling; /* its thread waits for the driver's compiler */
    bool closed;           /* its thread has ended and nothing of it is left in OpenCL */
    atomic_bool hung; /* its thread is inside the driver and was given up: no job counts on it */
    _Atomic uint64_t budget; /* bytes we allow ourselves; lowered when they prove too many */

    /* ---- parts ---- */
    struct clv_pool *pool;            /* device/pool.h */
    struct clv_tensor_cache *tensors; /* device/tensor_cache.h */
    clv_mutex use_lock;           /* which commands use which buffer; may be taken under `lock` */
    clv_mutex program_lock;       /* guards the programs; held while one builds */
    struct clv_program *programs; /* program/program.h */
    clv_compile_cost compiled;    /* under program_lock */
    clv_mutex ahead_lock;         /* who has it compiles ahead (program/ahead.c); as check_lock */
    uint64_t rehearsed[CLV_REHEARSED]; /* jobs, by the feeder's thread (job/rehearsal.c) */
    unsigned rehearsed_count;
    struct clv_feeder *feeder; /* its thread, made by the first job; device/feeder.h */
};

#endif
