/* SPDX-License-Identifier: Apache-2.0 */
/* A command whose work is shared: with the other ranks of an MPI job, or with other runs (shards) that write records
 * which `cleave merge` puts together.
 *
 * Under MPI a command need not know of it: jobs share their units. A shard must know which part of a command is its
 * own. A command either goes in steps (blocks of stars or frames, chunks of texts) and asks cli_share_step before each
 * one, or it has one long job, whose units are split (cli_share_split). In both cases it calls cli_share_end after the
 * last shared job and before it writes anything. */
#ifndef CLEAVE_HOST_CLI_SHARE_H
#define CLEAVE_HOST_CLI_SHARE_H

#include "host/cli/cli.h"

enum { CLI_SHARE_OPTIONS = 3 };
/* Fills `table` (CLI_SHARE_OPTIONS + 1 rows) with --shard, --record and --devices-per-rank. */
void cli_share_table(cli_common *common, cli_option *table);

/* Notes the arguments of the run, argv[0] being the command's name; main() calls it. */
void cli_share_arguments(int argc, char **argv);
/* Notes an input file whose content a record must be able to recognise. A folder or a missing file is ignored.
 * cli_check_files notes its inputs. */
void cli_share_input(const char *path);
/* Checks the options. Returns -1 to continue, else an exit code. */
int cli_share_check(const cli_command *command, const cli_common *common);
/* Has the context's jobs shared. Returns -1 to continue, else an exit code. cli_common_context calls it. */
int cli_share_open(const cli_command *command, clv_context *context);

/* Returns how many of `total` units a step has: `usual`, or less if there are shards, so that each gets some steps. */
size_t cli_share_length(size_t usual, size_t total);
/* Begins the next step. Returns false if another shard does it: leave it out. */
bool cli_share_step(void);
/* Has the next `count` jobs of that name split by units. The last one ends a shard's run with CLV_E_CANCELLED. */
void cli_share_split(const char *job, size_t count);
/* Ends the shared part. In a shard's run this completes the record and returns CLV_E_CANCELLED, for which cli_status
 * says nothing and returns CLI_SHARD_DONE. In a merging run it checks that all results of the records were used. */
clv_status cli_share_end(void);
/* From now on jobs take their results from these records. Returns CLV_OK or why the records cannot be merged. Sets
 * the arguments of the run that made them, which stay valid: argv[0] is the command's name. */
clv_status cli_share_merge(const char *const *records, size_t count, int *argc, char ***argv);
/* Removes a record that is not complete, and frees what this file holds; main() calls it at the end. */
void cli_share_close(void);

#endif
