/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the progress of calls that are not jobs, and ends them when the caller wants that. */
#ifndef CLEAVE_RUNTIME_JOB_WATCH_H
#define CLEAVE_RUNTIME_JOB_WATCH_H

#include <cleave/job.h>

typedef struct clv_watch {
    const char *name;
    clv_progress *progress; /* NULL: nobody asked for progress */
    void *user;
    size_t total;
    double next; /* earliest time of the next report */
} clv_watch;

clv_watch clv_watch_begin(const char *name, clv_progress *progress, void *user, size_t total);
/* Reports progress at most ten times per second. Returns CLV_E_CANCELLED when the caller wants the call to
 * end, else CLV_OK. */
clv_status clv_watch_tell(clv_watch *watch, size_t done);
/* Reports the end without regard to the time of the last report; at that point nothing is left to cancel. */
void clv_watch_end(const clv_watch *watch);

#endif
