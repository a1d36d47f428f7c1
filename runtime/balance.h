/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes which units next: a state machine of plain facts and a clock that its caller reads.
 * It knows no thread, no device and no OpenCL; dispatch.c carries its decisions out, the tests
 * drive it on a virtual clock. Not thread-safe: one lock around every call. */
#ifndef CLEAVE_RUNTIME_BALANCE_H
#define CLEAVE_RUNTIME_BALANCE_H

#include "base/text.h"

#include <cleave/runtime.h>

enum { CLV_BALANCE_MAX_DEVICES = 16 };

/* What is known of a device before the job starts. */
typedef struct clv_balance_device {
    double units_per_s; /* speed of this job's units, transfers included; <= 0: unknown */
    double chunk_s;     /* what a chunk costs beyond its units (launches, waits); <= 0: unknown */
    double setup_s;     /* from the start of the job to its first chunk (builds); <= 0: ready */
    size_t max_chunk;   /* units that fit its memory at once; 0: any */
    unsigned depth;     /* chunks in flight at once, at least 1 */
    int pool;           /* devices with the same number >= 0 share their cores: one of them works */
} clv_balance_device;

typedef struct clv_balance_job {
    size_t units;
    size_t align;     /* chunks begin at multiples of it; 0 means 1 */
    size_t min_chunk; /* smallest useful chunk; 0 means align; the last one may be smaller */
    size_t batch;     /* largest chunk the user wants; 0: automatic */
    double chunk_units; /* fixed work of a chunk, in units (halo rows): larger chunks waste less */
    double target_s;    /* wanted length of a chunk where nothing else rules; 0 means 0.1 */
    clv_schedule schedule;
} clv_balance_job;

typedef struct clv_balance clv_balance;

/* CLV_E_MEMORY, CLV_E_ARGUMENT. `now` is the start of the job. */
clv_status clv_balance_create(const clv_balance_job *job, const clv_balance_device *devices,
                              size_t device_count, double now, clv_balance **balance);
void clv_balance_free(clv_balance *balance);

typedef enum clv_balance_act {
    CLV_BALANCE_WORK,  /* do units [first, first + count) as lease `id` */
    CLV_BALANCE_WAIT,  /* nothing now: ask again at `until`, or after any other event */
    CLV_BALANCE_LEAVE, /* this device is not wanted in this job (any more) */
} clv_balance_act;

typedef struct clv_balance_lease {
    clv_balance_act act;
    unsigned id;
    size_t first, count;
    bool speculative; /* the units are in flight on another device too */
    double expected_s; /* predicted length; <= 0: no prediction */
    double until;     /* for WAIT; infinity: only another event can change it */
} clv_balance_lease;

/* Asked before a device is set up: is it worth its setup? WORK means yes (no lease is made). */
clv_balance_lease clv_balance_admit(clv_balance *balance, size_t device, double now);

/* The device has a free slot. */
clv_balance_lease clv_balance_next(clv_balance *balance, size_t device, double now);

/* A lease ended well. `steady` is false for a chunk whose time says nothing about the next ones
 * (first launch of a kernel). True: commit the result. False: it came too late, drop it. */
bool clv_balance_done(clv_balance *balance, size_t device, unsigned id, double now, bool steady);

typedef enum clv_balance_failure {
    CLV_BALANCE_NO_MEMORY, /* did not fit: the units go back, the device gets smaller chunks */
    CLV_BALANCE_FAILED,    /* an error: the units go back; the second in a row ends the device */
    CLV_BALANCE_LOST,      /* the device is gone, with all it holds */
} clv_balance_failure;

/* True: the device may go on. False: it is out of this job. `id` is ignored for LOST. */
bool clv_balance_failed(clv_balance *balance, size_t device, unsigned id, double now,
                        clv_balance_failure failure);

bool clv_balance_finished(const clv_balance *balance); /* every unit is committed */
/* Nobody is left who could do the rest: units are open, no device works or may still join. */
bool clv_balance_stuck(const clv_balance *balance);

/* Leases whose device should be given up: past max(10 x prediction, 5 s). Calls `lost` for it
 * inside. Returns how many devices were lost; *until is when to look again. */
size_t clv_balance_tick(clv_balance *balance, double now, double *until);

/* ---- what became of it -------------------------------------------------------------------- */

typedef struct clv_balance_stats {
    size_t units, chunks;    /* committed */
    size_t dropped, failed;  /* leases without a commit */
    double busy_s;           /* time with at least one lease */
    double units_per_s;      /* speed as last estimated; <= 0: never measured */
    double chunk_s;          /* fixed time of a chunk, likewise */
    double finish;           /* when it last ended a lease */
    size_t max_chunk;        /* as lowered by NO_MEMORY; 0: never */
    unsigned samples;        /* steady chunks behind units_per_s */
} clv_balance_stats;

clv_balance_stats clv_balance_get_stats(const clv_balance *balance, size_t device);

/* Appends one sentence with the numbers: why the device did what it did, or was left out. */
void clv_balance_explain(const clv_balance *balance, size_t device, clv_text *text);

/* imbalance = max finish / mean finish - 1 over devices that worked; efficiency = time of an
 * ideal split at the measured speeds / time taken. */
void clv_balance_quality(const clv_balance *balance, double now, double *imbalance,
                         double *efficiency);

#endif
