/* SPDX-License-Identifier: Apache-2.0 */
/* Input as a regular file that never touches a disk. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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
