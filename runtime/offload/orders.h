/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what each thread has requested (the side that it forces; whether its calls are only planned), and the last
 * decision for the thread. There is one record per process, with a row for every thread that has requested something or
 * made a call.
 *
 * Public functions copy their thread's row once into the call that they describe (clv_call_take_orders), and
 * clv_call_run writes its decision into that row; no function below them reads orders. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_ORDERS_H
#define CLEAVE_RUNTIME_OFFLOAD_ORDERS_H

#include <cleave/offload.h>

/* The decision on a call. Its text is made only when a caller asks for it. */
typedef struct clv_decision {
    clv_offload of;
    const char *basis; /* where the times come from: "measured rates"; static */
} clv_decision;

typedef struct clv_call_orders {
    clv_side forced;     /* clv_offload_force */
    bool plans;          /* clv_offload_dry */
    clv_decision latest; /* clv_offload_last; side AUTO: none */
} clv_call_orders;

/* Returns this thread's row, which no other thread touches until this thread ends; then another thread may get the
 * row, emptied. NULL: no memory. */
clv_call_orders *clv_call_orders_here(void);

#endif
