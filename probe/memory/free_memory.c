/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out how much of a GPU's memory is free, with each vendor's own query. */
#include "probe/memory/free_memory.h"

#include "base/alloc.h"
#include "probe/judge/classify.h"
#include "probe/host/host.h"

#include <string.h>

/* Returns whether the vendor has a GPU with a PCI address or a UUID whose free memory is still unknown. */
static bool wanted(const clv_machine *machine, size_t first, clv_vendor vendor)
{
    for (size_t i = first; i < machine->report.device_count; ++i) {
        const clv_probe_device *device = &machine->devices[i];
        if (device->type && strstr(device->type, "GPU") && device->free_bytes == CLV_UNKNOWN &&
            (device->pci_address || device->uuid) &&
            clv_vendor_of(NULL, device->vendor, device->type) == vendor)
            return true;
    }
    return false;
}

void clv_free_memory_facts(clv_machine *machine, size_t first, const char *root)
{
    for (size_t i = first; i < machine->report.device_count; ++i)
        clv_sysfs_device_facts(machine, &machine->devices[i], root);
    if (wanted(machine, first, CLV_VENDOR_NVIDIA))
        clv_nvml_facts(machine, first, "libnvidia-ml.so.1");
    if (!wanted(machine, first, CLV_VENDOR_INTEL)) return;
    clv_level_zero_facts(machine, first, "libze_loader.so.1");
    if (wanted(machine, first, CLV_VENDOR_INTEL)) clv_fdinfo_facts(machine, first, root);
}
