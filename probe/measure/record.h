/* SPDX-License-Identifier: Apache-2.0 */
/* Records the results of checks and measurements on disk, one small text file per device and driver in <cache>/devices.
 * The file's name is a hash of everything that identifies the device. */
#ifndef CLEAVE_PROBE_RECORD_H
#define CLEAVE_PROBE_RECORD_H

#include "probe/machine.h"

/* Fills in `check` and `measured` from records for devices without these results. A record is ignored if it cannot be
 * read, if other users may write it, or if its check failed without a crash more than an hour ago. */
void clv_records_load(clv_machine *machine);

/* Records a device's check and measurements. `platform` is the device's platform. Does nothing without a cache
 * directory; returns CLV_E_IO if the record could not be written. */
clv_status clv_record_save(const clv_probe_host *host, const clv_probe_platform *platform,
                           const clv_probe_device *device);

#endif
