/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the record of a device: its facts, what it may use, its OpenCL handles, and one pointer to each of its
 * parts.
 *
 * All of runtime/ reads the record. context/devices.c makes the record and its parts and frees both. Only the file
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
    CLV_DEVICE_CLOSED, /* not opened yet */
    CLV_DEVICE_READY,
    CLV_DEVICE_QUARANTINED, /* failed to open, failed its check, or was lost; `trouble` says why */
} clv_device_state;

/* The cost of compilers since the device was opened: the time that callers waited for them. */
typedef struct clv_compile_cost {
    size_t programs, kernels;
    double seconds;
} clv_compile_cost;

struct clv_device {
    /* ---- facts and wishes: set before the device is used, and constant from then on --------- */
    const clv_probe_report *probe;
    size_t probe_index; /* index of the device in the report */
    unsigned born;      /* fork generation: base/fork.h */
    const clv_probe_device *facts;
    char *identity;                /* everything that a binary for the device depends on */
    const struct clv_cache *cache; /* of programs; program/cache.h */
    struct clv_trace *trace;       /* NULL: no trace is kept; record/trace.h */
    bool check;                    /* use the device only after its qualification */
    bool bind;                     /* the driver's threads may be bound to cores */
    char *
        driver_cache; /* where the driver itself keeps the kernels that it has compiled, as text; NULL: nowhere */
    const char *helper; /* program of the helper processes; NULL: the installed one */
    unsigned compilers; /* most helper processes at once; below 2: none */
    char label[96];
    char key[160];        /* names device and driver in notes; equal parts of a device share one */
    unsigned part, parts; /* 1-based part of a device that was split; 0 of 0: whole */
    bool zero_copy;       /* kernels work on host memory in place */
    bool slow_fma;        /* fma() takes hundreds of instructions */
    bool declares;        /* programs declare the built-in functions that they use */
    unsigned again;       /* programs that had to be built with the driver's declarations instead */
    bool nap;             /* a waiting driver spins on a core: poll and sleep instead */
    bool event_times;     /* queues time their commands, which costs cards time of its own */
    unsigned depth;       /* chunks in flight in a job */
    int pool_group;       /* devices with the same number share their cores; -1: none */

    /* ---- handles and state: device/device.c ---- */
    clv_mutex lock;       /* guards state, budget, pool and tensors */
    clv_mutex check_lock; /* guards the qualification; all parts use the first part's */
    bool checked;
    clv_qualification found;        /* valid once `checked`, for all parts */
    double check_s;                 /* seconds the check took on this device; 0: it was on record */
    _Atomic clv_device_state state; /* written under the lock */
    clv_error trouble;
    cl_device_id id; /* the root device, or one of its parts */
    cl_context cl;
    bool bound;            /* each of its driver's threads has a core of its own */
    int home;              /* core of a thread that waits and thereby computes; -1: any */
    bool trust_profiling;  /* event times can be used */
    uint64_t loop_limit;   /* loop turns that a work-item survives; CLV_UNKNOWN: no limit */
    atomic_bool compiling; /* its thread waits for the driver's compiler */
    bool closed;           /* its thread has ended, and it holds no OpenCL object any more */
    atomic_bool hung; /* its thread hangs in the driver and was given up: no job counts on it */
    _Atomic uint64_t budget; /* bytes we allow ourselves; lowered when they prove too many */

    /* ---- parts ---- */
    struct clv_pool *pool;             /* device/pool.h */
    struct clv_tensor_cache *tensors;  /* device/tensor_cache.h */
    clv_mutex use_lock;                /* guards the buffers' uses; may be taken under `lock` */
    clv_mutex program_lock;            /* guards the programs; held while one builds */
    struct clv_program *programs;      /* program/program.h */
    clv_compile_cost compiled;         /* guarded by program_lock */
    clv_mutex ahead_lock;              /* held to compile ahead (program/ahead.c); as check_lock */
    uint64_t rehearsed[CLV_REHEARSED]; /* job hashes; only for its thread (job/rehearsal.c) */
    unsigned rehearsed_count;
    struct clv_feeder *feeder; /* its thread, made by the first job; device/feeder.h */
};

#endif
