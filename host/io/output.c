/* SPDX-License-Identifier: Apache-2.0 */
/* Writes bytes piece by piece: to a file that ends up complete or absent, to standard output, or to a device. */
#define _GNU_SOURCE
#include "host/io/output.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 16 };

static clv_status io_error(const clv_output *o, const char *doing)
{
    return clv_fail(CLV_E_IO, "%s: cannot %s: %s", o->path, doing, strerror(errno));
}

/* Opens a destination that is not a regular file, such as standard output or a device. */
static FILE *open_stream(const char *path)
{
    const int descriptor = clv_file_descriptor(path);
    if (descriptor < 0) return fopen(path, "wbe");
    const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "wb");
    if (!file && copy >= 0) close(copy);
    return file;
}

clv_status clv_output_open(clv_output *o, const char *path, bool rewind)
{
    struct stat info;
    *o = (clv_output){ .path = strcmp(path, "-") == 0 ? "standard output" : path };
    if (clv_outputs_discarded()) path = "/dev/null";
    const bool ours = clv_file_descriptor(path) >= 0, there = !ours && stat(path, &info) == 0;
    if (there && S_ISDIR(info.st_mode))
        return clv_fail(CLV_E_IO, "%s is a directory, but the name of a file is needed", path);
    o->target = clv_strdup(path);
    if (!o->target) return clv_fail(CLV_E_MEMORY, "%s: out of memory", o->path);
    if (!ours && !(there && !S_ISREG(info.st_mode))) {
        const clv_status status = clv_file_begin(path, &o->temporary);
        if (status) {
            clv_output_abandon(o);
            return status;
        }
        o->file = fopen(o->temporary, "wbe");
    } else {
        o->spooled = rewind && !clv_outputs_discarded();
        o->file = o->spooled ? tmpfile() : open_stream(path);
        o->shown = clv_file_descriptor(path) == STDOUT_FILENO && !rewind && isatty(STDOUT_FILENO);
    }
    if (o->file) return CLV_OK;
    const clv_status status = io_error(o, "open");
    clv_output_abandon(o);
    return status;
}

clv_status clv_output_write(clv_output *o, const void *data, size_t length)
{
    if (!length) return CLV_OK;
    if (o->shown) {
        clv_text text = { 0 };
        clv_text_visible(&text, data, length);
        const bool good =
            !text.failed && fwrite(clv_text_get(&text), 1, text.length, o->file) == text.length;
        clv_text_clear(&text);
        return good ? CLV_OK : io_error(o, "write");
    }
    if (fwrite(data, 1, length, o->file) == length) return CLV_OK;
    return io_error(o, "write");
}

clv_status clv_output_patch(clv_output *o, const void *data, size_t length)
{
    if (fflush(o->file) || fseeko(o->file, 0, SEEK_SET)) return io_error(o, "write");
    CLV_TRY(clv_output_write(o, data, length));
    return fflush(o->file) || fseeko(o->file, 0, SEEK_END) ? io_error(o, "write") : CLV_OK;
}

/* Copies the anonymous file to the output's destination. */
static clv_status pour(clv_output *o)
{
    char *buffer = clv_alloc(BUFFER, 1);
    FILE *out = buffer ? open_stream(o->target) : NULL;
    clv_status status = CLV_OK;
    if (!buffer)
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", o->path);
    else if (!out || fflush(o->file) || fseeko(o->file, 0, SEEK_SET))
        status = io_error(o, "write");
    for (size_t got = 1; !status && got;) {
        got = fread(buffer, 1, BUFFER, o->file);
        if (ferror(o->file) || (got && fwrite(buffer, 1, got, out) != got))
            status = io_error(o, "write");
    }
    if (out && fclose(out) && !status) status = io_error(o, "write");
    clv_free(buffer);
    return status;
}

clv_status clv_output_finish(clv_output *o)
{
    clv_status status = CLV_OK;
    if (o->spooled) status = pour(o);
    if (fclose(o->file) && !status) status = io_error(o, "write");
    o->file = NULL;
    if (!status && o->temporary) {
        char *temporary = o->temporary;
        o->temporary = NULL; /* clv_file_publish frees `temporary` in any case */
        status = clv_file_publish(temporary, o->target);
    }
    clv_output_abandon(o);
    return status;
}

void clv_output_abandon(clv_output *o)
{
    if (o->file) fclose(o->file);
    clv_file_abandon(o->temporary);
    clv_free(o->target);
    *o = (clv_output){ 0 };
}
