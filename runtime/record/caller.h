/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread: who it is, whose job it works for, how long it waited. The only state of a thread beside the
 * error message (base/status.c). */
#ifndef CLEAVE_RUNTIME_RECORD_CALLER_H
#define CLEAVE_RUNTIME_RECORD_CALLER_H

#include <cleave/runtime.h>

typedef struct clv_caller {
    size_t number;   /* among the threads that are alive, from 1; 0: none yet (offload/orders.c) */
    double waited_s; /* for its turn (job/turn.h); its address is the thread's id */
    const clv_context *serves; /* whose job it works for; NULL: nobody's */
} clv_caller;

/* This thread's. */
clv_caller *clv_caller_here(void);

#endif
