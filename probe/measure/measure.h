/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and measures the devices of a decided report: in helpers, or in this process. */
#ifndef CLEAVE_PROBE_MEASURE_H
#define CLEAVE_PROBE_MEASURE_H

#include "probe/machine.h"

/* Carries out options.check, options.bench and options.measure_free on the devices in `wanted` ([device_count]; NULL:
 * all), and keeps everything except the free memory on disk. All checks run at once, measurements one after the other.
 * A device's failure is a fact in the report; call clv_decide again afterwards. CLV_E_CANCELLED, CLV_E_IO,
 * CLV_E_MEMORY. */
clv_status clv_measure_devices(clv_machine *machine, const clv_probe_options *options,
                               const bool *wanted);

/* Reads a helper's answer to `check`, `bench` or `trial` into a device. CLV_E_FORMAT, CLV_E_MEMORY. */
clv_status clv_measure_read(clv_machine *machine, const char *text, size_t length,
                            clv_probe_device *device);

/* ---- for the runtime ------------------------------------------------------------------------- */

/* Whether and how a device may be used: what its check found, and the flags that follow from it. */
typedef struct clv_qualification {
    bool ok, from_disk;
    clv_probe_flags flags;
    double seconds;
    char message[400]; /* why it is not fit; "" if ok */
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
