/* SPDX-License-Identifier: Apache-2.0 */
/* A job while it runs: what the caller's thread and the devices' threads share.
 *
 * Who may touch what: `lock` guards the balance, the counters and every field marked L; a worker's
 * and a slot's other fields belong to the device's thread. `commit_lock` serialises commits, which
 * may take long, so that they do not hold up whoever asks for work. After `over` is set no thread
 * calls the job's functions again. The run is used until its last holder lets go: a chunk that came
 * too late may outlive the job. Then it lies on its context's shelf, for a later job. */
#ifndef CLEAVE_RUNTIME_JOB_RUN_H
#define CLEAVE_RUNTIME_JOB_RUN_H

#include "runtime/device/feeder.h"
#include "runtime/job/balance/balance.h"

#include <cleave/job.h>
#include <cleave/offload.h>

enum { CLV_MAX_KEYS = 32 }; /* buffers a worker or a slot can have */

typedef struct clv_keyed {
    unsigned key;
    clv_buffer *buffer;  /* device memory; NULL on the host */
    clv_buffer *staging; /* what the host sees of it, where that is not the buffer itself */
    void *host;          /* the result as the host sees it, between its arrival and the commit */
    size_t bytes;
    bool used; /* in the chunk at hand */
    bool output;
    bool wraps; /* lies on the caller's own memory */
} clv_keyed;

struct clv_slot {
    clv_worker *worker;
    clv_queue *queue; /* NULL: on the host */
    clv_keyed keyed[CLV_MAX_KEYS];
    size_t keyed_count;
    clv_balance_lease lease;
    double started;
    uint64_t cold_before; /* first launches of kernels, before this chunk */
    bool in_flight;       /* L */
    bool reads_caller;    /* L: the caller's memory is in use until `upload` (or the chunk) ends */
    cl_event
        upload; /* L: last command that reads the caller's memory; NULL: the whole chunk does */
};

struct clv_worker {
    struct clv_run *run;
    clv_device *device; /* NULL: the host, running the reference */
    size_t index;       /* in the balance */
    clv_feeder_call call;
    clv_queue *queue;
    size_t variant; /* of the operation's kernels: job/tune.h */
    clv_keyed keyed[CLV_MAX_KEYS];
    size_t keyed_count;
    clv_slot slots[CLV_MAX_DEPTH];
    unsigned depth;
    bool inside; /* L: in one of the job's functions */
    bool gone;   /* L: takes no more work in this job */
    double setup_s;
    double started;  /* the host: since when it works */
    clv_error error; /* L: why it is gone, when an error did it */
    clv_queue_stats stats_before[CLV_MAX_DEPTH];
    clv_share share; /* L: filled when it leaves, or by the caller at the end */
    char left_out[320];
};

typedef struct clv_run {
    clv_mutex lock, commit_lock;
    clv_cond changed;
    int holders; /* L */
    clv_context *context;
    clv_job job;
    void *user;
    char name[64];
    clv_balance *balance; /* L */
    bool over;            /* L */
    clv_side side;        /* who may do units: everybody, only the host, or only devices */
    clv_error error;      /* L: what ended the job, when something did */
    size_t committed;     /* L: units whose commit has returned */
    double started;
    double asleep;        /* L: seconds for which this process was stopped or starved of cores */
    clv_text why;         /* scratch of the report */
    struct clv_run *next; /* on the shelf */
    size_t worker_count;  /* devices of this job; behind them comes the host */
    clv_worker workers[]; /* the devices of the context, and one */
} clv_run;

/* A run of the job without workers and without balance, or NULL; its first holder is the caller. */
clv_run *clv_run_take(clv_context *context, const clv_job *job, void *user);
/* The balance's clock: clv_now() without the time in which this process could not run, so that no
 * device is blamed for Ctrl-Z or for a crowded machine. The lock is held. */
double clv_run_now(const clv_run *run);
/* Waits for `changed`, at most until that clock says `until`; notes what the wait lasted too long. */
void clv_run_wait(clv_run *run, double until);
/* clv_job_run by one side: the plain C path alone on all cores, or devices without it. *plain, unless
 * NULL: the plain C path did a part. */
clv_status clv_job_run_by(clv_context *context, const clv_job *job, void *user, clv_side side,
                          clv_report *report, bool *plain);
/* The plain C path on the calling thread, for what is too short to be shared out. */
clv_status clv_job_run_here(clv_context *context, const clv_job *job, void *user,
                            clv_report *report);
/* When the context ends, and nobody holds a run any more. */
void clv_runs_free(clv_context *context);

/* worker.c: the device's side; a body for clv_worker_start. */
void clv_worker_body(void *worker);
/* worker_open.c: has the device's thread call `body`, which lets go of the run at the end; false: the device
 * has no thread. */
bool clv_worker_start(clv_worker *worker, void (*body)(void *worker));
/* worker_open.c: opens the device and the queues of the worker; on the device's thread, without the lock. */
clv_status clv_worker_open(clv_worker *worker);
/* Ends the job with this thread's error, unless it is over already. The lock is held. */
void clv_run_fail(clv_run *run, clv_status status);
void clv_run_let_go(clv_run *run);

/* slot.c */
void clv_slot_begin(clv_slot *slot);        /* before enqueue */
clv_status clv_slot_finish(clv_slot *slot); /* after enqueue: brings results back, flushes */
void clv_slot_done(clv_slot *slot);         /* after the commit */
void clv_keyed_free(clv_keyed *keyed, size_t *count);

#endif
