/* SPDX-License-Identifier: Apache-2.0 */
/* Lets several processes do the units of one job together, or one after the other.
 *
 * Every process that takes part runs the same program on the same inputs, and so calls clv_job_run for the same jobs in
 * the same order. A spread says which units of a job this process computes. The results of a chunk are the buffers of
 * its slot, packed into bytes; the spread carries them to the other processes, or to a file. Each process then commits
 * what the others have computed as if it had computed it itself. So a spread knows no operation, and an operation knows
 * no spread, as long as its commit reads nothing but the slot and what is the same in all processes.
 *
 * A context has no spread unless clv_spread_set gives it one. Only clv_job_run obeys it. Flat calls stay in this
 * process, and so does what runs inside of a job, such as a trial of kernels. */
#ifndef CLEAVE_RUNTIME_JOB_SPREAD_H
#define CLEAVE_RUNTIME_JOB_SPREAD_H

#include <cleave/job.h>

/* The functions are called by the thread that runs the job, but `put` by any thread, one at a time. */
typedef struct clv_spread {
    void *self;
    /* Begins a job. Sets *shared to false if this process has to do the whole job; then no other function is called
     * for it. */
    clv_status (*begin)(void *self, const clv_job *job, bool *shared);
    /* Returns the next range that this process has to compute; *count is 0 if there is none. */
    clv_status (*lease)(void *self, size_t *first, size_t *count);
    /* Takes the packed results of a chunk that was computed here; they are valid during the call. */
    clv_status (*put)(void *self, size_t first, size_t count, const void *bytes, size_t length);
    /* Returns the packed results of a chunk that was computed elsewhere, valid until the next call and aligned to
     * 16 bytes; *count is 0 if there is no more. It is called when no lease is left. */
    clv_status (*get)(void *self, size_t *first, size_t *count, const void **bytes, size_t *length);
    /* Ends the job. `status` is how it went so far, and what it returns is how the job ends. */
    clv_status (*end)(void *self, clv_status status);
} clv_spread;

/* Has the jobs of a context done by a spread, which stays yours and must outlive the context. NULL: alone. */
void clv_spread_set(clv_context *context, const clv_spread *spread);

#endif
