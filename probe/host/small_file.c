/* SPDX-License-Identifier: Apache-2.0 */
/* Reads small text files of the kernel and of /etc, and truncates longer ones. */
#define _GNU_SOURCE
#include "probe/host/small_file.h"

#include "base/alloc.h"

#include <cleave/probe.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool read_at(const char *root, char *out, size_t capacity, const char *path)
{
    char full[1024];
    out[0] = '\0';
    const int length = snprintf(full, sizeof full, "%s%s", root, path);
    if (length < 0 || (size_t)length >= sizeof full) return false;
    const int fd = open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return false;
    size_t used = 0;
    for (ssize_t got; used + 1 < capacity; used += (size_t)got)
        if ((got = read(fd, out + used, capacity - 1 - used)) <= 0) break;
    close(fd);
    out[used] = '\0';
    return used > 0;
}

bool clv_small_read(const char *root, char *out, size_t capacity, const char *format, ...)
{
    char path[768];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(path, sizeof path, format, args);
    va_end(args);
    out[0] = '\0';
    if (length < 0 || (size_t)length >= sizeof path) return false;
    if (!read_at(root, out, capacity, path)) return false;
    size_t used = strlen(out);
    while (used && (out[used - 1] == '\n' || out[used - 1] == ' '))
        out[--used] = '\0';
    return used > 0;
}

uint64_t clv_small_number(const char *root, const char *format, ...)
{
    char path[768], text[64];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(path, sizeof path, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof path) return CLV_UNKNOWN;
    if (!clv_small_read(root, text, sizeof text, "%s", path)) return CLV_UNKNOWN;
    uint64_t value = 0;
    if (!clv_starts_with(text, "0x")) return clv_parse_u64(text, &value) ? value : CLV_UNKNOWN;
    for (const char *c = text + 2; *c; ++c) {
        static const char hex[] = "0123456789abcdef";
        const char *digit = strchr(hex, *c);
        if (!digit || value >> 60) return CLV_UNKNOWN;
        value = value << 4 | (uint64_t)(digit - hex);
    }
    return text[2] ? value : CLV_UNKNOWN;
}
