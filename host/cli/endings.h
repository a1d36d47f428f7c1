/* SPDX-License-Identifier: Apache-2.0 */
/* What outputs may be called: the one table of formats and the endings of their names. */
#ifndef CLEAVE_HOST_CLI_ENDINGS_H
#define CLEAVE_HOST_CLI_ENDINGS_H

#include "host/cli/cli.h"

/* Formats of an output; several may be joined by |. */
enum {
    CLI_CSV = 1,
    CLI_TSV = 2,
    CLI_NPY = 4,
    CLI_FITS = 8,
    CLI_JSON = 16,
    CLI_PNG = 32,
    CLI_HTML = 64,
    CLI_MARKDOWN = 128,
    CLI_LINES = 256,      /* of text */
    CLI_WEIGHTS = 512,    /* .safetensors: never an output's own name, but known */
    CLI_XML = 1024,       /* TrackMate's */
    CLI_NO_STREAM = 4096, /* "-" is refused */
    CLI_STREAM = 16384,   /* of an input: "-" is standard input, elsewhere it is refused */
    CLI_SAID = 8192, /* an option said the format: endings that mean nothing are good as well */
};

/* "-": standard input or output, whichever is meant. */
bool cli_is_stream(const char *path);

/* The formats that the ending of a name may mean; 0: it is none that Cleave knows. */
unsigned cli_formats_of(const char *path);

/* Whether an output's name has the ending of one of `formats` (0: any name will do). A name without an
 * ending does where there is one format only. Devices, pipes and "-" have no endings. Returns -1 to go on,
 * else the exit code after the message. */
int cli_check_ending(const cli_command *command, const char *option, const char *path,
                     unsigned formats);

/* The same for a folder that is still to be made: it must not have the name of a file. */
int cli_check_folder_name(const cli_command *command, const char *option, const char *folder);

#endif
