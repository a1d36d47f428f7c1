/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an input that stands for several files into a folder. */
#define _GNU_SOURCE /* memmem */
#include "folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static const char *const *known; /* names of the files in `folder` */

static void path_of(const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", folder, name);
    char *slash = strchr(path + strlen(folder) + 1, '/');
    if (!slash) return;
    *slash = '\0';
    (void)mkdir(path, 0700);
    *slash = '/';
}

static void leave(void)
{
    char path[256];
    for (size_t i = 0; known && known[i]; ++i) {
        path_of(known[i], path);
        (void)unlink(path);
        *strrchr(path, '/') = '\0';
        (void)rmdir(path); /* fails for `folder` itself while files are left */
    }
    (void)rmdir(folder);
}

static void put(const char *name, const uint8_t *data, size_t size)
{
    char path[256];
    path_of(name, path);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file)) abort();
}

const char *fuzz_folder(const uint8_t *data, size_t size, const char *const *names)
{
    static const char mark[] = "\n%%% ";
    char path[256];
    if (!*folder) {
        snprintf(folder, sizeof folder, "/dev/shm/cleave-fuzz-XXXXXX");
        if (!mkdtemp(folder)) abort();
        atexit(leave);
    }
    known = names;
    for (size_t i = 0; names[i]; ++i) {
        path_of(names[i], path);
        (void)unlink(path);
    }
    const char *name = names[0];
    for (const uint8_t *end = data + size; data <= end && name;) {
        const size_t left = (size_t)(end - data);
        const uint8_t *next = left ? memmem(data, left, mark, sizeof mark - 1) : NULL;
        put(name, data, next ? (size_t)(next - data) : left);
        if (!next) break;
        const uint8_t *line = next + sizeof mark - 1;
        const uint8_t *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) break;
        name = NULL;
        for (size_t i = 0; names[i] && !name; ++i)
            if (strlen(names[i]) == (size_t)(stop - line) &&
                memcmp(names[i], line, (size_t)(stop - line)) == 0)
                name = names[i];
        data = stop + 1;
    }
    return folder;
}
