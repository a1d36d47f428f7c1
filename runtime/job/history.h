/* SPDX-License-Identifier: Apache-2.0 */
/* How fast jobs ran before: what the balancer starts with. */
#ifndef CLEAVE_RUNTIME_JOB_HISTORY_H
#define CLEAVE_RUNTIME_JOB_HISTORY_H

#include "runtime/record/notes.h"

#include <cleave/job.h>

typedef struct clv_job_speed {
    double units_per_s, chunk_s, setup_s; /* <= 0: unknown */
} clv_job_speed;

/* false when the job never ran on the device. */
bool clv_history_get(clv_notes *notes, const clv_job *job, const char *device_key,
                     clv_job_speed *speed);
/* Blends with what was noted; a speed that is more than 1.5 times it replaces it, and one job, which
 * may have been kept from its cores, takes at most half of it away. */
void clv_history_put(clv_notes *notes, const clv_job *job, const char *device_key,
                     const clv_job_speed *speed);

#endif
