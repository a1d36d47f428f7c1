/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a file may take when it is unpacked. */
#define _GNU_SOURCE
#include "host/io/room.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static _Atomic uint64_t chosen;

void clv_io_set_room(uint64_t bytes)
{
    chosen = bytes;
}

/* Kilobytes behind "MemAvailable:"; 0: unknown. */
static uint64_t available_kilobytes(void)
{
    char line[128];
    unsigned long long found = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &found) == 1) break;
    if (file) fclose(file);
    return found;
}

uint64_t clv_io_room(void)
{
    struct rlimit limit;
    if (chosen) return chosen;
    uint64_t room = available_kilobytes() * 1024;
    if (!room) room = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        room = CLV_MIN(room, (uint64_t)limit.rlim_cur);
    return room / 2;
}

clv_status clv_io_need(const char *path, const char *what, uint64_t bytes)
{
    char needed[16], most[16];
    const uint64_t room = clv_io_room();
    if (bytes <= room) return CLV_OK;
    return clv_fail(
        CLV_E_MEMORY,
        "%s: %s it takes %s of memory or more, but %s may be used (%s); where the file is "
        "right, allow more with --mem-limit",
        path, what, clv_format_bytes(bytes, needed), clv_format_bytes(room, most),
        chosen ? "--mem-limit" : "half of what is free");
}
