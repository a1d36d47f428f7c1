/* SPDX-License-Identifier: Apache-2.0 */
/* Reads how much memory is free, from /proc/meminfo and the limits of a container. */
#define _GNU_SOURCE
#include "base/memory.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Returns the value of "NAME:" in /proc/meminfo, in bytes; 0: unknown. */
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

static uint64_t limited(uint64_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        bytes = CLV_MIN(bytes, (uint64_t)limit.rlim_cur);
    return bytes;
}

/* Returns the number in a file, or UINT64_MAX if the file says "max" or does not exist. */
static uint64_t limit_in(const char *path)
{
    unsigned long long bytes = 0;
    FILE *file = fopen(path, "re");
    const bool found = file && fscanf(file, "%llu", &bytes) == 1;
    if (file) fclose(file);
    return found ? bytes : UINT64_MAX;
}

static uint64_t available(void)
{
    uint64_t bytes = told("MemAvailable");
    if (!bytes) bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    bytes = CLV_MIN(bytes, limit_in("/sys/fs/cgroup/memory.max"));
    return CLV_MIN(bytes, limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
}

uint64_t clv_memory_free(void)
{
    return limited(available());
}

uint64_t clv_memory_most(void)
{
    return limited(available() + told("SwapFree"));
}
