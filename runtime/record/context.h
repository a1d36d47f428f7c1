/* SPDX-License-Identifier: Apache-2.0 */
/* The devices chosen for a caller, and what they share: caches, notes, trace, policy. */
#ifndef CLEAVE_RUNTIME_RECORD_CONTEXT_H
#define CLEAVE_RUNTIME_RECORD_CONTEXT_H

#include "runtime/job/balance/balance.h"
#include "runtime/program/cache.h"
#include "runtime/device/device.h"
#include "runtime/record/notes.h"
#include "runtime/record/trace.h"

#include <cleave/array_data.h>

#include <stdatomic.h>

struct clv_context {
    clv_probe_report *probe;
    clv_mode mode;
    char reason[320];
    clv_device *devices; /* candidates for jobs, best first */
    size_t device_count;

    clv_schedule schedule;
    size_t batch;
    unsigned plain_threads; /* of the plain C path; 0: as many as we may use */
    uint64_t memory_bytes;
    double memory_fraction;
    uint64_t tensor_bytes; /* 0: each budget */
    bool tuning, checks, binding;
    bool ordered; /* the caller named devices or a mode: nobody else may stand in from the start */

    clv_cache cache;
    clv_notes speeds, tuned;
    clv_trace *trace;               /* NULL: none is kept */
    char trace_path[CLV_PATH_MOST]; /* CLEAVE_TRACE; "": none */

    clv_mutex job_lock;         /* one job at a time; taken by clv_jobs_lock */
    atomic_uintptr_t job_owner; /* the thread that has it; 0: nobody */
    clv_mutex shelf_lock;       /* of the shelf and of what is spare */
    struct clv_run *shelf;      /* runs that no job uses */
    void *spare;                /* memory that no call uses */
    size_t spare_bytes;         /* its size */
    struct clv_plain *late;     /* threads of the plain C path that have not begun; job_lock */
    struct clv_engine *engine;  /* of flat calls; made by the first one; job_lock guards it */
    clv_mutex offload_lock;     /* of the next; taken before job_lock */
    struct clv_offload_table
        *offload;            /* what is known of host and device; made by the first call */
    clv_mutex array_lock;    /* of the next two */
    struct clv_texts *texts; /* generated kernels; live as long as the context */
    clv_array_stats array_stats;
};

/* job_lock. False: clv_jobs_held. */
bool clv_jobs_lock(clv_context *context);
void clv_jobs_unlock(clv_context *context);
/* This thread has it, or works for who has it: a function of the caller's (progress, a reference) calls
 * back, and would wait for itself. */
bool clv_jobs_held(clv_context *context);
/* This thread works for the job at hand from now on; NULL: no more. */
void clv_jobs_serve(const clv_context *context);
/* What such a call gets where nobody but a device can do it: CLV_E_NO_DEVICE. */
clv_status clv_jobs_refuse(const char *what);
/* Seconds; stands still while this thread waits for that lock, behind jobs of others. */
double clv_jobs_clock(void);

/* Which probe devices a caller gets; pure. `chosen` has room for report->device_count and is in
 * the order of use. CLV_E_NO_DEVICE, CLV_E_ARGUMENT. */
clv_status clv_choose_devices(const clv_probe_report *report, clv_mode mode, const char *selection,
                              size_t *chosen, size_t *count);

#endif
