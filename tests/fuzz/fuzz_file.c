/* SPDX-License-Identifier: Apache-2.0 */
/* Provides an input as a regular file that never touches a disk, and memory that is always there. */
#define _GNU_SOURCE
#include "fuzz.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool fuzz_poor;

void *fuzz_alloc(size_t count, size_t size)
{
    void *memory = calloc(CLV_MAX(count, (size_t)1), CLV_MAX(size, (size_t)1));
    if (!memory) abort();
    return memory;
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
    static int descriptor = -1;
    static char path[64];
    if (descriptor < 0) {
        descriptor = memfd_create("fuzz", MFD_CLOEXEC);
        if (descriptor < 0) abort();
        snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    }
    if (ftruncate(descriptor, 0) || pwrite(descriptor, data, size, 0) != (ssize_t)size) abort();
    return path;
}

void fuzz_touch(const void *data, size_t size)
{
    const volatile unsigned char *bytes = data;
    for (size_t i = 0; i < size; ++i)
        (void)bytes[i];
}

/* ---- FITS -------------------------------------------------------------------------------------- */

enum { BLOCK = 2880, CARD = 80, MAX_FILE = 64 * BLOCK };

static size_t pad(uint8_t *file, size_t used, uint8_t with)
{
    const size_t end = clv_round_up(used, BLOCK);
    memset(file + used, with, end - used);
    return end;
}

const uint8_t *fuzz_cook(const uint8_t *at, size_t size, size_t *length)
{
    static uint8_t file[MAX_FILE];
    const uint8_t *end = at + size;
    size_t used = 0;
    while (at < end && used + 4 * BLOCK < MAX_FILE) {
        const uint8_t *line = at;
        while (at < end && *at != '\n')
            ++at;
        const size_t width = (size_t)(at - line);
        const size_t kept = CLV_MIN(width, (size_t)CARD);
        memcpy(file + used, line, kept);
        memset(file + used + kept, ' ', CARD - kept);
        used += CARD;
        if (at < end) ++at;
        if (width != 3 || memcmp(line, "END", 3) != 0) continue;
        used = pad(file, used, ' ');
        const size_t data = at < end ? CLV_MIN((size_t)*at, (size_t)(end - at - 1)) : 0;
        if (at < end) memcpy(file + used, at + 1, data);
        at += at < end ? 1 + data : 0;
        used = pad(file, used + data, 0);
    }
    *length = used;
    return file;
}
