/* SPDX-License-Identifier: Apache-2.0 */
/* The command `cleave`: finds the subcommand and runs it. */
#include "host/cli/cli.h"

#include "base/alloc.h"
#include "base/text.h"
#include "host/cli/cluster.h"
#include "host/cli/icd.h"
#include "host/cli/kernels.h"
#include "host/cli/nearest.h"
#include "host/cli/share.h"
#include "probe/helper/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_help(FILE *out)
{
    cli_say(out, "Usage: cleave [--icd=PATH] COMMAND [OPTION...]\n\n"
                 "Compute on every OpenCL device of this machine, GPU or CPU.\n\nCommands:\n");
    for (const cli_command *const *c = cli_commands; *c; ++c)
        cli_say(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
    cli_say(out, "\nOptions:\n");
    cli_print_options(out, cli_global_options);
    cli_print_options(out, cli_main_options);
    cli_say(out, "\n`cleave COMMAND --help` explains a command. You may give --icd several times, "
                 "or with\na comma-separated list; without it Cleave uses the installed drivers, "
                 "or, if\nnone is "
                 "installed, those that it finds in the usual folders.\n\nExit codes:\n");
    for (const cli_exit_code *e = cli_exit_codes; e->text; ++e)
        cli_say(out, "  %-4d %s\n", e->code, e->text);
}

static bool is_one_of(const char *text, const char *a, const char *b)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

/* Removes every --icd from the arguments, before and after the command's name, up to "--". Returns -1 to continue, else
 * the exit code. */
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
            cli_say(stderr, "cleave: --icd needs a value: --icd=PATH\n");
            return CLI_USAGE;
        } else if (*count < room) {
            const char *path = alone ? argv[++i] : argv[i] + strlen("--icd=");
            if (!*path) {
                cli_say(stderr, "cleave: --icd is \"\", but it must be the path of a driver\n");
                return CLI_USAGE;
            }
            icds[(*count)++] = path;
        } else {
            cli_say(stderr,
                    "cleave: --icd is given more than %zu times; give one --icd with a "
                    "comma-separated list\n",
                    room);
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

static int unknown(const char *name)
{
    const char *names[32];
    size_t count = 0;
    if (*name == '-') {
        cli_say(stderr,
                "cleave: there is no option %s before a command; put the options of a command "
                "after its name: cleave COMMAND %s\n",
                name, name);
        return CLI_USAGE;
    }
    for (const cli_command *const *c = cli_commands; *c && count < CLV_LEN(names); ++c)
        names[count++] = (*c)->name;
    const char *near = cli_nearest(name, names, count);
    cli_say(stderr, "cleave: there is no command \"%s\"; ", name);
    if (near) cli_say(stderr, "did you mean \"%s\"? ", near);
    cli_say(stderr, "`cleave --help` lists all commands\n");
    return CLI_USAGE;
}

/* Returns whether the environment must be prepared for drivers. It is not for help, for commands that need no device,
 * and for a helper of the probe, whose parent has done it already. */
static bool needs_drivers(const cli_command *command, int argc, char **argv)
{
    if (command == &cli_documents || command == &cli_tokenize || command == &cli_detokenize ||
        command == &cli_link || command == &cli_cache ||
        (argc > 2 && strcmp(argv[2], CLV_HELPER_MARK) == 0))
        return false;
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; ++i)
        if (is_one_of(argv[i], "--help", "-h") || is_one_of(argv[i], "--version", "-V"))
            return false;
    return true;
}

/* Returns whether the ranks of an MPI job can share the command's work. */
static bool shares_work(const cli_command *command)
{
    return command == &cli_paco || command == &cli_blobs || command == &cli_specfit ||
           command == &cli_embed || command == &cli_search || command == &cli_classify ||
           command == &cli_rank;
}

static int run_command(int argc, char **argv, const char *const *icds, size_t icd_count)
{
    const cli_command *command = find(argv[1]);
    if (!command) return unknown(argv[1]);
    const bool works = needs_drivers(command, argc, argv);
    int code = (works || command == &cli_link) && command != &cli_probe
                   ? cli_cluster_join(shares_work(command))
                   : -1;
    if (code < 0 && works) code = cli_ready_drivers(icds, icd_count);
    cli_share_arguments(argc - 1, argv + 1);
    if (code < 0) code = command->run(argc - 1, argv + 1);
    cli_share_close();
    if (code == CLI_SHARD_DONE) code = CLI_OK;
    cli_kernels_seal(code != CLI_WRONG); /* before MPI may end the process */
    cli_cluster_leave(code);
    return code;
}

/* Handles `cleave help paco`, which is the same as `cleave paco --help`. */
static int help(const char *name)
{
    char copy[32], option[] = "--help";
    char *arguments[] = { copy, option, NULL };
    if (!name) {
        print_help(stdout);
        return CLI_OK;
    }
    const cli_command *command = find(name);
    if (!command) return unknown(name);
    clv_copy_string(copy, sizeof copy, name);
    return command->run(2, arguments);
}

/* If a caller closed a standard stream, our own files must not get its number. This fills the numbers 0 to 2 with a
 * /dev/null that cannot be used in the stream's direction. */
static void occupy_streams(void)
{
    for (int number = 0; number <= STDERR_FILENO; ++number)
        if (fcntl(number, F_GETFD) < 0)
            (void)open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Flushes the output: a full disk, a closed output or a lost line must not look like success. */
static int finish(int code)
{
    errno = 0;
    const bool lost = ferror(stdout) || fflush(stdout);
    if (code == CLI_OK && !lost && cli_told_less()) {
        cli_say(stderr, "cleave: not enough memory for all of the output\n");
        return CLI_FAILED;
    }
    if (!lost || code != CLI_OK) return code;
    cli_say(stderr, "cleave: cannot write to standard output: %s\n",
            errno ? strerror(errno) : "it was closed or is full");
    return CLI_FAILED;
}

int main(int argc, char **argv)
{
    const char *icds[32];
    size_t icd_count = 0;
    occupy_streams();
    cli_watch_signals();
    setenv("HWLOC_HIDE_ERRORS", "2", 0); /* the probe's report lists what is unknown */
    const int code = take_icds(&argc, argv, icds, CLV_LEN(icds), &icd_count);
    if (code >= 0) return code;
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (is_one_of(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0)
        return finish(help(argv[2]));
    if (is_one_of(argv[1], "--version", "-V") || strcmp(argv[1], "version") == 0)
        return finish(cli_print_version());
    return finish(run_command(argc, argv, icds, icd_count));
}
