/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave bench --budget --resume`: divides the time that is left, and takes the figures that an earlier run has. */
#include "bench/command/bench.h"

#include "base/clock.h"

#include <cleave/version.h>

#include <math.h>
#include <string.h>

double bench_share_until(const bench *b, size_t count)
{
    const double now = clv_now(), left = fmax(b->plan.until - now, 0);
    return isinf(left) ? INFINITY : now + left / (double)(count ? count : 1);
}

bool bench_hurry(bench *b, double until, size_t cases)
{
    /* The first runs of a case, which compile and choose variants, take about as long as its repetitions. A case that
     * has time for one repetition is measured. */
    const double left = until - clv_now(), part = left / (double)(cases ? cases : 1) / 2;
    b->plan.figure_s = fmin(b->plan.patience_s, part);
    b->plan.single_s = fmin(b->plan.patience_s, left / 4);
    return left > 0;
}

static void take_result(bench *b, size_t c, size_t p, const clv_json *result)
{
    bench_cell *cell = &b->cells[c][p];
    for (size_t m = 0; m < BENCH_METRICS; ++m)
        cell->stat[m] = bench_compare_stat(result, bench_metric_names[m]);
    cell->kept = cell->stat[BENCH_COMPUTE].count > 0 || cell->stat[BENCH_FILES].count > 0;
    cell->memory_bytes =
        (uint64_t)fmax(clv_json_number(clv_json_get(result, "memory_bytes"), 0), 0);
    cell->agreement = clv_json_number(clv_json_get(result, "agreement"), -1);
    bench_take_shares(cell, clv_json_get(result, "shares"));
    if (cell->kept && !clv_json_bool(clv_json_get(result, "late"), false))
        clv_copy_string(cell->note, sizeof cell->note,
                        clv_json_string(clv_json_get(result, "note"), ""));
}

/* Returns whether the earlier result has an outside program, or a side of a call, of that name. */
static bool is_peer(const clv_json *earlier, const char *name)
{
    const clv_json *parties = clv_json_get(earlier, "parties");
    for (size_t i = 0; i < clv_json_count(parties); ++i) {
        const clv_json *party = clv_json_at(parties, i);
        if (strcmp(clv_json_string(clv_json_get(party, "name"), ""), name) == 0)
            return strcmp(clv_json_string(clv_json_get(party, "kind"), ""), "peer") == 0;
    }
    return false;
}

/* Returns the party of that name; SIZE_MAX: it is no longer here. */
static size_t party_of(bench *b, const clv_json *earlier, const char *name)
{
    for (size_t p = 0; p < b->party_count; ++p)
        if (strcmp(b->parties[p].name, name) == 0) return p;
    return is_peer(earlier, name) ? bench_find_party(b, BENCH_PEER, name) : SIZE_MAX;
}

static void take_facts(bench *b, const clv_json *earlier)
{
    const clv_json *list = clv_json_get(earlier, "runtime");
    for (size_t i = 0; i < clv_json_count(list) && i < BENCH_MOST_FACTS; ++i) {
        const clv_json *fact = clv_json_at(list, i), *results = clv_json_get(fact, "results");
        bench_fact *to = &b->facts[b->fact_count++];
        clv_copy_string(to->name, sizeof to->name, clv_json_string(clv_json_get(fact, "name"), ""));
        clv_copy_string(to->unit, sizeof to->unit, clv_json_string(clv_json_get(fact, "unit"), ""));
        for (size_t k = 0; k < clv_json_count(results); ++k) {
            const clv_json *result = clv_json_at(results, k);
            const char *name = clv_json_string(clv_json_get(result, "party"), "");
            const size_t p = party_of(b, earlier, name);
            if (p != SIZE_MAX) to->by_party[p] = bench_compare_stat(result, "value");
        }
    }
}

bool bench_resume(bench *b, const clv_json *earlier)
{
    if (strcmp(clv_json_string(clv_json_get(earlier, "version"), "?"), clv_version()) != 0)
        return false;
    for (size_t c = 0; c < b->case_count; ++c) {
        const clv_json *was = bench_compare_case(earlier, &b->cases[c]),
                       *results = clv_json_get(was, "results");
        b->cases[c].flops = clv_json_number(clv_json_get(was, "flops"), b->cases[c].flops);
        b->cases[c].traffic =
            clv_json_number(clv_json_get(was, "traffic_bytes"), b->cases[c].traffic);
        for (size_t i = 0; i < clv_json_count(results); ++i) {
            const clv_json *result = clv_json_at(results, i);
            const size_t p =
                party_of(b, earlier, clv_json_string(clv_json_get(result, "party"), "?"));
            if (p != SIZE_MAX) take_result(b, c, p, result);
        }
    }
    take_facts(b, earlier);
    return true;
}
