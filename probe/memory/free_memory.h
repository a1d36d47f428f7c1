/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a GPU's memory is free: OpenCL has no question for it, every vendor has a way. */
#ifndef CLEAVE_PROBE_FREE_MEMORY_H
#define CLEAVE_PROBE_FREE_MEMORY_H

#include "probe/machine.h"

/* Asks sysfs, NVML, Level Zero and fdinfo, in the order of the vendors' reliability, for every
 * device from `first` on; fills free_bytes, vram_bytes, utilisation and their sources. What nobody
 * tells stays unknown. `root` as in probe/host/host.h. */
void clv_free_memory_facts(clv_machine *machine, size_t first, const char *root);

/* The vendors' libraries by dlopen; false when `library` is not there or has not what it needs. */
bool clv_nvml_facts(clv_machine *machine, size_t first, const char *library);
bool clv_level_zero_facts(clv_machine *machine, size_t first, const char *library);

/* Intel's cards without Level Zero: memory less what the processes that we may look at hold. */
void clv_fdinfo_facts(clv_machine *machine, size_t first, const char *root);

#endif
