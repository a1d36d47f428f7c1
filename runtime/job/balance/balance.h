/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which device takes which units next. The balancer is a state machine that knows only plain facts and the
 * times its caller passes in: no thread, no device, no OpenCL. dispatch.c and worker.c carry out its decisions, and
 * the tests drive it on a virtual clock. It is not thread-safe: its caller holds one lock around every call. The same
 * calls give the same answers.
 *
 * The promise of the adaptive schedule (tests/platforms/test_balance.c) holds for a job that lasts a second or more,
 * or whose devices have known speeds, if its smallest chunk is at most a hundredth of the job: all units are
 * committed no later than 1.02 times the time of the best single device alone, as long as that device is sound,
 * whatever the other devices do. The promise is about the commits, not about the return: a chunk that came too late
 * may still be in flight on a slow device at that time. */
#ifndef CLEAVE_RUNTIME_JOB_BALANCE_BALANCE_H
#define CLEAVE_RUNTIME_JOB_BALANCE_BALANCE_H

#include "base/text.h"

#include <cleave/runtime.h>

enum { CLV_BALANCE_MAX_DEVICES = 16, CLV_BALANCE_MAX_DEPTH = 8 };

/* What is known of a device before the job starts. */
typedef struct clv_balance_device {
    double units_per_s;       /* speed of this job's units, transfers included; <= 0: unknown */
    double chunk_s;           /* fixed time of a chunk (launches, waits); <= 0: unknown */
    double guess_units_per_s; /* from the device's measured rates and the job's estimates; sets
                                 the size of a first chunk and nothing else; <= 0: none */
    double setup_s;           /* seconds from admission to first chunk (builds); <= 0: ready */
    size_t max_chunk;         /* units that fit its memory at once; 0: any number */
    double longest_s; /* most seconds that a chunk may be expected to take; <= 0: no limit */
    unsigned depth;   /* chunks in flight at once, 1 to CLV_BALANCE_MAX_DEPTH; they end in order */
    int pool;         /* devices with the same number >= 0 share their cores: only one works */
} clv_balance_device;

typedef struct clv_balance_job {
    size_t units;
    size_t align;       /* chunks begin at multiples of it; 0 means 1 */
    size_t min_chunk;   /* smallest useful chunk; 0 means align; the last one may be smaller */
    size_t batch;       /* largest chunk the user wants, but not below min_chunk; 0: automatic */
    double chunk_units; /* fixed work of a chunk, in units (halo rows): larger chunks waste less */
    double target_s;    /* desired seconds per chunk unless another rule applies; 0 means 0.1 */
    clv_schedule schedule;
} clv_balance_job;

typedef struct clv_balance clv_balance;

/* Creates a balance. `now` is the start of the job. Errors: CLV_E_MEMORY, CLV_E_ARGUMENT. */
clv_status clv_balance_create(const clv_balance_job *job, const clv_balance_device *devices,
                              size_t device_count, double now, clv_balance **balance);
/* Prepares the memory of a balance whose job is over for a new job, like clv_balance_create but without allocating.
 * After an error you can only restart the balance again or free it. */
clv_status clv_balance_restart(clv_balance *balance, const clv_balance_job *job,
                               const clv_balance_device *devices, size_t device_count, double now);
void clv_balance_free(clv_balance *balance); /* accepts NULL */

typedef enum clv_balance_act {
    CLV_BALANCE_WORK,  /* do units [first, first + count) as lease `id` */
    CLV_BALANCE_WAIT,  /* ask again at `until`, or after any device's lease ended */
    CLV_BALANCE_LEAVE, /* never ask again: the job is done, or this device is out of it */
} clv_balance_act;

typedef struct clv_balance_lease {
    clv_balance_act act;
    unsigned id;
    size_t first, count;
    bool speculative;  /* the units are in flight on another device too */
    double expected_s; /* predicted length; <= 0: no prediction */
    double until;      /* for WAIT: when to ask again; infinity: after another event */
} clv_balance_lease;

/* Tells whether a device is worth its set-up; asked before the set-up. WORK means yes: no lease is made,
 * and the device is expected to ask for its first chunk when it is ready. */
clv_balance_lease clv_balance_admit(clv_balance *balance, size_t device, double now);

/* Returns what a device with a free slot should do next. */
clv_balance_lease clv_balance_next(clv_balance *balance, size_t device, double now);

/* Ends a lease whose chunk succeeded. Pass `steady` = false for a chunk whose time says nothing about
 * the next ones (first launch of a kernel). Returns true if the caller must commit the result, false if
 * it came too late and must be dropped. */
bool clv_balance_done(clv_balance *balance, size_t device, unsigned id, double now, bool steady);

typedef enum clv_balance_failure {
    CLV_BALANCE_NO_MEMORY, /* did not fit: its units go back, later chunks are smaller */
    CLV_BALANCE_FAILED,    /* an error: its units go back; two in a row put the device out */
    CLV_BALANCE_LOST,      /* the device is gone, with all its units in flight */
} clv_balance_failure;

/* Ends a lease whose chunk failed. Returns whether the device may go on; false: it is out of this job.
 * `id` is ignored for LOST; 0 says that not a lease but the set-up failed, which puts the device out. */
bool clv_balance_failed(clv_balance *balance, size_t device, unsigned id, double now,
                        clv_balance_failure failure);

bool clv_balance_finished(const clv_balance *balance); /* true when every unit is committed */
/* Returns true when units are open but no device works or may still join, so that no device is left for the rest. */
bool clv_balance_stuck(const clv_balance *balance);

/* Gives up devices that hang: those that never asked within a minute, and those whose oldest lease is past max(10 x
 * prediction, 5 s). A device's first lease, during which kernels may be compiled, gets at least a minute; the lease
 * of a device of unknown speed gets at least ten. For each such device the balance acts as for LOST; stats.out is
 * then set, and what the device still reports is dropped. Returns the number of devices given up; *until is when to
 * call again. */
size_t clv_balance_tick(clv_balance *balance, double now, double *until);

/* Takes up to `most` of the lowest free units out of the balance and counts them as committed, because the plain C
 * path, which is none of the balance's devices, computes them. Returns false when no unit is free, or without
 * memory. */
bool clv_balance_take(clv_balance *balance, size_t most, size_t *first, size_t *count);

/* ---- figures of a job --------------------------------------------------------------------- */

typedef struct clv_balance_stats {
    size_t units, chunks;   /* committed by this device */
    size_t dropped, failed; /* leases without a commit */
    double busy_s;          /* time with at least one lease */
    double units_per_s;     /* speed as last estimated; <= 0: never measured */
    double chunk_s;         /* fixed time of a chunk as last estimated, without chunk_units */
    double finish;          /* when it last ended a lease */
    size_t max_chunk;       /* largest chunk, as lowered by NO_MEMORY; 0: never lowered */
    unsigned samples;       /* steady chunks behind units_per_s */
    bool out;               /* out for good: lost, failed, hung, or without enough memory */
} clv_balance_stats;

clv_balance_stats clv_balance_get_stats(const clv_balance *balance, size_t device);

/* Appends one sentence with figures that says why the device did what it did, or why it was left out. */
void clv_balance_explain(const clv_balance *balance, size_t device, clv_text *text);

/* Computes how well the job was shared out: imbalance = max finish / mean finish - 1 over devices that worked;
 * efficiency = time of an ideal split at the measured speeds / time taken. */
void clv_balance_quality(const clv_balance *balance, double now, double *imbalance,
                         double *efficiency);

#endif
