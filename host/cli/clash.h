/* SPDX-License-Identifier: Apache-2.0 */
/* What a command reads must not be what it writes, and what it writes has to be possible. */
#ifndef CLEAVE_HOST_CLI_CLASH_H
#define CLEAVE_HOST_CLI_CLASH_H

#include "host/cli/cli.h"

/* A file as the user named it: `option` is how messages call it ("-o", "CUBE"). `folder`, where it is
 * not NULL, is what `path` lies in. A path of NULL is none. */
typedef struct cli_file {
    const char *option, *path, *folder;
} cli_file;

/* "-": standard input or output, whichever is meant. */
bool cli_is_stream(const char *path);

/* Do both names lead to one file or folder, through links too? Two that are not there yet are one
 * where they have the same name in the same folder. */
bool cli_same_file(const char *a, const char *b);

/* Would an output replace an input or another output? To be asked before anything is written. Only one
 * output may be standard output ("-"). An
 * input of "-" is standard input; devices and pipes may be used twice. `common`: its report and
 * trace are outputs as well; may be NULL. Returns -1 to go on, else the exit code. */
int cli_check_files(const cli_command *command, const cli_common *common, const cli_file *inputs,
                    size_t input_count, const cli_file *outputs, size_t output_count);

/* Can the outputs be made? To be asked before what takes long; the report and the trace are looked at
 * with the other common options. A folder that is not there yet has to be one that can be made; a name
 * that promises compression is refused. Returns -1 to go on, else the exit code. */
int cli_check_outputs(const cli_command *command, const cli_file *outputs, size_t count);

#endif
