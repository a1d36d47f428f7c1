/* SPDX-License-Identifier: Apache-2.0 */
/* What a command reads must not be what it writes, and what it writes has to be possible. */
#ifndef CLEAVE_HOST_CLI_CLASH_H
#define CLEAVE_HOST_CLI_CLASH_H

#include "host/cli/endings.h"

/* A file as the user named it: `option` is how messages call it ("-o", "CUBE"). `folder`, where it is
 * not NULL, is what `path` lies in. A path of NULL is none. `formats` is what an output may be
 * (endings.h); 0: its name may have any ending. Of an input it says whether "-" will do. */
typedef struct cli_file {
    const char *option, *path, *folder;
    unsigned formats;
} cli_file;

/* Do both names lead to one file or folder, through links too? Two that are not there yet are one
 * where they have the same name in the same folder. */
bool cli_same_file(const char *a, const char *b);

enum { CLI_MOST_OUTPUTS = 30 }; /* of a command, beside its report and trace */

/* What is asked before anything is read or written, in this order:
 *  - is an input "-" that cannot be standard input?
 *  - would an output replace an input or another output? Only one may be standard output ("-"); devices and
 *    pipes may be used twice;
 *  - does every output's name have the ending of a format that it can have?
 *  - can the outputs be made? A folder that is not there yet has to be one that can be made.
 * `common`: its report and trace are outputs as well, and its other options are checked, too; may be NULL.
 * Returns -1 to go on, else the exit code: CLI_USAGE for the first three, CLI_FAILED for the last. */
int cli_check_files(const cli_command *command, const cli_common *common, const cli_file *inputs,
                    size_t input_count, const cli_file *outputs, size_t output_count);

/* Where lines for the reader go: standard output, unless an output is there. */
FILE *cli_news(const cli_common *common, const cli_file *outputs, size_t count);

#endif
