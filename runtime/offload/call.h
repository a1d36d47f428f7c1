/* SPDX-License-Identifier: Apache-2.0 */
/* One call that the host or a device does. An operation describes it as plain data: what it costs, its two
 * ways to be done, and how to make a smaller or larger one like it. clv_call_run carries it out. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_CALL_H
#define CLEAVE_RUNTIME_OFFLOAD_CALL_H

#include "runtime/offload/engine.h"
#include "runtime/offload/orders.h"

#include <cleave/job.h>
#include <cleave/offload.h>

/* What a call costs. */
typedef struct clv_work {
    const char *kind;   /* calls of one kind share a curve: "map 1f3a"; one line, no '=' */
    double amount;      /* the curve's axis, in the operation's own measure */
    double least, most; /* between which the curve is measured */
    uint64_t shape;     /* what else tells this call from others of the kind and amount */
    double flops, bytes, transfer_bytes, resident_bytes;
    double host_flops; /* built-in rate of the host; 0: 3e9 */
} clv_work;

typedef struct clv_call clv_call;

/* Another call of the same kind, on operands of its own. */
typedef struct clv_sample {
    clv_call *call; /* with operation, work, and the two ways */
    double times;   /* seconds of it times this are what was asked for; 0: 1 */
    /* what it computes, which both sides must agree about to `tolerance` of the largest element; 0: it
     * is not compared */
    const float *result;
    size_t results;
    double tolerance;
    void (*end)(void *memory); /* frees all of it; may be NULL */
    void *memory;
} clv_sample;

struct clv_call {
    /* ---- what it is, by the operation ---- */
    const char *operation; /* "map" */
    clv_work work;
    bool stays;            /* an operand lies only on the device: so the device does it */
    const char *host_only; /* why no device does it; NULL: one may */
    bool untimed;          /* the device does it wherever one works: nothing is timed, or learnt */
    /* its two ways: on plain memory; by commands, which are waited for behind it */
    clv_status (*host)(void *user);
    clv_status (*device)(clv_engine *engine, void *user);
    /* or a job made of units, in their place: by the host's cores, or the balancer's devices */
    const clv_job *job;
    clv_status (*prepare)(void *user); /* before it is done; may be NULL */
    void (*finish)(void *user); /* behind it, and behind a `prepare` that failed; may be NULL */
    clv_report *report;
    void *user; /* of all five */
    bool spent; /* what the device began changed an operand in place: nobody may do it again */
    /* One like it, of about that amount. NULL: calls of the kind are not timed. */
    clv_status (*sample)(clv_context *context, const clv_call *like, double amount,
                         clv_sample *sample);

    /* ---- what its caller ordered: clv_call_take_orders ---- */
    clv_call_orders *orders; /* they are told of the decision; NULL: nobody is */
    clv_side forced;
    bool plan; /* decide only */

    /* ---- what became of it ---- */
    bool fell_back; /* the host did what the device could not */
    clv_decision told;
};

/* For public entries, once: what this thread ordered. */
void clv_call_take_orders(clv_call *call);
/* Decides, does it, falls back where it may, learns. As the two ways; CLV_E_NO_DEVICE (forced). */
clv_status clv_call_run(clv_context *context, clv_call *call);
/* The decision on a call that nobody need think about, in a few nanoseconds: true when the host does it;
 * false when clv_call_run is to be asked after all (an order, no device). */
bool clv_call_at_once(clv_context *context, const char *operation, double flops, double host_flops,
                      double bytes);
/* Extents, one after the other, as one number. */
static inline uint64_t clv_call_shape(uint64_t before, uint64_t extent)
{
    const uint64_t mixed = ((before << 7 | before >> 57) ^ extent) * 0x9E3779B97F4A7C15u;
    return mixed ^ mixed >> 29;
}

#endif
