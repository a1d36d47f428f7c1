/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the free memory of Intel's cards without Level Zero, from the memory that the kernel reports for every open
 * GPU file. Only the files of this user's processes are readable, so the result is an upper bound. */
#include "probe/memory/free_memory.h"

#include "base/alloc.h"
#include "probe/judge/classify.h"
#include "probe/host/kernel_text.h"
#include "probe/host/small_file.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { MOST_CLIENTS = 1024 };

typedef struct client {
    char address[32];
    uint64_t id, resident_bytes;
} client;

static void add_client(client *clients, size_t *count, const client *found)
{
    /* threads and forks of a client have further files for it; counts each client once */
    for (size_t i = 0; i < *count; ++i)
        if (clients[i].id == found->id && strcmp(clients[i].address, found->address) == 0) return;
    if (*count < MOST_CLIENTS) clients[(*count)++] = *found;
}

static void read_process(const char *root, const char *pid, client *clients, size_t *count)
{
    char path[512], text[8192];
    snprintf(path, sizeof path, "%s/proc/%.16s/fdinfo", root, pid);
    DIR *folder = opendir(path);
    if (!folder) return; /* the process belongs to another user */
    for (struct dirent *file; (file = readdir(folder));) {
        client found;
        if (!isdigit((unsigned char)file->d_name[0])) continue;
        if (clv_small_read(root, text, sizeof text, "/proc/%.16s/fdinfo/%.16s", pid,
                           file->d_name) &&
            clv_fdinfo_parse(text, found.address, sizeof found.address, &found.id,
                             &found.resident_bytes))
            add_client(clients, count, &found);
    }
    closedir(folder);
}

static void subtract(clv_machine *machine, size_t first, const client *clients, size_t count)
{
    for (size_t i = first; i < machine->report.device_count; ++i) {
        clv_probe_device *device = &machine->devices[i];
        uint64_t used = 0;
        bool any = false;
        if (device->free_bytes != CLV_UNKNOWN || device->global_bytes == CLV_UNKNOWN ||
            !device->pci_address ||
            clv_vendor_of(NULL, device->vendor, device->type) != CLV_VENDOR_INTEL)
            continue;
        for (size_t c = 0; c < count; ++c) {
            if (strcmp(clients[c].address, device->pci_address) != 0) continue;
            any = true;
            if (__builtin_add_overflow(used, clients[c].resident_bytes, &used)) used = UINT64_MAX;
        }
        if (any)
            clv_machine_set_free(machine, device,
                                 device->global_bytes - CLV_MIN(used, device->global_bytes),
                                 "fdinfo of this user's processes");
    }
}

void clv_fdinfo_facts(clv_machine *machine, size_t first, const char *root)
{
    char path[512];
    size_t count = 0;
    client *clients = clv_zalloc(MOST_CLIENTS, sizeof *clients);
    snprintf(path, sizeof path, "%s/proc", root);
    DIR *folder = clients ? opendir(path) : NULL;
    for (struct dirent *process; folder && (process = readdir(folder));)
        if (isdigit((unsigned char)process->d_name[0]))
            read_process(root, process->d_name, clients, &count);
    if (folder) closedir(folder);
    if (clients)
        subtract(machine, first, clients, count);
    else
        machine->failed = true;
    clv_free(clients);
}
