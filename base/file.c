/* SPDX-License-Identifier: Apache-2.0 */
/* Writes files that are complete or absent, and makes directories that only their owner can write. */
#define _GNU_SOURCE
#include "base/file.h"

#include "base/alloc.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "base/temporary.h"
#include "base/text.h"
#include "base/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
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

static clv_status too_large(const char *path, size_t limit)
{
    return clv_fail(CLV_E_FORMAT, "%s: the file is larger than the %zu bytes that are accepted",
                    path, limit);
}

static clv_status read_file(const char *path, bool plain, size_t limit, char **data, size_t *length)
{
    *data = NULL;
    *length = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | (plain ? O_NONBLOCK : 0));
    if (fd < 0) return io_error("open", path);

    clv_status status = CLV_OK;
    char *buffer = NULL;
    size_t used = 0, capacity = 0;
    struct stat info = { 0 };
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        status = io_error("read", path);
        goto cleanup;
    }
    if (plain && !S_ISREG(info.st_mode)) {
        status = clv_fail(CLV_E_IO, "%s is a pipe or a device, but a regular file is needed", path);
        goto cleanup;
    }
    if (S_ISREG(info.st_mode) && info.st_size > 0 && (uint64_t)info.st_size > limit) {
        status = too_large(path, limit);
        goto cleanup;
    }
    for (;;) {
        if (!clv_reserve(&buffer, &capacity, used + 65536 + 1, 1)) {
            status =
                clv_fail(CLV_E_MEMORY, "%s: out of memory after reading %zu bytes", path, used);
            goto cleanup;
        }
        const ssize_t got = read(fd, buffer + used, 65536);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = io_error("read", path);
            goto cleanup;
        }
        if (got == 0) break;
        used += (size_t)got;
        if (used > limit) {
            status = too_large(path, limit);
            goto cleanup;
        }
    }
    buffer[used] = '\0';
    *data = buffer;
    *length = used;
    buffer = NULL;
cleanup:
    clv_free(buffer);
    close(fd);
    return status;
}

clv_status clv_file_read(const char *path, size_t limit, char **data, size_t *length)
{
    return read_file(path, false, limit, data, length);
}

clv_status clv_file_read_plain(const char *path, size_t limit, char **data, size_t *length)
{
    return read_file(path, true, limit, data, length);
}

/* ---- where a path leads ----------------------------------------------------------------------- */

/* Returns the number in a name such as /dev/stdout, /dev/fd/3 or /proc/self/fd/3, or -1 if the name is not that of a
 * descriptor of this process. */
static int descriptor_of(const char *name)
{
    static const char *const folders[] = { "/proc/self/fd/", "/dev/fd/" };
    if (strcmp(name, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(name, "/dev/stderr") == 0) return STDERR_FILENO;
    for (size_t i = 0; i < CLV_LEN(folders); ++i) {
        if (!clv_starts_with(name, folders[i])) continue;
        const char *digits = name + strlen(folders[i]);
        const size_t length = strspn(digits, "0123456789");
        if (length && length < 6 && !digits[length]) return atoi(digits);
    }
    return -1;
}

/* Follows one symbolic link; returns false when `path` is no link. */
static bool follow_one(char path[PATH_MAX])
{
    char link[PATH_MAX], whole[2 * PATH_MAX];
    const ssize_t length = readlink(path, link, sizeof link - 1);
    if (length <= 0) return false;
    link[length] = '\0';
    const char *slash = strrchr(path, '/');
    const int dir = slash && *link != '/' ? (int)(slash - path) + 1 : 0;
    const int bytes = snprintf(whole, sizeof whole, "%.*s%s", dir, path, link);
    if (bytes <= 0 || bytes >= PATH_MAX) return false;
    memcpy(path, whole, (size_t)bytes + 1);
    return true;
}

/* Follows symbolic links to the file that they name in the end. The links stay, and that file is replaced, or made if
 * it does not exist. Returns the number of the descriptor if the path leads to one of this process, else -1 with the
 * file's name in `real`. */
static int follow(const char *path, char real[PATH_MAX])
{
    enum { MOST_LINKS = 40 };
    int descriptor = descriptor_of(path);
    real[0] = '\0';
    if (strlen(path) >= PATH_MAX) return -1; /* open() will report it */
    clv_copy_string(real, PATH_MAX, path);
    for (int i = 0; i < MOST_LINKS && descriptor < 0 && follow_one(real); ++i)
        descriptor = descriptor_of(real);
    return descriptor;
}

int clv_file_descriptor(const char *path)
{
    char real[PATH_MAX];
    return strcmp(path, "-") == 0 ? STDOUT_FILENO : follow(path, real);
}

/* ---- temporaries ------------------------------------------------------------------------------ */

/* Removes the temporaries that killed processes left beside `path`. */
static void sweep_beside(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const size_t length = slash ? CLV_MAX((size_t)(slash - path), (size_t)1) : 1;
    if (length >= sizeof folder) return;
    memcpy(folder, slash ? path : ".", length);
    folder[length] = '\0';
    clv_temporaries_sweep(folder, ".", CLV_TEMPORARY_ENDING);
}

/* Makes a temporary beside `path`. open(2) applies the process's umask to `mode`; mkstemp would not. */
static clv_status begin_as(const char *path, mode_t mode, char **temporary)
{
    enum { MOST_OF_NAME = 200 }; /* a name has 255 bytes at most */
    static atomic_uint counter;
    struct stat info;
    *temporary = NULL;
    /* the temporary's name is cut, so that it says nothing about the file's own name */
    if (lstat(path, &info) && errno == ENAMETOOLONG) return io_error("create a file there", path);
    const char *slash = strrchr(path, '/');
    const int dir = slash ? (int)(slash - path) + 1 : 0;
    sweep_beside(path);
    for (int attempt = 0; attempt < 100; ++attempt) {
        clv_text name = { 0 }; /* a hidden name until it is finished */
        clv_text_add(&name, "%.*s.%.*s.%ld-%u" CLV_TEMPORARY_ENDING, dir, path, MOST_OF_NAME,
                     path + dir, (long)getpid(), atomic_fetch_add(&counter, 1));
        if (name.failed) {
            clv_text_clear(&name);
            return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
        }
        if (clv_temporary_file(name.data, mode)) {
            *temporary = name.data;
            return CLV_OK;
        }
        clv_text_clear(&name);
        if (errno != EEXIST) break;
    }
    return io_error("create a file there", path);
}

/* Makes a temporary for `path`. Only its owner may read it if it replaces a file, because other users may not be
 * allowed to read that file. */
static clv_status begin_at(const char *path, char **temporary)
{
    struct stat info;
    return begin_as(path, stat(path, &info) == 0 ? 0600 : 0666, temporary);
}

static atomic_int nowhere = -1; /* descriptor of /dev/null; -1 before its first use */
static atomic_bool discards;

void clv_outputs_discard(bool on)
{
    if (on && atomic_load(&nowhere) < 0)
        atomic_store(&nowhere, open("/dev/null", O_WRONLY | O_CLOEXEC));
    atomic_store(&discards, on && atomic_load(&nowhere) >= 0);
}

bool clv_outputs_discarded(void)
{
    return atomic_load(&discards);
}

/* Names the descriptor of /dev/null, not /dev/null itself: a name below /proc cannot be removed by mistake. */
static clv_status begin_nowhere(const char *path, char **temporary)
{
    clv_text name = { 0 };
    clv_text_add(&name, "/proc/self/fd/%d", atomic_load(&nowhere));
    *temporary = name.failed ? NULL : name.data;
    return *temporary ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
}

clv_status clv_file_begin(const char *path, char **temporary)
{
    struct stat info;
    char real[PATH_MAX];
    *temporary = NULL;
    if (clv_outputs_discarded()) return begin_nowhere(path, temporary);
    if (follow(path, real) >= 0 || (stat(path, &info) == 0 && !S_ISREG(info.st_mode)))
        return clv_fail(CLV_E_IO, "%s is a %s, but the name of a file is needed", path,
                        stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? "directory"
                                                                        : "pipe or device");
    if (lstat(real, &info) == 0 && S_ISLNK(info.st_mode)) {
        errno = ELOOP;
        return io_error("create a file there", path);
    }
    return begin_at(strlen(path) < PATH_MAX ? real : path, temporary);
}

clv_status clv_file_check(const char *path)
{
    struct stat info;
    char *temporary;
    if (clv_file_descriptor(path) >= 0 ||
        (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)))
        return CLV_OK;
    CLV_TRY(clv_file_begin(path, &temporary));
    clv_file_abandon(temporary);
    return CLV_OK;
}

/* Gives the new file the mode and owner of the file that it replaces. If this user may not change a file's owner, the
 * new file keeps its own; if the group cannot be kept, the group gets no more rights than other users. */
static void keep_attributes(int fd, const char *path)
{
    struct stat was, now;
    if (stat(path, &was) || !S_ISREG(was.st_mode) || fstat(fd, &now)) return;
    mode_t mode = was.st_mode & 0777;
    if ((was.st_uid != now.st_uid || was.st_gid != now.st_gid) &&
        fchown(fd, was.st_uid, was.st_gid) && fchown(fd, (uid_t)-1, was.st_gid))
        mode &= ~(mode_t)070 | (mode & 07) << 3;
    (void)fchmod(fd, mode);
}

static clv_status publish(char *temporary, const char *path, bool keeps)
{
    clv_status status = CLV_OK;
    const int fd = open(temporary, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && keeps) keep_attributes(fd, path);
    if (fd < 0 || fsync(fd)) status = io_error("finish", path);
    if (fd >= 0) close(fd);
    if (!status && rename(temporary, path)) status = io_error("write", path);
    if (status)
        clv_temporary_remove(temporary);
    else
        clv_temporary_forget(temporary);
    clv_free(temporary);
    return status;
}

clv_status clv_file_publish(char *temporary, const char *path)
{
    char real[PATH_MAX];
    if (clv_outputs_discarded()) {
        clv_free(temporary);
        return CLV_OK;
    }
    (void)follow(path, real);
    return publish(temporary, real, true);
}

void clv_file_abandon(char *temporary)
{
    if (temporary && !clv_outputs_discarded()) clv_temporary_remove(temporary);
    clv_free(temporary);
}

/* ---- writing ---------------------------------------------------------------------------------- */

static clv_status write_parts(int descriptor, const char *name, const clv_part *parts, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        const char *at = parts[i].data;
        for (size_t left = parts[i].length; left;) {
            const ssize_t put = write(descriptor, at, CLV_MIN(left, (size_t)MOST_AT_ONCE));
            if (put < 0 && errno == EINTR) continue;
            if (put <= 0) return io_error("write", name);
            at += put;
            left -= (size_t)put;
        }
    }
    return CLV_OK;
}

/* Writes the parts to a terminal, which must not obey control characters in them. */
static clv_status show_parts(int descriptor, const char *name, const clv_part *parts, size_t count)
{
    clv_text shown = { 0 };
    for (size_t i = 0; i < count; ++i)
        clv_text_visible(&shown, parts[i].data, parts[i].length);
    const clv_part whole = { clv_text_get(&shown), shown.length };
    const clv_status status = shown.failed ? clv_fail(CLV_E_MEMORY, "%s: out of memory", name)
                                           : write_parts(descriptor, name, &whole, 1);
    clv_text_clear(&shown);
    return status;
}

/* Opens the file `opened`, writes the parts, and closes it. `path` is the name that the user gave, for messages. */
static clv_status write_to(const char *opened, const char *path, const clv_part *parts,
                           size_t count)
{
    const int descriptor = open(opened, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return io_error("open", path);
    clv_status status = write_parts(descriptor, path, parts, count);
    if (close(descriptor) && !status) status = io_error("write", path);
    return status;
}

clv_status clv_parts_write(const char *path, const clv_part *parts, size_t count)
{
    const int descriptor = clv_file_descriptor(path);
    const bool is_output = descriptor == STDOUT_FILENO;
    if (clv_outputs_discarded()) return CLV_OK;
    if (descriptor >= 0)
        return (is_output && isatty(descriptor) ? show_parts : write_parts)(
            descriptor, is_output ? "standard output" : path, parts, count);

    struct stat info;
    char *temporary = NULL;
    const bool there = stat(path, &info) == 0;
    if (there && S_ISDIR(info.st_mode))
        return clv_fail(CLV_E_IO, "%s is a directory, but the name of a file is needed", path);
    if (there && !S_ISREG(info.st_mode)) return write_to(path, path, parts, count);
    CLV_TRY(clv_file_begin(path, &temporary));
    const clv_status status = write_to(temporary, path, parts, count);
    if (status) {
        clv_file_abandon(temporary);
        return status;
    }
    return clv_file_publish(temporary, path);
}

clv_status clv_file_write(const char *path, const void *data, size_t length)
{
    const clv_part whole = { data, length };
    return clv_parts_write(path, &whole, 1);
}

clv_status clv_file_write_private(const char *path, const void *data, size_t length)
{
    const clv_part whole = { data, length };
    char *temporary;
    CLV_TRY(begin_as(path, 0600, &temporary));
    const clv_status status = write_to(temporary, path, &whole, 1);
    if (status) {
        clv_file_abandon(temporary);
        return status;
    }
    return publish(temporary, path, false);
}

static clv_status make_dirs(const char *path, mode_t mode)
{
    char *copy = clv_strdup(path);
    if (!copy) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    clv_status status = CLV_OK;
    for (char *c = copy + 1; *copy && !status; ++c) {
        const char was = *c;
        if (was != '/' && was != '\0') continue;
        *c = '\0';
        struct stat info;
        if (mkdir(copy, was ? mode | 0700 : mode) && errno != EEXIST)
            status = io_error("make the directory", copy);
        else if (!was && (stat(copy, &info) || !S_ISDIR(info.st_mode))) {
            errno = ENOTDIR;
            status = io_error("use as a directory", copy);
        }
        if (!was) break;
        *c = was;
    }
    clv_free(copy);
    return status;
}

clv_status clv_dir_make(const char *path)
{
    return make_dirs(path, 0777);
}

clv_status clv_dir_make_private(const char *path)
{
    CLV_TRY(make_dirs(path, 0700));
    struct stat info;
    if (lstat(path, &info)) return io_error("read the attributes of", path);
    if (!S_ISDIR(info.st_mode))
        return clv_fail(CLV_E_IO, "%s is a link or a file, but a directory was expected", path);
    if (info.st_uid != geteuid())
        return clv_fail(CLV_E_IO, "%s belongs to user %u, but this process runs as user %u", path,
                        (unsigned)info.st_uid, (unsigned)geteuid());
    if (info.st_mode & 022)
        return clv_fail(
            CLV_E_IO,
            "%s: other users may write to this folder (mode %03o); to fix it, run chmod go-w on it",
            path, (unsigned)info.st_mode & 0777);
    return CLV_OK;
}

void clv_cache_dir(char *out, size_t capacity)
{
    const char *own = clv_environment("CLEAVE_CACHE_DIR");
    const char *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int length = 0;
    out[0] = '\0';
    if (clv_environment_is_off("CLEAVE_CACHE")) return;
    if (own)
        length = snprintf(out, capacity, "%s", own);
    else if (xdg && *xdg == '/')
        length = snprintf(out, capacity, "%s/cleave", xdg);
    else if (home && *home == '/' && access(home, F_OK) == 0) /* we do not make a home folder */
        length = snprintf(out, capacity, "%s/.cache/cleave", home);
    if (length < 0 || (size_t)length >= capacity) out[0] = '\0';
}

void clv_cache_lost(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told))
        clv_log(CLV_LOG_WARN,
                "compiled kernels and measured times cannot be kept for the next run: %s; set "
                "CLEAVE_CACHE_DIR to a folder that you can write to, or CLEAVE_CACHE=0",
                clv_error_message());
}
