/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the output formats and checks the endings of output names. */
#ifndef CLEAVE_HOST_CLI_ENDINGS_H
#define CLEAVE_HOST_CLI_ENDINGS_H

#include "host/cli/cli.h"

/* Formats of an output; combine several with |. */
enum {
    CLI_CSV = 1,
    CLI_TSV = 2,
    CLI_NPY = 4,
    CLI_FITS = 8,
    CLI_JSON = 16,
    CLI_PNG = 32,
    CLI_HTML = 64,
    CLI_MARKDOWN = 128,
    CLI_LINES = 256,   /* plain lines of text */
    CLI_WEIGHTS = 512, /* .safetensors */
    CLI_XML = 1024,    /* TrackMate's XML */
    CLI_PARQUET = 2048,
    CLI_NO_STREAM = 4096, /* "-" is refused */
    CLI_STREAM = 16384, /* for an input: "-" is standard input (without this flag it is refused) */
    CLI_SAID = 8192,    /* an option gave the format: unknown endings are accepted as well */
};

/* Returns whether the path is "-", which means standard input or output. */
bool cli_is_stream(const char *path);

/* Returns the formats that the ending of a name may stand for; 0: Cleave does not know the ending. */
unsigned cli_formats_of(const char *path);

/* Checks that an output's name has the ending of one of `formats` (0: any name is accepted). A name without an ending
 * is accepted if there is only one format. Devices, pipes and "-" have no endings. Returns -1 to continue, else the
 * exit code after the message. */
int cli_check_ending(const cli_command *command, const char *option, const char *path,
                     unsigned formats);

/* Checks the name of a folder that is still to be created: it must not look like a file's name. */
int cli_check_folder_name(const cli_command *command, const char *option, const char *folder);

#endif
