/* SPDX-License-Identifier: Apache-2.0 */
/* Which drivers are fit to be loaded into a process of ours: enumerated and checked in helpers once,
 * remembered until something changes. */
#ifndef CLEAVE_PROBE_DRIVERS_H
#define CLEAVE_PROBE_DRIVERS_H

#include "base/text.h"

#include <cleave/probe.h>

/**
 * For programs that may change their environment, before their first OpenCL call: a folder of .icd
 * files for OCL_ICD_VENDORS that leaves out every driver that crashed, hung or babbled, when it was
 * asked for its devices or when these were checked. What the checks found is on record afterwards,
 * so that clv_qualify_device has its answers.
 *
 * @param options   helper, timeout and progress are used.
 * @param lean      leaves out drivers, too, of which every device is cores of this machine that a better
 *                  driver offers as well: nobody uses them, and each costs some 100 MB and 0.1 s.
 * @param folder    out; "" when nothing needs to be left out. It lies in the cache directory, or
 *                  without one in the temporary directory, where the caller removes it at the end
 *                  (clv_drivers_forget).
 * @param left_out  appended: one line for each bad driver left out, and why. Lean ones are logged.
 * @return CLV_OK; CLV_E_IO (no helper, no place for folders); CLV_E_CANCELLED; CLV_E_MEMORY.
 * Some milliseconds when everything is on record, else as long as the slowest driver's check.
 */
clv_status clv_drivers_vet(const clv_probe_options *options, bool lean, char *folder,
                           size_t capacity, clv_text *left_out);

/* Removes a folder that is not in the cache directory. */
void clv_drivers_forget(const char *folder);

#endif
