/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes which units next: a state machine of plain facts and a clock that its caller reads.
 * It knows no thread, no device and no OpenCL; dispatch.c carries its decisions out, the tests
 * drive it on a virtual clock. Not thread-safe: one lock around every call. Same calls, same
 * answers.
 *
 * The promise of the adaptive schedule (tests/platforms/test_balance.c): a job of a second or more,
 * or of devices whose speeds are known, whose smallest chunk is at most a hundredth of it, has all
 * its units committed no later than 1.02 times the best single device alone; as long as that
 * device is sound, whatever the others do. Committed, not returned: a chunk that came too late may
 * still be in flight on a slow device then. */
#ifndef CLEAVE_RUNTIME_JOB_BALANCE_BALANCE_H
#define CLEAVE_RUNTIME_JOB_BALANCE_BALANCE_H

#include "base/text.h"

#include <cleave/runtime.h>

enum { CLV_BALANCE_MAX_DEVICES = 16, CLV_BALANCE_MAX_DEPTH = 8 };

/* What is known of a device before the job starts. */
typedef struct clv_balance_device {
    double units_per_s; /* speed of this job's units, transfers included; <= 0: unknown */
    double chunk_s;     /* what a chunk costs beyond its units (launches, waits); <= 0: unknown */
    double guess_units_per_s; /* by the device's measured rates and the job's estimates: the size of
                                 a first chunk, decides nothing else; <= 0: none */
    double setup_s;           /* from its admission to its first chunk (builds); <= 0: ready */
    size_t max_chunk;         /* units that fit its memory at once; 0: any */
    unsigned depth; /* chunks in flight at once, 1 to CLV_BALANCE_MAX_DEPTH; in their order */
    int pool;       /* devices with the same number >= 0 share their cores: one of them works */
} clv_balance_device;

typedef struct clv_balance_job {
    size_t units;
    size_t align;       /* chunks begin at multiples of it; 0 means 1 */
    size_t min_chunk;   /* smallest useful chunk; 0 means align; the last one may be smaller */
    size_t batch;       /* largest chunk the user wants, but not below min_chunk; 0: automatic */
    double chunk_units; /* fixed work of a chunk, in units (halo rows): larger chunks waste less */
    double target_s;    /* wanted length of a chunk where nothing else rules; 0 means 0.1 */
    clv_schedule schedule;
} clv_balance_job;

typedef struct clv_balance clv_balance;

/* CLV_E_MEMORY, CLV_E_ARGUMENT. `now` is the start of the job. */
clv_status clv_balance_create(const clv_balance_job *job, const clv_balance_device *devices,
                              size_t device_count, double now, clv_balance **balance);
/* The same in the memory of a balance whose job is over: nothing is allocated. After an error it is
 * good for another restart and for clv_balance_free only. */
clv_status clv_balance_restart(clv_balance *balance, const clv_balance_job *job,
                               const clv_balance_device *devices, size_t device_count, double now);
void clv_balance_free(clv_balance *balance); /* accepts NULL */

typedef enum clv_balance_act {
    CLV_BALANCE_WORK, /* do units [first, first + count) as lease `id` */
    CLV_BALANCE_WAIT, /* nothing now: ask again at `until`, or after any lease of any device ended */
    CLV_BALANCE_LEAVE, /* the job is done, or this device is out of it: for good */
} clv_balance_act;

typedef struct clv_balance_lease {
    clv_balance_act act;
    unsigned id;
    size_t first, count;
    bool speculative;  /* the units are in flight on another device too */
    double expected_s; /* predicted length; <= 0: no prediction */
    double until;      /* for WAIT; infinity: only another event can change it */
} clv_balance_lease;

/* Asked before a device is set up: is it worth its setup? WORK means yes (no lease is made), and
 * the device is expected to ask for its first chunk when it is ready. */
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

/* True: the device may go on. False: it is out of this job. `id` is ignored for LOST; 0 says that
 * no lease failed but the set-up, which ends the device. */
bool clv_balance_failed(clv_balance *balance, size_t device, unsigned id, double now,
                        clv_balance_failure failure);

bool clv_balance_finished(const clv_balance *balance); /* every unit is committed */
/* Nobody is left who could do the rest: units are open, no device works or may still join. */
bool clv_balance_stuck(const clv_balance *balance);

/* Gives up devices that never asked within a minute, and those whose lease is past max(10 x prediction, 5 s); their
 * first one, in which kernels may be compiled, past a minute; one without a prediction past ten. `lost` for each,
 * inside; stats.out tells which, and what they still report is dropped. Returns how many; *until is when to look
 * again. */
size_t clv_balance_tick(clv_balance *balance, double now, double *until);

/* Takes up to `most` of the lowest free units out of the balance, as committed: somebody who is no
 * device of it does them. False: none is free, or no memory. */
bool clv_balance_take(clv_balance *balance, size_t most, size_t *first, size_t *count);

/* ---- what became of it -------------------------------------------------------------------- */

typedef struct clv_balance_stats {
    size_t units, chunks;   /* committed */
    size_t dropped, failed; /* leases without a commit */
    double busy_s;          /* time with at least one lease */
    double units_per_s;     /* speed as last estimated; <= 0: never measured */
    double chunk_s;         /* fixed time of a chunk, likewise; without its chunk_units */
    double finish;          /* when it last ended a lease */
    size_t max_chunk;       /* as lowered by NO_MEMORY; 0: never */
    unsigned samples;       /* steady chunks behind units_per_s */
    bool out;               /* lost, failed, hung or without room: for good */
} clv_balance_stats;

clv_balance_stats clv_balance_get_stats(const clv_balance *balance, size_t device);

/* Appends one sentence with the numbers: why the device did what it did, or was left out. */
void clv_balance_explain(const clv_balance *balance, size_t device, clv_text *text);

/* imbalance = max finish / mean finish - 1 over devices that worked; efficiency = time of an
 * ideal split at the measured speeds / time taken. */
void clv_balance_quality(const clv_balance *balance, double now, double *imbalance,
                         double *efficiency);

#endif
