/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the public functions for a device's memory: buffers, free memory and load. */
#include "runtime/device/memory.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "probe/host/small_file.h"
#include "runtime/device/pool.h"
#include "runtime/device/tensor_cache.h"

clv_status clv_buffer_create(clv_device *device, size_t bytes, clv_buffer_kind kind,
                             clv_buffer **out)
{
    *out = NULL;
    CLV_TRY(clv_device_open(device));
    if (bytes == 0)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: a buffer must have at least 1 byte, but 0 were asked for",
                        device->label);
    if (bytes > SIZE_MAX / 2)
        return clv_fail(CLV_E_ARGUMENT, "%s: a buffer of %zu bytes is larger than possible",
                        device->label, bytes);
    return clv_tensors_make_room(device, bytes, kind, out);
}

clv_memory_stats clv_device_memory(clv_device *device)
{
    pthread_mutex_lock(&device->lock);
    clv_memory_stats stats = device->pool->stats;
    stats.budget_bytes = device->budget;
    stats.tensor_bytes = device->tensors->bytes;
    stats.tensor_hits = device->tensors->hits;
    stats.tensor_fills = device->tensors->fills;
    stats.tensor_evictions = device->tensors->evictions;
    pthread_mutex_unlock(&device->lock);
    return stats;
}

static void give_up_all(clv_device *device)
{
    while (clv_tensors_evict(device)) {
    }
}

void clv_device_trim(clv_device *device)
{
    give_up_all(device);
    pthread_mutex_lock(&device->lock);
    clv_pool_clear(device);
    pthread_mutex_unlock(&device->lock);
}

void clv_device_lower_budget(clv_device *device, uint64_t floor)
{
    give_up_all(device);
    pthread_mutex_lock(&device->lock);
    clv_pool_clear(device);
    const uint64_t lower = CLV_MAX(device->pool->stats.used_bytes, floor);
    if (lower < device->budget) {
        char was[16], now[16];
        clv_log(CLV_LOG_WARN, "%s: ran out of memory below its budget: the budget of %s becomes %s",
                device->label, clv_format_bytes(device->budget, was), clv_format_bytes(lower, now));
        device->budget = lower; /* for later jobs too */
    }
    pthread_mutex_unlock(&device->lock);
}

clv_status clv_device_reserve(clv_device *device, size_t bytes, size_t count)
{
    clv_status status = CLV_OK;
    if (!device || !bytes || !count)
        return clv_fail(CLV_E_ARGUMENT,
                        "reserve: the device is NULL, or 0 bytes or 0 buffers were asked for");
    clv_buffer **held = clv_zalloc(count, sizeof(clv_buffer *));
    if (!held) return clv_fail(CLV_E_MEMORY, "reserve: not enough memory for %zu buffers", count);
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
    const uint64_t unpinned = device->tensors->bytes - device->tensors->pinned_bytes;
    pthread_mutex_unlock(&device->lock);
    const uint64_t budget = stats.budget_bytes;
    room.total_bytes = device->facts->global_bytes;
    room.limit_bytes = budget;
    const uint64_t held = stats.used_bytes - CLV_MIN(unpinned, stats.used_bytes);
    room.free_bytes = budget > held ? budget - held : 0;
    room.largest_bytes = CLV_MIN(device->facts->max_alloc_bytes, budget);
    return room;
}

clv_status clv_device_utilisation(clv_device *device, double *percent)
{
    if (!device || !percent)
        return clv_fail(CLV_E_ARGUMENT, "utilisation: device or result is NULL");
    *percent = -1;
    const clv_probe_device *facts = device->facts;
    if (facts->pci_address) { /* the present load, if the system's driver reports it */
        const uint64_t busy =
            clv_small_number("", "/sys/bus/pci/devices/%s/gpu_busy_percent", facts->pci_address);
        if (busy <= 100) *percent = (double)busy;
    }
    if (*percent < 0) *percent = facts->utilisation_percent; /* as it was when probed */
    return *percent >= 0
               ? CLV_OK
               : clv_fail(CLV_E_DEVICE, "%s: the driver does not report how busy the device is",
                          device->label);
}
