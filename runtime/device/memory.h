/* SPDX-License-Identifier: Apache-2.0 */
/* A device's memory beyond what cleave/runtime.h tells of it. */
#ifndef CLEAVE_RUNTIME_DEVICE_MEMORY_H
#define CLEAVE_RUNTIME_DEVICE_MEMORY_H

#include "runtime/record/device.h"

/* Lowers the budget to what is in use now (at least `floor`): the driver said it was too much. */
void clv_device_lower_budget(clv_device *device, uint64_t floor);

#endif
