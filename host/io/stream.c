/* SPDX-License-Identifier: Apache-2.0 */
/* Reads exactly as many bytes as requested from a regular file. */
#define _GNU_SOURCE
#include "host/io/stream.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_AT_ONCE = 1 << 30 }; /* some systems refuse 2 GiB and more in one call */

static clv_status io_error(const char *doing, const char *path)
{
    return clv_fail(CLV_E_IO, "%s: cannot %s: %s", path, doing, strerror(errno));
}

clv_status clv_input_open(clv_input *input, const char *path)
{
    *input = (clv_input){ .path = path, .descriptor = -1 };
    /* Without O_NONBLOCK a pipe without a writer would block here. */
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return io_error("open", path);

    struct stat info;
    clv_status status = CLV_OK;
    if (fstat(descriptor, &info))
        status = io_error("read the size of", path);
    else if (S_ISDIR(info.st_mode))
        status = clv_fail(CLV_E_IO, "%s is a directory", path);
    else if (!S_ISREG(info.st_mode))
        status = clv_fail(CLV_E_IO, "%s is a pipe or a device, but a regular file is needed", path);
    if (status) {
        close(descriptor);
        return status;
    }
    input->descriptor = descriptor;
    input->length = (uint64_t)info.st_size;
    return CLV_OK;
}

clv_status clv_input_read(clv_input *input, void *out, size_t length)
{
    char *at = out;
    while (length) {
        const ssize_t got = read(input->descriptor, at, CLV_MIN(length, (size_t)MOST_AT_ONCE));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error("read", input->path);
        if (got == 0)
            return clv_fail(CLV_E_FORMAT, "%s: the file ends %zu bytes too early", input->path,
                            length);
        at += got;
        length -= (size_t)got;
        input->position += (uint64_t)got;
    }
    return CLV_OK;
}

clv_status clv_input_read_at(const clv_input *input, uint64_t offset, void *out, size_t length)
{
    char *at = out;
    while (length) {
        const ssize_t got =
            pread(input->descriptor, at, CLV_MIN(length, (size_t)MOST_AT_ONCE), (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error("read", input->path);
        if (got == 0)
            return clv_fail(CLV_E_FORMAT, "%s: the file ends %zu bytes too early", input->path,
                            length);
        at += got, offset += (uint64_t)got, length -= (size_t)got;
    }
    return CLV_OK;
}

clv_status clv_input_seek(clv_input *input, uint64_t position)
{
    if (position > input->length)
        return clv_fail(CLV_E_IO, "%s: the file ends before byte %llu", input->path,
                        (unsigned long long)position);
    if (lseek(input->descriptor, (off_t)position, SEEK_SET) < 0)
        return io_error("seek in", input->path);
    input->position = position;
    return CLV_OK;
}

void clv_input_close(clv_input *input)
{
    if (input->descriptor >= 0) close(input->descriptor);
    input->descriptor = -1;
}

const char *clv_printable(const void *bytes, size_t length, char *out, size_t capacity)
{
    const unsigned char *in = bytes;
    size_t used = 0;
    for (size_t i = 0; i < length; ++i) {
        if (used + 4 + 3 + 1 > capacity) { /* room for one escape, the dots and the NUL */
            used += (size_t)snprintf(out + used, capacity - used, "...");
            break;
        }
        const bool plain = in[i] >= 0x20 && in[i] < 0x7F;
        used += (size_t)snprintf(out + used, capacity - used, plain ? "%c" : "\\x%02X", in[i]);
    }
    out[used] = '\0';
    return out;
}
