/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory is free, as Linux tells in /proc/meminfo. */
#define _GNU_SOURCE
#include "base/memory.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Bytes behind "NAME:"; 0: unknown. */
static uint64_t told(const char *name)
{
    char line[128];
    const size_t length = strlen(name);
    unsigned long long kilobytes = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, length) == 0 && line[length] == ':' &&
            sscanf(line + length + 1, "%llu kB", &kilobytes) == 1)
            break;
    if (file) fclose(file);
    return (uint64_t)kilobytes * 1024;
}

uint64_t clv_memory_free(void)
{
    struct rlimit limit;
    uint64_t bytes = told("MemAvailable");
    if (!bytes) bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        bytes = CLV_MIN(bytes, (uint64_t)limit.rlim_cur);
    return bytes;
}

uint64_t clv_memory_swap(void)
{
    return told("SwapFree");
}
