/* SPDX-License-Identifier: Apache-2.0 */
/* The command `cleave`: finds the subcommand and runs it. */
#include "host/cli/cli.h"

#include "base/alloc.h"
#include "base/text.h"
#include "host/cli/icd.h"
#include "probe/helper/child.h"

#include <cleave/version.h>

#include <stdlib.h>
#include <string.h>

const cli_command *const cli_commands[] = {
    &cli_probe,   &cli_demo,     &cli_paco,     &cli_blobs,    &cli_link,
    &cli_specfit, &cli_embed,    &cli_tokenize, &cli_finetune, &cli_classify,
    &cli_bench,   &cli_selftest, &cli_cache,    NULL,
};

const cli_option cli_global_options[] = {
    { "icd", CLI_TEXT, NULL, "PATH", "OpenCL drivers: libraries, .icd files or their folders",
      NULL },
    { NULL },
};
const cli_option cli_main_options[] = {
    { "h,help", CLI_FLAG, NULL, NULL, "this text; after a command, its options", NULL },
    { "V,version", CLI_FLAG, NULL, NULL, "the version", NULL },
    { NULL },
};

static void print_help(FILE *out)
{
    fprintf(out, "Usage: cleave [--icd=PATH] COMMAND [OPTION...]\n\n"
                 "Compute on every OpenCL device of this machine, GPU or CPU.\n\nCommands:\n");
    for (const cli_command *const *c = cli_commands; *c; ++c)
        fprintf(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
    fprintf(out, "\nOptions:\n");
    cli_print_options(out, cli_global_options);
    cli_print_options(out, cli_main_options);
    fprintf(
        out,
        "\n`cleave COMMAND --help` explains a command. --icd may be repeated and may hold a comma\n"
        "list; without it the installed drivers are taken, or those in the usual folders where\n"
        "none is installed.\n");
}

static bool is_one_of(const char *text, const char *a, const char *b)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

/* Takes every --icd out of the arguments, before and after the command's name, up to "--".
 * Returns -1 to go on, else the exit code. */
static int take_icds(int *argc, char **argv, const char **icds, size_t room, size_t *count)
{
    int kept = 1;
    for (int i = 1; i < *argc; ++i) {
        const bool alone = strcmp(argv[i], "--icd") == 0;
        if (strcmp(argv[i], "--") == 0) {
            while (i < *argc)
                argv[kept++] = argv[i++];
        } else if (!alone && !clv_starts_with(argv[i], "--icd=")) {
            argv[kept++] = argv[i];
        } else if (alone && i + 1 == *argc) {
            fprintf(stderr, "cleave: --icd needs a value\n");
            return CLI_USAGE;
        } else if (*count < room) {
            icds[(*count)++] = alone ? argv[++i] : argv[i] + strlen("--icd=");
        } else {
            fprintf(stderr, "cleave: more than %zu times --icd\n", room);
            return CLI_USAGE;
        }
    }
    argv[kept] = NULL;
    *argc = kept;
    return -1;
}

static const cli_command *find(const char *name)
{
    for (const cli_command *const *c = cli_commands; *c; ++c)
        if (strcmp((*c)->name, name) == 0) return *c;
    return strcmp(name, cli_documents.name) == 0 ? &cli_documents : NULL;
}

/* Help, what needs no device, and a helper of the probe whose parent has done it, leave the
 * environment alone. */
static bool needs_drivers(const cli_command *command, int argc, char **argv)
{
    if (command == &cli_documents || command == &cli_tokenize ||
        (argc > 2 && strcmp(argv[2], CLV_HELPER_MARK) == 0))
        return false;
    for (int i = 2; i < argc; ++i)
        if (is_one_of(argv[i], "--help", "-h")) return false;
    return true;
}

int main(int argc, char **argv)
{
    const char *icds[32];
    size_t icd_count = 0;
    setenv("HWLOC_HIDE_ERRORS", "2", 0); /* the probe's report says what is unknown */
    int code = take_icds(&argc, argv, icds, CLV_LEN(icds), &icd_count);
    if (code >= 0) return code;
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (is_one_of(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return CLI_OK;
    }
    if (is_one_of(argv[1], "--version", "-V")) {
        printf("cleave %s\n", clv_version());
        return CLI_OK;
    }
    const cli_command *command = find(argv[1]);
    if (!command) {
        fprintf(stderr, "cleave: no command \"%s\"; `cleave --help` lists them\n", argv[1]);
        return CLI_USAGE;
    }
    if (needs_drivers(command, argc, argv) && (code = cli_ready_drivers(icds, icd_count)) >= 0)
        return code;
    return command->run(argc - 1, argv + 1);
}
