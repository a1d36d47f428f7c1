/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the GPUs on the PCI bus in sysfs, and reads what the kernel's drivers report about them. */
#define _GNU_SOURCE
#include "probe/host/host.h"

#include "base/alloc.h"
#include "base/file.h"
#include "probe/host/kernel_text.h"
#include "probe/host/small_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PCI_CLASS_DISPLAY = 0x03, PCI_CLASS_PROCESSING = 0x12, PCI_IDS_LIMIT = 16 << 20 };
enum { MOST_PCI_DEVICES = 4096 };

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the names in a folder, sorted, except those that begin with a dot; free the list with free_names. */
static char **list_folder(const char *path, size_t *count)
{
    char **names = NULL;
    size_t capacity = 0;
    *count = 0;
    DIR *folder = opendir(path);
    if (!folder) return NULL;
    for (struct dirent *entry; (entry = readdir(folder)) && *count < MOST_PCI_DEVICES;) {
        if (entry->d_name[0] == '.') continue;
        if (!clv_reserve(&names, &capacity, *count + 1, sizeof *names)) break;
        if (!(names[*count] = clv_strdup(entry->d_name))) break;
        ++*count;
    }
    closedir(folder);
    if (*count) qsort(names, *count, sizeof *names, by_name);
    return names;
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        clv_free(names[i]);
    clv_free(names);
}

static const char *kernel_driver(clv_machine *machine, const char *root, const char *address)
{
    char path[512], target[512];
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/driver", root, address);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0) return NULL;
    target[length] = '\0';
    const char *slash = strrchr(target, '/');
    return clv_machine_foreign(machine, slash ? slash + 1 : target, sizeof target);
}

/* Names the GPUs from the pci.ids database of lspci, if that is installed. */
static void name_gpus(clv_machine *machine, const char *root)
{
    static const char *const places[] = { "/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids" };
    char *text = NULL, path[512], name[256];
    size_t length;
    for (size_t i = 0; !text && i < CLV_LEN(places); ++i) {
        snprintf(path, sizeof path, "%s%s", root, places[i]);
        if (clv_file_read_plain(path, PCI_IDS_LIMIT, &text, &length) != CLV_OK) text = NULL;
    }
    for (size_t i = 0; text && i < machine->report.pci_gpu_count; ++i) {
        clv_probe_pci_gpu *gpu = &machine->pci_gpus[i];
        if (clv_pci_ids_name(text, gpu->vendor_id, gpu->device_id, name, sizeof name))
            gpu->name = clv_machine_foreign(machine, name, sizeof name);
    }
    clv_free(text);
}

void clv_pci_facts(clv_machine *machine, const char *root)
{
    char folder[512];
    size_t count;
    snprintf(folder, sizeof folder, "%s/sys/bus/pci/devices", root);
    char **names = list_folder(folder, &count);
    for (size_t i = 0; i < count; ++i) {
        const char *base = "/sys/bus/pci/devices";
        const uint64_t class_code = clv_small_number(root, "%s/%s/class", base, names[i]);
        const uint64_t kind = class_code >> 16;
        if (class_code > 0xFFFFFF || (kind != PCI_CLASS_DISPLAY && kind != PCI_CLASS_PROCESSING))
            continue;
        clv_probe_pci_gpu *gpu = clv_machine_add_pci_gpu(machine);
        if (!gpu) break;
        gpu->address = clv_machine_foreign(machine, names[i], 32);
        gpu->pci_class = (unsigned)class_code;
        gpu->vendor_id = (unsigned)clv_small_number(root, "%s/%s/vendor", base, names[i]) & 0xFFFF;
        gpu->device_id = (unsigned)clv_small_number(root, "%s/%s/device", base, names[i]) & 0xFFFF;
        gpu->kernel_driver = kernel_driver(machine, root, names[i]);
    }
    free_names(names, count);
    if (machine->report.pci_gpu_count) name_gpus(machine, root);

    clv_text problem = { 0 };
    if (!clv_gpu_access_problem(root, &problem)) machine->failed = true;
    if (problem.length) machine->report.host.gpu_access = clv_machine_keep(machine, problem.data);
    clv_text_clear(&problem);
}

bool clv_gpu_access_problem(const char *root, clv_text *sentence)
{
    char folder[512], path[1024];
    size_t count, closed = 0;
    snprintf(folder, sizeof folder, "%s/dev/dri", root);
    char **names = list_folder(folder, &count);
    for (size_t i = 0; i < count; ++i) {
        if (!clv_starts_with(names[i], "renderD")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (access(path, R_OK | W_OK) == 0 || errno != EACCES) continue;
        clv_text_add(sentence, "%s/dev/dri/%s", closed++ ? ", " : "", names[i]);
    }
    free_names(names, count);
    snprintf(path, sizeof path, "%s/dev/kfd", root);
    if (access(path, R_OK | W_OK) && errno == EACCES)
        clv_text_add(sentence, "%s/dev/kfd", closed++ ? ", " : "");
    return !sentence->failed;
}

static void amd_memory(clv_machine *machine, clv_probe_device *device, const char *root)
{
    const char *base = "/sys/bus/pci/devices";
    const char *at = device->pci_address;
    const uint64_t total = clv_small_number(root, "%s/%s/mem_info_vram_total", base, at);
    const uint64_t used = clv_small_number(root, "%s/%s/mem_info_vram_used", base, at);
    if (total == CLV_UNKNOWN || total == 0) return;
    device->vram_bytes = total;
    device->vram_source = "sysfs mem_info_vram_total";
    if (used == CLV_UNKNOWN || used > total) return;
    uint64_t left = total - used;
    const char *source = "sysfs mem_info_vram";
    /* an APU also computes in system memory, through the GTT */
    const uint64_t gtt = clv_small_number(root, "%s/%s/mem_info_gtt_total", base, at);
    const uint64_t gtt_used = clv_small_number(root, "%s/%s/mem_info_gtt_used", base, at);
    if (device->global_bytes != CLV_UNKNOWN && device->global_bytes / 3 * 2 > total &&
        gtt != CLV_UNKNOWN && gtt_used <= gtt) {
        left += gtt - gtt_used;
        source = "sysfs mem_info_vram and mem_info_gtt";
    }
    clv_machine_set_free(machine, device, left, source);
}

void clv_sysfs_device_facts(clv_machine *machine, clv_probe_device *device, const char *root)
{
    const char *at = device->pci_address, *base = "/sys/bus/pci/devices";
    char text[256];
    if (!at) return;
    /* -1: the machine has one node */
    const uint64_t node = clv_small_number(root, "%s/%s/numa_node", base, at);
    if (node < 65536) device->numa_node = node;
    if (clv_small_read(root, text, sizeof text, "%s/%s/local_cpulist", base, at) &&
        clv_cpulist_count(text))
        device->cpuset = clv_machine_foreign(machine, text, sizeof text);
    /* an idle card lowers its link speed but not its width, so this reads the largest speed */
    if (clv_small_read(root, text, sizeof text, "%s/%s/max_link_speed", base, at))
        device->pci_link_gen = clv_pcie_generation(text);
    const uint64_t width = clv_small_number(root, "%s/%s/current_link_width", base, at);
    if (width >= 1 && width <= 32) device->pci_link_width = width;
    const uint64_t id = clv_small_number(root, "%s/%s/device", base, at);
    if (id < 0x10000 && device->pci_device_id == CLV_UNKNOWN) device->pci_device_id = id;
    amd_memory(machine, device, root);
    const uint64_t busy = clv_small_number(root, "%s/%s/gpu_busy_percent", base, at);
    if (busy <= 100) {
        device->utilisation_percent = (double)busy;
        device->utilisation_source = "sysfs gpu_busy_percent";
    }
}
