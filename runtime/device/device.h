/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a device, stops using it, and checks whether it still works. */
#ifndef CLEAVE_RUNTIME_DEVICE_DEVICE_H
#define CLEAVE_RUNTIME_DEVICE_DEVICE_H

#include "runtime/record/device.h"

/* Seconds that a launch, or a chunk of a job, may be expected to take on a device that needs short launches. */
#define CLV_SHORT_LAUNCH_S 0.1

/* Adapts the device's settings to the quirks that `flags` lists. */
void clv_device_heed(clv_device *device, const clv_probe_flags *flags);
/* Stops using the device from now on. If it was quarantined before, the first reason stays. */
void clv_device_quarantine(clv_device *device, clv_status status);
/* Checks whether the device still works, by a small copy to it and back. Called after an error that may mean "no
 * room" as well as "gone". If the check fails, quarantines the device and returns the failure. */
clv_status clv_device_still_works(clv_device *device);

#endif
