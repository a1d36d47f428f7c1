/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are complete or absent, and directories that only their owner can write. */
#ifndef CLEAVE_BASE_FILE_H
#define CLEAVE_BASE_FILE_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLV_PATH_MOST = 1024 }; /* bytes of a path that is kept, its end included */

/* The whole file, NUL-terminated beyond `length`; more than `limit` bytes is CLV_E_FORMAT.
 * Free *data with clv_free. Regular files and pipes. */
clv_status clv_file_read(const char *path, size_t limit, char **data, size_t *length);

/* The same of a regular file only, for what is named by a folder, a model or a cache: a pipe that nobody
 * writes to would stop us for ever. CLV_E_IO for a pipe or device. */
clv_status clv_file_read_plain(const char *path, size_t limit, char **data, size_t *length);

/* A hidden name beside `path`, or beside the file that it links to (which may have to be made), for writers
 * that want a name; the file exists and is empty. It belongs to base/temporary.h: what a killed process leaves
 * is swept later. CLV_E_IO also where `path` is no regular file: it would be replaced. */
clv_status clv_file_begin(const char *path, char **temporary);
/* Moves the finished temporary over `path` (fsync, rename), with the mode and owner of a file that was there,
 * and frees the name. After a failure the temporary is gone too. */
clv_status clv_file_publish(char *temporary, const char *path);
void clv_file_abandon(char *temporary); /* removes and frees; accepts NULL */
/* Whether an output can be made there, said before the work: CLV_E_IO. */
clv_status clv_file_check(const char *path);
/* The number of the descriptor of this process that an output's name leads to ("-", /dev/stdout, /dev/fd/3, also
 * through links): that is written to as it is, so that >> appends. Else -1. */
int clv_file_descriptor(const char *path);

typedef struct clv_part {
    const void *data;
    size_t length;
} clv_part;

/* The parts one after the other, as a file that is complete or absent. `path` "-" is standard
 * output; a device, a pipe or a descriptor (/dev/full, /dev/stdout) is written to, not replaced; through a link
 * the file behind it is replaced. CLV_E_IO, CLV_E_MEMORY. */
clv_status clv_parts_write(const char *path, const clv_part *parts, size_t count);
clv_status clv_file_write(const char *path, const void *data, size_t length); /* one part */
/* For the caches: 0600, links are replaced, not followed. */
clv_status clv_file_write_private(const char *path, const void *data, size_t length);

/* Makes the directory and its parents as an ordinary output folder. */
clv_status clv_dir_make(const char *path);

/* Makes `path` (0700) or checks it: a real directory, ours, writable by nobody else. */
clv_status clv_dir_make_private(const char *path);

/* CLEAVE_CACHE_DIR, else $XDG_CACHE_HOME/cleave, else ~/.cache/cleave; "" when caching is off
 * (CLEAVE_CACHE=0, no home, a program with rights that its caller lacks). The directory may not exist yet. */
void clv_cache_dir(char *out, size_t capacity);
/* Something could not be kept there: warns with this thread's message, once a process. */
void clv_cache_lost(void);

#endif
