/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the thread of a device. All that a job does on a device happens on this thread. */
#ifndef CLEAVE_RUNTIME_DEVICE_FEEDER_H
#define CLEAVE_RUNTIME_DEVICE_FEEDER_H

#include "runtime/device/queue.h"

typedef struct clv_feeder clv_feeder;

enum { CLV_MAX_DEPTH = 2 };

/* Returns the device's feeder, which the first call starts. Error: CLV_E_MEMORY. */
clv_status clv_feeder_get(clv_device *device, clv_feeder **feeder);

/* A call for the device's thread. The struct belongs to the caller, who may reuse it as soon as `body` begins. */
typedef struct clv_feeder_call {
    struct clv_feeder_call *next;
    void (*body)(void *);
    void *argument;
} clv_feeder_call;

/* Calls body(argument) on the thread, after everything that was submitted before. */
void clv_feeder_submit(clv_feeder *feeder, clv_feeder_call *call);

/* Returns queue number `slot` of the device. The queue and its kernels are kept from job to job. Called on the
 * feeder's thread. */
clv_status clv_feeder_queue(clv_feeder *feeder, unsigned slot, clv_queue **queue);

/* Ends the device's thread and frees the feeder. Returns false when the thread has not come back from the
 * driver within `patience` seconds (more while it compiles, unless `patience` is 0). Thread, feeder and
 * device then stay as they are, and a later call tries again. */
bool clv_feeder_stop(clv_device *device, double patience);

#endif
