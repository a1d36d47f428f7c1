/* SPDX-License-Identifier: Apache-2.0 */
/* What checks and measurements found, kept on disk for each device and driver: one small text file
 * in <cache>/devices, found by a hash of everything that makes the device what it is. */
#ifndef CLEAVE_PROBE_RECORD_H
#define CLEAVE_PROBE_RECORD_H

#include "probe/machine.h"

/* Fills check and measured of devices that have none from what earlier runs left. A record that
 * cannot be read, or that anybody else may write, does not exist; nor does, after an hour, a check
 * that failed without a crash. */
void clv_records_load(clv_machine *machine);

/* Keeps what a device has of both. `platform` is its own. Without a cache directory nothing
 * happens; CLV_E_IO when it could not be written. */
clv_status clv_record_save(const clv_probe_host *host, const clv_probe_platform *platform,
                           const clv_probe_device *device);

#endif
