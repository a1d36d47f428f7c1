/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the functions for a device's memory that are not public (cleave/runtime.h). */
#ifndef CLEAVE_RUNTIME_DEVICE_MEMORY_H
#define CLEAVE_RUNTIME_DEVICE_MEMORY_H

#include "runtime/record/device.h"

/* Lowers the device's budget to the bytes in use now, but not below `floor`. Called after the driver has run out of
 * memory within the budget. */
void clv_device_lower_budget(clv_device *device, uint64_t floor);

#endif
