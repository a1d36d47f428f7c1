/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave cache`: lists what is kept on disk between runs, and removes it. */
#define _GNU_SOURCE /* nftw */
#include "host/cli/cli.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "host/cli/grid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Everything that Cleave keeps in the cache directory; other files there are not touched. */
static const struct {
    const char *name, *what;
} parts[] = {
    { "programs", "compiled kernels" },
    { "devices", "checks and measurements of devices" },
    { "drivers", "verdicts about drivers, and their kernel caches" },
    { "speeds.txt", "how fast jobs ran" },
    { "tuning.txt", "kernel variants, host or device: which was faster" },
};

static bool part_path(const char *directory, const char *name, char *path, size_t capacity)
{
    const int length = snprintf(path, capacity, "%s/%s", directory, name);
    return length > 0 && (size_t)length < capacity;
}

/* ---- what nftw visits: it has no argument for its caller's use ---------------------------------- */

static size_t visited_files;
static uint64_t visited_bytes;
static int first_error;

/* Returns whether the file is a lock of a driver's kernels (host/cli/kernels.h). A lock is empty and never removed, for
 * otherwise two commands could each hold a file of that name. */
static bool is_lock(const char *path)
{
    return clv_ends_with(path, ".lock");
}

static int count_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)walk;
    if (kind == FTW_DNR && !first_error) first_error = EACCES;
    if (kind == FTW_F && !is_lock(path)) ++visited_files, visited_bytes += (uint64_t)info->st_size;
    return 0;
}

/* Removes one file. Another process may be removing the same files, so a file that is already gone is no error. The
 * folder of a part stays, because a command that runs may be about to write into it. */
static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    if (is_lock(path) || (kind == FTW_DP && walk->level == 0)) return 0;
    if (remove(path) && errno != ENOENT && errno != ENOTEMPTY && !first_error) first_error = errno;
    return 0;
}

/* -------------------------------------------------------------------------------------------------- */

/* Counts the files of a part. A part that is not there has none; one that this user cannot read is an error. */
static void count_all(const char *path)
{
    if (nftw(path, count_one, 16, FTW_PHYS) && errno != ENOENT && !first_error) first_error = errno;
}

static int show(const char *directory)
{
    static const cli_column columns[] = {
        { "kept", false }, { "files", true }, { "size", true }, { "what it is", false }
    };
    cli_grid grid = { .columns = columns, .column_count = CLV_LEN(columns) };
    char path[PATH_MAX], size[16];
    uint64_t total = 0;
    for (size_t i = 0; i < CLV_LEN(parts); ++i) {
        visited_files = 0, visited_bytes = 0;
        if (!part_path(directory, parts[i].name, path, sizeof path)) continue;
        count_all(path);
        total += visited_bytes;
        cli_grid_cell(&grid, CLI_PLAIN, "%s", parts[i].name);
        cli_grid_cell(&grid, CLI_PLAIN, "%zu", visited_files);
        cli_grid_cell(&grid, CLI_PLAIN, "%s", clv_format_bytes(visited_bytes, size));
        cli_grid_cell(&grid, CLI_DIM, "%s", parts[i].what);
    }
    if (first_error) {
        cli_grid_clear(&grid);
        return cli_error(&cli_cache, CLI_FAILED,
                         "the cache %s cannot be read: %s; set CLEAVE_CACHE_DIR to a folder of "
                         "your own, or run the command as the user who owns it",
                         directory, strerror(first_error));
    }
    cli_say(stdout, "%s\n\n", directory);
    cli_grid_print(&grid, stdout);
    cli_grid_clear(&grid);
    cli_say(stdout, "\n%s in all; `cleave cache clear` deletes it\n",
            clv_format_bytes(total, size));
    return CLI_OK;
}

/* The locks of all drivers' kernels. */
typedef struct locks {
    int held[8];
    size_t count;
    bool in_use; /* a command that runs holds one of them */
} locks;

/* Takes the locks in the folder, so that no command begins to use the kernels while they are removed. */
static void take_locks(const char *folder, locks *l)
{
    DIR *stream = opendir(folder);
    const struct dirent *entry;
    while (stream && l->count < CLV_LEN(l->held) && (entry = readdir(stream))) {
        if (!is_lock(entry->d_name)) continue;
        const int fd = openat(dirfd(stream), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) l->in_use = true;
        l->held[l->count++] = fd;
    }
    if (stream) closedir(stream);
}

static void give_locks(locks *l)
{
    while (l->count)
        close(l->held[--l->count]);
}

static int clear(const char *directory)
{
    char path[PATH_MAX], size[16];
    locks drivers = { .in_use = false };
    visited_files = 0, visited_bytes = 0, first_error = 0;
    for (size_t i = 0; i < CLV_LEN(parts); ++i) {
        if (!part_path(directory, parts[i].name, path, sizeof path)) continue;
        const bool locked = strcmp(parts[i].name, "drivers") == 0;
        if (locked) take_locks(path, &drivers);
        if (!locked || !drivers.in_use) {
            count_all(path);
            nftw(path, remove_one, 16, FTW_PHYS | FTW_DEPTH);
        }
        if (locked) give_locks(&drivers);
    }
    if (first_error)
        return cli_error(&cli_cache, CLI_FAILED, "%s: some files could not be removed: %s",
                         directory, strerror(first_error));
    cli_say(stdout, "%zu files, %s removed from %s\n", visited_files,
            clv_format_bytes(visited_bytes, size), directory);
    if (drivers.in_use)
        return cli_error(&cli_cache, CLI_FAILED,
                         "%s/drivers was left as it is, because another run of cleave uses the "
                         "compiled kernels in it; clear the cache again when that run has ended",
                         directory);
    return CLI_OK;
}

static int run(int argc, char **argv)
{
    static const cli_option none[] = { { NULL } };
    const cli_option *const tables[] = { none, NULL };
    char directory[PATH_MAX - 64];
    int operands, code = cli_parse(&cli_cache, tables, argc, argv, &operands);
    if (code >= 0) return code;
    const char *what = operands ? argv[1] : "stat";
    const bool path = strcmp(what, "path") == 0;
    if (operands > 1 || (!path && strcmp(what, "stat") != 0 && strcmp(what, "clear") != 0))
        return cli_error(&cli_cache, CLI_USAGE,
                         "there is no action \"%s\"; expected stat, clear or path", argv[operands]);
    clv_cache_dir(directory, sizeof directory);
    if (!*directory)
        return cli_error(&cli_cache, CLI_FAILED,
                         "there is no cache: CLEAVE_CACHE is 0, or there is no home folder. Set "
                         "CLEAVE_CACHE_DIR to a folder for it");
    if (path) {
        cli_say(stdout, "%s\n", directory);
        return CLI_OK;
    }
    return *what == 's' ? show(directory) : clear(directory);
}

const cli_command cli_cache = {
    .name = "cache",
    .summary = "show or clear what is kept on disk between runs",
    .operands = "[stat|clear|path]",
    .description =
        "Shows or clears the cache of compiled kernels and measured times: stat lists "
        "its contents\n(the default), clear deletes them, path prints the folder. "
        "Nothing is lost: the next run\ncompiles and measures again. While another run uses "
        "the kernels of a driver, clear\nleaves these, says so, and ends with 1.",
    .run = run,
};
