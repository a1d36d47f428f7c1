/* SPDX-License-Identifier: Apache-2.0 */
/* Lets several processes compute the units of one job together, or one after the other.
 *
 * Every process that takes part runs the same program on the same inputs, and so calls clv_job_run for the same jobs
 * in the same order. A spread says which units of a job this process computes. The results of a chunk are the buffers
 * of its slot, packed into bytes; the spread carries them to the other processes, or to a file. Each process then
 * commits what the other processes have computed as if it had computed that itself. So a spread contains no code for an
 * operation, and an operation none for a spread, as long as the operation's commit reads nothing but the slot and what
 * is the same in all processes.
 *
 * A context has no spread unless clv_spread_set sets one. Only clv_job_run obeys a spread. Flat calls stay in this
 * process, and so does what runs inside of a job, such as a trial of kernels. */
#ifndef CLEAVE_RUNTIME_JOB_SPREAD_H
#define CLEAVE_RUNTIME_JOB_SPREAD_H

#include <cleave/job.h>

/* The thread that runs the job calls these functions, except `put`, which any thread calls, one at a time. */
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
    /* Ends the job. `status` is the job's result so far; the function returns the final result. */
    clv_status (*end)(void *self, clv_status status);
} clv_spread;

/* Lets a spread share out the jobs of a context. The spread belongs to the caller and must outlive the context. NULL:
 * the context runs its jobs alone. */
void clv_spread_set(clv_context *context, const clv_spread *spread);

#endif
