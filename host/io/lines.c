/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in: the lines of a file or stream, a chunk at a time, in bounded memory. */
#define _GNU_SOURCE
#include "host/io/lines.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 18 };

clv_status clv_lines_open(clv_lines *l, const char *path)
{
    struct stat info;
    *l = (clv_lines){ .path = path, .descriptor = STDIN_FILENO, .end = '\n', .first = 1 };
    if (strcmp(path, "-") == 0) {
        l->path = "standard input";
        return CLV_OK;
    }
    l->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (l->descriptor < 0) return clv_fail(CLV_E_IO, "%s: cannot open: %s", path, strerror(errno));
    if (fstat(l->descriptor, &info) == 0 && S_ISDIR(info.st_mode)) {
        clv_lines_close(l);
        return clv_fail(CLV_E_IO, "%s: is a directory", path);
    }
    return CLV_OK;
}

void clv_lines_close(clv_lines *l)
{
    if (l->descriptor > STDERR_FILENO) close(l->descriptor);
    clv_free(l->buffer);
    clv_free(l->texts);
    clv_free(l->lengths);
    *l = (clv_lines){ .descriptor = -1 };
}

/* Waits until there is something to read, or an end of waiting. */
static clv_status await(const clv_lines *l)
{
    struct pollfd input = { .fd = l->descriptor, .events = POLLIN };
    while (l->stop && poll(&input, 1, 100) <= 0)
        if (*l->stop) return clv_fail(CLV_E_CANCELLED, "%s: interrupted", l->path);
    return CLV_OK;
}

/* Reads on until the buffer holds `wanted` bytes, or the input ends. */
static clv_status fill(clv_lines *l, size_t wanted)
{
    while (!l->ended && l->used - l->start < wanted) {
        if (l->start) {
            memmove(l->buffer, l->buffer + l->start, l->used - l->start);
            l->used -= l->start;
            l->start = 0;
        }
        if (!clv_reserve(&l->buffer, &l->room, l->used + READ_BYTES, 1))
            return clv_fail(CLV_E_MEMORY, "%s: no memory after %zu bytes of a line", l->path,
                            l->used);
        CLV_TRY(await(l));
        const ssize_t got = read(l->descriptor, l->buffer + l->used, READ_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return clv_fail(CLV_E_IO, "%s: cannot read: %s", l->path, strerror(errno));
        l->ended = got == 0;
        l->used += (size_t)got;
    }
    return CLV_OK;
}

/* The wanted field of a line. */
static bool pick(size_t column, const char **text, size_t *length)
{
    for (size_t i = 1; i < column; ++i) {
        const char *tab = memchr(*text, '\t', *length);
        if (!tab) return false;
        *length -= (size_t)(tab + 1 - *text);
        *text = tab + 1;
    }
    const char *tab = column ? memchr(*text, '\t', *length) : NULL;
    if (tab) *length = (size_t)(tab - *text);
    return true;
}

static clv_status add(clv_lines *l, const char *text, size_t length)
{
    if (!pick(l->column, &text, &length))
        return clv_fail(CLV_E_FORMAT, "%s: line %llu has no column %zu", l->path,
                        (unsigned long long)(l->first + l->count), l->column);
    if (!clv_reserve(&l->texts, &l->text_room, l->count + 1, sizeof *l->texts) ||
        !clv_reserve(&l->lengths, &l->length_room, l->count + 1, sizeof *l->lengths))
        return clv_fail(CLV_E_MEMORY, "%s: no memory for %zu lines", l->path, l->count);
    l->texts[l->count] = text;
    l->lengths[l->count++] = length;
    return CLV_OK;
}

clv_status clv_lines_next(clv_lines *l, size_t most_lines, size_t most_bytes)
{
    l->first += l->count;
    l->count = 0;
    size_t wanted = CLV_MAX(most_bytes, (size_t)1);
    for (;;) { /* until a whole line is there */
        CLV_TRY(fill(l, wanted));
        const size_t there = l->used - l->start;
        const bool whole = there && memchr(l->buffer + l->start, l->end, there);
        if (!whole && there > CLV_LINE_MAX)
            return clv_fail(CLV_E_FORMAT, "%s: line %llu is longer than %d bytes", l->path,
                            (unsigned long long)l->first, CLV_LINE_MAX);
        if (whole || l->ended) break;
        wanted = CLV_MIN(2 * there, (size_t)CLV_LINE_MAX + 1);
    }
    size_t taken = 0;
    while (l->start < l->used && l->count < most_lines && (!l->count || taken < most_bytes)) {
        const char *text = l->buffer + l->start;
        const char *end = memchr(text, l->end, l->used - l->start);
        if (!end && !l->ended) break;
        const size_t length = end ? (size_t)(end - text) : l->used - l->start;
        CLV_TRY(add(l, text, length));
        l->start += length + (end != NULL);
        taken += length + 1;
    }
    return CLV_OK;
}
