/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a device's vendor, class and clean name, from the raw facts alone. */
#include "probe/judge/classify.h"

#include "base/alloc.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool contains(const char *text, const char *part)
{
    return text && clv_contains_nocase(text, part);
}

static bool equals(const char *text, const char *other)
{
    return text && strcmp(text, other) == 0;
}

clv_vendor clv_vendor_of(const char *platform_name, const char *vendor, const char *type)
{
    static const struct {
        const char *part;
        clv_vendor vendor;
    } texts[] = {
        { "nvidia", CLV_VENDOR_NVIDIA }, { "advanced micro devices", CLV_VENDOR_AMD },
        { "intel", CLV_VENDOR_INTEL },   { "qualcomm", CLV_VENDOR_QUALCOMM },
        { "apple", CLV_VENDOR_APPLE },   { "mesa", CLV_VENDOR_MESA },
        { "pocl", CLV_VENDOR_POCL },
    };
    const bool pocl = contains(platform_name, "Portable Computing Language");
    /* PoCL reports the maker of the processor as the vendor of its CPU devices */
    if (pocl && (!type || strstr(type, "CPU"))) return CLV_VENDOR_POCL;
    for (size_t i = 0; i < CLV_LEN(texts); ++i)
        if (contains(vendor, texts[i].part)) return texts[i].vendor;
    if (equals(vendor, "AuthenticAMD") ||
        (vendor && clv_starts_with(vendor, "AMD") && !isalpha((unsigned char)vendor[3])))
        return CLV_VENDOR_AMD;
    if (vendor && strncasecmp(vendor, "arm", 3) == 0) return CLV_VENDOR_ARM;
    if (pocl) return CLV_VENDOR_POCL;
    if (contains(platform_name, "rusticl") || contains(platform_name, "clover"))
        return CLV_VENDOR_MESA;
    return CLV_VENDOR_OTHER;
}

/* Removes every occurrence of `part`. */
static void remove_all(char *text, const char *part)
{
    const size_t length = strlen(part);
    for (char *at = text; (at = strstr(at, part));)
        memmove(at, at + length, strlen(at + length) + 1);
}

static void squeeze_blanks(char *text)
{
    char *to = text;
    for (const char *from = text; *from; ++from)
        if (*from != ' ' || (to != text && to[-1] != ' ')) *to++ = *from;
    while (to != text && to[-1] == ' ')
        --to;
    *to = '\0';
}

void clv_clean_name(const char *name, const char *board, char *out, size_t capacity)
{
    /* "Device 73df" means that the driver has no name for the board */
    if (board && *board && !clv_starts_with(board, "Device ")) name = board;
    if (!name) name = "";
    /* PoCL: "pthread-skylake-avx512-AMD EPYC", from version 4 on "cpu-haswell-Intel(R) Core(TM) i5", and
     * "pthread-cortex-a55" if PoCL has no name for the model */
    if (clv_starts_with(name, "pthread-") || clv_starts_with(name, "cpu-")) {
        const char *blank = strchr(name, ' '), *dash = strchr(name, '-');
        for (const char *c = name; blank && c < blank; ++c)
            if (*c == '-') dash = c;
        if (dash[1]) name = dash + 1;
    }
    clv_copy_string(out, capacity, name);
    remove_all(out, "(R)"), remove_all(out, "(TM)"), remove_all(out, "(tm)");
    char *end = strrchr(out, ')'), *begin = strrchr(out, '(');
    if (end && begin && begin != out && end[1] == '\0') *begin = '\0';
    char *clock = strstr(out, " @ "); /* "Core i7-9750H CPU @ 2.60GHz" */
    if (clock) *clock = '\0';
    squeeze_blanks(out);
    if (clv_ends_with(out, " CPU")) out[strlen(out) - 4] = '\0';
    if (!*out) clv_copy_string(out, capacity, name);
    if (!*out) clv_copy_string(out, capacity, "unnamed device");
}

void clv_classify_platform(clv_probe_platform *platform)
{
    platform->vendor_norm =
        clv_vendor_of(platform->name, platform->vendor ? platform->vendor : platform->name, NULL);
}

static bool is_software(const clv_probe_device *device)
{
    static const char *const marks[] = { "llvmpipe", "softpipe", "swrast", "lavapipe",
                                         "SwiftShader" };
    for (size_t i = 0; i < CLV_LEN(marks); ++i)
        if (contains(device->name, marks[i])) return true;
    return false;
}

/* Returns whether an AMD device is an APU, by comparing the kernel driver's video memory with the memory that OpenCL
 * reports. */
static clv_tristate apu_by_vram(clv_machine *machine, const clv_probe_device *device,
                                const char **reason)
{
    /* every card that amdgpu and OpenCL still support has more memory */
    enum { SMALLEST_CARD = 1000000000 };
    char vram[16], all[16];
    if (device->vendor_norm != CLV_VENDOR_AMD || device->vram_bytes == CLV_UNKNOWN)
        return CLV_MAYBE;
    clv_format_bytes(device->vram_bytes, vram);
    if (device->global_bytes != CLV_UNKNOWN && device->global_bytes / 3 * 2 > device->vram_bytes) {
        *reason =
            clv_machine_text(machine, "the kernel driver counts %s of its own, OpenCL shows %s",
                             vram, clv_format_bytes(device->global_bytes, all));
        return CLV_YES;
    }
    if (device->vram_bytes < SMALLEST_CARD) {
        *reason = clv_machine_text(machine, "only %s are carved out for it", vram);
        return CLV_YES;
    }
    *reason = clv_machine_text(machine, "the kernel driver counts %s of its own", vram);
    return CLV_NO;
}

/* Returns whether AMD uses this architecture only in processors, according to the table of LLVM's AMDGPU backend. */
static bool is_apu(const char *arch)
{
    static const char *const known[] = { "gfx801",  "gfx902",  "gfx909",  "gfx90c",  "gfx1013",
                                         "gfx1033", "gfx1035", "gfx1036", "gfx1103", "gfx1150",
                                         "gfx1151", "gfx1152", "gfx1153" };
    for (size_t i = 0; arch && i < CLV_LEN(known); ++i)
        if (strcmp(arch, known[i]) == 0) return true;
    return false;
}

/* Returns the reason why the device's name shows an integrated GPU, or NULL. Used if the driver does not report whose
 * memory the device uses. */
static const char *integrated_by_name(const clv_probe_device *device)
{
    if (device->vendor_norm == CLV_VENDOR_AMD && (is_apu(device->arch) || is_apu(device->name)))
        return "only processors have this architecture";
    /* Iris Xe MAX is the only discrete card with such a name */
    if (device->vendor_norm == CLV_VENDOR_INTEL && !contains(device->name, "MAX") &&
        (contains(device->name, "HD Graphics") || contains(device->name, "Iris")))
        return "Intel's graphics of this name are parts of processors";
    if (device->vendor_norm == CLV_VENDOR_APPLE && device->name &&
        clv_starts_with(device->name, "Apple M"))
        return "Apple's graphics are parts of processors";
    return NULL;
}

static void classify_gpu(clv_machine *machine, clv_probe_device *device)
{
    const char *why = device->integrated_source;
    clv_tristate integrated = device->integrated;
    if (integrated == CLV_MAYBE) integrated = apu_by_vram(machine, device, &why);
    if (integrated == CLV_MAYBE && device->vendor_norm == CLV_VENDOR_INTEL && device->pci_address &&
        clv_ends_with(device->pci_address, ":00:02.0")) {
        integrated = CLV_YES;
        why = "at 00:02.0, where Intel's processors have theirs";
    }
    if (integrated == CLV_MAYBE && device->unified) {
        integrated = CLV_YES;
        why = "it shares the host's memory";
    }
    if (integrated == CLV_MAYBE && (why = integrated_by_name(device))) integrated = CLV_YES;
    device->device_class =
        integrated == CLV_YES ? CLV_CLASS_INTEGRATED_GPU : CLV_CLASS_DISCRETE_GPU;
    device->class_reason = why ? clv_machine_keep(machine, why) : "a GPU with memory of its own";
}

static const char *units_kind(const clv_probe_platform *platform, const clv_probe_device *device)
{
    if (device->device_class == CLV_CLASS_CPU || device->device_class == CLV_CLASS_SOFTWARE)
        return "core";
    switch (device->vendor_norm) {
    case CLV_VENDOR_NVIDIA:
        return "sm";
    case CLV_VENDOR_INTEL:
        return "eu";
    case CLV_VENDOR_AMD: /* from gfx10 on, AMD's driver counts pairs of compute units */
        return device->arch && clv_starts_with(device->arch, "gfx1") &&
                       platform->vendor_norm == CLV_VENDOR_AMD
                   ? "wgp"
                   : "cu";
    default:
        return "cu";
    }
}

void clv_classify_device(clv_machine *machine, const clv_probe_platform *platform,
                         clv_probe_device *device)
{
    char clean[256];
    clv_clean_name(device->name, device->board_name, clean, sizeof clean);
    device->name_clean = clv_machine_keep(machine, clean);
    device->vendor_norm = clv_vendor_of(
        platform->name, device->vendor ? device->vendor : platform->vendor, device->type);
    if (is_software(device)) {
        device->device_class = CLV_CLASS_SOFTWARE;
        device->class_reason = "a renderer in software, whatever type it reports";
    } else if (device->type && strstr(device->type, "CPU")) {
        device->device_class = CLV_CLASS_CPU;
        device->class_reason = "the driver's device type";
    } else if (device->type && strstr(device->type, "GPU")) {
        classify_gpu(machine, device);
    } else {
        device->device_class = CLV_CLASS_ACCELERATOR;
        device->class_reason =
            device->type ? "the driver's device type" : "the driver does not tell the type";
    }
    device->units_kind = units_kind(platform, device);
}

unsigned clv_opencl_version(const char *version)
{
    if (!version || !clv_starts_with(version, "OpenCL ")) return 0;
    const char *at = version + strlen("OpenCL ");
    unsigned parts[2] = { 0, 0 };
    for (int i = 0; i < 2; ++i) {
        if (!isdigit((unsigned char)*at)) return 0;
        for (; isdigit((unsigned char)*at); ++at)
            if (parts[i] < 90) parts[i] = parts[i] * 10 + (unsigned)(*at - '0');
        if (i == 0 && *at++ != '.') return 0;
    }
    return parts[0] * 100 + CLV_MIN(parts[1], 99u);
}

void clv_judge_usable(clv_machine *machine, clv_probe_device *device)
{
    const unsigned version = clv_opencl_version(device->version);
    const char *reason = NULL;
    if (!device->available)
        reason = "the driver says that it is not available";
    else if (!device->compiler_available)
        reason = "its driver has no compiler";
    else if (version && version < 102)
        reason = clv_machine_text(machine, "OpenCL %u.%u, at least 1.2 needed", version / 100,
                                  version % 100);
    else if (device->type && strcmp(device->type, "CUSTOM") == 0)
        reason = "it runs only kernels that are built into it";
    else if (device->check.done && !device->check.ok)
        reason = clv_machine_text(machine, "failed its check: %s",
                                  device->check.message ? device->check.message : "no details");
    device->usable = reason == NULL;
    device->unusable_reason = reason;
}
