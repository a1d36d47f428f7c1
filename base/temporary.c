/* SPDX-License-Identifier: Apache-2.0 */
/* Makes temporary files and folders that have locks, removes them from a signal handler, and sweeps old ones. */
#define _GNU_SOURCE
#include "base/temporary.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/text.h"
#include "base/thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST = 64,          /* most temporaries of a process at one time */
    MOST_FOLDERS = 64,  /* most folders that are swept; later ones are not */
    MOST_NAMES = 20000, /* most names of a folder that a sweep reads */
    DEEPEST = 12,       /* nested folders; ours are three deep */
    STALE_S = 60,       /* a file is locked just after it is made: leave younger ones alone */
};

/* A temporary of this process. A signal handler reads the slots while another thread may write them. `turn` is odd
 * while the name changes. */
typedef struct slot {
    atomic_uint turn;
    atomic_bool used;
    int lock;
    char path[PATH_MAX];
} slot;

static slot slots[MOST];
static pid_t owner; /* process of the list: a forked child must not remove the files */
static clv_mutex guard = PTHREAD_MUTEX_INITIALIZER; /* guards all variables here */
static uint64_t swept[MOST_FOLDERS];
static size_t swept_count;

/* ---- the list --------------------------------------------------------------------------------- */

/* Empties the list after a fork, since none of its temporaries belongs to the child. */
static void begin_anew(void)
{
    if (owner == getpid()) return;
    for (size_t i = 0; i < MOST; ++i) {
        if (atomic_load(&slots[i].used))
            (void)close(slots[i].lock); /* the parent keeps the lock by its own descriptor */
        atomic_store(&slots[i].used, false);
    }
    owner = getpid();
}

/* Notes a temporary before it is made, because a signal may come at any time. Returns the temporary's slot, or NULL. */
static slot *note(const char *path)
{
    slot *s = NULL;
    pthread_mutex_lock(&guard);
    begin_anew();
    for (size_t i = 0; i < MOST && !s; ++i)
        if (!atomic_load(&slots[i].used)) s = &slots[i];
    if (s && strlen(path) < sizeof s->path) {
        atomic_fetch_add(&s->turn, 1);
        clv_copy_string(s->path, sizeof s->path, path);
        s->lock = -1;
        atomic_store(&s->used, true);
        atomic_fetch_add(&s->turn, 1);
    } else {
        errno = s ? ENAMETOOLONG : EMFILE;
        s = NULL;
    }
    pthread_mutex_unlock(&guard);
    return s;
}

/* Removes the note of a temporary that could not be made: the file of that name belongs to another process. Keeps
 * errno. */
static bool unnote(slot *s)
{
    atomic_store(&s->used, false);
    return false;
}

void clv_temporary_forget(const char *path)
{
    pthread_mutex_lock(&guard);
    for (size_t i = 0; i < MOST && owner == getpid(); ++i) {
        if (!atomic_load(&slots[i].used) || strcmp(slots[i].path, path) != 0) continue;
        atomic_store(&slots[i].used, false);
        if (slots[i].lock >= 0) close(slots[i].lock);
    }
    pthread_mutex_unlock(&guard);
}

/* ---- removal by system calls only, for a handler too ------------------------------------------ */

struct entry { /* as the kernel defines it */
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static void remove_at(int parent, const char *name, int depth)
{
    _Alignas(struct entry) char bytes[2048];
    if (unlinkat(parent, name, 0) == 0 || (errno != EISDIR && errno != EPERM) || depth == DEEPEST)
        return;
    const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return;
    for (long got; (got = syscall(SYS_getdents64, folder, bytes, sizeof bytes)) > 0;) {
        for (long at = 0; at < got;) {
            const struct entry *e = (const struct entry *)(const void *)(bytes + at);
            at += e->length;
            if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
                remove_at(folder, e->name, depth + 1);
        }
    }
    close(folder);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

void clv_temporary_remove(const char *path)
{
    const int before = errno;
    remove_at(AT_FDCWD, path, 0);
    clv_temporary_forget(path);
    errno = before;
}

void clv_temporaries_remove(void)
{
    const int before = errno;
    for (size_t i = 0; i < MOST && owner == getpid(); ++i) {
        char path[PATH_MAX];
        const unsigned turn = atomic_load(&slots[i].turn);
        if (turn & 1 || !atomic_load(&slots[i].used)) continue;
        memcpy(path, slots[i].path, sizeof path);
        if (atomic_load(&slots[i].turn) == turn) remove_at(AT_FDCWD, path, 0);
    }
    errno = before;
}

/* ---- making ----------------------------------------------------------------------------------- */

/* Locks the temporary. On a file system without locks no temporary is locked, so none is swept. */
static void hold(slot *s, int fd)
{
    (void)flock(fd, LOCK_EX | LOCK_NB);
    s->lock = fd;
}

bool clv_temporary_file(const char *path, mode_t mode)
{
    slot *s = note(path);
    if (!s) return false;
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return unnote(s);
    hold(s, fd);
    return true;
}

/* Works like mkdtemp, but the name is noted before the folder is made. */
static bool make_folder(char *path)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    enum { RANDOM = 6, ATTEMPTS = 100 };
    char *end = path + strlen(path) - RANDOM;
    for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
        unsigned char bytes[RANDOM];
        if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return false;
        for (size_t i = 0; i < RANDOM; ++i)
            end[i] = letters[bytes[i] % (sizeof letters - 1)];
        slot *s = note(path);
        if (!s) return false;
        if (mkdir(path, 0700)) {
            unnote(s);
            if (errno == EEXIST) continue;
            return false;
        }
        const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            hold(s, fd);
            return true;
        }
        (void)rmdir(path);
        return unnote(s);
    }
    return false;
}

bool clv_temporary_folder_in(const char *place, const char *kind, char *path, size_t capacity)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "cleave-%s-", kind);
    clv_temporaries_sweep(place, prefix, "");
    const int length = snprintf(path, capacity, "%s/%sXXXXXX", place, prefix);
    const bool fits = length > 0 && (size_t)length < capacity;
    if (fits && make_folder(path)) return true;
    if (!fits) errno = ENAMETOOLONG;
    *path = '\0';
    return false;
}

bool clv_temporary_folder(const char *kind, char *path, size_t capacity)
{
    const char *base = secure_getenv("TMPDIR");
    return clv_temporary_folder_in(base && *base == '/' ? base : "/tmp", kind, path, capacity);
}

/* ---- sweeping --------------------------------------------------------------------------------- */

/* Returns whether the folder is to be swept for the first time with this prefix, and notes the folder. Also returns
 * false when too many folders are noted. */
static bool is_first_look(const char *folder, const char *prefix)
{
    uint64_t hash = clv_fnv1a(CLV_FNV1A, folder, strlen(folder) + 1);
    hash = clv_fnv1a(hash, prefix, strlen(prefix));
    pthread_mutex_lock(&guard);
    bool first = swept_count < MOST_FOLDERS;
    for (size_t i = 0; i < swept_count; ++i)
        if (swept[i] == hash) first = false;
    if (first) swept[swept_count++] = hash;
    pthread_mutex_unlock(&guard);
    return first;
}

/* Removes a temporary whose process has ended: it is this user's and old enough, and no process holds its lock. */
static void sweep_one(int parent, const char *name, time_t now)
{
    struct stat info, opened;
    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) || info.st_uid != geteuid() ||
        !(S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) || now - info.st_mtime < STALE_S)
        return;
    const int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &opened) == 0 && opened.st_ino == info.st_ino &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        remove_at(parent, name, 0);
    close(fd);
}

void clv_temporaries_sweep(const char *folder, const char *prefix, const char *ending)
{
    if (!is_first_look(folder, prefix)) return;
    const int before = errno;
    const time_t now = time(NULL);
    DIR *stream = opendir(folder);
    const struct dirent *entry;
    for (size_t i = 0; stream && i < MOST_NAMES && (entry = readdir(stream)); ++i)
        if (clv_starts_with(entry->d_name, prefix) && clv_ends_with(entry->d_name, ending))
            sweep_one(dirfd(stream), entry->d_name, now);
    if (stream) closedir(stream);
    errno = before;
}
