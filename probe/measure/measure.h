/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and measures the devices of a decided report, in helper processes or in this process. */
#ifndef CLEAVE_PROBE_MEASURE_H
#define CLEAVE_PROBE_MEASURE_H

#include "probe/machine.h"

/* Carries out options.check, options.bench and options.measure_free on the devices in `wanted` ([device_count]; NULL:
 * all), and records the results on disk, except the free memory. All checks run at once; measurements run one after the
 * other. A device's failure is recorded in the report as a fact. Call clv_decide again afterwards. CLV_E_CANCELLED,
 * CLV_E_IO, CLV_E_MEMORY. */
clv_status clv_measure_devices(clv_machine *machine, const clv_probe_options *options,
                               const bool *wanted);

/* Reads a helper's answer to `check`, `bench` or `trial` into a device. CLV_E_FORMAT, CLV_E_MEMORY. */
clv_status clv_measure_read(clv_machine *machine, const char *text, size_t length,
                            clv_probe_device *device);

/* ---- for the runtime ------------------------------------------------------------------------- */

/* Whether a device may be used and how: the findings of its check, and the flags that follow from them. */
typedef struct clv_qualification {
    bool ok, from_disk;
    clv_probe_flags flags;
    double seconds;
    char message[400]; /* why the device may not be used; "" if ok */
} clv_qualification;

/**
 * Tells whether a device of a report made in-process is fit for work. Takes the answer from the report, which contains
 * what is on record; otherwise checks the device now, in this process, and keeps the result on disk.
 * CLV_OK (qualification.ok tells), CLV_E_ARGUMENT (no native ids). Threads: any, for different
 * devices at once.
 */
clv_status clv_qualify_device(const clv_probe_report *report, size_t index,
                              clv_qualification *qualification);

#endif
