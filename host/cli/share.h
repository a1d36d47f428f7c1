/* SPDX-License-Identifier: Apache-2.0 */
/* Shares a command's work with the other ranks of an MPI job, or among runs (shards) whose records `cleave merge`
 * combines.
 *
 * Under MPI, jobs share their units, and a command does nothing for that. A shard must find out which part of a
 * command is its own. A command therefore either works in steps (blocks of stars or frames, chunks of texts) and
 * calls cli_share_step before each one, or has one long job, whose units are split (cli_share_split). In both cases
 * it calls cli_share_end after the last shared job and before it writes anything. */
#ifndef CLEAVE_HOST_CLI_SHARE_H
#define CLEAVE_HOST_CLI_SHARE_H

#include "host/cli/cli.h"

enum { CLI_SHARE_OPTIONS = 3 };
/* Fills `table` (CLI_SHARE_OPTIONS + 1 rows) with --shard, --record and --devices-per-rank. */
void cli_share_table(cli_common *common, cli_option *table);

/* Notes the arguments of the run, argv[0] being the command's name; main() calls it. */
void cli_share_arguments(int argc, char **argv);
/* Notes an input file whose digest a record must hold, so that `cleave merge` can recognise the content. A folder or
 * a missing file is ignored. cli_check_files notes its inputs. */
void cli_share_input(const char *path);
/* Checks the options. Returns -1 to continue, else an exit code. */
int cli_share_check(const cli_command *command, const cli_common *common);
/* Makes the context share its jobs. Returns -1 to continue, else an exit code. cli_common_context calls it. */
int cli_share_open(const cli_command *command, clv_context *context);

/* Returns how many of `total` units a step has: `usual`, or fewer if there are shards, so that each shard gets some
 * steps. */
size_t cli_share_length(size_t usual, size_t total);
/* Begins the next step. Returns false if another shard does the step; the caller then skips it. */
bool cli_share_step(void);
/* Splits the units of the next `count` jobs of that name among the shards. After the last one, a shard's run ends
 * with CLV_E_CANCELLED. */
void cli_share_split(const char *job, size_t count);
/* Ends the shared part. In a shard's run this completes the record and returns CLV_E_CANCELLED, for which cli_status
 * prints nothing and returns CLI_SHARD_DONE. In a merging run it checks that all results of the records were used. */
clv_status cli_share_end(void);
/* Makes jobs take their results from these records. Returns CLV_OK, or why the records cannot be merged. Sets *argc
 * and *argv to the arguments of the run that made the records, which stay valid; argv[0] is the command's name. */
clv_status cli_share_merge(const char *const *records, size_t count, int *argc, char ***argv);
/* Removes an incomplete record, and frees what share.c holds; main() calls it at the end. */
void cli_share_close(void);

#endif
