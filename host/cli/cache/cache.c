/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave cache`: lists what is kept on disk between runs, and removes it. */
#define _GNU_SOURCE /* nftw */
#include "host/cli/cli.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "host/cli/grid.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

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

static int count_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)path, (void)walk;
    if (kind == FTW_F) ++visited_files, visited_bytes += (uint64_t)info->st_size;
    return 0;
}

/* Removes one file. Another process may be removing the same files, so a file that is already gone is no error. */
static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info, (void)kind, (void)walk;
    if (remove(path) && errno != ENOENT && errno != ENOTEMPTY && !first_error) first_error = errno;
    return 0;
}

/* -------------------------------------------------------------------------------------------------- */

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
        nftw(path, count_one, 16, FTW_PHYS);
        total += visited_bytes;
        cli_grid_cell(&grid, CLI_PLAIN, "%s", parts[i].name);
        cli_grid_cell(&grid, CLI_PLAIN, "%zu", visited_files);
        cli_grid_cell(&grid, CLI_PLAIN, "%s", clv_format_bytes(visited_bytes, size));
        cli_grid_cell(&grid, CLI_DIM, "%s", parts[i].what);
    }
    cli_say(stdout, "%s\n\n", directory);
    cli_grid_print(&grid, stdout);
    cli_grid_clear(&grid);
    cli_say(stdout, "\n%s in all; `cleave cache clear` deletes it\n",
            clv_format_bytes(total, size));
    return CLI_OK;
}

static int clear(const char *directory)
{
    char path[PATH_MAX], size[16];
    visited_files = 0, visited_bytes = 0, first_error = 0;
    for (size_t i = 0; i < CLV_LEN(parts); ++i) {
        if (!part_path(directory, parts[i].name, path, sizeof path)) continue;
        nftw(path, count_one, 16, FTW_PHYS);
        nftw(path, remove_one, 16, FTW_PHYS | FTW_DEPTH);
    }
    if (first_error)
        return cli_error(&cli_cache, CLI_FAILED, "%s: some files could not be removed: %s",
                         directory, strerror(first_error));
    cli_say(stdout, "%zu files, %s removed from %s\n", visited_files,
            clv_format_bytes(visited_bytes, size), directory);
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
    .description = "Shows or clears the cache of compiled kernels and measured times: stat lists "
                   "its contents\n(the default), clear deletes them, path prints the folder. "
                   "Nothing is lost: the next run\ncompiles and measures again.",
    .run = run,
};
