/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a report as JSON, schema "cleave.probe/1". */
#include "probe/report/report.h"

#include "base/alloc.h"
#include "probe/report/build.h"
#include "probe/report/fields.h"

#include <cleave/version.h>

#include <stdio.h>
#include <string.h>

static void write_tool(clv_json *root)
{
    clv_json *tool = clv_json_add_object(root, "tool");
    clv_json_add_string(tool, "name", "cleave");
    clv_json_add_string(tool, "version", clv_version());
    clv_json_add_string(tool, "git", clv_build_commit());
    clv_json_add_string(tool, "with", clv_build_with());
    clv_json_add_string(tool, "without", clv_build_without());
}

static void write_host(clv_json *root, const clv_probe_report *report)
{
    const clv_probe_host *host = &report->host;
    clv_json *object = clv_json_add_object(root, "host");
    clv_fields_write(object, clv_host_fields, host, false);
    clv_json *cpu = (clv_json *)(uintptr_t)clv_json_get(object, "cpu");
    clv_json *caches = clv_json_add_array(cpu, "caches");
    for (size_t i = 0; i < host->cache_count; ++i)
        clv_fields_write(clv_json_add_object(caches, NULL), clv_cache_fields, &host->caches[i],
                         false);
    clv_json *gpus = clv_json_add_array(object, "pci_gpus");
    for (size_t i = 0; i < report->pci_gpu_count; ++i)
        clv_fields_write(clv_json_add_object(gpus, NULL), clv_pci_gpu_fields, &report->pci_gpus[i],
                         false);
}

static void write_loader(clv_json *opencl, const clv_probe_report *report)
{
    clv_json *loader = clv_json_add_object(opencl, "loader");
    clv_json_add_string(loader, "path", report->loader_path);
    clv_json_add_string(loader, "name", report->loader_name);
    clv_json_add_string(loader, "version", report->loader_version);
    clv_json *layers = clv_json_add_array(loader, "layers");
    /* layers are separated like the folders in PATH */
    for (const char *at = report->layers; at && *at;) {
        char path[1024];
        const size_t length = strcspn(at, ":");
        clv_copy_string(path, CLV_MIN(length + 1, sizeof path), at);
        if (length) clv_json_add_string(layers, NULL, path);
        at += length + (at[length] == ':');
    }
}

static void write_icds(clv_json *opencl, const clv_probe_report *report)
{
    clv_json *icds = clv_json_add_array(opencl, "icds");
    for (size_t i = 0; i < report->icd_count; ++i) {
        clv_json *icd = clv_json_add_object(icds, NULL);
        clv_fields_write(icd, clv_icd_fields, &report->icds[i], false);
        clv_json *platforms = clv_json_add_array(icd, "platforms");
        for (size_t p = 0; p < report->platform_count; ++p)
            if (report->platforms[p].icd == i) clv_json_add_int(platforms, NULL, (int64_t)p);
    }
}

static void write_platforms(clv_json *parent, const clv_probe_report *report, bool facts_only)
{
    clv_json *platforms = clv_json_add_array(parent, "platforms");
    for (size_t i = 0; i < report->platform_count; ++i) {
        clv_json *platform = clv_json_add_object(platforms, NULL);
        if (!facts_only) clv_json_add_int(platform, "index", (int64_t)i);
        clv_fields_write(platform, clv_platform_fields, &report->platforms[i], facts_only);
    }
}

/* Writes the numbers in an address such as "0000:03:00.0", for readers that do not parse addresses. */
static void write_pci_numbers(clv_json *device, const char *address)
{
    static const char *const keys[] = { "domain", "bus", "device", "function" };
    unsigned at[4];
    clv_json *pci = (clv_json *)(uintptr_t)clv_json_get(device, "pci");
    const bool known = address && address[strspn(address, "0123456789abcdefABCDEF:.")] == '\0' &&
                       sscanf(address, "%8x:%2x:%2x.%1x", &at[0], &at[1], &at[2], &at[3]) == 4;
    for (size_t i = 0; i < CLV_LEN(keys); ++i) {
        if (known)
            clv_json_add_int(pci, keys[i], at[i]);
        else
            clv_json_add_null(pci, keys[i]);
    }
}

void clv_report_write_check(clv_json *object, const clv_probe_check *check)
{
    if (!check->done)
        clv_json_add_null(object, "check");
    else
        clv_fields_write(clv_json_add_object(object, "check"), clv_check_fields, check, false);
}

void clv_report_write_rates(clv_json *object, const clv_probe_rates *rates)
{
    if (!rates->date)
        clv_json_add_null(object, "measured");
    else
        clv_fields_write(clv_json_add_object(object, "measured"), clv_rate_fields, rates, false);
}

static void write_devices(clv_json *parent, const clv_probe_report *report, bool facts_only)
{
    clv_json *devices = clv_json_add_array(parent, "devices");
    for (size_t i = 0; i < report->device_count; ++i) {
        const clv_probe_device *device = &report->devices[i];
        clv_json *object = clv_json_add_object(devices, NULL);
        if (!facts_only) clv_json_add_int(object, "index", (int64_t)i);
        clv_fields_write(object, clv_device_fields, device, facts_only);
        if (!facts_only) write_pci_numbers(object, device->pci_address);
        clv_report_write_check(object, &device->check);
        clv_report_write_rates(object, &device->measured);
    }
}

clv_json *clv_report_to_json(const clv_probe_report *report)
{
    clv_json *root = clv_json_object();
    clv_json_add_string(root, "schema", "cleave.probe/1");
    write_tool(root);
    if (report->time_utc) clv_json_add_string(root, "time_utc", report->time_utc);
    if (report->duration_s >= 0) clv_json_add_number(root, "duration_s", report->duration_s);
    clv_json_add_string(root, "simulated", report->simulated);
    clv_json_add_bool(root, "isolated", report->isolated);
    write_host(root, report);
    clv_json *opencl = clv_json_add_object(root, "opencl");
    write_loader(opencl, report);
    write_icds(opencl, report);
    write_platforms(opencl, report, false);
    write_devices(root, report, false);
    clv_fields_write(clv_json_add_object(root, "mode"), clv_mode_fields, &report->mode, false);
    clv_json *warnings = clv_json_add_array(root, "warnings");
    for (size_t i = 0; i < report->warning_count; ++i)
        clv_fields_write(clv_json_add_object(warnings, NULL), clv_warning_fields,
                         &report->warnings[i], false);
    return root;
}

clv_json *clv_report_facts_to_json(const clv_probe_report *report)
{
    clv_json *root = clv_json_object();
    clv_json *opencl = clv_json_add_object(root, "opencl");
    write_loader(opencl, report);
    write_platforms(opencl, report, true);
    write_devices(root, report, true);
    return root;
}

char *clv_probe_json(const clv_probe_report *report)
{
    clv_json *root = clv_report_to_json(report);
    char *text = clv_json_text(root, false);
    clv_json_free(root);
    return text;
}
