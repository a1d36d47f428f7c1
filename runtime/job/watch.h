/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are no jobs tell how far they are, and end when the caller wishes so. */
#ifndef CLEAVE_RUNTIME_JOB_WATCH_H
#define CLEAVE_RUNTIME_JOB_WATCH_H

#include <cleave/job.h>

typedef struct clv_watch {
    const char *name;
    clv_progress *progress; /* NULL: nobody looks */
    void *user;
    size_t total;
    double next; /* when it is told again */
} clv_watch;

clv_watch clv_watch_begin(const char *name, clv_progress *progress, void *user, size_t total);
/* Tells at most ten times a second. CLV_OK; CLV_E_CANCELLED: the caller wants no more. */
clv_status clv_watch_tell(clv_watch *watch, size_t done);
/* The end is always told; nothing is left to cancel. */
void clv_watch_end(const clv_watch *watch);

#endif
