/* SPDX-License-Identifier: Apache-2.0 */
/* Describes one call that either the host or a device can do. An operation describes it as plain data: what the call
 * costs, the two ways to do it, and how to make a smaller or larger call like it. clv_call_run carries it out. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_CALL_H
#define CLEAVE_RUNTIME_OFFLOAD_CALL_H

#include "runtime/offload/engine.h"
#include "runtime/offload/orders.h"

#include <cleave/job.h>
#include <cleave/offload.h>

/* The cost of a call. */
typedef struct clv_work {
    const char *kind;   /* calls of one kind share a curve: "map 1f3a"; one line, no '=' */
    double amount;      /* position on the curve, in the operation's own measure */
    double least, most; /* range of amounts in which the curve is measured */
    uint64_t shape;     /* distinguishes calls of the same kind and amount */
    double flops, bytes, transfer_bytes, resident_bytes;
    double host_flops; /* built-in rate of the host in operations per second; 0: 3e9 */
} clv_work;

typedef struct clv_call clv_call;

/* Another call of the same kind, with operands of its own, made to be timed. */
typedef struct clv_sample {
    clv_call *call; /* with operation, work, and the two ways */
    double times;   /* factor from its seconds to those of the call asked for; 0 means 1 */
    /* the call's result: both sides must agree to within `tolerance` of the largest element; 0: the results are not
     * compared */
    const float *result;
    size_t results;
    double tolerance;
    void (*end)(void *memory); /* frees the sample's memory; may be NULL */
    void *memory;
} clv_sample;

struct clv_call {
    /* ---- what the call is: set by the operation ---- */
    const char *operation; /* "map" */
    clv_work work;
    bool stays;            /* an operand lies only on the device, so the device must do the call */
    const char *host_only; /* why no device may do the call; NULL: a device may */
    bool untimed;          /* any working device does the call: nothing is timed or learnt */
    /* the two ways to do the call: in host memory; by enqueued commands, for which clv_call_run waits */
    clv_status (*host)(void *user);
    clv_status (*device)(clv_engine *engine, void *user);
    /* a job made of units that replaces both ways, for the host's cores or the balancer's devices */
    const clv_job *job;
    clv_status (*prepare)(void *user); /* called before the work; may be NULL */
    void (*finish)(void *user);        /* after the work or a failed `prepare`; may be NULL */
    clv_report *report;
    void *user; /* argument of all five functions */
    bool spent; /* the device changed an operand in place: do not repeat the call */
    /* Makes a call like this one, of about the given amount. NULL: calls of this kind are not timed. */
    clv_status (*sample)(clv_context *context, const clv_call *like, double amount,
                         clv_sample *sample);

    /* ---- what its caller ordered: clv_call_take_orders ---- */
    clv_call_orders *orders; /* where the decision is noted; NULL: nowhere */
    clv_side forced;
    bool plan; /* decide only */

    /* ---- the outcome ---- */
    bool fell_back; /* the host did what the device could not do */
    clv_decision told;
};

/* Copies the orders that this thread has given into the call. Public functions call it once. */
void clv_call_take_orders(clv_call *call);
/* Decides where the call goes, does it, falls back to the host if that is allowed, and learns from the time it took.
 * Returns what the chosen way returns, or CLV_E_NO_DEVICE (forced to a device). */
clv_status clv_call_run(clv_context *context, clv_call *call);
/* Decides, in a few nanoseconds, on a call too small for clv_call_run. Returns true when the host is to do it, false
 * when the caller must use clv_call_run after all (an order, no device). */
bool clv_call_at_once(clv_context *context, const char *operation, double flops, double host_flops,
                      double bytes);
/* Hashes extents, one after the other, into one number. */
static inline uint64_t clv_call_shape(uint64_t before, uint64_t extent)
{
    const uint64_t mixed = ((before << 7 | before >> 57) ^ extent) * 0x9E3779B97F4A7C15u;
    return mixed ^ mixed >> 29;
}

#endif
