/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the record of a context: the caller's wishes, the chosen devices, what they share, and one pointer to each
 * part.
 *
 * All of runtime/ reads the record. context/context.c makes the record and its parts and frees both. Only the file
 * that a part is named for looks inside that part, and no part calls its owner. */
#ifndef CLEAVE_RUNTIME_RECORD_CONTEXT_H
#define CLEAVE_RUNTIME_RECORD_CONTEXT_H

#include "base/file.h"
#include "runtime/record/device.h"
#include "runtime/record/notes.h"
#include "runtime/record/trace.h"

#include <cleave/array_data.h>

#include <stdatomic.h>

struct clv_context {
    /* ---- wishes and choices: constant once the context is made ---- */
    clv_probe_report *probe;
    unsigned born; /* fork generation: base/fork.h */
    clv_mode mode;
    char reason[320];
    clv_device *devices; /* candidates for jobs, best first */
    size_t device_count;
    clv_schedule schedule;
    size_t batch;
    unsigned plain_threads; /* threads of the plain C path; 0: as many as this process may use */
    uint64_t memory_bytes;
    double memory_fraction;
    uint64_t tensor_bytes; /* limit of kept tensors; 0: each device's budget */
    bool tuning, checks, binding, event_times;
    unsigned compilers; /* most helper processes that compile at once */
    char *helper;       /* path of the helper program; NULL: the installed one */
    bool ordered;       /* the caller named devices or a mode: no fallback at the start */
    char trace_path[CLV_PATH_MOST]; /* CLEAVE_TRACE; "": none */

    /* ---- what is kept on disk, and the trace ---- */
    struct clv_cache *cache; /* compiled programs; program/cache.h */
    clv_notes speeds, tuned;
    clv_trace *trace; /* NULL: no trace is kept */

    /* ---- parts ---- */
    const struct clv_spread *spread;   /* other processes that do units; NULL: none; job/spread.h */
    struct clv_texts *texts;           /* generated kernels; program/texts.h */
    clv_mutex job_lock;                /* one job at a time; taken by clv_jobs_lock (job/turn.h) */
    atomic_bool preparing;             /* calls only note their kernels; context/prepare.h */
    atomic_uintptr_t job_owner;        /* the thread that holds job_lock; 0: none */
    clv_mutex shelf_lock;              /* guards the shelf and the spare memory */
    struct clv_run *shelf;             /* runs that no job uses at present; job/run.h */
    void *spare;                       /* memory that no call uses at present; device/spare.h */
    size_t spare_bytes;                /* size of `spare` */
    struct clv_plain *late;            /* threads not begun yet, under job_lock; job/plain.h */
    struct clv_engine *engine;         /* for flat calls; the first one makes it, under job_lock */
    struct clv_offload_table *offload; /* known speeds of host and device; offload/table.h */
    clv_mutex array_lock;              /* guards array_stats */
    clv_array_stats array_stats;       /* host/array/ counts them */
    /* calls return before they have run; `backlog` is made before this is first set, and stays */
    atomic_bool asynchronous;
    struct clv_backlog *backlog; /* runs these calls; made under array_lock; job/backlog.h */
    struct clv_team
        *team;           /* shares products on the host; made once, under array_lock; base/team.h */
    bool team_tried;     /* `team` was made, or could not be */
    atomic_size_t holds; /* 1 for the caller, 1 for each array's memory */
    struct clv_context *next_left; /* next context freed while a device hung; context/free.c */
};

#endif
