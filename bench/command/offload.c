/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave bench offload`: small calls on the host, on the device, and on the side that they choose themselves. */
#include "bench/command/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "bench/offload/grid.h"
#include "bench/offload/ways.h"
#include "host/cli/cli.h"

#include <stdio.h>

enum { ROUNDS = 5 };

/* Lists every second point of the grid. The points of a first pass lie farther apart, so that a run that ends early
 * has all operations. */
static size_t list_cases(const bench_sizes *sizes, bench_case *cases, size_t room)
{
    enum { STEP = 4 };
    static const int passes[] = { 0, 2 };
    size_t count = 0;
    if (sizes->given_count) return 0;
    for (size_t pass = 0; pass < CLV_LEN(passes); ++pass)
        for (int i = passes[pass]; i < grid_points() && count < room; i += STEP) {
            grid_point p = { 0 };
            bench_case *c = &cases[count++];
            grid_at(i, &p);
            *c = (bench_case){ .workload = &bench_offload, .size = { p.size }, .variant = i };
            snprintf(c->name, sizeof c->name, "%s, %zu", grid_name(p.what), p.size);
        }
    return count;
}

static double effort(const bench_case *c)
{
    return (double)c->size[0];
}

/* Times rounds until the figure's time is used up. The first call on the device, which compiles, does not count. */
static clv_status time_rounds(const bench_run *run, grid_point *p, judge_rounds *rounds)
{
    const bench_plan *plan = &run->bench->plan;
    ways_count turns = { 0 };
    double warm;
    bool picked;
    CLV_TRY(ways_turn(p, JUDGE_DEVICE, &warm, &picked));
    const double started = clv_now();
    while (rounds->count < ROUNDS) {
        const double spent = clv_now() - started;
        if (rounds->count && spent + spent / rounds->count > plan->figure_s) break;
        if (cli_interrupted()) return clv_fail(CLV_E_CANCELLED, "interrupted");
        CLV_TRY(ways_round(p, rounds, &turns));
    }
    return CLV_OK;
}

static void send(bench_run *run, size_t case_index, const judge_rounds *rounds)
{
    const char *device = run->bench->parties[run->party].selection;
    const size_t count = (size_t)rounds->count;
    char host[64], chosen[64], note[80];
    int picked = 0;
    for (size_t i = 0; i < count; ++i)
        picked += rounds->picked[i];
    snprintf(host, sizeof host, "host side (device %.20s)", device);
    snprintf(chosen, sizeof chosen, "chosen side (device %.20s)", device);
    snprintf(note, sizeof note, "calls chose the device in %d of %zu rounds", picked, count);
    bench_send_for(run, host, case_index, rounds->took[JUDGE_HOST], count);
    bench_send_for(run, chosen, case_index, rounds->took[JUDGE_AUTO], count);
    bench_send_note(run, case_index, note);
    bench_send(run, case_index, BENCH_COMPUTE, rounds->took[JUDGE_DEVICE], count);
}

static clv_status measure(bench_run *run, size_t case_index)
{
    judge_rounds rounds = { 0 };
    grid_point p = { .context = run->context,
                     .memory = clv_alloc_pages(grid_room() * sizeof(float)) };
    if (!p.memory) return clv_fail(CLV_E_MEMORY, "not enough memory for the operands of calls");
    grid_at(run->bench->cases[case_index].variant, &p);
    clv_status status = grid_set_up(&p)
                            ? time_rounds(run, &p, &rounds)
                            : clv_fail(CLV_E_MEMORY, "not enough memory for the operands of calls");
    if (!status) send(run, case_index, &rounds);
    grid_clean_up(&p);
    clv_free(p.memory);
    return status;
}

const bench_workload bench_offload = {
    .name = "offload",
    .title = "Small calls: on the device, on the host, and on the side that they choose",
    .cases = list_cases,
    .effort = effort,
    .measure = measure,
    .alone = true,
};
