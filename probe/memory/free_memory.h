/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out how much of a GPU's memory is free. OpenCL has no query for this, but every vendor has one. */
#ifndef CLEAVE_PROBE_FREE_MEMORY_H
#define CLEAVE_PROBE_FREE_MEMORY_H

#include "probe/machine.h"

/* Queries sysfs, NVML, Level Zero and fdinfo, in the order of their reliability, for every device from index `first`
 * on. Fills in free_bytes, vram_bytes, utilisation and their sources. Values that no source reports stay unknown.
 * `root` as in probe/host/host.h. */
void clv_free_memory_facts(clv_machine *machine, size_t first, const char *root);

/* Query a vendor's library, loaded with dlopen, for the devices from index `first` on. Return false if `library` does
 * not exist or lacks a required function. */
bool clv_nvml_facts(clv_machine *machine, size_t first, const char *library);
bool clv_level_zero_facts(clv_machine *machine, size_t first, const char *library);

/* Sets the free memory of Intel's cards without Level Zero: all memory minus the memory of the processes that this user
 * may inspect. */
void clv_fdinfo_facts(clv_machine *machine, size_t first, const char *root);

#endif
