/* SPDX-License-Identifier: Apache-2.0 */
/* sleepers UNITS MS SPEED,...: a job whose units sleep, shared by the ranks of mpirun, so that the processor is not the
 * limit. Rank r sleeps MS / SPEED[r modulo their number] for a unit. Rank 0 prints the efficiency: the time of an ideal
 * split, divided by the time that the job took.
 *
 * sleepers draw SECONDS: all ranks but rank 0, which answers, draw tickets without a pause, and print how many they
 * got in a second. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "host/cli/cluster.h"
#include "runtime/record/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static size_t units;
static double unit_s;

static double mark_of(size_t unit)
{
    return 1.5 * (double)unit + 1;
}

static clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    (void)slot, (void)first, (void)count, (void)user;
    return clv_fail(CLV_E_DEVICE, "sleepers use no device");
}

static clv_status reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    void *out;
    (void)user;
    CLV_TRY(clv_slot_result_create(slot, 0, count * sizeof(double), &out));
    for (size_t i = 0; i < count; ++i) {
        const struct timespec time = { (time_t)unit_s,
                                       (long)((unit_s - (double)(time_t)unit_s) * 1e9) };
        nanosleep(&time, NULL);
        ((double *)out)[i] = mark_of(first + i);
    }
    return CLV_OK;
}

static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    double *found = user;
    const double *result = clv_slot_result(slot, 0);
    for (size_t i = 0; i < count; ++i)
        found[first + i] += result[i]; /* twice committed would show */
    return CLV_OK;
}

/* Draws tickets of a job that no rank computes. */
static int draw(double seconds)
{
    const clv_spread *spread = NULL;
    const clv_job endless = { .size = sizeof endless, .name = "draw", .units = (size_t)1 << 40 };
    bool shared;
    char ready = 0;
    size_t first, count, drawn = 0;
    clv_status status = cli_cluster_spread(&spread);
    if (status || !spread || spread->begin(spread->self, &endless, &shared)) return 1;
    cli_cluster_tell(&ready, 1);
    const double started = clv_now();
    while (!status && clv_now() - started < seconds) {
        const struct timespec pause = { 0, 10000000 };
        if (!cli_cluster_rank())
            nanosleep(&pause, NULL);
        else if (!(status = spread->lease(spread->self, &first, &count)))
            ++drawn;
    }
    printf("rank %d: %.0f tickets/s\n", cli_cluster_rank(), (double)drawn / (clv_now() - started));
    fflush(stdout);
    cli_cluster_leave(status);
    return status;
}

int main(int argc, char **argv)
{
    uint64_t number;
    double speeds[64] = { 1 }, ms, total = 0;
    size_t speed_count = 0;
    if (argc == 3 && strcmp(argv[1], "draw") == 0 && clv_parse_double(argv[2], &ms))
        return cli_cluster_join(true) >= 0 ? 2 : draw(ms);
    if (argc != 4 || !clv_parse_u64(argv[1], &number) || !clv_parse_double(argv[2], &ms)) return 2;
    for (char *word = strtok(argv[3], ","); word && speed_count < 64; word = strtok(NULL, ","))
        if (!clv_parse_double(word, &speeds[speed_count++])) return 2;
    units = (size_t)number;
    if (cli_cluster_join(true) >= 0) return 2;
    const size_t ranks = (size_t)cli_cluster_ranks(), rank = (size_t)cli_cluster_rank();
    for (size_t r = 0; r < ranks; ++r)
        total += speeds[r % speed_count];
    unit_s = ms / 1e3 / speeds[rank % speed_count];
    const clv_context_options options = { .size = sizeof options, .mode = CLV_MODE_REFERENCE };
    const clv_spread *spread;
    clv_context *context = NULL;
    double *found = clv_zalloc(units, sizeof *found);
    const clv_job job = { .size = sizeof job,
                          .name = "sleep",
                          .units = units,
                          .enqueue = enqueue,
                          .commit = commit,
                          .reference = reference,
                          .unit_cost.memory_bytes = 8 };
    clv_status status = found ? clv_context_create(&options, &context) : CLV_E_MEMORY;
    if (!status) status = cli_cluster_spread(&spread);
    if (!status) {
        char ready = 0;
        context->plain_threads = 1;
        clv_spread_set(context, spread);
        cli_cluster_tell(&ready, 1); /* rank 0 begins last */
    }
    const double started = clv_now();
    if (!status) status = clv_job_run(context, &job, found, NULL);
    const double took = clv_now() - started;
    size_t wrong = 0;
    for (size_t i = 0; i < units && !status; ++i)
        wrong += found[i] != mark_of(i);
    if (status) fprintf(stderr, "%s\n", clv_error_message());
    if (!rank && !status)
        printf("%.3f s, efficiency %.3f, %zu wrong\n", took,
               ms / 1e3 * (double)units / total / took, wrong);
    clv_context_free(context);
    clv_free(found);
    cli_cluster_leave(status || wrong);
    return status || wrong;
}
