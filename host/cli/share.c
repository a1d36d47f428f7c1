/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses how a command shares its work (ranks, a shard, a merging run), and counts its steps. */
#include "host/cli/share.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "host/cli/cluster.h"
#include "host/cli/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_SHARDS = 100000, STEPS = 4 /* fewest steps per shard, if there are enough units */ };

/* The state of sharing; a process runs only one command. */
static struct {
    enum { ALONE, SHARD, MERGE } kind;
    cli_place place;
    cli_shard shard;
    cli_replay replay;
    clv_spread spread;
    cli_record_head head; /* arguments and inputs of this run */
    size_t input_room;
    const char *record; /* path of this shard's record */
    char **line; /* of a merging run: pointers to the records' arguments, which parsing reorders */
    uint64_t steps;
} share;

/* ---- what the run is ------------------------------------------------------------------------------ */

void cli_share_table(cli_common *c, cli_option *table)
{
    const cli_option rows[] = {
        { "shard", CLI_TEXT, &c->shard, "I/N",
          "compute only part I of N, counted from 1, and write its results to --record for `cleave "
          "merge`" },
        { "record", CLI_TEXT, &c->record, "FILE",
          "with --shard: file for the results of this part" },
        { "devices-per-rank", CLI_UINT, &c->devices_per_rank, "N",
          "under MPI: each rank on a machine uses N devices of its own [all]" },
        { NULL },
    };
    _Static_assert(sizeof rows / sizeof *rows == CLI_SHARE_OPTIONS + 1, "CLI_SHARE_OPTIONS");
    memcpy(table, rows, sizeof rows);
}

/* Returns whether the argument is the option --name or its beginning, which stands for the option, too. *apart says
 * whether the next argument is its value. */
static bool is_option(const char *argument, const char *name, bool *apart)
{
    if (strncmp(argument, "--", 2) != 0) return false;
    const size_t length = strcspn(argument + 2, "=");
    *apart = !argument[2 + length];
    return length && strncmp(argument + 2, name, length) == 0;
}

/* Keeps the arguments without --shard and --record, which differ from shard to shard. */
void cli_share_arguments(int argc, char **argv)
{
    bool operands = false; /* no option follows */
    share.head.argv = clv_zalloc((size_t)argc + 1, sizeof *share.head.argv);
    for (int i = 0; share.head.argv && i < argc; ++i) {
        bool apart = false;
        operands = operands || strcmp(argv[i], "--") == 0;
        if (!operands &&
            (is_option(argv[i], "shard", &apart) || is_option(argv[i], "record", &apart))) {
            i += apart;
            continue;
        }
        char *copy = clv_strdup(argv[i]);
        if (!copy) return;
        share.head.argv[share.head.argc++] = copy;
    }
}

static bool digest_file(const char *path, char hex[65])
{
    struct stat facts;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool good = file >= 0 && fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
    const size_t bytes = good ? (size_t)facts.st_size : 0;
    void *data = bytes ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
    if (file >= 0) close(file);
    if (!good || data == MAP_FAILED) return false;
    const clv_digest digest = clv_sha256(data ? data : "", bytes);
    clv_digest_hex(&digest, hex);
    if (data) munmap(data, bytes);
    return true;
}

void cli_share_input(const char *path)
{
    cli_record_head *h = &share.head;
    if (share.kind == ALONE || !path) return;
    for (size_t i = 0; i < h->input_count; ++i)
        if (strcmp(h->inputs[i].path, path) == 0) return;
    if (!clv_reserve(&h->inputs, &share.input_room, h->input_count + 1, sizeof *h->inputs)) return;
    cli_record_input *in = &h->inputs[h->input_count];
    in->path = digest_file(path, in->digest) ? clv_strdup(path) : NULL;
    if (in->path) ++h->input_count;
}

static bool read_shard(const char *text, unsigned *number, unsigned *count)
{
    const char *slash = strchr(text, '/');
    char first[16];
    uint64_t i, n;
    if (!slash || (size_t)(slash - text) >= sizeof first) return false;
    memcpy(first, text, (size_t)(slash - text));
    first[slash - text] = '\0';
    if (!clv_parse_u64(first, &i) || !clv_parse_u64(slash + 1, &n) || !i || i > n ||
        n > MOST_SHARDS)
        return false;
    *number = (unsigned)i, *count = (unsigned)n;
    return true;
}

/* Refuses to run if Slurm has started copies that would all do the same work. */
static int refuse_copies(const cli_command *command)
{
    int task, tasks;
    if (!cli_cluster_copies(&task, &tasks)) return -1;
    if (task) return CLI_USAGE; /* only the first copy prints the error */
    return cli_error(
        command, CLI_USAGE,
        "srun runs this command %d times, but its tasks know nothing of each other, so "
        "that each would do all the work; start them by mpirun, by srun --mpi=pmix "
        "(Open MPI) or by srun --mpi=pmi2 (MPICH), give each a --shard, or set "
        "CLEAVE_MPI=off if each task has a command of its own",
        tasks);
}

int cli_share_check(const cli_command *command, const cli_common *c)
{
    if (c->devices_per_rank && c->sub_devices)
        return cli_error(
            command, CLI_USAGE,
            "--devices-per-rank and --sub-devices cannot be used together: ranks take whole "
            "devices; leave one of the two out");
    if (!c->shard && !c->record) return refuse_copies(command);
    if (!c->shard || !c->record)
        return cli_error(command, CLI_USAGE, "%s is missing: %s", c->shard ? "--record" : "--shard",
                         c->shard
                             ? "the file for the results of this shard, such as --record part-1"
                             : "the part to compute, such as --shard 1/4");
    if (cli_cluster_ranks() > 1)
        return cli_error(command, CLI_USAGE,
                         "--shard and MPI cannot be used together: this is rank %d of %d; set "
                         "CLEAVE_MPI=off to run shards under a launcher",
                         cli_cluster_rank(), cli_cluster_ranks());
    if (!read_shard(c->shard, &share.head.shard, &share.head.shards))
        return cli_error(command, CLI_USAGE,
                         "--shard is \"%s\", but it must be I/N, such as 2/4: I from 1 to N, N at "
                         "most %d",
                         c->shard, MOST_SHARDS);
    clv_outputs_discard(false);
    const clv_status status = clv_file_check(c->record);
    clv_outputs_discard(true);
    if (status) return cli_error(command, CLI_FAILED, "--record: %s", clv_error_message());
    share.kind = SHARD, share.record = c->record;
    return -1;
}

/* ---- the context ---------------------------------------------------------------------------------- */

static clv_status begin_record(void)
{
    share.shard = (cli_shard){ .place = &share.place,
                               .number = share.head.shard,
                               .count = share.head.shards };
    share.spread = cli_shard_spread(&share.shard);
    return cli_shard_begin(&share.shard, share.record, &share.head);
}

/* Compares the inputs of this run with those of the shards. */
static clv_status compare_inputs(void)
{
    const cli_record_head *then = &share.replay.records[0].head, *now = &share.head;
    for (size_t i = 0; i < then->input_count; ++i) {
        const cli_record_input *was = &then->inputs[i], *is = NULL;
        for (size_t k = 0; k < now->input_count && !is; ++k)
            if (strcmp(now->inputs[k].path, was->path) == 0) is = &now->inputs[k];
        if (!is)
            return clv_fail(CLV_E_IO,
                            "%s was an input of the shards and cannot be found; merge in the "
                            "folder in which the shards were run",
                            was->path);
        if (strcmp(is->digest, was->digest) != 0)
            return clv_fail(CLV_E_FORMAT, "%s has changed since the shards were run", was->path);
    }
    return CLV_OK;
}

int cli_share_open(const cli_command *command, clv_context *context)
{
    static bool opened;
    clv_status status = CLV_OK;
    const clv_spread *spread = &share.spread;
    if (share.kind == ALONE)
        status = cli_cluster_spread(&spread);
    else if (!opened)
        status = share.kind == SHARD ? begin_record() : compare_inputs();
    opened = true;
    if (status) return cli_input_status(command, status);
    if (spread && spread->begin) clv_spread_set(context, spread);
    return -1;
}

/* ---- steps ---------------------------------------------------------------------------------------- */

size_t cli_share_length(size_t usual, size_t total)
{
    const size_t shards = share.kind == SHARD   ? share.head.shards
                          : share.kind == MERGE ? share.replay.records[0].head.shards
                                                : 0;
    return shards ? CLV_MIN(CLV_MAX(total / (STEPS * shards), (size_t)1), usual) : usual;
}

bool cli_share_step(void)
{
    if (share.kind == ALONE) return true;
    share.place.in_step = true;
    share.place.step = share.steps++;
    share.place.job = 0;
    return share.kind == MERGE || share.place.step % share.head.shards == share.head.shard - 1;
}

void cli_share_split(const char *job, size_t count)
{
    share.place = (cli_place){ .split = job, .split_left = count };
}

clv_status cli_share_end(void)
{
    share.place = (cli_place){ 0 };
    if (share.kind == MERGE) return cli_replay_check(&share.replay);
    return share.kind == SHARD ? cli_shard_end(&share.shard) : CLV_OK;
}

/* ---- merging -------------------------------------------------------------------------------------- */

clv_status cli_share_merge(const char *const *records, size_t count, int *argc, char ***argv)
{
    share.replay.place = &share.place;
    CLV_TRY(cli_replay_open(&share.replay, records, count));
    share.kind = MERGE;
    share.spread = cli_replay_spread(&share.replay);
    const cli_record_head *head = &share.replay.records[0].head;
    share.line = clv_zalloc((size_t)head->argc + 1, sizeof *share.line);
    if (!share.line)
        return clv_fail(CLV_E_MEMORY, "merge: not enough memory for %d arguments", head->argc);
    memcpy(share.line, head->argv, (size_t)head->argc * sizeof *share.line);
    *argc = head->argc, *argv = share.line;
    return CLV_OK;
}

void cli_share_close(void)
{
    cli_shard_abandon(&share.shard);
    cli_replay_close(&share.replay);
    share.kind = ALONE;
    for (int i = 0; i < share.head.argc; ++i)
        clv_free(share.head.argv[i]);
    for (size_t i = 0; i < share.head.input_count; ++i)
        clv_free(share.head.inputs[i].path);
    clv_free(share.head.argv), clv_free(share.head.inputs), clv_free(share.line);
    share.head = (cli_record_head){ 0 };
}
