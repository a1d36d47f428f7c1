/* SPDX-License-Identifier: Apache-2.0 */
/* What callers may know and do about a device's memory and load, beyond the pool itself. */
#include "runtime/device/device.h"

#include "base/alloc.h"
#include "probe/host/small_file.h"

clv_status clv_device_reserve(clv_device *device, size_t bytes, size_t count)
{
    clv_status status = CLV_OK;
    if (!device || !bytes || !count)
        return clv_fail(CLV_E_ARGUMENT, "reserve: a NULL device, 0 bytes or 0 buffers");
    clv_buffer **held = clv_zalloc(count, sizeof(clv_buffer *));
    if (!held) return clv_fail(CLV_E_MEMORY, "reserve: no memory for %zu buffers", count);
    for (size_t i = 0; i < count && !status; ++i)
        status = clv_buffer_create(device, bytes, CLV_BUFFER_DEVICE, &held[i]);
    for (size_t i = count; i-- > 0;)
        clv_buffer_free(held[i]);
    clv_free(held);
    return status;
}

clv_memory_room clv_device_room(clv_device *device)
{
    clv_memory_room room = { 0 };
    if (!device) return room;
    const clv_memory_stats stats = clv_device_memory(device);
    pthread_mutex_lock(&device->lock);
    const uint64_t unpinned = device->tensors.bytes - device->tensors.pinned_bytes;
    pthread_mutex_unlock(&device->lock);
    const uint64_t budget = stats.budget_bytes ? stats.budget_bytes : device->budget;
    room.total_bytes = device->facts->global_bytes;
    room.limit_bytes = budget;
    const uint64_t held = stats.used_bytes - CLV_MIN(unpinned, stats.used_bytes);
    room.free_bytes = budget > held ? budget - held : 0;
    room.largest_bytes = CLV_MIN(device->facts->max_alloc_bytes, budget);
    return room;
}

clv_status clv_device_utilisation(clv_device *device, double *percent)
{
    if (!device || !percent) return clv_fail(CLV_E_ARGUMENT, "utilisation: a NULL device or place");
    *percent = -1;
    const clv_probe_device *facts = device->facts;
    if (facts->pci_address) { /* as it is now, where the kernel's driver tells */
        const uint64_t busy =
            clv_small_number("", "/sys/bus/pci/devices/%s/gpu_busy_percent", facts->pci_address);
        if (busy <= 100) *percent = (double)busy;
    }
    if (*percent < 0) *percent = facts->utilisation_percent; /* as the probe found it */
    return *percent >= 0 ? CLV_OK
                         : clv_fail(CLV_E_DEVICE, "%s: the driver does not tell how busy it is",
                                    device->label);
}
