/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the plain C path of a job on all cores. */
#ifndef CLEAVE_RUNTIME_JOB_PLAIN_H
#define CLEAVE_RUNTIME_JOB_PLAIN_H

#include "runtime/job/run.h"

typedef struct clv_plain clv_plain;

/* The caller holds the run's lock in all calls. */

/* Starts threads that take what is free in the balance until nothing is left or the run is over. The job
 * must have a reference. Error: CLV_E_MEMORY. */
clv_status clv_plain_start(clv_run *run, clv_plain **plain);
/* Lets the caller compute too, until no unit is free, if the caller has nothing else to do. */
void clv_plain_help(clv_plain *plain);
bool clv_plain_works(const clv_plain *plain); /* some lane has not ended yet */
/* Waits for the threads that have begun: each ends after its current chunk once the run is over. Threads
 * that begin later find nothing to do, and the next job starts that many threads fewer. Accepts NULL. */
void clv_plain_stop(clv_plain *plain);
/* Waits, when the context ends, for the threads that began too late for clv_plain_stop. */
void clv_plain_join_late(clv_context *context);

#endif
