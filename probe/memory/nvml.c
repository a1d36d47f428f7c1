/* SPDX-License-Identifier: Apache-2.0 */
/* Queries NVIDIA's management library, loaded with dlopen. Devices are matched by PCI address or UUID, never by index,
 * because NVML and OpenCL number them differently. */
#include "probe/memory/free_memory.h"

#include "base/alloc.h"
#include "probe/judge/classify.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The part of nvml.h that is used below; 0 means success everywhere. */
typedef struct nvml_device nvml_device;

typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;

typedef struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvml_memory_v2;

typedef struct nvml_utilization {
    unsigned gpu, memory;
} nvml_utilization;

typedef struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_bus_id)(const char *bus_id, nvml_device **device);
    int (*by_uuid)(const char *uuid, nvml_device **device); /* may be NULL */
    int (*memory)(nvml_device *device, nvml_memory *memory);
    int (*memory_v2)(nvml_device *device, nvml_memory_v2 *memory);          /* may be NULL */
    int (*utilization)(nvml_device *device, nvml_utilization *utilization); /* may be NULL */
} nvml;

/* Finds a function in a library. ISO C has no cast from an object pointer to a function pointer, so the bytes are
 * copied. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load(nvml *n, const char *library)
{
    if (!(n->library = dlopen(library, RTLD_NOW | RTLD_LOCAL))) return false;
    find(n->library, "nvmlDeviceGetHandleByUUID", &n->by_uuid);
    find(n->library, "nvmlDeviceGetMemoryInfo_v2", &n->memory_v2);
    find(n->library, "nvmlDeviceGetUtilizationRates", &n->utilization);
    return find(n->library, "nvmlInit_v2", &n->init) &&
           find(n->library, "nvmlShutdown", &n->shutdown) &&
           find(n->library, "nvmlDeviceGetHandleByPciBusId_v2", &n->by_bus_id) &&
           find(n->library, "nvmlDeviceGetMemoryInfo", &n->memory) && n->init() == 0;
}

static nvml_device *handle_of(const nvml *n, const clv_probe_device *device)
{
    nvml_device *handle = NULL;
    char uuid[64];
    if (device->pci_address && n->by_bus_id(device->pci_address, &handle) == 0) return handle;
    if (!device->uuid || !n->by_uuid) return NULL;
    snprintf(uuid, sizeof uuid, "GPU-%.40s", device->uuid);
    return n->by_uuid(uuid, &handle) == 0 ? handle : NULL;
}

/* Reads total and free memory. Version 2 of the query reports the driver's reserved memory separately, and that memory
 * does not count as free. */
static bool read_memory(const nvml *n, nvml_device *handle, uint64_t *total, uint64_t *left)
{
    nvml_memory_v2 two = { .version = (unsigned)sizeof two | 2u << 24 };
    nvml_memory one;
    if (n->memory_v2 && n->memory_v2(handle, &two) == 0) {
        *total = two.total;
        *left = two.free;
    } else if (n->memory(handle, &one) == 0) {
        *total = one.total;
        *left = one.free;
    } else {
        return false;
    }
    return *total && *left <= *total;
}

bool clv_nvml_facts(clv_machine *machine, size_t first, const char *library)
{
    nvml n = { 0 };
    const bool loaded = load(&n, library);
    for (size_t i = first; loaded && i < machine->report.device_count; ++i) {
        clv_probe_device *device = &machine->devices[i];
        nvml_utilization busy;
        uint64_t total, left;
        if (clv_vendor_of(NULL, device->vendor, device->type) != CLV_VENDOR_NVIDIA) continue;
        nvml_device *handle = handle_of(&n, device);
        if (!handle) continue;
        if (read_memory(&n, handle, &total, &left)) {
            clv_machine_set_free(machine, device, left, "NVML");
            device->vram_bytes = total;
            device->vram_source = "NVML";
        }
        if (n.utilization && n.utilization(handle, &busy) == 0 && busy.gpu <= 100) {
            device->utilisation_percent = busy.gpu;
            device->utilisation_source = "NVML";
        }
    }
    if (loaded) n.shutdown();
    if (n.library) dlclose(n.library);
    return loaded;
}
