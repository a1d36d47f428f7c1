/* SPDX-License-Identifier: Apache-2.0 */
/* The plain C path of a job on all cores. */
#ifndef CLEAVE_RUNTIME_JOB_PLAIN_H
#define CLEAVE_RUNTIME_JOB_PLAIN_H

#include "runtime/job/run.h"

typedef struct clv_plain clv_plain;

/* The run's lock is held in all calls. */

/* Threads that take what is free in the balance, until nothing is or the run is over. The job has a
 * reference. CLV_E_MEMORY. */
clv_status clv_plain_start(clv_run *run, clv_plain **plain);
/* The caller computes too, where nothing else is left to it: until nothing is free. */
void clv_plain_help(clv_plain *plain);
bool clv_plain_works(const clv_plain *plain); /* a thread has not come to its end yet */
/* Waits for the threads that have begun, each at most for the chunk at hand once the run is over. The
 * others find nothing to do when they do; their number of threads is not started in the next job.
 * Accepts NULL. */
void clv_plain_stop(clv_plain *plain);
/* Waits for these, when the context ends. */
void clv_plain_join_late(clv_context *context);

#endif
