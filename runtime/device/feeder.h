/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a device: everything a job does on the device happens there. */
#ifndef CLEAVE_RUNTIME_DEVICE_FEEDER_H
#define CLEAVE_RUNTIME_DEVICE_FEEDER_H

#include "runtime/device/queue.h"

typedef struct clv_feeder clv_feeder;

enum { CLV_MAX_DEPTH = 2 };

/* The device's feeder, started at the first call. CLV_E_MEMORY. */
clv_status clv_feeder_get(clv_device *device, clv_feeder **feeder);

/* Something to do; the memory is the caller's, and free again as soon as `body` begins. */
typedef struct clv_feeder_call {
    struct clv_feeder_call *next;
    void (*body)(void *);
    void *argument;
} clv_feeder_call;

/* Calls body(argument) on the thread, after what was given to it before. */
void clv_feeder_submit(clv_feeder *feeder, clv_feeder_call *call);

/* Queue `slot` of the device, kept from job to job with its kernels. On the feeder's thread. */
clv_status clv_feeder_queue(clv_feeder *feeder, unsigned slot, clv_queue **queue);

/* Ends the device's thread and frees the feeder. False when the thread has not come back from the driver
 * within `patience` seconds (more while it compiles, unless that is 0): then thread, feeder and device stay
 * as they are, and a later call asks again. */
bool clv_feeder_stop(clv_device *device, double patience);

#endif
