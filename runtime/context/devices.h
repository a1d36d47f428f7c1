/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the devices of a context, makes their records and closes them. */
#ifndef CLEAVE_RUNTIME_CONTEXT_DEVICES_H
#define CLEAVE_RUNTIME_CONTEXT_DEVICES_H

#include "runtime/record/context.h"

/* Chooses the probe devices that a caller gets; a pure function. `chosen` has room for report->device_count
 * and is filled in the order of use. Errors: CLV_E_NO_DEVICE, CLV_E_ARGUMENT. */
clv_status clv_choose_devices(const clv_probe_report *report, clv_mode mode, const char *selection,
                              size_t *chosen, size_t *count);

/* Makes the records of the chosen devices and of their parts, and opens none of them. A CPU is split into
 * `sub_devices` parts. After a failure clv_devices_close and clv_devices_clear free what was made. */
clv_status clv_devices_make(clv_context *context, const size_t *chosen, size_t count,
                            unsigned sub_devices);
/* Ends the threads of all devices and releases their OpenCL objects. Waits at most `patience` seconds for each
 * device (more while it compiles, unless `patience` is 0). Returns false when a thread hangs in its driver: its
 * device then stays as it is, and so must the context; a later call tries again. */
bool clv_devices_close(clv_context *context, double patience);
/* Frees the devices' records after clv_devices_close has returned true. */
void clv_devices_clear(clv_context *context);

bool clv_is_on_the_cpu(const clv_probe_device *device);

#endif
