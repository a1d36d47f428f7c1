/* SPDX-License-Identifier: Apache-2.0 */
/* The command `cleave`: finds the subcommand and runs it. */
#include "host/cli/cli.h"

#include <cleave/version.h>

#include <stdlib.h>
#include <string.h>

const cli_command *const cli_commands[] = {
    &cli_probe, NULL,
};

static void print_help(FILE *out)
{
    fprintf(out, "Usage: cleave COMMAND [OPTION...]\n\n"
                 "Compute on every OpenCL device of this machine, GPU or CPU.\n\nCommands:\n");
    for (const cli_command *const *c = cli_commands; *c; ++c)
        fprintf(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
    fprintf(out, "\n`cleave COMMAND --help` explains a command, `cleave --version` prints the version.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("cleave %s\n", clv_version());
        return CLI_OK;
    }
    for (const cli_command *const *c = cli_commands; *c; ++c)
        if (strcmp((*c)->name, argv[1]) == 0) return (*c)->run(argc - 1, argv + 1);
    fprintf(stderr, "cleave: no command \"%s\"; `cleave --help` lists them\n", argv[1]);
    return CLI_USAGE;
}
