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

/* Does the same for regular files only, for names that come from a folder, a model or a cache: a pipe that
 * nobody writes to would block us for ever. A pipe or device gives CLV_E_IO. */
clv_status clv_file_read_plain(const char *path, size_t limit, char **data, size_t *length);

/* Makes an empty temporary file with a hidden name beside `path`, or beside the file that it links to (which
 * may not exist yet), for writers that need a name. The file belongs to base/temporary.h: if this process is
 * killed, another one sweeps it later. Returns CLV_E_IO also where `path` is not a regular file, because it
 * would be replaced. */
clv_status clv_file_begin(const char *path, char **temporary);
/* Moves the finished temporary over `path` (fsync, rename) and frees the name. The new file gets the mode and
 * owner of the one that it replaces. After a failure the temporary is gone too. */
clv_status clv_file_publish(char *temporary, const char *path);
void clv_file_abandon(char *temporary); /* removes and frees; accepts NULL */
/* Checks, before the work, whether an output can be made there; if not, returns CLV_E_IO. */
clv_status clv_file_check(const char *path);
/* Returns the number of the descriptor of this process that an output's name leads to ("-", /dev/stdout,
 * /dev/fd/3, also through links), else -1. Such a descriptor is written to as it is, so that >> appends. */
int clv_file_descriptor(const char *path);

typedef struct clv_part {
    const void *data;
    size_t length;
} clv_part;

/* Writes the parts one after the other as a file that is complete or absent. `path` "-" is standard output.
 * A device, a pipe or a descriptor (/dev/full, /dev/stdout) is written to, not replaced. Through a link the
 * file that it names is replaced. Errors: CLV_E_IO, CLV_E_MEMORY. */
clv_status clv_parts_write(const char *path, const clv_part *parts, size_t count);
clv_status clv_file_write(const char *path, const void *data, size_t length); /* one part */
/* For the caches: mode 0600; a link is replaced, not followed. */
clv_status clv_file_write_private(const char *path, const void *data, size_t length);

/* Makes the directory and its parents as an ordinary output folder. */
clv_status clv_dir_make(const char *path);

/* From now on (`on`) this process writes no outputs: what it writes goes to /dev/null, and nothing is replaced. Private
 * files (caches) are written as before. For a process that computes for another one, or for a record. */
void clv_outputs_discard(bool on);
bool clv_outputs_discarded(void);

/* Makes `path` (mode 0700) or checks it: it must be a real directory, owned by this user and writable by
 * nobody else. */
clv_status clv_dir_make_private(const char *path);

/* Writes the cache folder: CLEAVE_CACHE_DIR, else $XDG_CACHE_HOME/cleave, else ~/.cache/cleave. It is ""
 * when caching is off (CLEAVE_CACHE=0, no home, or a program with rights that its caller lacks). The folder
 * may not exist yet. */
void clv_cache_dir(char *out, size_t capacity);
/* Warns, once per process and with this thread's message, that something could not be kept there. */
void clv_cache_lost(void);

#endif
