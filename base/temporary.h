/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes temporary files and folders. A process holds a lock (flock) on each of its temporary files and
 * folders until it no longer needs it. The lock also ends when the process ends, even if the process is killed.
 * Another process can therefore recognise what a killed process left behind, and removes it. */
#ifndef CLEAVE_BASE_TEMPORARY_H
#define CLEAVE_BASE_TEMPORARY_H

#include <stdbool.h>
#include <sys/types.h>

/* A temporary beside an output is called ".NAME.PROCESS-NUMBER" plus this ending. */
#define CLV_TEMPORARY_ENDING ".cleave-part"

/* Makes the empty file `path`, which must not exist, and locks it. Returns false with the reason in errno. */
bool clv_temporary_file(const char *path, mode_t mode);
/* Makes a locked folder that only its owner can use, named "cleave-KIND-" and six letters, in $TMPDIR or
 * else in /tmp. Also removes such folders left there by ended processes. Returns false with the reason in
 * errno. */
bool clv_temporary_folder(const char *kind, char *path, size_t capacity);
/* Makes a locked folder like clv_temporary_folder, but in the folder `place`. */
bool clv_temporary_folder_in(const char *place, const char *kind, char *path, size_t capacity);

/* Gives up the lock of a temporary that was renamed or removed, or that is to be kept. */
void clv_temporary_forget(const char *path);
/* Removes a file, or a folder with everything in it, and forgets it. */
void clv_temporary_remove(const char *path);
/* Removes all temporaries of this process. For a signal handler, before the process ends (async-signal-safe). */
void clv_temporaries_remove(void);

/* Removes the temporaries in `folder` that killed processes of this user left more than a minute ago, if their names
 * begin with `prefix` and end with `ending`. Does so once per process and folder. */
void clv_temporaries_sweep(const char *folder, const char *prefix, const char *ending);

#endif
