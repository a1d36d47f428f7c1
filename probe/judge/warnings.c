/* SPDX-License-Identifier: Apache-2.0 */
/* Writes warnings: what the user should know about the machine, and what to do about it. */
#include "probe/judge/decide.h"

#include "base/alloc.h"
#include "probe/judge/classify.h"
#include "probe/judge/quirks.h"

#include <stdio.h>
#include <string.h>

typedef struct gpu_maker {
    unsigned pci_vendor;
    clv_vendor vendor;
    const char *name, *hint;
    /* the Mesa driver that rusticl uses for this maker; NULL: none is worth using */
    const char *mesa;
} gpu_maker;

static const gpu_maker makers[] = {
    { 0x10DE, CLV_VENDOR_NVIDIA, "NVIDIA", "apt install nvidia-opencl-icd", NULL },
    { 0x1002, CLV_VENDOR_AMD, "AMD",
      "install ROCm's OpenCL from AMD, or apt install mesa-opencl-icd and set "
      "RUSTICL_ENABLE=radeonsi",
      "radeonsi" },
    { 0x8086, CLV_VENDOR_INTEL, "Intel", "apt install intel-opencl-icd", "iris" },
};

static const gpu_maker *maker_of(const clv_probe_pci_gpu *gpu)
{
    for (size_t i = 0; i < CLV_LEN(makers); ++i)
        if (makers[i].pci_vendor == gpu->vendor_id) return &makers[i];
    return NULL;
}

/* Returns whether an OpenCL device has the GPU's address. If a driver reports no address, its device is assumed to be a
 * GPU of the driver's own vendor. */
static bool seen_by_opencl(const clv_probe_report *report, const clv_probe_pci_gpu *gpu)
{
    const gpu_maker *maker = maker_of(gpu);
    for (size_t i = 0; i < report->device_count; ++i) {
        const clv_probe_device *device = &report->devices[i];
        if (!clv_is_gpu(device)) continue;
        if (device->pci_address ? gpu->address && strcmp(device->pci_address, gpu->address) == 0
                                : maker && device->vendor_norm == maker->vendor)
            return true;
    }
    return false;
}

/* Returns whether this maker's driver is installed but does not work; in this case nothing has to be installed. */
static bool has_broken_driver(const clv_probe_report *report, const gpu_maker *maker)
{
    for (size_t i = 0; i < report->icd_count; ++i) {
        const clv_probe_icd *icd = &report->icds[i];
        const bool theirs = (icd->file && clv_contains_nocase(icd->file, maker->name)) ||
                            (icd->library && clv_contains_nocase(icd->library, maker->name));
        if (theirs && strcmp(icd->status, "ok") != 0 && strcmp(icd->status, "unchecked") != 0)
            return true;
    }
    return false;
}

static void warn_pci(clv_machine *machine)
{
    for (size_t i = 0; i < machine->report.pci_gpu_count; ++i) {
        clv_probe_pci_gpu *gpu = &machine->pci_gpus[i];
        const gpu_maker *maker = maker_of(gpu);
        gpu->has_opencl = seen_by_opencl(&machine->report, gpu);
        /* skips virtual adapters and server consoles, which have no known maker */
        if (gpu->has_opencl || !maker) continue;
        const bool broken = has_broken_driver(&machine->report, maker);
        clv_machine_warn(machine, "gpu_without_opencl",
                         broken ? "see what is said about its driver" : maker->hint,
                         "%s %s at %s is on the PCI bus but no OpenCL driver shows it", maker->name,
                         gpu->name ? gpu->name : "GPU", gpu->address ? gpu->address : "?");
    }
    if (machine->report.host.gpu_access)
        clv_machine_warn(machine, "gpu_access",
                         "add the user to the groups render and video, then log in again",
                         "%s may not be opened by this user", machine->report.host.gpu_access);
}

static void warn_icds(clv_machine *machine)
{
    static const char *const broken[] = { "crashed", "timeout", "hung_unkillable", "bad_output" };
    const clv_probe_report *report = &machine->report;
    for (size_t i = 0; i < report->icd_count; ++i) {
        const clv_probe_icd *icd = &report->icds[i];
        const char *file = icd->file ? icd->file : icd->library ? icd->library : "the driver";
        const char *message = icd->message ? icd->message : "no details";
        for (size_t k = 0; k < CLV_LEN(broken); ++k)
            if (strcmp(icd->status, broken[k]) == 0)
                clv_machine_warn(machine, "driver_broken",
                                 "reinstall or remove the package that owns the file; Cleave "
                                 "leaves this driver out",
                                 "%s: %s", file, message);
        if (strcmp(icd->status, "missing") == 0)
            clv_machine_warn(machine, "driver_missing",
                             icd->file
                                 ? "reinstall or remove the package that owns the file"
                                 : "correct or unset OCL_ICD_VENDORS or OCL_ICD_FILENAMES, which "
                                   "names it",
                             "%s%s%s", clv_starts_with(message, file) ? "" : file,
                             clv_starts_with(message, file) ? "" : ": ", message);
    }
}

/* Returns the name of Mesa's driver for a GPU that no driver offers; NULL if rusticl could offer none of the GPUs. */
static const char *mesa_could_show(const clv_probe_report *report)
{
    for (size_t i = 0; i < report->pci_gpu_count; ++i) {
        const gpu_maker *maker = maker_of(&report->pci_gpus[i]);
        if (maker && maker->mesa && !report->pci_gpus[i].has_opencl) return maker->mesa;
    }
    return NULL;
}

/* Warns about a rusticl that offers no device, but only if it could offer one, because many desktops install
 * rusticl. */
static void warn_rusticl(clv_machine *machine)
{
    const clv_probe_report *report = &machine->report;
    const char *driver = mesa_could_show(report);
    char hint[64];
    if (!driver) return;
    snprintf(hint, sizeof hint, "set the environment variable RUSTICL_ENABLE=%s", driver);
    for (size_t i = 0; i < report->platform_count; ++i) {
        const clv_probe_platform *platform = &report->platforms[i];
        bool empty = platform->name && strcmp(platform->name, "rusticl") == 0;
        for (size_t d = 0; d < report->device_count; ++d)
            if (report->devices[d].platform == i) empty = false;
        if (empty)
            clv_machine_warn(machine, "rusticl_not_enabled", hint,
                             "Mesa's rusticl is installed, but not enabled for the GPU that no "
                             "driver shows");
    }
}

static void warn_devices(clv_machine *machine)
{
    const clv_probe_report *report = &machine->report;
    for (size_t i = 0; i < report->device_count; ++i) {
        const clv_probe_device *device = &report->devices[i];
        const char *name = device->name_clean ? device->name_clean : "";
        char all[16], left[16];
        if (device->check.done && !device->check.ok)
            clv_machine_warn(
                machine, "check_failed",
                device->check.crashed
                    ? "install what it lacks, or update its driver; Cleave leaves it out"
                    : "update its driver; `cleave probe --check` tries it again",
                "device %zu (%s) failed its check: %s", i, name,
                device->check.message ? device->check.message : "no details");
        if (device->flags.loop_limit && device->primary)
            clv_machine_warn(machine, "loop_limit", "Cleave cuts long loops into several launches",
                             "device %zu (%s) stops a work-item after %llu loop turns without an "
                             "error",
                             i, name, (unsigned long long)device->flags.loop_limit);
        if (clv_probe_has_word(device->quirks, "no_resizable_bar"))
            clv_machine_warn(machine, "no_resizable_bar",
                             "enable resizable BAR (\"above 4G decoding\") in the firmware setup",
                             "device %zu (%s) shows only %s of its memory", i, name,
                             clv_format_bytes(device->global_bytes, all));
        if (device->device_class == CLV_CLASS_DISCRETE_GPU && device->primary &&
            device->free_bytes != CLV_UNKNOWN && device->free_bytes < device->global_bytes / 2)
            clv_machine_warn(machine, "memory_in_use", "see which programs use the GPU",
                             "device %zu (%s) has %s free of %s", i, name,
                             clv_format_bytes(device->free_bytes, left),
                             clv_format_bytes(device->global_bytes, all));
    }
}

void clv_warn_all(clv_machine *machine)
{
    warn_pci(machine);
    warn_icds(machine);
    warn_rusticl(machine);
    warn_devices(machine);
    bool any = false;
    for (size_t i = 0; i < machine->report.device_count; ++i)
        if (machine->report.devices[i].usable) any = true;
    if (!any)
        clv_machine_warn(machine, "no_opencl", "apt install pocl-opencl-icd",
                         "no OpenCL device can be used: jobs run as plain C on the CPU");
}
