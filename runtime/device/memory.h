/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for a device's memory that cleave/runtime.h does not declare. */
#ifndef CLEAVE_RUNTIME_DEVICE_MEMORY_H
#define CLEAVE_RUNTIME_DEVICE_MEMORY_H

#include "runtime/record/device.h"

/* Lowers the budget to what is in use now, but not below `floor`, after the driver has run out of memory
 * within it. */
void clv_device_lower_budget(clv_device *device, uint64_t floor);

#endif
