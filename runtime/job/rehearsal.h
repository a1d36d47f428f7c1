/* SPDX-License-Identifier: Apache-2.0 */
/* A job's functions called on nothing, to learn which kernels it will launch. */
#ifndef CLEAVE_RUNTIME_JOB_REHEARSAL_H
#define CLEAVE_RUNTIME_JOB_REHEARSAL_H

#include "runtime/job/run.h"

/* On the device's thread, before the job's setup: notes the kernels of a job that allows it, and compiles
 * them. A job of the same name and signature is rehearsed once on a device. Not more than a delay comes of
 * what fails here. Without the lock. */
void clv_job_rehearse(clv_worker *worker);

/* Only notes them, on every device: for clv_prepare_begin (context/prepare.h). Waits for that. CLV_E_CANCELLED,
 * as nothing was computed; CLV_OK for a job that does not allow it. The context's job_lock is held. */
clv_status clv_job_note_kernels(clv_run *run);

#endif
