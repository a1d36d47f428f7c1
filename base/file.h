/* SPDX-License-Identifier: Apache-2.0 */
/* Writes files that are complete or absent, and makes directories that only their owner can write. */
#ifndef CLEAVE_BASE_FILE_H
#define CLEAVE_BASE_FILE_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLV_PATH_MOST = 1024 }; /* most bytes of a path that is kept, its NUL included */

/* Reads the whole file and NUL-terminates it after `length` bytes. More than `limit` bytes give
 * CLV_E_FORMAT. Free *data with clv_free. Reads regular files and pipes. */
clv_status clv_file_read(const char *path, size_t limit, char **data, size_t *length);

/* Reads a file like clv_file_read, but regular files only, for names that come from a folder, a model or a cache: a
 * pipe to which no process writes would block us for ever. A pipe or device gives CLV_E_IO. */
clv_status clv_file_read_plain(const char *path, size_t limit, char **data, size_t *length);

/* Makes an empty temporary file with a hidden name beside `path`, or beside the file that `path` links to (which may
 * not exist yet), for writers that need a file name. base/temporary.h keeps track of the file: if this process is
 * killed, another one removes it later. Returns CLV_E_IO also if `path` exists and is not a regular file, because it
 * would be replaced. */
clv_status clv_file_begin(const char *path, char **temporary);
/* Moves the finished temporary over `path` (fsync, rename) and frees the name. The new file gets the mode and owner
 * of the file that it replaces. After a failure the temporary is removed. */
clv_status clv_file_publish(char *temporary, const char *path);
void clv_file_abandon(char *temporary); /* removes the file and frees the name; accepts NULL */
/* Checks, before the work, whether an output can be written to `path`; if not, returns CLV_E_IO. */
clv_status clv_file_check(const char *path);
/* Returns the number of this process's descriptor to which the name of an output leads ("-", /dev/stdout, /dev/fd/3,
 * also through links), else -1. Such a descriptor is written to as it is, so that >> appends. */
int clv_file_descriptor(const char *path);

typedef struct clv_part {
    const void *data;
    size_t length;
} clv_part;

/* Writes the parts one after the other as a file that is complete or absent. `path` "-" is standard output. A device,
 * a pipe or a descriptor (/dev/full, /dev/stdout) is written to, not replaced. If `path` is a link, the file that it
 * names is replaced. Errors: CLV_E_IO, CLV_E_MEMORY. */
clv_status clv_parts_write(const char *path, const clv_part *parts, size_t count);
clv_status clv_file_write(const char *path, const void *data, size_t length); /* one part */
/* Writes a file of a cache like clv_file_write, but with mode 0600; a link is replaced, not followed. */
clv_status clv_file_write_private(const char *path, const void *data, size_t length);

/* Makes the directory and its parents, with the usual modes of output folders. */
clv_status clv_dir_make(const char *path);

/* Sets whether this process discards its outputs from now on: they go to /dev/null, and no file is replaced. Private
 * files (caches) are written as before. For a process that computes for another one, or for a record. */
void clv_outputs_discard(bool on);
bool clv_outputs_discarded(void);

/* Makes the directory `path` (mode 0700) or checks it: it must be a real directory, owned by this user and writable
 * by no other user. */
clv_status clv_dir_make_private(const char *path);

/* Writes the path of the cache folder into `out`: CLEAVE_CACHE_DIR, else $XDG_CACHE_HOME/cleave, else
 * ~/.cache/cleave. The path is "" when caching is off (CLEAVE_CACHE=0, no home, or a program with rights that its
 * caller lacks). The folder may not exist yet. */
void clv_cache_dir(char *out, size_t capacity);
/* Warns, once per process and with this thread's message, that something could not be kept in the cache folder. */
void clv_cache_lost(void);

#endif
