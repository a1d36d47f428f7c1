/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a context: made with it, ended with it. */
#ifndef CLEAVE_RUNTIME_CONTEXT_DEVICES_H
#define CLEAVE_RUNTIME_CONTEXT_DEVICES_H

#include "runtime/record/context.h"

/* Which probe devices a caller gets; pure. `chosen` has room for report->device_count and is in
 * the order of use. CLV_E_NO_DEVICE, CLV_E_ARGUMENT. */
clv_status clv_choose_devices(const clv_probe_report *report, clv_mode mode, const char *selection,
                              size_t *chosen, size_t *count);

/* Records and parts of these devices; opens none. `sub_devices`: into how many parts a CPU is split.
 * What a failure leaves behind clv_devices_close and clv_devices_clear take. */
clv_status clv_devices_make(clv_context *context, const size_t *chosen, size_t count,
                            unsigned sub_devices);
/* Ends the threads of all devices, waiting at most `patience` seconds for each (more while it compiles, unless
 * that is 0), and gives back what they have of OpenCL. False when a thread hangs in its driver: then its
 * device stays as it is, and so must the context; a later call tries again. */
bool clv_devices_close(clv_context *context, double patience);
/* Frees what clv_devices_close left, once that was true. */
void clv_devices_clear(clv_context *context);

bool clv_is_on_the_cpu(const clv_probe_device *device);

#endif
