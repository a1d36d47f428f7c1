/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises a header in a table of examples. */
#ifndef CLEAVE_HOST_CLI_FINETUNE_HEADER_H
#define CLEAVE_HOST_CLI_FINETUNE_HEADER_H

#include <stddef.h>

/* Returns how many of the two fields of a line are usual names of columns ("text", "label", "sentence1", ...). Case
 * does not matter. */
size_t cli_header_names(const char *const text[2], const size_t length[2]);

/* Copies the beginning of a line to `out` for a message: control characters become spaces, and UTF-8 is not cut within
 * a character. */
void cli_header_show(const char *const text[2], const size_t length[2], char *out, size_t room);

#endif
