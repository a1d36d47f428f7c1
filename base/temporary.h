/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files and folders. A process holds a lock on each of its own (flock) until it has finished with it or
 * has ended in any way, so that another process recognises those that a killed one left behind, and removes them. */
#ifndef CLEAVE_BASE_TEMPORARY_H
#define CLEAVE_BASE_TEMPORARY_H

#include <stdbool.h>
#include <sys/types.h>

/* Beside an output: ".NAME.PROCESS-NUMBER" and this. */
#define CLV_TEMPORARY_ENDING ".cleave-part"

/* Makes the empty file `path`, which must not exist, and locks it. False: errno says why. */
bool clv_temporary_file(const char *path, mode_t mode);
/* Makes a locked folder that only its owner can use, "cleave-KIND-" and six letters, in $TMPDIR or else in
 * /tmp, and removes what ended processes left there. False: errno tells why. */
bool clv_temporary_folder(const char *kind, char *path, size_t capacity);
/* The same in the folder `place`. */
bool clv_temporary_folder_in(const char *place, const char *kind, char *path, size_t capacity);

/* It was renamed or removed, or is kept from now on: gives the lock up. */
void clv_temporary_forget(const char *path);
/* Removes a file or a folder with all that is in it, and forgets it. */
void clv_temporary_remove(const char *path);
/* All that this process has: for a signal's handler, before the process ends (async-signal-safe). */
void clv_temporaries_remove(void);

/* Removes what killed processes of this user left in `folder` more than a minute ago: names that begin with
 * `prefix` and end with `ending`. Looks once per process and folder. */
void clv_temporaries_sweep(const char *folder, const char *prefix, const char *ending);

#endif
