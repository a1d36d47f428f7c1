/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the asynchronous calls of a context, one after another in the order of their arrival, on one thread. */
#ifndef CLEAVE_RUNTIME_JOB_BACKLOG_H
#define CLEAVE_RUNTIME_JOB_BACKLOG_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BACKLOG_MOST = 1024, /* calls that may wait to be run */
    BACKLOG_MOST_BYTES =
        1 << 30 /* size of the operands and results of all calls that wait, unless it is only one */
};

typedef struct clv_backlog clv_backlog;

/* The head of a call's record. `run` runs the call and frees the record. */
typedef struct clv_backlog_entry {
    struct clv_backlog_entry *next;
    void (*run)(struct clv_backlog_entry *entry);
    size_t bytes;    /* size of the call's operands and results */
    uint64_t serial; /* number of the call; clv_backlog_add sets it */
} clv_backlog_entry;

/* Starts the thread. Returns NULL without memory or threads. */
clv_backlog *clv_backlog_start(void);
/* Runs what is left, ends the thread and refuses later calls. Accepts NULL. */
void clv_backlog_stop(clv_backlog *backlog);
void clv_backlog_free(clv_backlog *backlog); /* after clv_backlog_stop; accepts NULL */

/* Returns whether the calling thread is the one that runs the calls. */
bool clv_backlog_is_mine(const clv_backlog *backlog);
/* Adds a call; waits while too many calls are waiting. Returns false after clv_backlog_stop. */
bool clv_backlog_add(clv_backlog *backlog, clv_backlog_entry *entry);
/* Waits until `pending`, a number that only `run` decreases, is 0; if it is NULL, until no call is left. */
void clv_backlog_wait(clv_backlog *backlog, const atomic_size_t *pending);

/* Keeps the first failure for the next clv_backlog_report. Later ones are dropped. */
void clv_backlog_keep(clv_backlog *backlog, uint64_t serial, const clv_error *error);
/* Forgets the kept failure if it is that of the given call. */
void clv_backlog_forget(clv_backlog *backlog, uint64_t serial);
/* Returns the kept failure with its message, and forgets it. */
clv_status clv_backlog_report(clv_backlog *backlog);

#endif
