/* SPDX-License-Identifier: Apache-2.0 */
/* What a mistyped word was probably meant to be. */
#ifndef CLEAVE_HOST_CLI_NEAREST_H
#define CLEAVE_HOST_CLI_NEAREST_H

#include <stddef.h>

/* The name that is the fewest letters (left out, added, exchanged or swapped) away from `word`, where
 * these are at most a third of its letters; NULL: none is that near. */
const char *cli_nearest(const char *word, const char *const names[], size_t count);

#endif
