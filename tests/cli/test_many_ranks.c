/* SPDX-License-Identifier: Apache-2.0 */
/* A thousand ranks on a virtual clock: they ask rank 0 for ranges as cluster/mpi.c has it, and cli_divide or, with
 * tickets, cli_tickets_find gives them. Every unit is computed once; ranks end together; and rank 0 can serve them.
 *
 * `test_many_ranks table` prints the figures that docs/clusters.md quotes. */
#include "base/alloc.h"
#include "host/cli/ranges.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds: from one look for messages to the next, on both sides; what rank 0 needs for a message, by
 * `sleepers draw`; a message's way. */
static const double look = 150e-6, serve = 17e-6, way = 50e-6;

typedef struct scene {
    size_t ranks, units, least;
    double unit_s;        /* at speed 1 */
    double scatter;       /* of the times of units, as a part of their mean */
    const double *speeds; /* of rank r: speeds[r modulo speed_count] */
    size_t speed_count;
    bool tickets;      /* instead of ranges by speed */
    double efficiency; /* that the test expects at least; 0: 0.95 */
} scene;

typedef struct outcome {
    double efficiency, seconds, most; /* messages in the busiest tenth of a second, as a rate */
    size_t messages, wrong;           /* units that were not computed once */
} outcome;

/* A rank whose request reaches rank 0 at `time`. */
typedef struct request {
    double time;
    size_t rank;
} request;

static void sift_down(request *heap, size_t count)
{
    for (size_t i = 0;;) {
        size_t child = 2 * i + 1;
        if (child >= count) return;
        if (child + 1 < count && heap[child + 1].time < heap[child].time) ++child;
        if (heap[i].time <= heap[child].time) return;
        const request kept = heap[i];
        heap[i] = heap[child], heap[child] = kept;
        i = child;
    }
}

static double speed_of(const scene *s, size_t rank)
{
    return s->speeds ? s->speeds[rank % s->speed_count] : 1;
}

static void count_message(double time, size_t **tenths, size_t *room)
{
    const size_t at = (size_t)(time * 10), before = *room;
    if (!clv_reserve(tenths, room, at + 1, sizeof **tenths)) abort();
    if (*room > before) memset(*tenths + before, 0, (*room - before) * sizeof **tenths);
    ++(*tenths)[at];
}

static outcome simulate(const scene *s)
{
    request *heap = clv_zalloc(s->ranks, sizeof *heap);
    cli_tickets *tickets = clv_zalloc(s->ranks, sizeof *tickets);
    cli_division *division = cli_division_create(s->ranks);
    cli_wish *wishes = clv_zalloc(s->ranks, sizeof *wishes);
    unsigned char *done = clv_zalloc(s->units, 1);
    size_t *tenths = NULL, room = 0, waiting = s->ranks;
    uint64_t state = 7, next = 0;
    double clock = 0, total = 0, work = 0;
    outcome out = { 0 };
    if (!heap || !tickets || !division || !wishes || !done) abort();
    for (size_t r = 0; r < s->ranks; ++r) {
        heap[r] = (request){ way, r };
        tickets[r] =
            (cli_tickets){ .units = s->units, .step = 1, .least = s->least, .ranks = s->ranks };
        wishes[r] = (cli_wish){ .units = s->units, .step = 1, .least = s->least };
        total += speed_of(s, r);
    }
    while (waiting) {
        const size_t r = heap[0].rank;
        size_t first, count;
        uint64_t range[2];
        /* rank 0 answers all that is there at a look, and then rests */
        if (heap[0].time > clock) clock = heap[0].time + look * test_uniform(&state, 0, 1);
        clock += serve;
        ++out.messages;
        count_message(clock, &tenths, &room);
        if (s->tickets) {
            cli_tickets_find(&tickets[r], next++, &first, &count);
        } else {
            cli_divide(division, &wishes[r], r, &range[0], &range[1]);
            first = (size_t)range[0], count = (size_t)range[1];
        }
        double now = clock + way + look * test_uniform(&state, 0, 1);
        const double began = now;
        for (size_t i = 0; i < count; ++i) {
            const double took = s->unit_s * (1 + s->scatter * test_uniform(&state, -1, 1));
            now += took / speed_of(s, r), work += took;
            ++done[first + i];
        }
        wishes[r].done = count, wishes[r].ns = (uint64_t)(1e9 * (now - began));
        if (count)
            heap[0].time = now + way;
        else
            heap[0] = heap[--waiting];
        if (!count && now > out.seconds) out.seconds = now;
        sift_down(heap, waiting);
    }
    for (size_t i = 0; i < s->units; ++i)
        out.wrong += done[i] != 1;
    for (size_t i = 0; i < room; ++i)
        out.most = fmax(out.most, 10 * (double)tenths[i]);
    out.efficiency = work / total / out.seconds;
    clv_free(heap), clv_free(tickets), clv_free(division), clv_free(wishes), clv_free(done);
    clv_free(tenths);
    return out;
}

static const double mixed[] = { 1, 2, 4, 8 };

static void every_unit_is_computed_once_and_ranks_end_together(void **state)
{
    (void)state;
    const scene scenes[] = {
        { .ranks = 1000, .units = 100000, .unit_s = 0.02, .scatter = 0.3 },
        { .ranks = 1000, .units = 400000, .unit_s = 0.02, .speeds = mixed, .speed_count = 4 },
        { .ranks = 1000, .units = 100003, .unit_s = 1, .least = 3 },
        { .ranks = 8, .units = 1000, .unit_s = 0.02 },
        { .ranks = 8, .units = 1000, .unit_s = 0.02, .speeds = mixed, .speed_count = 4 },
        { .ranks = 1000, .units = 100000, .unit_s = 0.02, .scatter = 0.3, .tickets = true },
        /* a rank in plain C beside two graphics cards; ranks whose speeds tell nothing of what comes */
        { .ranks = 3,
          .units = 10000,
          .unit_s = 0.02,
          .speeds = (const double[]){ 1, 50, 50 },
          .speed_count = 3 },
        { .ranks = 20,
          .units = 400,
          .unit_s = 0.02,
          .scatter = 0.99,
          .speeds = mixed,
          .speed_count = 4,
          .efficiency = 0.3 },
    };
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; ++i) {
        const outcome out = simulate(&scenes[i]);
        assert_int_equal(out.wrong, 0);
        const double least = scenes[i].efficiency > 0 ? scenes[i].efficiency : 0.95;
        if (out.efficiency < least)
            fail_msg("scene %zu: efficiency %.3f, expected %.2f at least", i, out.efficiency,
                     least);
        /* few large ranges, then small ones: the ranks' shares of what is left shrink by 1/4 a round */
        const double most = 6.0 * (double)scenes[i].ranks *
                                (log2((double)scenes[i].units / (double)scenes[i].ranks) + 2) +
                            16;
        if ((double)out.messages > most)
            fail_msg("scene %zu: %zu messages, expected %.0f at most", i, out.messages, most);
    }
}

static void rank_0_saturates_where_the_page_says_so(void **state)
{
    (void)state;
    /* at 40 ms a unit, its thread has pauses; at 2 ms, a thousand ranks ask for more than it can answer */
    const outcome slow = simulate(&(scene){ .ranks = 1000, .units = 100000, .unit_s = 0.04 });
    const outcome fast = simulate(&(scene){ .ranks = 1000, .units = 100000, .unit_s = 0.002 });
    assert_true(slow.most < 0.75 / serve && slow.efficiency > 0.95);
    assert_true(fast.most > 0.95 / serve && fast.efficiency < 0.95);
}

static void print_table(void)
{
    scene slow = { .ranks = 3, .units = 10000, .unit_s = 0.02, .speed_count = 3 };
    slow.speeds = (const double[]){ 1, 50, 50 };
    const double by_speed = simulate(&slow).efficiency;
    slow.tickets = true;
    printf("speeds 1:50:50: %.3f, with tickets %.3f\n", by_speed, simulate(&slow).efficiency);
    static const double unit_times[] = { 0.0005, 0.002, 0.02, 0.2 };
    static const size_t rank_counts[] = { 100, 1000 }, shares[] = { 10, 100, 400 };
    printf("ranks units/rank unit_ms efficiency with_speeds messages most/s\n");
    for (size_t r = 0; r < sizeof rank_counts / sizeof *rank_counts; ++r)
        for (size_t k = 0; k < sizeof shares / sizeof *shares; ++k)
            for (size_t t = 0; t < sizeof unit_times / sizeof *unit_times; ++t) {
                scene one = { .ranks = rank_counts[r],
                              .units = rank_counts[r] * shares[k],
                              .unit_s = unit_times[t],
                              .scatter = 0.3 };
                const outcome same = simulate(&one);
                one.speeds = mixed, one.speed_count = 4;
                const outcome other = simulate(&one);
                printf("%5zu %10zu %7.1f %10.3f %11.3f %8zu %6.0f\n", one.ranks, shares[k],
                       1e3 * unit_times[t], same.efficiency, other.efficiency, same.messages,
                       same.most);
            }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_is_computed_once_and_ranks_end_together),
        cmocka_unit_test(rank_0_saturates_where_the_page_says_so),
    };
    if (argc == 2 && strcmp(argv[1], "table") == 0) return print_table(), 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
