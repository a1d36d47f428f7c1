/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a GGUF file. */
#define _GNU_SOURCE
#include "host/model/gguf.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static clv_status open_file(const char *path, clv_gguf *file)
{
    struct stat info;
    file->path = clv_strdup(path);
    if (!file->path) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->descriptor < 0 || fstat(file->descriptor, &info))
        return clv_fail(CLV_E_IO, "%s: cannot open: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return clv_fail(
            CLV_E_IO, "%s is a directory, a pipe or a device, but a regular file is needed", path);
    file->size = (uint64_t)info.st_size;
    return CLV_OK;
}

clv_status clv_gguf_open(const char *path, clv_gguf **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_gguf_open: out is NULL");
    *out = NULL;
    if (!path) return clv_fail(CLV_E_ARGUMENT, "clv_gguf_open: path is NULL");
    clv_gguf *file = clv_zalloc(1, sizeof *file);
    if (!file) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    file->descriptor = -1;
    clv_status status = open_file(path, file);
    if (!status) status = clv_gguf_parse(file);
    if (status)
        clv_gguf_close(file);
    else
        *out = file;
    return status;
}
