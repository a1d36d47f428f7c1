/* SPDX-License-Identifier: Apache-2.0 */
/* What a command reads must not be what it writes, and what it writes has to be possible. */
#include "host/cli/clash.h"

#include "base/alloc.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_PATH = 4096, MOST_OUTPUTS = 16 };

/* Where a name leads. */
typedef struct place {
    bool there, regular;
    struct stat file, folder; /* of a file that is not there the folder on the way that is, */
    char name[MOST_PATH];     /* and the way from there */
} place;

static bool same_node(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Without its last part: "a/b/c" and "a/b/" have 4 and 2 characters then. */
static size_t shorter(const char *path, size_t length)
{
    while (length && path[length - 1] == '/')
        --length;
    while (length && path[length - 1] != '/')
        --length;
    return length;
}

/* Without slashes that say nothing. */
static void copy_way(char *to, const char *path)
{
    char before = '/';
    for (; *path; before = *path++)
        if (*path != '/' || before != '/') *to++ = *path;
    *to = '\0';
}

/* False: no such path. Folders that are not there may be made before the file is. */
static bool look(const char *path, place *p)
{
    char folder[MOST_PATH];
    size_t length = strlen(path);
    p->there = stat(path, &p->file) == 0;
    p->regular = !p->there || S_ISREG(p->file.st_mode);
    if (p->there) return true;
    if (!length || length >= sizeof folder) return false;
    bool found;
    do {
        length = shorter(path, length);
        memcpy(folder, path, length);
        folder[length] = '\0';
        found = stat(length ? folder : ".", &p->folder) == 0;
    } while (!found && length);
    copy_way(p->name, path + length);
    return found;
}

static bool same_place(const place *a, const place *b)
{
    if (a->there || b->there) return a->there && b->there && same_node(&a->file, &b->file);
    return same_node(&a->folder, &b->folder) && strcmp(a->name, b->name) == 0;
}

bool cli_same_file(const char *a, const char *b)
{
    place first, second;
    return look(a, &first) && look(b, &second) && same_place(&first, &second);
}

/* `joined` gets the whole name. */
static bool find(const cli_file *f, bool reads, char joined[MOST_PATH], place *p)
{
    if (!f->path) return false;
    const int length = f->folder ? snprintf(joined, MOST_PATH, "%s/%s", f->folder, f->path)
                                 : snprintf(joined, MOST_PATH, "%s", f->path);
    if (length < 0 || length >= MOST_PATH) return false;
    if (f->folder || !cli_is_stream(f->path))
        return look(joined, p) && p->regular && (p->there || !reads);
    if (!reads) return false;
    p->there = fstat(STDIN_FILENO, &p->file) == 0;
    return p->there && S_ISREG(p->file.st_mode);
}

bool cli_is_stream(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

int cli_check_files(const cli_command *command, const cli_common *common, const cli_file *inputs,
                    size_t input_count, const cli_file *outputs, size_t output_count)
{
    const cli_file more[] = { { "--report", common ? common->report : NULL, NULL },
                              { "--trace", common ? common->trace : NULL, NULL } };
    place written[MOST_OUTPUTS], read;
    const char *options[MOST_OUTPUTS], *stream = NULL;
    char name[MOST_PATH], other[MOST_PATH];
    size_t count = 0;
    for (size_t o = 0; o < output_count + CLV_LEN(more); ++o) {
        const cli_file *out = o < output_count ? &outputs[o] : &more[o - output_count];
        const bool streams = !out->folder && cli_is_stream(out->path);
        if (streams && stream)
            return cli_error(command, CLI_USAGE,
                             "%s and %s are both standard output, expected a file for one", stream,
                             out->option);
        if (streams) stream = out->option;
        if (count == MOST_OUTPUTS || !find(out, false, name, &written[count])) continue;
        for (size_t i = 0; i < input_count; ++i)
            if (find(&inputs[i], true, other, &read) && same_place(&read, &written[count]))
                return cli_error(command, CLI_USAGE,
                                 "%s: %s is what %s reads, expected another file", out->option,
                                 name, inputs[i].option);
        for (size_t i = 0; i < count; ++i)
            if (same_place(&written[i], &written[count]))
                return cli_error(command, CLI_USAGE,
                                 "%s: %s is what %s writes, expected another file", out->option,
                                 name, options[i]);
        options[count++] = out->option;
    }
    return -1;
}

/* The folder, or the nearest one on the way to it that is there. */
static int check_folder(const cli_command *command, const char *option, const char *folder)
{
    char way[MOST_PATH];
    struct stat info;
    size_t length = strlen(folder);
    if (!length || length >= sizeof way)
        return cli_error(command, CLI_FAILED, "%s: \"%s\" given, expected a folder's name", option,
                         folder);
    memcpy(way, folder, length + 1);
    while (length && stat(way, &info)) {
        if (errno != ENOENT)
            return cli_error(command, CLI_FAILED, "%s: %s: %s", option, way, strerror(errno));
        length = shorter(way, length);
        way[length] = '\0';
    }
    if (!length)
        way[0] = '.', way[1] = '\0';
    else if (!S_ISDIR(info.st_mode))
        return cli_error(command, CLI_FAILED, "%s: %s is a file, expected a folder", option, way);
    if (access(way, W_OK | X_OK))
        return cli_error(command, CLI_FAILED, "%s: cannot write to the folder %s: %s", option, way,
                         strerror(errno));
    return -1;
}

static int check_file(const cli_command *command, const char *option, const char *path)
{
    static const char *const packed[] = { ".gz", ".bz2", ".xz", ".zst", ".zip" };
    const size_t length = path ? strlen(path) : 0;
    for (size_t i = 0; i < CLV_LEN(packed); ++i) {
        const size_t tail = strlen(packed[i]);
        if (length > tail && strcmp(path + length - tail, packed[i]) == 0)
            return cli_error(command, CLI_USAGE,
                             "%s: %s given, expected a name without %s: nothing is compressed",
                             option, path, packed[i]);
    }
    return cli_check_output(command, option, path);
}

/* A file of a folder that can be written to. */
static int check_inside(const cli_command *command, const cli_file *f)
{
    char name[MOST_PATH];
    struct stat info;
    const int length = f->path ? snprintf(name, MOST_PATH, "%s/%s", f->folder, f->path) : 0;
    if (length <= 0 || length >= MOST_PATH || stat(name, &info) || !S_ISDIR(info.st_mode))
        return -1;
    return cli_error(command, CLI_FAILED, "%s: %s is a directory, expected a file's name",
                     f->option, name);
}

int cli_check_outputs(const cli_command *command, const cli_file *outputs, size_t count)
{
    int code = -1;
    for (size_t o = 0; o < count && code < 0; ++o) {
        if (!outputs[o].folder)
            code = check_file(command, outputs[o].option, outputs[o].path);
        else if (!o || outputs[o - 1].folder != outputs[o].folder)
            code = check_folder(command, outputs[o].option, outputs[o].folder);
        if (code < 0 && outputs[o].folder) code = check_inside(command, &outputs[o]);
    }
    return code;
}
