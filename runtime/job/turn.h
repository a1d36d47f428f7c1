/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is: a context does one job, or one call on a device, at a time. */
#ifndef CLEAVE_RUNTIME_JOB_TURN_H
#define CLEAVE_RUNTIME_JOB_TURN_H

#include <cleave/runtime.h>

/* Waits for the context's turn. False when this thread has it already: clv_jobs_held. */
bool clv_jobs_lock(clv_context *context);
void clv_jobs_unlock(clv_context *context);
/* This thread has it, or works for who has it: a function of the caller's (progress, a reference) calls
 * back, and would wait for itself. */
bool clv_jobs_held(clv_context *context);
/* This thread works for the job at hand from now on; NULL: no more. */
void clv_jobs_serve(const clv_context *context);
/* What such a call gets where nobody but a device can do it: CLV_E_BUSY. */
clv_status clv_jobs_refuse(const char *what);
/* Seconds; stands still while this thread waits for its turn, behind jobs of others. */
double clv_jobs_clock(void);

#endif
