/* SPDX-License-Identifier: Apache-2.0 */
/* Collects facts that only vendor-specific queries report. The headers of OpenCL 1.2 contain none of these
 * constants. */
#include "probe/opencl/opencl.h"

#include "base/alloc.h"
#include "probe/opencl/query.h"

#include <string.h>

enum {
    PCI_BUS_INFO_KHR = 0x410F,

    NV_COMPUTE_CAPABILITY_MAJOR = 0x4000,
    NV_COMPUTE_CAPABILITY_MINOR = 0x4001,
    NV_WARP_SIZE = 0x4003,
    NV_KERNEL_EXEC_TIMEOUT = 0x4005,
    NV_INTEGRATED_MEMORY = 0x4006,
    NV_PCI_BUS_ID = 0x4008,
    NV_PCI_SLOT_ID = 0x4009,
    NV_PCI_DOMAIN_ID = 0x400A,

    AMD_PCIE_ID = 0x4034,
    AMD_TOPOLOGY = 0x4037,
    AMD_BOARD_NAME = 0x4038,
    AMD_GLOBAL_FREE_MEMORY = 0x4039,
    AMD_WAVEFRONT_WIDTH = 0x4043,

    INTEL_IP_VERSION = 0x4250,
    INTEL_DEVICE_ID = 0x4251,
    INTEL_FEATURES = 0x4256,
    INTEL_FEATURE_DP4A = 1,
};

static bool get_uint(const clv_probe_device *device, cl_device_info what, cl_uint *value)
{
    return clv_query_device(device->native_device, what, value, sizeof *value, NULL);
}

static void set_pci(clv_machine *machine, clv_probe_device *device, const unsigned at[4],
                    const char *source)
{
    if (!(at[0] | at[1] | at[2] | at[3])) return; /* zeros mean unknown */
    if (at[1] > 255 || at[2] > 31 || at[3] > 7) return;
    device->pci_address =
        clv_machine_text(machine, "%04x:%02x:%02x.%x", at[0], at[1], at[2], at[3]);
    device->pci_source = source;
}

static void nvidia(clv_machine *machine, clv_probe_device *device)
{
    cl_uint major, minor, value, bus, slot, domain = 0;
    if (get_uint(device, NV_COMPUTE_CAPABILITY_MAJOR, &major) &&
        get_uint(device, NV_COMPUTE_CAPABILITY_MINOR, &minor))
        device->arch = clv_machine_text(machine, "sm_%u%u", major, minor);
    if (get_uint(device, NV_WARP_SIZE, &value) && value) device->wavefront = value;
    if (get_uint(device, NV_KERNEL_EXEC_TIMEOUT, &value))
        device->kernel_timeout = value ? CLV_YES : CLV_NO;
    if (get_uint(device, NV_INTEGRATED_MEMORY, &value)) {
        device->integrated = value ? CLV_YES : CLV_NO;
        device->integrated_source = "NVIDIA's own query";
    }
    if (device->pci_address || !get_uint(device, NV_PCI_BUS_ID, &bus) ||
        !get_uint(device, NV_PCI_SLOT_ID, &slot))
        return;
    get_uint(device, NV_PCI_DOMAIN_ID, &domain);
    /* the slot is packed as usual for PCI: device << 3 | function */
    const unsigned at[] = { domain, bus, slot >> 3, slot & 7 };
    set_pci(machine, device, at, "nv");
}

static void amd_topology(clv_machine *machine, clv_probe_device *device)
{
    struct { /* layout of cl_device_topology_amd */
        cl_uint type;
        unsigned char unused[17], bus, device, function;
    } place;
    if (device->pci_address ||
        !clv_query_device(device->native_device, AMD_TOPOLOGY, &place, sizeof place, NULL) ||
        place.type != 1) /* 1 stands for PCIe */
        return;
    const unsigned at[] = { 0, place.bus, place.device, place.function };
    set_pci(machine, device, at, "amd");
}

static void amd(clv_machine *machine, clv_probe_device *device)
{
    size_t free_kib[8], length;
    cl_uint value;
    device->board_name = clv_query_device_text(machine, device->native_device, AMD_BOARD_NAME);
    if (get_uint(device, AMD_WAVEFRONT_WIDTH, &value) && value) device->wavefront = value;
    if (get_uint(device, AMD_PCIE_ID, &value) && value) device->pci_device_id = value;
    if (device->name && strncmp(device->name, "gfx", 3) == 0) {
        const size_t end = strcspn(device->name, ":"); /* "gfx1012:xnack-" */
        device->arch =
            clv_machine_text(machine, "%.*s", (int)CLV_MIN(end, (size_t)16), device->name);
    }
    amd_topology(machine, device);
    /* KiB: [0] all free memory, [1] the largest free block, which may be missing or 0 */
    if (clv_query_device(device->native_device, AMD_GLOBAL_FREE_MEMORY, free_kib, sizeof free_kib,
                         &length) &&
        length >= sizeof *free_kib && free_kib[0] && free_kib[0] < UINT64_MAX / 1024)
        clv_machine_set_free(machine, device, (uint64_t)free_kib[0] * 1024,
                             "CL_DEVICE_GLOBAL_FREE_MEMORY_AMD");
}

static void intel(clv_machine *machine, clv_probe_device *device)
{
    cl_uint value;
    if (get_uint(device, INTEL_DEVICE_ID, &value) && value) device->pci_device_id = value;
    if (get_uint(device, INTEL_IP_VERSION, &value) &&
        value >> 22) /* architecture, release, revision */
        device->arch =
            clv_machine_text(machine, "%u.%u.%u", value >> 22, value >> 14 & 0xFF, value & 0x3F);
    if (get_uint(device, INTEL_FEATURES, &value))
        device->dot8 = value & INTEL_FEATURE_DP4A ? CLV_YES : CLV_NO;
}

void clv_opencl_vendor_facts(clv_machine *machine, clv_probe_device *device)
{
    cl_uint at[4]; /* domain, bus, device, function */
    if (clv_probe_has_word(device->extensions, "cl_khr_pci_bus_info") &&
        clv_query_device(device->native_device, PCI_BUS_INFO_KHR, at, sizeof at, NULL))
        set_pci(machine, device, at, "khr");
    if (clv_probe_has_word(device->extensions, "cl_nv_device_attribute_query"))
        nvidia(machine, device);
    if (clv_probe_has_word(device->extensions, "cl_amd_device_attribute_query"))
        amd(machine, device);
    if (clv_probe_has_word(device->extensions, "cl_intel_device_attribute_query"))
        intel(machine, device);
}
