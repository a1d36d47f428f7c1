/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a movie from the files that a text file lists, one path per line. */
#include "host/io/formats/movie_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "host/io/stream.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 64 << 20, SHOWN = 60 };

typedef struct listed {
    const char *list; /* path of the text file */
    char **path;
    size_t count, room;
} listed;

/* Returns the length of a path's folder part, including its last slash. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

static clv_status add_line(listed *l, size_t number, const char *line, size_t length)
{
    struct stat info;
    char shown[SHOWN + 4];
    if (memchr(line, '\0', length))
        return clv_fail(CLV_E_FORMAT,
                        "%s: line %zu has a NUL byte, but a list of files is text with one path "
                        "per line (raw pixels need --raw)",
                        l->list, number);
    const int folder = *line == '/' ? 0 : folder_length(l->list);
    const size_t bytes = (size_t)folder + length + 1;
    char *path =
        clv_reserve(&l->path, &l->room, l->count + 1, sizeof *l->path) ? clv_alloc(bytes, 1) : NULL;
    if (!path) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a list of files", l->list);
    memcpy(path, l->list, (size_t)folder);
    memcpy(path + folder, line, length);
    path[bytes - 1] = '\0';
    l->path[l->count++] = path;
    if (stat(path, &info) == 0) return CLV_OK;
    memcpy(path, line, length), path[length] = '\0';
    if (stat(path, &info) == 0) return CLV_OK;
    clv_printable((const unsigned char *)line, CLV_MIN(length, (size_t)SHOWN), shown, sizeof shown);
    return clv_fail(CLV_E_FORMAT,
                    "%s: line %zu is \"%s\", but there is no such file; a list of files has one "
                    "path per line, relative to the folder of the list or to the working folder",
                    l->list, number, shown);
}

static clv_status read_lines(listed *l, const char *text, size_t length)
{
    const char *end = text + length;
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3;
    for (size_t number = 1; text < end; ++number) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop) stop = end;
        const char *first = text, *last = stop;
        while (first < last && strchr(" \t", *first) && *first)
            ++first;
        while (last > first && strchr(" \t\r", last[-1]) && last[-1])
            --last;
        if (first < last && *first != '#')
            CLV_TRY(add_line(l, number, first, (size_t)(last - first)));
        text = stop < end ? stop + 1 : end;
    }
    if (l->count) return CLV_OK;
    return clv_fail(CLV_E_FORMAT, "%s: the list has no files; expected one path per line", l->list);
}

clv_status clv_movie_open_listed(clv_movie *movie, const clv_movie_options *options,
                                 clv_movie_opener opener)
{
    listed l = { .list = movie->path + (*movie->path == '@') };
    char *text = NULL;
    size_t length = 0;
    if (options->listed)
        return clv_fail(CLV_E_FORMAT,
                        "%s is a list of files inside a list of files, which is not supported; "
                        "list the files themselves",
                        l.list);
    clv_movie_options each = *options;
    each.listed = true;
    CLV_TRY(clv_file_read_plain(l.list, MOST_BYTES, &text, &length));
    clv_status status = read_lines(&l, text, length);
    if (!status)
        status = clv_movie_open_files(movie, (const char *const *)l.path, l.count, &each, opener);
    if (!status) clv_copy_string(movie->facts.format, sizeof movie->facts.format, "list of files");
    clv_free(text);
    for (size_t i = 0; i < l.count; ++i)
        clv_free(l.path[i]);
    clv_free(l.path);
    return status;
}
