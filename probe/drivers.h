/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which OpenCL drivers may be loaded into this process. Each driver is enumerated and checked once in helper
 * processes, and the result is recorded until anything changes on which the driver's behaviour depends. */
#ifndef CLEAVE_PROBE_DRIVERS_H
#define CLEAVE_PROBE_DRIVERS_H

#include "base/text.h"

#include <cleave/probe.h>

/**
 * Makes a folder of .icd files for OCL_ICD_VENDORS that leaves out every driver that crashed, hung or gave invalid
 * output while it was asked for its devices or while these were checked. It is for programs that may change their
 * environment; call it before their first OpenCL call. The results of the checks are recorded, so that
 * clv_qualify_device has its answers.
 *
 * @param options   helper, timeout and progress are used.
 * @param lean      also leaves out drivers whose devices are all cores of this machine that a better driver offers as
 *                  well: they are never used, and each costs about 100 MB and 0.1 s.
 * @param folder    out; "" if nothing needs to be left out. The folder is in the cache directory; without one it is in
 *                  the temporary directory, and the caller removes it at the end (clv_drivers_forget).
 * @param left_out  appended: one line for each bad driver left out, and why. Drivers left out by `lean` are logged.
 * @return CLV_OK; CLV_E_IO (no helper, no place for folders); CLV_E_CANCELLED; CLV_E_MEMORY.
 * Takes some milliseconds if everything is on record, else as long as the slowest driver's check.
 */
clv_status clv_drivers_vet(const clv_probe_options *options, bool lean, char *folder,
                           size_t capacity, clv_text *left_out);

/* Removes a folder of clv_drivers_vet, unless it is in the cache directory. */
void clv_drivers_forget(const char *folder);

#endif
