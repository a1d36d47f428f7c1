/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a command does not overwrite its inputs, and that its outputs can be created. */
#ifndef CLEAVE_HOST_CLI_CLASH_H
#define CLEAVE_HOST_CLI_CLASH_H

#include "host/cli/endings.h"

/* A file as the user named it. `option` is its name in messages ("-o", "CUBE"). If `folder` is not NULL, `path` is
 * relative to it. A NULL `path` means no file. `formats` are the formats that an output may have (endings.h); 0: its
 * name may have any ending. For an input, `formats` says whether "-" is allowed. */
typedef struct cli_file {
    const char *option, *path, *folder;
    unsigned formats;
} cli_file;

/* Returns whether both names lead to the same file or folder, following links. Two files that do not exist yet are the
 * same if they have the same name in the same folder. */
bool cli_same_file(const char *a, const char *b);

enum { CLI_MOST_OUTPUTS = 30 }; /* per command, besides its report and trace */

/* Checks the following before anything is read or written, in this order:
 *  - is an input "-" that cannot be standard input?
 *  - would an output replace an input or another output? Only one may be standard output ("-"); devices and
 *    pipes may be used twice. Files .safetensors and .json that exist in an input's folder are not replaced either;
 *  - does every output's name have the ending of a format that the output supports?
 *  - can the outputs be created? A folder that does not exist yet must be one that can be created.
 * The report and trace of `common` count as outputs, and its other options are checked, too; it may be NULL. Returns -1
 * to continue, else the exit code: CLI_USAGE for the first three, CLI_FAILED for the last. */
int cli_check_files(const cli_command *command, const cli_common *common, const cli_file *inputs,
                    size_t input_count, const cli_file *outputs, size_t output_count);

/* Returns the stream for messages to the reader: standard output, or standard error if an output goes to standard
 * output. */
FILE *cli_news(const cli_common *common, const cli_file *outputs, size_t count);

#endif
