/* SPDX-License-Identifier: Apache-2.0 */
/* The devices chosen for a caller, and what they share: caches, notes, trace, policy. */
#ifndef CLEAVE_RUNTIME_CONTEXT_H
#define CLEAVE_RUNTIME_CONTEXT_H

#include "runtime/balance.h"
#include "runtime/cache.h"
#include "runtime/device.h"
#include "runtime/notes.h"
#include "runtime/trace.h"

struct clv_context {
    clv_probe_report *probe;
    clv_mode mode;
    char reason[320];
    clv_device *devices; /* candidates for jobs, best first */
    size_t device_count;
    char **identities; /* what a binary depends on, one text a device */

    clv_schedule schedule;
    size_t batch;
    uint64_t memory_bytes;
    double memory_fraction;
    bool tuning;

    clv_cache cache;
    clv_notes speeds, tuned;
    clv_trace *trace;      /* NULL: none is kept */
    char trace_path[1024]; /* CLEAVE_TRACE; "": none */

    clv_mutex job_lock; /* one job at a time */
};

const clv_cache *clv_context_cache(const clv_context *context);
clv_trace *clv_context_trace(const clv_context *context);
/* Names driver, device, its code generator's target; several lines. */
const char *clv_context_device_identity(const clv_context *context, const clv_device *device);
/* Bytes that we allow ourselves on a device: the caller's wish within what is there. */
uint64_t clv_context_budget(const clv_context *context, const clv_device *device);

/* Which probe devices a caller gets; pure. `chosen` has room for report->device_count and is in
 * the order of use. CLV_E_NO_DEVICE, CLV_E_ARGUMENT. */
clv_status clv_choose_devices(const clv_probe_report *report, clv_mode mode, const char *selection,
                              size_t *chosen, size_t *count);

#endif
