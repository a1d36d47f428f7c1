/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out how much of a GPU's memory is free. OpenCL has no query for it, but every vendor has a way. */
#ifndef CLEAVE_PROBE_FREE_MEMORY_H
#define CLEAVE_PROBE_FREE_MEMORY_H

#include "probe/machine.h"

/* Queries sysfs, NVML, Level Zero and fdinfo, in the order of the vendors' reliability, for every device from `first`
 * on; fills free_bytes, vram_bytes, utilisation and their sources. Values that no source gives stay unknown. `root` as
 * in probe/host/host.h. */
void clv_free_memory_facts(clv_machine *machine, size_t first, const char *root);

/* Query a vendor's library, loaded with dlopen; return false if `library` does not exist or lacks a needed function. */
bool clv_nvml_facts(clv_machine *machine, size_t first, const char *library);
bool clv_level_zero_facts(clv_machine *machine, size_t first, const char *library);

/* Handles Intel's cards without Level Zero: all memory minus what the processes that we may inspect hold. */
void clv_fdinfo_facts(clv_machine *machine, size_t first, const char *root);

#endif
