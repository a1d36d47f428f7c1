/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the results of checks and measurements on disk for each device and driver: one small text file in
 * <cache>/devices, found by a hash of everything that identifies the device. */
#ifndef CLEAVE_PROBE_RECORD_H
#define CLEAVE_PROBE_RECORD_H

#include "probe/machine.h"

/* Fills check and measured from earlier runs for devices that have none. A record is ignored if it cannot be read, if
 * other users may write it, or, after an hour, if its check failed without a crash. */
void clv_records_load(clv_machine *machine);

/* Keeps a device's check and measurements. `platform` is the device's. Does nothing without a cache directory; CLV_E_IO
 * if the record could not be written. */
clv_status clv_record_save(const clv_probe_host *host, const clv_probe_platform *platform,
                           const clv_probe_device *device);

#endif
