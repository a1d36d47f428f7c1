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
 * What a failure leaves behind clv_devices_end takes. */
clv_status clv_devices_make(clv_context *context, const size_t *chosen, size_t count,
                            unsigned sub_devices);
/* False when a thread hangs in a driver: its device stays as it is, and so must the context. */
bool clv_devices_end(clv_context *context);

bool clv_is_on_the_cpu(const clv_probe_device *device);

#endif
