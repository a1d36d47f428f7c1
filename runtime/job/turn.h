/* SPDX-License-Identifier: Apache-2.0 */
/* Lets threads take turns: a context runs one job, or one call on a device, at a time. */
#ifndef CLEAVE_RUNTIME_JOB_TURN_H
#define CLEAVE_RUNTIME_JOB_TURN_H

#include <cleave/runtime.h>

/* Waits for the context's turn. Returns false when this thread has the turn already (clv_jobs_held). */
bool clv_jobs_lock(clv_context *context);
void clv_jobs_unlock(clv_context *context);
/* Returns whether this thread has the turn or works for the thread that has it. A caller's function (progress, a
 * reference) that calls back into the context would otherwise wait for itself. */
bool clv_jobs_held(clv_context *context);
/* Declares that from now on this thread works for the context's current job; NULL ends that. */
void clv_jobs_serve(const clv_context *context);
/* Returns CLV_E_BUSY, with a message, for a call that comes from inside another call and that only a device could
 * do. */
clv_status clv_jobs_refuse(const char *what);
/* Returns the time in seconds on a clock that stands still while this thread waits for its turn behind other threads'
 * jobs. */
double clv_jobs_clock(void);

#endif
