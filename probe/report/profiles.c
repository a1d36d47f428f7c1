/* SPDX-License-Identifier: Apache-2.0 */
/* Makes simulated machines from profiles of real devices and from scenarios, which combine profiles. A field that is
 * missing in a profile stands for a query that the device's driver does not answer. */
#include "probe/report/snapshot.h"

#include "base/alloc.h"
#include "base/error.h"
#include "probe/report/fields.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DEVICES = 4096 };

static const uint64_t alone_available_bytes = UINT64_C(16000000000);

#define DEVICE(key, kind, member)                                             \
    {                                                                         \
        NULL, key, CLV_FIELD_##kind, true, offsetof(clv_probe_device, member) \
    }
static const clv_field device_rows[] = {
    DEVICE("name", TEXT, name),
    DEVICE("vendor", TEXT, vendor),
    DEVICE("vendor_id", UNSIGNED, vendor_id),
    DEVICE("board_name", TEXT, board_name),
    DEVICE("device_version", TEXT, version),
    DEVICE("driver_version", TEXT, driver_version),
    DEVICE("profile", TEXT, profile),
    DEVICE("compute_units", COUNT, compute_units),
    DEVICE("max_clock_mhz", REAL, clock_mhz),
    DEVICE("global_mem_bytes", BYTES, global_bytes),
    DEVICE("max_alloc_bytes", BYTES, max_alloc_bytes),
    DEVICE("local_mem_bytes", BYTES, local_bytes),
    DEVICE("local_mem_type", LOCAL, local_is_global),
    DEVICE("constant_buffer_bytes", BYTES, constant_bytes),
    DEVICE("max_work_group_size", SIZE, max_work_group),
    DEVICE("preferred_wg_multiple", SIZE, preferred_multiple),
    DEVICE("subgroup_sizes", NUMBERS, subgroup_sizes),
    DEVICE("wavefront", BYTES, wavefront),
    DEVICE("address_bits", COUNT, address_bits),
    DEVICE("unified_memory", BOOL, unified),
    DEVICE("nv_integrated", MAYBE, integrated),
    DEVICE("nv_kernel_timeout", MAYBE, kernel_timeout),
    DEVICE("fp64", BOOL, fp64),
    DEVICE("fp16", BOOL, fp16),
    DEVICE("dp4a", MAYBE, dot8),
    DEVICE("image_support", BOOL, images),
    DEVICE("profiling_timer_ns", BYTES, timer_resolution_ns),
    DEVICE("pci", TEXT, pci_address),
    DEVICE("uuid", TEXT, uuid),
    DEVICE("amd_pcie_device_id", BYTES, pci_device_id),
    DEVICE("intel_device_id", BYTES, pci_device_id),
    DEVICE("intel_ip", TEXT, arch),
    DEVICE("extensions", WORDS, extensions),
};
static const clv_fields device_fields = { device_rows, CLV_LEN(device_rows) };

#define PLATFORM(key, member)                                                 \
    {                                                                         \
        NULL, key, CLV_FIELD_TEXT, true, offsetof(clv_probe_platform, member) \
    }
static const clv_field platform_rows[] = {
    PLATFORM("platform_name", name),
    PLATFORM("platform_version", version),
};
static const clv_fields platform_fields = { platform_rows, CLV_LEN(platform_rows) };

/* Returns a type such as "GPU|DEFAULT" without the DEFAULT bit, which says nothing about the device. */
static const char *read_type(clv_machine *machine, const char *text)
{
    static const char *const known[] = { "GPU", "CPU", "ACCELERATOR", "CUSTOM" };
    clv_text kept = { 0 };
    while (*text) {
        const size_t length = strcspn(text, "|");
        for (size_t i = 0; i < CLV_LEN(known); ++i)
            if (strlen(known[i]) == length && memcmp(known[i], text, length) == 0)
                clv_text_add(&kept, "%s%s", kept.length ? "|" : "", known[i]);
        text += length + (text[length] == '|');
    }
    const char *type = clv_machine_keep(machine, kept.data);
    if (kept.failed) machine->failed = true;
    clv_text_clear(&kept);
    return type;
}

/* Converts the values of a profile whose form differs from that of a report. */
static void translate(clv_machine *machine, const clv_json *profile, size_t copy,
                      clv_probe_device *device)
{
    device->type = read_type(machine, clv_json_string(clv_json_get(profile, "type"), ""));
    if (device->clock_mhz == 0) device->clock_mhz = -1;
    if (device->integrated != CLV_MAYBE) device->integrated_source = "NVIDIA's own query";
    const char *by = clv_json_string(clv_json_get(profile, "integrated_by"), NULL);
    if (by) {
        device->integrated = CLV_YES;
        device->integrated_source = clv_machine_foreign(machine, by, strlen(by));
    }
    const char *pci = clv_json_string(clv_json_at(clv_json_get(profile, "pci_as_reported"), copy),
                                      device->pci_address);
    const bool placeholder = !pci || strcmp(pci, "0000:00:00.0") == 0;
    device->pci_address = placeholder ? NULL : clv_machine_foreign(machine, pci, strlen(pci));

    const int64_t mib = clv_json_int(clv_json_get(profile, "global_mem_mib_approx"), 0);
    if (mib > 0 && mib < 1 << 30) device->global_bytes = (uint64_t)mib << 20;
    const int64_t kib = clv_json_int(clv_json_at(clv_json_get(profile, "amd_free_kib"), 0), 0);
    if (kib > 0 && kib < INT64_C(1) << 40) {
        device->free_bytes = (uint64_t)kib << 10;
        device->free_source = "CL_DEVICE_GLOBAL_FREE_MEMORY_AMD";
    }
    const char *capability = clv_json_string(clv_json_get(profile, "compute_capability"), NULL);
    if (capability && strlen(capability) == 3 && capability[1] == '.' &&
        isdigit((unsigned char)capability[0]) && isdigit((unsigned char)capability[2]))
        device->arch = clv_machine_text(machine, "sm_%c%c", capability[0], capability[2]);
    else if (device->name && clv_starts_with(device->name, "gfx"))
        device->arch =
            clv_machine_text(machine, "%.*s", (int)strcspn(device->name, ":"), device->name);
}

static const clv_json *find_by_id(const clv_json *list, const char *id)
{
    for (size_t i = 0; i < clv_json_count(list); ++i) {
        const clv_json *entry = clv_json_at(list, i);
        if (strcmp(clv_json_string(clv_json_get(entry, "id"), ""), id) == 0) return entry;
    }
    return NULL;
}

/* Adds a device of the profile, on a new platform or on the last one. */
static clv_status add(clv_machine *machine, const clv_json *profiles, const char *id, size_t copy,
                      bool same_platform, const char *name)
{
    char where[160];
    const clv_json *profile = find_by_id(profiles, id);
    if (!profile)
        return clv_fail(CLV_E_FORMAT, "%s: there is no device profile \"%.60s\"", name, id);
    snprintf(where, sizeof where, "%.80s: %.60s", name, id);
    if (!same_platform || !machine->report.platform_count) {
        clv_probe_platform *platform = clv_machine_add_platform(machine);
        if (!platform) return clv_fail(CLV_E_MEMORY, "%s: out of memory", name);
        CLV_TRY(clv_fields_read(machine, profile, platform_fields, where, platform));
    }
    const size_t platform = machine->report.platform_count - 1;
    unsigned ordinal = 0;
    for (size_t i = 0; i < machine->report.device_count; ++i)
        if (machine->devices[i].platform == platform) ++ordinal;
    clv_probe_device *device = clv_machine_add_device(machine);
    if (!device) return clv_fail(CLV_E_MEMORY, "%s: out of memory", name);
    device->platform = platform;
    device->ordinal = ordinal;
    CLV_TRY(clv_fields_read(machine, profile, device_fields, where, device));
    translate(machine, profile, copy, device);
    return CLV_OK;
}

static clv_status no_scenario(const clv_json *root, const char *scenario, const char *name)
{
    clv_text ids = { 0 };
    const clv_json *list = clv_json_get(root, "scenarios");
    for (size_t i = 0; i < clv_json_count(list); ++i)
        clv_text_add(&ids, "%s%.40s", i ? ", " : "",
                     clv_json_string(clv_json_get(clv_json_at(list, i), "id"), "?"));
    const clv_status status =
        scenario ? clv_fail(CLV_E_ARGUMENT,
                            "%s: there is no scenario or device \"%s\"; the scenarios are: %s",
                            name, scenario, clv_text_get(&ids))
                 : clv_fail(CLV_E_ARGUMENT, "%s: choose one of its scenarios: %s", name,
                            clv_text_get(&ids));
    clv_text_clear(&ids);
    return status;
}

static clv_status add_alone(clv_machine *machine, const clv_json *profiles, const char *id,
                            const char *name)
{
    machine->report.host.memory_available_bytes = alone_available_bytes;
    CLV_TRY(add(machine, profiles, id, 0, false, name));
    if (strcmp(id, "cpu-pocl") == 0 || !find_by_id(profiles, "cpu-pocl")) return CLV_OK;
    return add(machine, profiles, "cpu-pocl", 0, false, name);
}

clv_status clv_profiles_read(clv_machine *machine, const clv_json *root, const char *scenario,
                             const char *name)
{
    const clv_json *profiles = clv_json_get(root, "devices");
    const clv_json *chosen =
        scenario ? find_by_id(clv_json_get(root, "scenarios"), scenario) : NULL;
    if (!chosen && scenario && find_by_id(profiles, scenario))
        return add_alone(machine, profiles, scenario, name);
    if (!chosen) return no_scenario(root, scenario, name);

    const clv_json *ids = clv_json_get(chosen, "devices");
    const bool same_platform = clv_json_bool(clv_json_get(chosen, "same_platform"), false);
    if (clv_json_count(ids) > MOST_DEVICES)
        return clv_fail(CLV_E_FORMAT, "%s: %s: there are too many devices", name, scenario);
    const int64_t available = clv_json_int(clv_json_get(chosen, "host_available_bytes"), -1);
    if (available >= 0) machine->report.host.memory_available_bytes = (uint64_t)available;
    for (size_t i = 0; i < clv_json_count(ids); ++i) {
        const char *id = clv_json_string(clv_json_at(ids, i), "");
        size_t copy = 0;
        for (size_t k = 0; k < i; ++k)
            copy += strcmp(clv_json_string(clv_json_at(ids, k), ""), id) == 0;
        CLV_TRY(add(machine, profiles, id, copy, same_platform, name));
    }
    for (size_t i = 0;
         clv_json_bool(clv_json_get(chosen, "same_pci"), false) && i < machine->report.device_count;
         ++i)
        machine->devices[i].pci_address = machine->devices[0].pci_address;
    return CLV_OK;
}
