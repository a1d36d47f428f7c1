/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that are several files: parts divided by lines "%%% NAME". */
#ifndef CLEAVE_TESTS_FUZZ_FOLDER_H
#define CLEAVE_TESTS_FUZZ_FOLDER_H

#include <stddef.h>
#include <stdint.h>

/* A folder in memory with the parts that are called as one of `names` (ends with NULL), and no others; what stands
 * before the first line goes to the first name. It holds until the next call. */
const char *fuzz_folder(const uint8_t *data, size_t size, const char *const *names);

#endif
