/* SPDX-License-Identifier: Apache-2.0 */
/* Turns one input into several files: its parts are separated by lines "%%% NAME". */
#ifndef CLEAVE_TESTS_FUZZ_FOLDER_H
#define CLEAVE_TESTS_FUZZ_FOLDER_H

#include <stddef.h>
#include <stdint.h>

/* Returns a folder in memory that holds the input's parts as files. Parts whose name is not in `names` (ends with
 * NULL) are left out; the text before the first "%%% NAME" line is the file names[0]. The files stay until the next
 * call. */
const char *fuzz_folder(const uint8_t *data, size_t size, const char *const *names);

#endif
