/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the state of a running job that the caller's thread and the devices' threads share.
 *
 * `lock` guards the balance, the counters and every field marked L; the other fields of a worker and of a slot belong
 * to the device's thread. `commit_lock` serialises commits: a commit may take long and must not hold up threads that
 * ask for work. Once `over` is set, no thread calls the job's functions any more. The run stays in use until its last
 * holder lets go of it, because a chunk that comes too late may outlive the job. The run then returns to its
 * context's shelf, where a later job takes it. */
#ifndef CLEAVE_RUNTIME_JOB_RUN_H
#define CLEAVE_RUNTIME_JOB_RUN_H

#include "runtime/device/feeder.h"
#include "runtime/job/balance/balance.h"

#include <cleave/job.h>
#include <cleave/offload.h>

enum { CLV_MAX_KEYS = 32 }; /* most buffers of a worker or a slot */

typedef struct clv_keyed {
    unsigned key;
    clv_buffer *buffer;  /* device memory; NULL on the host */
    clv_buffer *staging; /* host-visible copy, where the host cannot see `buffer` itself */
    void *host;          /* the result as the host sees it, between its arrival and the commit */
    size_t bytes;
    size_t asked; /* size of the current chunk's result; `bytes` may be more */
    bool used;    /* the current chunk uses it */
    bool output;
    bool wraps; /* wraps the caller's own memory */
} clv_keyed;

struct clv_slot {
    clv_worker *worker;
    clv_queue *queue; /* NULL: the plain C path on the host */
    clv_keyed keyed[CLV_MAX_KEYS];
    size_t keyed_count;
    clv_balance_lease lease;
    double started;
    uint64_t cold_before; /* the queue's count of first kernel launches before this chunk */
    bool in_flight;       /* L */
    bool reads_caller;    /* L: the caller's memory is in use until `upload`, or the chunk, ends */
    cl_event
        upload; /* L: last command that reads the caller's memory; NULL: the whole chunk does */
};

struct clv_worker {
    struct clv_run *run;
    clv_device *device; /* NULL: the host, which runs the plain C path */
    size_t index;       /* index of the worker in the balance */
    clv_feeder_call call;
    clv_queue *queue;
    size_t variant; /* index of the kernel variant in use: job/tune.h */
    clv_keyed keyed[CLV_MAX_KEYS];
    size_t keyed_count;
    clv_slot slots[CLV_MAX_DEPTH];
    unsigned depth;
    bool inside; /* L: runs one of the job's functions */
    bool gone;   /* L: the worker takes no more work from this job */
    double setup_s;
    double started;  /* only the host: when it began to work */
    clv_error error; /* L: the error that ended the worker, if any */
    clv_queue_stats stats_before[CLV_MAX_DEPTH];
    clv_share share; /* L: filled when the worker leaves, or by the caller at the end of the job */
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
    clv_side side;        /* who may compute units: all, only the host, or only the devices */
    clv_error error;      /* L: the error that ended the job, if any */
    size_t committed;     /* L: units whose commit has returned */
    double started;
    double asleep;        /* L: seconds during which this process was stopped or got no core */
    clv_text why;         /* scratch text for the report */
    struct clv_run *next; /* the next run on the shelf */
    size_t worker_count;  /* devices of this job; the host's worker follows them */
    clv_worker workers[]; /* one per device of the context, and one for the host */
} clv_run;

/* Returns a run for the job, without workers and with an unprepared balance, or NULL. The caller is its
 * first holder. */
clv_run *clv_run_take(clv_context *context, const clv_job *job, void *user);
/* Returns the time on the balance's clock: clv_now() without the time during which this process could
 * not run, so that Ctrl-Z or a crowded machine is not blamed on a device. The lock is held. */
double clv_run_now(const clv_run *run);
/* Waits for `changed`, at most until the balance's clock reads `until`. If the wait ends much later than `until`,
 * adds the excess to `asleep`. */
void clv_run_wait(clv_run *run, double until);
/* Runs a job like clv_job_run, but on one side only: on all cores by the plain C path alone, or on devices without
 * the plain C path. Sets *plain, unless `plain` is NULL, to whether the plain C path computed a part. */
clv_status clv_job_run_by(clv_context *context, const clv_job *job, void *user, clv_side side,
                          clv_report *report, bool *plain);
/* Runs the plain C path on the calling thread, for jobs too short to be shared out. */
clv_status clv_job_run_here(clv_context *context, const clv_job *job, void *user,
                            clv_report *report);
/* Returns the largest chunk whose estimate fits the device's memory budget when all slots are in flight. */
size_t clv_job_fitting_chunk(const clv_device *device, const clv_job *job, void *user);
/* Frees the context's runs when the context ends and nobody holds a run any more. */
void clv_runs_free(clv_context *context);

/* worker.c: does a device's side of a job. Pass it to clv_worker_start as `body`. */
void clv_worker_body(void *worker);
/* worker_open.c: lets the device's thread call `body`, which lets go of the run when it ends. Returns false when the
 * device has no thread. */
bool clv_worker_start(clv_worker *worker, void (*body)(void *worker));
/* worker_open.c: opens the device and the worker's queues. Called on the device's thread without the
 * lock. */
clv_status clv_worker_open(clv_worker *worker);
/* Ends the job with this thread's error, unless the job is over already. The lock is held. */
void clv_run_fail(clv_run *run, clv_status status);
void clv_run_let_go(clv_run *run);

/* slot.c */
void clv_slot_begin(clv_slot *slot);        /* before enqueue */
clv_status clv_slot_finish(clv_slot *slot); /* after enqueue: brings results back, flushes */
void clv_slot_done(clv_slot *slot);         /* after the commit */
void clv_keyed_free(clv_keyed *keyed, size_t *count);

#endif
