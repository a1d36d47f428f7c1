/* SPDX-License-Identifier: Apache-2.0 */
/* Queries Intel's Level Zero system management, loaded with dlopen. Without privileges it reports all memory as free
 * (level-zero issue 133): that is treated as "unknown". */
#include "probe/memory/free_memory.h"

#include "base/alloc.h"
#include "probe/judge/classify.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The part of zes_api.h that is used below; 0 means success everywhere. */
enum { STYPE_PCI_PROPERTIES = 0x2, STYPE_MEM_PROPERTIES = 0xb, STYPE_MEM_STATE = 0x1e };
enum { LOCATION_DEVICE = 1 };
enum { MOST = 64 }; /* most drivers, devices per driver, memories per device */

typedef struct zes_driver zes_driver;
typedef struct zes_device zes_device;
typedef struct zes_memory zes_memory;

typedef struct zes_pci_properties {
    int stype;
    void *next;
    struct {
        uint32_t domain, bus, device, function;
    } address;
    struct {
        int32_t generation, width;
        int64_t bandwidth;
    } speed;
    uint8_t counters[3];
} zes_pci_properties;

typedef struct zes_mem_properties {
    int stype;
    void *next;
    int type;
    uint8_t on_subdevice;
    uint32_t subdevice;
    int location;
    uint64_t physical_size;
    int32_t bus_width, channels;
} zes_mem_properties;

typedef struct zes_mem_state {
    int stype;
    const void *next;
    int health;
    uint64_t free, size;
} zes_mem_state;

typedef struct zes {
    void *library;
    int (*init)(uint32_t flags);
    int (*drivers)(uint32_t *count, zes_driver **drivers);
    int (*devices)(zes_driver *driver, uint32_t *count, zes_device **devices);
    int (*pci)(zes_device *device, zes_pci_properties *properties);
    int (*memories)(zes_device *device, uint32_t *count, zes_memory **memories);
    int (*properties)(zes_memory *memory, zes_mem_properties *properties);
    int (*state)(zes_memory *memory, zes_mem_state *state);
} zes;

static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load(zes *z, const char *library)
{
    if (!(z->library = dlopen(library, RTLD_NOW | RTLD_LOCAL))) return false;
    return find(z->library, "zesInit", &z->init) && find(z->library, "zesDriverGet", &z->drivers) &&
           find(z->library, "zesDeviceGet", &z->devices) &&
           find(z->library, "zesDevicePciGetProperties", &z->pci) &&
           find(z->library, "zesDeviceEnumMemoryModules", &z->memories) &&
           find(z->library, "zesMemoryGetProperties", &z->properties) &&
           find(z->library, "zesMemoryGetState", &z->state) && z->init(0) == 0;
}

/* Adds up the memory modules of the card; returns false if a query fails. */
static bool read_memory(const zes *z, zes_device *device, uint64_t *total, uint64_t *left)
{
    zes_memory *memories[MOST];
    uint32_t count = MOST;
    *total = *left = 0;
    if (z->memories(device, &count, memories)) return false;
    for (uint32_t i = 0; i < count && i < MOST; ++i) {
        zes_mem_properties properties = { .stype = STYPE_MEM_PROPERTIES };
        zes_mem_state state = { .stype = STYPE_MEM_STATE };
        if (z->properties(memories[i], &properties) || properties.location != LOCATION_DEVICE)
            continue;
        if (z->state(memories[i], &state) || state.free > state.size) return false;
        *total += state.size;
        *left += state.free;
    }
    return *total > 0;
}

static void fill(clv_machine *machine, size_t first, const zes *z, zes_device *sysman)
{
    zes_pci_properties pci = { .stype = STYPE_PCI_PROPERTIES };
    uint64_t total, left;
    char address[32];
    if (z->pci(sysman, &pci)) return;
    snprintf(address, sizeof address, "%04x:%02x:%02x.%x", pci.address.domain, pci.address.bus,
             pci.address.device, pci.address.function);
    for (size_t i = first; i < machine->report.device_count; ++i) {
        clv_probe_device *device = &machine->devices[i];
        if (!device->pci_address || strcmp(device->pci_address, address) != 0 ||
            clv_vendor_of(NULL, device->vendor, device->type) != CLV_VENDOR_INTEL ||
            !read_memory(z, sysman, &total, &left))
            continue;
        device->vram_bytes = total;
        device->vram_source = "Level Zero";
        if (left < total) clv_machine_set_free(machine, device, left, "Level Zero");
    }
}

bool clv_level_zero_facts(clv_machine *machine, size_t first, const char *library)
{
    zes z = { 0 };
    zes_driver *drivers[MOST];
    zes_device *devices[MOST];
    uint32_t driver_count = MOST;
    const bool loaded = load(&z, library) && z.drivers(&driver_count, drivers) == 0;
    for (uint32_t d = 0; loaded && d < driver_count && d < MOST; ++d) {
        uint32_t count = MOST;
        if (z.devices(drivers[d], &count, devices)) continue;
        for (uint32_t i = 0; i < count && i < MOST; ++i)
            fill(machine, first, &z, devices[i]);
    }
    /* not closed, because Level Zero keeps threads and handlers that outlive dlclose */
    return loaded;
}
