/* SPDX-License-Identifier: Apache-2.0 */
/* What every operation on arrays shares: the decision, the operands at the right place, the fallback. */
#ifndef CLEAVE_HOST_ARRAY_CALL_H
#define CLEAVE_HOST_ARRAY_CALL_H

#include "host/array/data.h"
#include "runtime/offload/offload.h"

#include <cleave/job.h>

enum {
    CALL_ARRAYS = 16,
    CALL_SCRATCH = CALL_ARRAYS /* engine keys from here on are the operation's */
};

typedef struct clv_call {
    const char *operation; /* "map" */
    const char *kind;      /* of its curve */
    double work, flops, host_flops, least_work, most_work;
    uint64_t shape; /* beyond that of the arrays */
    clv_status (*trial)(clv_context *context, double work, clv_side side, double *seconds,
                        void *user);
    clv_array *array[CALL_ARRAYS]; /* no array twice, but an input may be an output */
    bool input[CALL_ARRAYS], output[CALL_ARRAYS];
    size_t count;
    /* Enqueues; kernels get array->at. */
    clv_status (*device)(clv_engine *engine, void *user);
    clv_status (*host)(void *user); /* array->host */
    void *user;
    bool begun; /* kernels may have run */
} clv_call;

void clv_call_add(clv_call *call, clv_array *array, bool input, bool output);
clv_status clv_call_run(clv_context *context, clv_call *call);

/* An operation made of units: by the host's cores (the job's reference) or by the balancer's devices.
 * `request` has kind, work, flops, bytes, host_flops, least_work, most_work and trial; `prepare` (may
 * be NULL) is called once it is decided that something is to be done. */
clv_status clv_call_job(clv_context *context, clv_offload_request *request, const clv_job *job,
                        clv_status (*prepare)(void *user), void *user, clv_report *report);

/* log2, rounded down: sizes of one octave cost alike. */
unsigned clv_call_octave(size_t n);

#endif
