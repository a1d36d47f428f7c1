/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the state of the calling thread: its number, the job it works for, how long it has waited. The only other
 * state of a thread is its error message (base/status.c). */
#ifndef CLEAVE_RUNTIME_RECORD_CALLER_H
#define CLEAVE_RUNTIME_RECORD_CALLER_H

#include <cleave/runtime.h>

typedef struct clv_caller {
    size_t number;             /* among the live threads, from 1; 0: none yet (offload/orders.c) */
    double waited_s;           /* time spent waiting for its turn (job/turn.h) */
    const clv_context *serves; /* the context whose job it works for; NULL: none */
} clv_caller;

/* Returns this thread's state; its address is the thread's id. */
clv_caller *clv_caller_here(void);

#endif
