/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearses a job: calls its functions without data, to learn which kernels the job will launch. */
#ifndef CLEAVE_RUNTIME_JOB_REHEARSAL_H
#define CLEAVE_RUNTIME_JOB_REHEARSAL_H

#include "runtime/job/run.h"

/* Notes and compiles the kernels of a job that allows rehearsals, before its setup. Each device rehearses jobs of the
 * same name and signature only once. A failure causes no more than a delay. Called on the device's thread, without
 * the lock. */
void clv_job_rehearse(clv_worker *worker);

/* Notes the kernels of a job on every device without compiling them, for clv_prepare_begin (context/prepare.h), and
 * waits until that is done. Returns CLV_E_CANCELLED because nothing was computed, or CLV_OK for a job that does not
 * allow rehearsals. The context's job_lock is held. */
clv_status clv_job_note_kernels(clv_run *run);

#endif
