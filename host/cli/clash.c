/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a command does not overwrite its inputs, and that its outputs can be created. */
#include "host/cli/clash.h"

#include "base/alloc.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/text.h"
#include "host/cli/endings.h"
#include "host/cli/share.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_PATH = 4096,
    MOST_OUTPUTS = CLI_MOST_OUTPUTS + 3 /* --report, --trace, CLEAVE_TRACE */
};

/* The file or folder to which a path leads, whether or not it exists. */
typedef struct place {
    bool there, regular;
    struct stat file, folder; /* of a missing file, `folder` is its nearest parent that exists */
    char name[MOST_PATH];     /* of a missing file: the rest of its path after `folder` */
} place;

static bool same_node(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Returns the length of the path without its last part: 4 for "a/b/c" and 2 for "a/b/". */
static size_t shorter(const char *path, size_t length)
{
    while (length && path[length - 1] == '/')
        --length;
    while (length && path[length - 1] != '/')
        --length;
    return length;
}

/* Copies the path without repeated slashes. */
static void copy_way(char *to, const char *path)
{
    char before = '/';
    for (; *path; before = *path++)
        if (*path != '/' || before != '/') *to++ = *path;
    *to = '\0';
}

/* Follows a link at the end of the path whose target does not exist, as the writer of the file will. Links to links
 * are followed as far as the kernel does. */
static void follow(char way[MOST_PATH])
{
    enum { MOST_LINKS = 40 };
    for (int i = 0; i < MOST_LINKS; ++i) {
        char target[MOST_PATH];
        const ssize_t got = readlink(way, target, sizeof target - 1);
        if (got <= 0) return;
        target[got] = '\0';
        const size_t before = target[0] == '/' ? 0 : shorter(way, strlen(way));
        if (before + (size_t)got >= MOST_PATH) return;
        memcpy(way + before, target, (size_t)got + 1);
    }
}

/* Finds where the path leads. Folders on the path may be missing, since they may be created before the file is.
 * Returns false for an empty or too long path, or if no parent of a missing file exists. */
static bool look(const char *path, place *p)
{
    char folder[MOST_PATH], way[MOST_PATH];
    size_t length = strlen(path);
    p->there = stat(path, &p->file) == 0;
    p->regular = !p->there || S_ISREG(p->file.st_mode);
    if (p->there) return true;
    if (!length || length >= sizeof folder) return false;
    memcpy(way, path, length + 1);
    follow(way);
    path = way, length = strlen(way);
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

/* Finds where the path of `f` leads; `joined` receives that path with its folder. */
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

/* Returns whether the path is standard output under any of its names. */
static bool is_standard_output(const char *path)
{
    return path && clv_file_descriptor(path) == STDOUT_FILENO;
}

static int check_streams(const cli_command *command, const cli_file *inputs, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        if (!inputs[i].folder && cli_is_stream(inputs[i].path) && !(inputs[i].formats & CLI_STREAM))
            return cli_error(command, CLI_USAGE,
                             "%s is \"-\", but this input cannot be read from standard input; give "
                             "the name of a file",
                             inputs[i].option);
    return -1;
}

/* Returns whether the file lies in the folder or in one below it. */
static bool lies_in(const char *path, const char *folder)
{
    char way[MOST_PATH];
    struct stat wanted, here, before;
    size_t length = shorter(path, strlen(path));
    if (length + 2 >= sizeof way || stat(folder, &wanted)) return false;
    memcpy(way, length ? path : "./", length ? length : 2);
    length = length ? length : 2;
    way[length] = '\0';
    if (stat(way, &here)) return false;
    do {
        if (same_node(&here, &wanted)) return true;
        if (length + 4 > sizeof way) return false;
        memcpy(way + length, "../", 4);
        length += 3;
        before = here;
    } while (stat(way, &here) == 0 && !same_node(&here, &before));
    return false;
}

/* Returns the input folder that may own an existing output, or NULL: any .safetensors or .json file in a model's
 * folder may be one of its weights or settings. */
static const cli_file *find_owner(const cli_file *inputs, size_t count, const char *output)
{
    const char *seen = NULL;
    if (!clv_ends_with(output, ".safetensors") && !clv_ends_with(output, ".json")) return NULL;
    for (size_t i = 0; i < count; seen = inputs[i++].folder)
        if (inputs[i].folder && inputs[i].folder != seen && lies_in(output, inputs[i].folder))
            return &inputs[i];
    return NULL;
}

static int check_clashes(const cli_command *command, const cli_file *inputs, size_t input_count,
                         const cli_file *outputs, size_t output_count)
{
    place written[MOST_OUTPUTS], read;
    const char *options[MOST_OUTPUTS], *stream = NULL;
    char name[MOST_PATH], other[MOST_PATH];
    size_t count = 0;
    for (const cli_file *out = outputs; out < outputs + output_count; ++out) {
        const bool streams = !out->folder && cli_is_stream(out->path);
        if (streams && stream)
            return cli_error(command, CLI_USAGE,
                             "%s and %s are both standard output, but only one of them can be; "
                             "give a file for the other",
                             stream, out->option);
        if (streams) stream = out->option;
        if (count == MOST_OUTPUTS || !find(out, false, name, &written[count])) continue;
        for (size_t i = 0; i < input_count; ++i)
            if (find(&inputs[i], true, other, &read) && same_place(&read, &written[count]))
                return cli_error(
                    command, CLI_USAGE,
                    "%s: %s is a file that %s reads, and would be overwritten; give another file",
                    out->option, name, inputs[i].option);
        const bool replaces = written[count].there && !out->folder;
        const cli_file *owner = replaces ? find_owner(inputs, input_count, name) : NULL;
        if (owner)
            return cli_error(command, CLI_USAGE,
                             "%s: %s already exists and may belong to the input of %s; give "
                             "another name, or a file outside %s",
                             out->option, name, owner->option, owner->folder);
        for (size_t i = 0; i < count; ++i)
            if (same_place(&written[i], &written[count]))
                return cli_error(command, CLI_USAGE,
                                 "%s: %s is a file that %s writes, too; give another file",
                                 out->option, name, options[i]);
        options[count++] = out->option;
    }
    return -1;
}

/* ---- names ------------------------------------------------------------------------------------ */

static int check_names(const cli_command *command, const cli_file *outputs, size_t count)
{
    int code = -1;
    for (size_t o = 0; o < count && code < 0; ++o)
        code =
            outputs[o].folder
                ? cli_check_folder_name(command, outputs[o].option, outputs[o].folder)
                : cli_check_ending(command, outputs[o].option, outputs[o].path, outputs[o].formats);
    return code;
}

/* ---- can they be made? ------------------------------------------------------------------------ */

/* Checks that the folder can be created or written to; the deepest existing folder on its path decides. */
static int check_folder(const cli_command *command, const char *option, const char *folder)
{
    char way[MOST_PATH];
    struct stat info;
    size_t length = strlen(folder);
    if (length >= sizeof way)
        return cli_error(command, CLI_FAILED, "%s: the name of the folder is too long", option);
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
        return cli_error(command, CLI_FAILED, "%s: %s is a file; give the name of a folder", option,
                         way);
    if (access(way, W_OK | X_OK))
        return cli_error(command, CLI_FAILED, "%s: cannot write to the folder %s: %s", option, way,
                         strerror(errno));
    return -1;
}

static int is_a_folder(const cli_command *command, const char *option, const char *name)
{
    return cli_error(command, CLI_FAILED, "%s: %s is a directory; give the name of a file", option,
                     name);
}

static int check_file(const cli_command *command, const char *option, const char *path)
{
    struct stat info;
    if (!path) return -1;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return is_a_folder(command, option, path);
    if (clv_file_check(path))
        return cli_error(command, CLI_FAILED, "%s: %s", option, clv_error_message());
    return -1;
}

/* Checks that a file inside an output folder is not itself a folder. */
static int check_inside(const cli_command *command, const cli_file *f)
{
    char name[MOST_PATH];
    struct stat info;
    const int length = f->path ? snprintf(name, MOST_PATH, "%s/%s", f->folder, f->path) : 0;
    if (length <= 0 || length >= MOST_PATH || stat(name, &info) || !S_ISDIR(info.st_mode))
        return -1;
    return is_a_folder(command, f->option, name);
}

/* Returns whether the file lies in an output folder that the command will create first. */
static bool is_to_come(const char *path, const cli_file *outputs, size_t count)
{
    char parent[MOST_PATH];
    size_t length = path ? shorter(path, strlen(path)) : 0;
    while (length > 1 && path[length - 1] == '/')
        --length;
    if (!length || length >= sizeof parent) return false;
    memcpy(parent, path, length);
    parent[length] = '\0';
    if (access(parent, F_OK) == 0) return false;
    for (size_t o = 0; o < count; ++o)
        if (outputs[o].folder && cli_same_file(parent, outputs[o].folder)) return true;
    return false;
}

static int check_possible(const cli_command *command, const cli_file *outputs, size_t count)
{
    int code = -1;
    for (size_t o = 0; o < count && code < 0; ++o) {
        const cli_file *f = &outputs[o];
        if (!f->folder)
            code =
                is_to_come(f->path, outputs, count) ? -1 : check_file(command, f->option, f->path);
        else if (!o || outputs[o - 1].folder != f->folder)
            code = check_folder(command, f->option, f->folder);
        if (code < 0 && f->folder) code = check_inside(command, f);
    }
    return code;
}

int cli_check_files(const cli_command *command, const cli_common *common, const cli_file *inputs,
                    size_t input_count, const cli_file *outputs, size_t output_count)
{
    cli_file all[MOST_OUTPUTS];
    size_t count = CLV_MIN(output_count, (size_t)CLI_MOST_OUTPUTS);
    assert(count == output_count);
    if (count) memcpy(all, outputs, count * sizeof *all);
    if (common) {
        all[count++] = (cli_file){ "--report", common->report, NULL, CLI_JSON };
        all[count++] = (cli_file){ "--trace", common->trace, NULL, CLI_JSON };
    }
    int code = common ? cli_common_check(command, common) : -1;
    if (code < 0) code = check_streams(command, inputs, input_count);
    const char *trace = common && !common->trace ? clv_environment("CLEAVE_TRACE") : NULL;
    if (trace) all[count] = (cli_file){ "CLEAVE_TRACE", trace, NULL, CLI_JSON };
    if (code < 0) code = check_clashes(command, inputs, input_count, all, count + (trace != NULL));
    if (code < 0) code = check_names(command, all, count);
    for (size_t i = 0; i < input_count && code < 0; ++i) {
        char name[MOST_PATH];
        const cli_file *f = &inputs[i];
        const int length = snprintf(name, sizeof name, "%s%s%s", f->folder ? f->folder : "",
                                    f->folder ? "/" : "", f->path ? f->path : "");
        if (f->path && length > 0 && length < MOST_PATH) cli_share_input(name);
    }
    return code < 0 ? check_possible(command, all, count) : code;
}

FILE *cli_news(const cli_common *common, const cli_file *outputs, size_t count)
{
    bool taken =
        common && (is_standard_output(common->report) || is_standard_output(common->trace));
    for (size_t o = 0; o < count; ++o)
        taken = taken || (!outputs[o].folder && is_standard_output(outputs[o].path));
    return taken ? stderr : stdout;
}
