/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps program binaries on disk.
 *
 * An entry PROGRAMS/<SHA-256 of key>.clb has a line of magic, the lengths, the SHA-256 of the payload, the whole key
 * and the payload. An entry is accepted only if all of these agree. It is written under a private name and then
 * renamed, so that any number of processes may share the directory. */
#define _GNU_SOURCE
#include "runtime/program/cache.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "cleave program 1\n"
#define SUFFIX ".clb"

enum { MAX_ENTRY_BYTES = 256 << 20, DEFAULT_LIMIT_BYTES = 512 << 20 };

typedef struct header {
    char magic[sizeof MAGIC - 1];
    unsigned char padding[7];
    uint64_t key_length, payload_length;
    clv_digest payload_digest;
} header;

void clv_cache_open(clv_cache *cache, const char *directory)
{
    *cache = (clv_cache){ .limit_bytes = DEFAULT_LIMIT_BYTES };
    if (!directory || !*directory) return;
    char programs[sizeof cache->directory];
    if ((size_t)snprintf(programs, sizeof programs, "%s/programs", directory) >= sizeof programs)
        return;
    clv_status status = clv_dir_make_private(directory);
    if (!status) status = clv_dir_make_private(programs);
    if (status) {
        clv_cache_lost();
        return;
    }
    memcpy(cache->directory, directory, strlen(directory) + 1);
}

/* Writes the entry's path; returns false when there is no cache. */
static bool entry_path(const clv_cache *cache, const char *key, char *out, size_t capacity)
{
    if (!*cache->directory) return false;
    char name[65];
    const clv_digest digest = clv_sha256(key, strlen(key));
    clv_digest_hex(&digest, name);
    return (size_t)snprintf(out, capacity, "%s/programs/%s" SUFFIX, cache->directory, name) <
           capacity;
}

/* Reads the whole file if it is a regular file of this user. */
static bool read_entry(const char *path, char **data, size_t *length)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return false;
    struct stat info;
    char *bytes = NULL;
    size_t got = 0;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        (info.st_mode & 022) == 0 && info.st_size > 0 && info.st_size <= MAX_ENTRY_BYTES &&
        (bytes = clv_alloc((size_t)info.st_size, 1))) {
        for (ssize_t n; got < (size_t)info.st_size; got += (size_t)n)
            if ((n = read(fd, bytes + got, (size_t)info.st_size - got)) <= 0) break;
        if (got == (size_t)info.st_size) futimens(fd, NULL); /* recently used; may fail */
    }
    close(fd);
    if (!bytes || got != (size_t)info.st_size) {
        clv_free(bytes);
        return false;
    }
    *data = bytes;
    *length = got;
    return true;
}

/* Returns where the payload begins, or 0 if anything in the entry is wrong. */
static size_t verified_payload(const char *data, size_t length, const char *key)
{
    header h;
    const size_t key_length = strlen(key);
    if (length < sizeof h) return 0;
    memcpy(&h, data, sizeof h);
    if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0 || h.key_length != key_length ||
        h.payload_length == 0 || h.payload_length > MAX_ENTRY_BYTES ||
        length != sizeof h + key_length + h.payload_length ||
        memcmp(data + sizeof h, key, key_length) != 0)
        return 0;
    const size_t at = sizeof h + key_length;
    const clv_digest digest = clv_sha256(data + at, length - at);
    return memcmp(&digest, &h.payload_digest, sizeof digest) == 0 ? at : 0;
}

bool clv_cache_has(const clv_cache *cache, const char *key)
{
    char path[1200];
    return entry_path(cache, key, path, sizeof path) && access(path, R_OK) == 0;
}

bool clv_cache_load(const clv_cache *cache, const char *key, void **payload, size_t *length)
{
    char path[1200], *data;
    size_t total;
    if (!entry_path(cache, key, path, sizeof path) || !read_entry(path, &data, &total))
        return false;
    const size_t at = verified_payload(data, total, key);
    if (!at) {
        clv_log(CLV_LOG_WARN, "%s is damaged or of another version; removed", path);
        unlink(path);
        clv_free(data);
        return false;
    }
    memmove(data, data + at, total - at);
    *payload = data;
    *length = total - at;
    return true;
}

void clv_cache_store(const clv_cache *cache, const char *key, const void *payload, size_t length)
{
    char path[1200];
    if (!length || !entry_path(cache, key, path, sizeof path)) return;
    header h = { .key_length = strlen(key),
                 .payload_length = length,
                 .payload_digest = clv_sha256(payload, length) };
    memcpy(h.magic, MAGIC, sizeof h.magic);
    clv_text entry = { 0 };
    clv_text_bytes(&entry, &h, sizeof h);
    clv_text_bytes(&entry, key, h.key_length);
    clv_text_bytes(&entry, payload, length);
    if (!entry.failed && entry.length <= MAX_ENTRY_BYTES) {
        if (clv_file_write_private(path, entry.data, entry.length))
            clv_cache_lost();
        else
            clv_cache_evict(cache);
    }
    clv_text_clear(&entry);
}

void clv_cache_drop(const clv_cache *cache, const char *key)
{
    char path[1200];
    if (entry_path(cache, key, path, sizeof path)) unlink(path);
}

/* ---- all entries ----------------- */

typedef struct entry {
    char name[80];
    uint64_t bytes;
    struct timespec used;
} entry;

static int by_age(const void *a, const void *b)
{
    const struct timespec *x = &((const entry *)a)->used, *y = &((const entry *)b)->used;
    if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* Lists the entries, oldest first, including temporary files that a killed process left behind. */
static size_t list_entries(const clv_cache *cache, int *directory_fd, entry **entries)
{
    size_t count = 0, capacity = 0;
    char path[1100];
    *entries = NULL;
    *directory_fd = -1;
    if (!*cache->directory) return 0;
    snprintf(path, sizeof path, "%s/programs", cache->directory);
    DIR *directory = opendir(path);
    if (!directory) return 0;
    *directory_fd = dup(dirfd(directory));
    for (struct dirent *d; (d = readdir(directory));) {
        struct stat info;
        if (!strstr(d->d_name, SUFFIX) || strlen(d->d_name) >= sizeof(*entries)->name ||
            fstatat(dirfd(directory), d->d_name, &info, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(info.st_mode) || !clv_reserve(entries, &capacity, count + 1, sizeof **entries))
            continue;
        entry *e = &(*entries)[count++];
        memcpy(e->name, d->d_name, strlen(d->d_name) + 1);
        e->bytes = (uint64_t)info.st_size;
        e->used = info.st_mtim;
    }
    closedir(directory);
    if (count) qsort(*entries, count, sizeof **entries, by_age);
    return count;
}

clv_cache_stats clv_cache_measure(const clv_cache *cache)
{
    entry *entries;
    int fd;
    clv_cache_stats stats = { .entries = list_entries(cache, &fd, &entries) };
    for (size_t i = 0; i < stats.entries; ++i)
        stats.bytes += entries[i].bytes;
    if (fd >= 0) close(fd);
    clv_free(entries);
    return stats;
}

void clv_cache_evict(const clv_cache *cache)
{
    entry *entries;
    int fd;
    const size_t count = list_entries(cache, &fd, &entries);
    uint64_t total = 0;
    for (size_t i = 0; i < count; ++i)
        total += entries[i].bytes;
    for (size_t i = 0; i < count && total > cache->limit_bytes; ++i) {
        unlinkat(fd, entries[i].name, 0); /* another process may have removed it first */
        total -= entries[i].bytes;
    }
    if (fd >= 0) close(fd);
    clv_free(entries);
}
