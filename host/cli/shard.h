/* SPDX-License-Identifier: Apache-2.0 */
/* Shares the jobs of one command among several runs ("shards"): a shard writes its results to a record, and a merging
 * run takes all results from the records. Both kinds of run count the shared jobs by step and by number, so that the
 * merging run finds the results of a job again. */
#ifndef CLEAVE_HOST_CLI_SHARD_H
#define CLEAVE_HOST_CLI_SHARD_H

#include "host/cli/record.h"
#include "runtime/job/spread.h"

/* The step and job that a run has reached; share.c sets them. */
typedef struct cli_place {
    bool in_step;       /* jobs belong to step `step`, from 0 */
    uint64_t step, job; /* `job` counts the shared jobs of the step */
    const char *split;  /* the name of the jobs that are split by units; NULL: none */
    size_t split_left;  /* how many such jobs are still to come */
} cli_place;

typedef struct cli_shard {
    cli_place *place;
    cli_record_writer writer;
    bool writes;
    unsigned number, count; /* number of the shard, from 1, and of all shards */
    cli_record_entry entry; /* entry of the job that runs */
    size_t first, left;     /* the units that are still to be leased */
} cli_shard;

typedef struct cli_replay {
    cli_place *place;
    cli_record *records;
    size_t record_count;
    struct cli_replay_item *items; /* all entries, in the order in which they are needed */
    size_t item_count, at, end;    /* [at, end) are the entries of the job that runs */
    size_t used;
} cli_replay;

clv_status cli_shard_begin(cli_shard *shard, const char *path, const cli_record_head *head);
clv_spread cli_shard_spread(cli_shard *shard);
/* Completes the record; returns CLV_E_CANCELLED if that succeeds, since nothing more is to be done. */
clv_status cli_shard_end(cli_shard *shard);
/* Returns whether the status means that a shard's run has ended as planned, which is no error. */
bool cli_shard_is_done(clv_status status);
/* Returns whether a failure of this run may be that of writing its record, which is no fault of an input. */
bool cli_shard_cannot_write(void);
void cli_shard_abandon(cli_shard *shard); /* removes a record that is not complete */
clv_spread cli_replay_spread(cli_replay *replay);
/* Opens the records and checks that they belong together, are complete and do not overlap. */
clv_status cli_replay_open(cli_replay *replay, const char *const *paths, size_t count);
/* Checks that everything in the records was used. */
clv_status cli_replay_check(const cli_replay *replay);
void cli_replay_close(cli_replay *replay);

#endif
