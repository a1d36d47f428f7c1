/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the environment for OpenCL drivers: finds drivers that no .icd file names, and keeps their kernel caches
 * private. Only the command does this; the library never touches the environment. */
#define _GNU_SOURCE
#include "host/cli/icd.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"
#include "base/text.h"
#include "host/cli/cli.h"
#include "host/cli/kernels.h"
#include "probe/opencl/icd.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { MOST_DRIVERS = 32, ICD_LIMIT = 65536 };

/* Names of driver libraries, as in .icd files. */
typedef struct driver_list {
    char *names[MOST_DRIVERS];
    size_t count, found; /* `found`: also counts repeated names */
    bool too_many;       /* there are more than MOST_DRIVERS */
    bool failed;         /* memory ran out */
} driver_list;

static const char usual_vendors[] = "/etc/OpenCL/vendors";

/* Folders in which containers and stand-alone driver packages keep drivers without installing an .icd file. */
static const char *const usual_folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/intel-opencl",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib64/intel-opencl",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/lib",
    "/run/opengl-driver/lib",
    "/opt/rocm/lib",
    "/opt/rocm/opencl/lib",
    "/opt/intel/oneapi/lib",
    "/opt/intel/oneapi/compiler/latest/lib",
    "/opt/intel/oneapi/compiler/latest/linux/lib/x64",
};
static const char *const usual_drivers[] = {
    "libnvidia-opencl.so.1", "libamdocl64.so",        "libigdrcl.so",
    "libpocl.so.2",          "libRusticlOpenCL.so.1", "libintelocl.so",
};

/* ---- a folder of our own, for this process when the cache has no room for it ------------------ */

static char temporary[PATH_MAX - 64];
static pid_t temporary_owner;

static void remove_temporary(void)
{
    if (getpid() == temporary_owner) clv_temporary_remove(temporary);
}

static const char *temporary_folder(void)
{
    if (*temporary) return temporary;
    if (!clv_temporary_folder("drivers", temporary, sizeof temporary)) return NULL;
    temporary_owner = getpid();
    atexit(remove_temporary);
    return temporary;
}

/* Creates the folder `name` in the cache's folder for drivers, else in a temporary one. Returns false if neither
 * works. */
static bool private_folder(const char *name, char *path, size_t capacity)
{
    char cache[PATH_MAX - 64];
    clv_cache_dir(cache, sizeof cache);
    if (*cache) {
        snprintf(path, capacity, "%s/drivers/%s", cache, name);
        if (clv_dir_make_private(path) == CLV_OK) return true;
    }
    const char *base = temporary_folder();
    if (!base) return false;
    snprintf(path, capacity, "%s/%s", base, name);
    return clv_dir_make_private(path) == CLV_OK;
}

/* ---- finding drivers -------------------------------------------------------------------------- */

static bool add(driver_list *list, const char *name)
{
    ++list->found;
    for (size_t i = 0; i < list->count; ++i)
        if (strcmp(list->names[i], name) == 0) return true;
    if (list->count == MOST_DRIVERS) {
        list->too_many = true;
        return false;
    }
    list->names[list->count] = clv_strdup(name);
    list->failed = list->failed || !list->names[list->count];
    return list->names[list->count] && ++list->count;
}

static bool add_icd_file(driver_list *list, const char *path)
{
    char library[CLV_ICD_NAME], *text;
    const char *problem;
    size_t length;
    if (clv_file_read_plain(path, ICD_LIMIT, &text, &length)) return false;
    const bool good = clv_icd_parse(text, length, library, &problem) && add(list, library);
    clv_free(text);
    return good;
}

static int is_icd(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && clv_ends_with(entry->d_name, ".icd");
}

/* Returns the number of .icd files in the folder; adds their libraries unless `list` is NULL. */
static size_t add_vendors(driver_list *list, const char *folder)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_icd, alphasort);
    for (int i = 0; i < count; ++i) {
        char path[PATH_MAX];
        if (list &&
            (size_t)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < sizeof path)
            add_icd_file(list, path);
        free(entries[i]); /* allocated by scandir with malloc */
    }
    free(entries);
    return count > 0 ? (size_t)count : 0;
}

static bool has_driver(const driver_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; ++i) {
        const char *slash = strrchr(list->names[i], '/');
        if (strcmp(slash ? slash + 1 : list->names[i], name) == 0) return true;
    }
    return false;
}

/* Adds the drivers with well-known names, each from the first folder that has it. */
static void add_folder(driver_list *list, const char *folder)
{
    for (size_t i = 0; i < CLV_LEN(usual_drivers); ++i) {
        char path[PATH_MAX];
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, usual_drivers[i]) >= sizeof path)
            continue;
        if (!has_driver(list, usual_drivers[i]) && access(path, R_OK) == 0) add(list, path);
    }
}

static void search(driver_list *list)
{
    const char *paths = secure_getenv("LD_LIBRARY_PATH");
    while (paths && *paths) {
        char folder[PATH_MAX];
        const size_t length = strcspn(paths, ":;");
        if (*paths == '/' && length < sizeof folder) {
            memcpy(folder, paths, length);
            folder[length] = '\0';
            add_folder(list, folder);
        }
        paths += length + (paths[length] != '\0');
    }
    for (size_t i = 0; i < CLV_LEN(usual_folders); ++i)
        add_folder(list, usual_folders[i]);
}

/* Recognises a shared library by its first bytes. */
static bool is_library(const char *path)
{
    char magic[4] = "";
    FILE *file = fopen(path, "rbe");
    const size_t got = file ? fread(magic, 1, sizeof magic, file) : 0;
    if (file) fclose(file);
    return got == sizeof magic && memcmp(magic, "\177ELF", sizeof magic) == 0;
}

/* Adds one value of --icd: a folder, an .icd file, a library's path, or a library's name for the loader. */
static int add_given(driver_list *list, const char *path)
{
    char whole[PATH_MAX], here[PATH_MAX / 2] = "";
    struct stat info;
    const size_t before = list->found;
    if (stat(path, &info)) {
        if (!strchr(path, '/') && clv_starts_with(path, "lib"))
            return add(list, path) ? -1 : CLI_USAGE;
        cli_say(stderr, "cleave: --icd: cannot open %s: %s\n", path, strerror(errno));
        return CLI_USAGE;
    }
    /* the path becomes absolute but links are kept: a driver looks for its parts beside the link */
    if (*path != '/' && !getcwd(here, sizeof here)) here[0] = '\0';
    if ((size_t)snprintf(whole, sizeof whole, "%s%s%s", here, *here ? "/" : "", path) >=
        sizeof whole) {
        cli_say(stderr, "cleave: --icd: the path %.60s... has more than %d bytes\n", path,
                (int)sizeof whole - 1);
        return CLI_USAGE;
    }
    if (S_ISDIR(info.st_mode)) {
        if (!add_vendors(list, whole)) add_folder(list, whole);
        if (list->found > before) return -1;
        cli_say(stderr,
                "cleave: --icd: the folder %s has no .icd file and no driver with a known name; "
                "give the path of a driver's library\n",
                path);
        return CLI_USAGE;
    }
    if (clv_ends_with(path, ".icd") ? add_icd_file(list, whole)
                                    : is_library(whole) && add(list, whole))
        return -1;
    if (list->found > before) return CLI_USAGE; /* there is no room; the caller says so */
    cli_say(stderr,
            "cleave: --icd: %s is neither a driver's library nor an .icd file that names one; give "
            "the path of one of these, or of a folder that has them\n",
            path);
    return CLI_USAGE;
}

/* ---- what the loader reads -------------------------------------------------------------------- */

/* Writes the vendors folder. The same drivers always get the same folder in the cache, so that it can be reused. */
static bool write_vendors(const driver_list *list, char *folder, size_t capacity)
{
    char hex[65], path[PATH_MAX];
    clv_text all = { 0 };
    for (size_t i = 0; i < list->count; ++i)
        clv_text_add(&all, "%s\n", list->names[i]);
    const clv_digest digest = clv_sha256(clv_text_get(&all), all.length);
    bool good = !all.failed;
    clv_text_clear(&all);
    clv_digest_hex(&digest, hex);
    hex[16] = '\0';
    good = good && private_folder(hex, folder, capacity);
    for (size_t i = 0; i < list->count && good; ++i) {
        char line[PATH_MAX];
        const char *slash = strrchr(list->names[i], '/');
        const int used = snprintf(line, sizeof line, "%s\n", list->names[i]);
        if ((size_t)snprintf(path, sizeof path, "%s/%02zu-%s.icd", folder, i,
                             slash ? slash + 1 : list->names[i]) >= sizeof path)
            return false;
        good = clv_file_write_private(path, line, (size_t)used) == CLV_OK;
    }
    return good;
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
}

/* Removes empty files that PoCL leaves behind when its process ends without running destructors, as the probe's helpers
 * do. Files younger than one day may be in use and stay. */
static void sweep(const char *folder)
{
    struct dirent **entries = NULL;
    const time_t old = time(NULL) - 24 * 3600;
    const int count = scandir(folder, &entries, NULL, NULL);
    for (int i = 0; i < count; ++i) {
        char path[PATH_MAX];
        struct stat info;
        const int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (clv_starts_with(entries[i]->d_name, "tempfile_") && (size_t)length < sizeof path &&
            lstat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_mtime < old)
            unlink(path);
        free(entries[i]); /* allocated by scandir with malloc */
    }
    free(entries);
}

enum { LEAST_MB = 64, LEAST_FILES = 10 };

/* Returns whether the disk has enough room: PoCL's compiler ends the process when the disk is full. */
static bool has_room(const char *path)
{
    struct statvfs info;
    return statvfs(path, &info) != 0 ||
           (uint64_t)info.f_bavail * info.f_frsize >= (uint64_t)LEAST_MB * 1000000;
}

static rlim_t limit_of(int what)
{
    struct rlimit limit;
    return getrlimit(what, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

/* Says so if a driver's compiler may not write its files: PoCL's ends the process then. */
static void warn_of_small_files(void)
{
    const rlim_t bytes = limit_of(RLIMIT_FSIZE);
    if (bytes < (rlim_t)LEAST_MB * 1000000)
        cli_say(stderr,
                "cleave: the limit of file sizes (ulimit -f) is %llu bytes; an OpenCL driver that "
                "compiles kernels may need more, and end the command\n",
                (unsigned long long)bytes);
}

/* Points the driver's kernel cache to a private folder. `checked`: the driver finds most damage in its cache itself. */
static void keep_private(const char *variable, const char *name, bool checked)
{
    char cache[PATH_MAX], path[PATH_MAX];
    clv_cache_dir(cache, sizeof cache);
    if (is_set(variable)) return;
    /* without our own cache folder, the driver's default folder in the home directory is good enough */
    if (!*cache && (is_set("HOME") || is_set("XDG_CACHE_HOME"))) return;
    if (!private_folder(name, path, sizeof path)) return;
    if (!has_room(path)) {
        const char *other = temporary_folder();
        if (!other || !has_room(other)) return;
        cli_say(stderr,
                "cleave: %s has less than %d MB left, which is too little for an OpenCL driver's "
                "compiled kernels; this run keeps its kernels in %s and removes them at its end\n",
                path, LEAST_MB, other);
        setenv(variable, other, 1);
        return;
    }
    const rlim_t files = limit_of(RLIMIT_NOFILE);
    if (files <
        LEAST_FILES) { /* reads would fail, and files that are whole would be called damaged */
        static bool told;
        cli_kernels_watch();
        const char *other = temporary_folder();
        if (!told)
            cli_say(stderr,
                    "cleave: the limit of open files (ulimit -n) is %llu, which is too little to "
                    "check an OpenCL driver's compiled kernels, so this run does not use those in "
                    "%s; drivers may fail, too: allow 64 or more\n",
                    (unsigned long long)files, path);
        told = true;
        if (other) setenv(variable, other, 1);
        return;
    }
    sweep(path);
    setenv(variable, path, 1);
    if (cli_kernels_guard(path, checked)) return;
    const char *own = temporary_folder();
    if (!own) return;
    cli_say(stderr,
            "cleave: another run is changing the compiled kernels in %s; this run keeps its "
            "kernels in %s and removes them at its end\n",
            path, own);
    setenv(variable, own, 1);
}

/* Adds the values of --icd, each a list with commas. */
static int add_all_given(driver_list *list, const char *const *given, size_t count)
{
    int code = -1;
    for (size_t i = 0; i < count && code < 0; ++i) {
        char *paths = clv_strdup(given[i]), *rest = NULL;
        list->failed = list->failed || !paths;
        for (char *path = paths ? strtok_r(paths, ",", &rest) : NULL; path && code < 0;
             path = strtok_r(NULL, ",", &rest))
            code = add_given(list, path);
        clv_free(paths);
    }
    if (list->failed) {
        cli_say(stderr, "cleave: --icd: not enough memory\n");
        return CLI_FAILED;
    }
    if (list->too_many) {
        cli_say(stderr, "cleave: --icd: more than %d drivers are given; give fewer\n",
                MOST_DRIVERS);
        return CLI_USAGE;
    }
    if (code >= 0 || list->count || !count) return code;
    cli_say(stderr, "cleave: --icd is \"%s\", but it must be the path of a driver\n", given[0]);
    return CLI_USAGE;
}

static int choose_drivers(const char *const *given, size_t count)
{
    driver_list list = { 0 };
    char folder[PATH_MAX];
    int code = add_all_given(&list, given, count);
    if (!count) search(&list);
    if (code < 0 && list.count) {
        if (write_vendors(&list, folder, sizeof folder)) {
            setenv("OCL_ICD_VENDORS", folder, 1);
            if (count) unsetenv("OCL_ICD_FILENAMES"); /* --icd means these drivers and no others */
        } else if (count) {
            cli_say(stderr, "cleave: --icd: cannot make a private folder: %s\n",
                    clv_error_message());
            code = CLI_FAILED;
        }
    }
    for (size_t i = 0; i < list.count; ++i)
        clv_free(list.names[i]);
    return code;
}

int cli_ready_drivers(const char *const *given, size_t count)
{
    int code = -1;
    if (getauxval(AT_SECURE)) return -1; /* the environment is not ours to change */
    const bool told = is_set("OCL_ICD_VENDORS") || is_set("OCL_ICD_FILENAMES") ||
                      is_set("OPENCL_VENDOR_PATH") || add_vendors(NULL, usual_vendors);
    if (count || !told) code = choose_drivers(given, count);
    warn_of_small_files();
    keep_private("POCL_CACHE_DIR", "pocl", false);
    keep_private("MESA_SHADER_CACHE_DIR", "mesa", true);
    return code;
}
