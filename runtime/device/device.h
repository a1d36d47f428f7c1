/* SPDX-License-Identifier: Apache-2.0 */
/* A device's state: opening it, giving it up, asking whether it still works. */
#ifndef CLEAVE_RUNTIME_DEVICE_DEVICE_H
#define CLEAVE_RUNTIME_DEVICE_DEVICE_H

#include "runtime/record/device.h"

/* What a quirk means for the way we work with the device. */
void clv_device_heed(clv_device *device, const clv_probe_flags *flags);
/* From now on the device is not used; keeps the first reason. */
void clv_device_quarantine(clv_device *device, clv_status status);
/* Does the device still do the simplest thing, a small copy there and back? After an error that may
 * mean "no room" as well as "gone". Quarantines it and passes the failure on when it does not. */
clv_status clv_device_still_works(clv_device *device);

#endif
