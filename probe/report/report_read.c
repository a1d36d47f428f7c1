/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the facts of a report from JSON that is not trusted. */
#include "probe/report/report.h"

#include "base/alloc.h"
#include "base/error.h"
#include "probe/report/fields.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ENTRIES = 4096 };

static clv_status check_list(const clv_json *list, const char *what, const char *name)
{
    if (list && !clv_json_is_array(list))
        return clv_fail(CLV_E_FORMAT, "%s: %s: expected a list", what, name);
    if (clv_json_count(list) > MOST_ENTRIES)
        return clv_fail(CLV_E_FORMAT, "%s: %s: there are more than %d entries", what, name,
                        MOST_ENTRIES);
    return CLV_OK;
}

static clv_status no_memory(const char *what)
{
    return clv_fail(CLV_E_MEMORY, "%s: out of memory", what);
}

clv_status clv_report_read_check(clv_machine *machine, const clv_json *object,
                                 clv_probe_check *check)
{
    if (!clv_json_is_object(object)) return CLV_OK;
    CLV_TRY(clv_fields_read(machine, object, clv_check_fields, "check", check));
    check->done = true;
    return CLV_OK;
}

clv_status clv_report_read_rates(clv_machine *machine, const clv_json *object,
                                 clv_probe_rates *rates)
{
    if (!clv_json_is_object(object)) return CLV_OK;
    CLV_TRY(clv_fields_read(machine, object, clv_rate_fields, "measured", rates));
    if (!rates->date) rates->date = "date unknown";
    return CLV_OK;
}

/* Checks that no two devices of a platform have the same ordinal, because the report's order depends on the
 * ordinals. */
static clv_status check_place(const clv_machine *machine, const char *where)
{
    const size_t last = machine->report.device_count - 1;
    const clv_probe_device *device = &machine->devices[last];
    for (size_t i = 0; i < last; ++i)
        if (machine->devices[i].platform == device->platform &&
            machine->devices[i].ordinal == device->ordinal)
            return clv_fail(CLV_E_FORMAT, "%s.ordinal: its platform already has a device %u", where,
                            device->ordinal);
    return CLV_OK;
}

static clv_status read_device(clv_machine *machine, const clv_json *object, size_t first_platform,
                              const char *where)
{
    clv_probe_device *device = clv_machine_add_device(machine);
    if (!device) return no_memory(where);
    device->platform = SIZE_MAX;
    clv_status status = clv_fields_read(machine, object, clv_device_fields, where, device);
    if (!status && device->platform >= machine->report.platform_count - first_platform)
        status = clv_fail(CLV_E_FORMAT, "%s.platform: expected the index of a platform", where);
    if (!status)
        status = clv_report_read_check(machine, clv_json_get(object, "check"), &device->check);
    if (!status)
        status =
            clv_report_read_rates(machine, clv_json_get(object, "measured"), &device->measured);
    device->platform += first_platform;
    if (!status) status = check_place(machine, where);
    if (status) --machine->report.device_count;
    return status;
}

static void read_loader(clv_machine *machine, const clv_json *loader)
{
    clv_probe_report *report = &machine->report;
    const char *path = clv_json_string(clv_json_get(loader, "path"), NULL);
    const char *name = clv_json_string(clv_json_get(loader, "name"), NULL);
    const char *version = clv_json_string(clv_json_get(loader, "version"), NULL);
    if (path) report->loader_path = clv_machine_foreign(machine, path, strlen(path));
    if (name) report->loader_name = clv_machine_foreign(machine, name, strlen(name));
    if (version) report->loader_version = clv_machine_foreign(machine, version, strlen(version));
}

static clv_status read_platforms(clv_machine *machine, const clv_json *list, size_t icd,
                                 const char *what)
{
    char where[160];
    for (size_t i = 0; i < clv_json_count(list); ++i) {
        snprintf(where, sizeof where, "%.100s: platforms[%zu]", what, i);
        clv_probe_platform *platform = clv_machine_add_platform(machine);
        if (!platform) return no_memory(what);
        CLV_TRY(
            clv_fields_read(machine, clv_json_at(list, i), clv_platform_fields, where, platform));
        /* the caller's driver overrides the one in the answer */
        if (icd != SIZE_MAX) platform->icd = icd;
        if (platform->icd != SIZE_MAX && platform->icd >= machine->report.icd_count)
            return clv_fail(CLV_E_FORMAT, "%s.icd: expected the index of a driver", where);
    }
    return CLV_OK;
}

clv_status clv_report_read_facts(clv_machine *machine, const clv_json *root, size_t icd,
                                 const char *what)
{
    char where[160];
    const clv_json *opencl = clv_json_get(root, "opencl");
    const clv_json *platforms = clv_json_get(opencl, "platforms");
    const clv_json *devices = clv_json_get(root, "devices");
    const size_t first_platform = machine->report.platform_count;
    if (!clv_json_is_object(opencl) || !clv_json_is_array(devices))
        return clv_fail(CLV_E_FORMAT, "%s is not a report: it lacks \"opencl\" or \"devices\"",
                        what);
    CLV_TRY(check_list(platforms, what, "platforms"));
    CLV_TRY(check_list(devices, what, "devices"));
    read_loader(machine, clv_json_get(opencl, "loader"));
    CLV_TRY(read_platforms(machine, platforms, icd, what));
    for (size_t i = 0; i < clv_json_count(devices); ++i) {
        snprintf(where, sizeof where, "%.100s: devices[%zu]", what, i);
        CLV_TRY(read_device(machine, clv_json_at(devices, i), first_platform, where));
    }
    return machine->failed ? no_memory(what) : CLV_OK;
}

static clv_status read_host(clv_machine *machine, const clv_json *host, const char *what)
{
    const clv_json *caches = clv_json_get(clv_json_get(host, "cpu"), "caches");
    const clv_json *gpus = clv_json_get(host, "pci_gpus");
    CLV_TRY(check_list(caches, what, "caches"));
    CLV_TRY(check_list(gpus, what, "pci_gpus"));
    CLV_TRY(clv_fields_read(machine, host, clv_host_fields, what, &machine->report.host));
    if (!machine->report.host.threads_allowed) machine->report.host.threads_allowed = 1;
    for (size_t i = 0; i < clv_json_count(caches); ++i) {
        clv_probe_cache *cache = clv_machine_add_cache(machine);
        if (!cache) return no_memory(what);
        CLV_TRY(clv_fields_read(machine, clv_json_at(caches, i), clv_cache_fields, what, cache));
    }
    for (size_t i = 0; i < clv_json_count(gpus); ++i) {
        clv_probe_pci_gpu *gpu = clv_machine_add_pci_gpu(machine);
        if (!gpu) return no_memory(what);
        CLV_TRY(clv_fields_read(machine, clv_json_at(gpus, i), clv_pci_gpu_fields, what, gpu));
    }
    return CLV_OK;
}

clv_status clv_report_read_host(clv_machine *machine, const clv_json *root, const char *what)
{
    const clv_json *host = clv_json_get(root, "host");
    const clv_json *icds = clv_json_get(clv_json_get(root, "opencl"), "icds");
    if (host) CLV_TRY(read_host(machine, host, what));
    CLV_TRY(check_list(icds, what, "icds"));
    for (size_t i = 0; i < clv_json_count(icds); ++i) {
        clv_probe_icd *icd = clv_machine_add_icd(machine);
        if (!icd) return no_memory(what);
        CLV_TRY(clv_fields_read(machine, clv_json_at(icds, i), clv_icd_fields, what, icd));
        if (!icd->status) icd->status = "unchecked";
    }
    machine->report.isolated = clv_json_bool(clv_json_get(root, "isolated"), false);
    return CLV_OK;
}
