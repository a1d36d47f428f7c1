/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave merge`: puts the records of all shards together. It runs the shards' command again with results from the
 * records, so that the outputs have the same bytes as without shards. */
#include "host/cli/share.h"

#include "base/error.h"
#include "base/text.h"

#include <string.h>

static const cli_command *find(const char *name)
{
    static const cli_command *const shared[] = { &cli_paco,  &cli_blobs,  &cli_specfit,
                                                 &cli_embed, &cli_search, &cli_classify };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; ++i)
        if (strcmp(shared[i]->name, name) == 0) return shared[i];
    return NULL;
}

/* Prints the command line from the records, which runs now. */
static void tell(int shards, int argc, char **argv)
{
    clv_text line = { 0 };
    for (int i = 0; i < argc; ++i)
        clv_text_add(&line, " %s", argv[i]);
    cli_say(stderr, "merging %d shard%s of: cleave%s\n", shards, shards == 1 ? "" : "s",
            clv_text_get(&line));
    clv_text_clear(&line);
}

static int run(int argc, char **argv)
{
    bool quiet = false;
    const cli_option own[] = {
        { "q,quiet", CLI_FLAG, &quiet, NULL, "print no messages except errors" }, { NULL }
    };
    const cli_option *const tables[] = { own, NULL };
    char **arguments;
    int operands, code = cli_parse(&cli_merge, tables, argc, argv, &operands), count;
    if (code >= 0) return code;
    if (operands < 1)
        return cli_error(&cli_merge, CLI_USAGE,
                         "RECORD is missing: give all of the files that --record has written");
    code = cli_input_status(&cli_merge, cli_share_merge((const char *const *)argv + 1,
                                                        (size_t)operands, &count, &arguments));
    if (code) return code;
    const cli_command *command = find(arguments[0]);
    if (!command)
        return cli_error(&cli_merge, CLI_USAGE,
                         "%s was written by `cleave %s`, which has no shards", argv[1],
                         arguments[0]);
    if (!quiet) tell(operands, count, arguments);
    return command->run(count, arguments);
}

const cli_command cli_merge = {
    .name = "merge",
    .summary = "put the records of shards together",
    .operands = "RECORD...",
    .description =
        "Reads all N records that `cleave COMMAND --shard I/N --record RECORD` has written, in "
        "any\n"
        "order, and checks that they are complete, undamaged, and from one command and one set of\n"
        "inputs. Then writes the outputs of that command, with the same bytes as without shards. "
        "It\n"
        "needs the same inputs in the same places: run it in the same folder.",
    .run = run,
};
