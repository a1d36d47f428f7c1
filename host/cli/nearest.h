/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses which word a mistyped one was meant to be. */
#ifndef CLEAVE_HOST_CLI_NEAREST_H
#define CLEAVE_HOST_CLI_NEAREST_H

#include <stddef.h>

/* Returns the name with the smallest edit distance to `word` (letters omitted, added, replaced or swapped), if the
 * distance is at most a third of the word's length; else NULL. */
const char *cli_nearest(const char *word, const char *const names[], size_t count);

#endif
