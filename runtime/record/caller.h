/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread: what it ordered, what was decided for it last, whose job it works for.
 *
 * Public entries of the library read the orders once, into the call that they describe
 * (clv_call_take_orders); nothing below them does. */
#ifndef CLEAVE_RUNTIME_RECORD_CALLER_H
#define CLEAVE_RUNTIME_RECORD_CALLER_H

#include <cleave/offload.h>

/* What was decided for a call; put in words when somebody asks. */
typedef struct clv_decision {
    clv_offload of;
    const char *basis; /* of the times: "measured rates"; static */
} clv_decision;

typedef struct clv_caller {
    double waited_s;           /* for its turn (job/turn.h); its address is the thread's id */
    const clv_context *serves; /* whose job it works for; NULL: nobody's */
    clv_side forced;           /* clv_offload_force */
    bool plans;                /* clv_offload_dry */
    clv_decision latest;       /* clv_offload_last; side AUTO: none */
} clv_caller;

/* This thread's. */
clv_caller *clv_caller_here(void);

#endif
