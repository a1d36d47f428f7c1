/* SPDX-License-Identifier: Apache-2.0 */
/* Records how fast earlier jobs ran, so that the balancer can start with these speeds. */
#ifndef CLEAVE_RUNTIME_JOB_HISTORY_H
#define CLEAVE_RUNTIME_JOB_HISTORY_H

#include "runtime/record/notes.h"

#include <cleave/job.h>

typedef struct clv_job_speed {
    double units_per_s, chunk_s, setup_s; /* <= 0: unknown */
} clv_job_speed;

/* Reads the speed that was noted for the job on a device. Returns false if the job never ran on the device. */
bool clv_history_get(clv_notes *notes, const clv_job *job, const char *device_key,
                     clv_job_speed *speed);
/* Averages the new speed with the noted one. A speed of more than 1.5 times the noted one replaces it; a
 * single slow job, which may have been kept from its cores, at most halves it. */
void clv_history_put(clv_notes *notes, const clv_job *job, const char *device_key,
                     const clv_job_speed *speed);

#endif
