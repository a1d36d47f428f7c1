/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one party of `cleave bench` after the other, each in its own process. */
#define _GNU_SOURCE /* getloadavg */
#include "bench/command/bench.h"

#include "base/clock.h"
#include "base/error.h"
#include "host/cli/apart.h"
#include "host/cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct teller {
    bench *b;
    const bench_orders *orders;
    size_t party;
    size_t parts; /* parts of the run that are still to come: they share the budget */
    double until; /* when the present part has to end */
    bool again;   /* only what had no time is measured */
} teller;

static const char no_time[] = "left out: no time was left (--budget)";

static void tell(const char *doing, void *user)
{
    const teller *t = user;
    const char *who = t->party < t->b->party_count ? t->b->parties[t->party].name : "peers";
    char line[200];
    snprintf(line, sizeof line, "%s: %s", who, doing);
    if (t->orders->show) cli_status_line(line);
    t->orders->keep(t->orders->user);
}

static void end_telling(const teller *t)
{
    if (t->orders->show) cli_status_line(NULL);
}

static clv_status open_party(const bench_party *party, clv_context **context)
{
    clv_context_options options = { .size = sizeof options, .bind_threads = true };
    if (party->kind == BENCH_REFERENCE)
        options.mode = CLV_MODE_REFERENCE, options.cache_dir = "";
    else
        options.devices = party->selection;
    return clv_context_create(&options, context);
}

static bool takes_part(const bench *b, size_t party, size_t case_index)
{
    return !b->cases[case_index].workload->alone || b->parties[party].kind == BENCH_DEVICE;
}

/* Runs a party's measurements in its process. A failure is noted with its case, and the next case still runs. */
static int be_party(FILE *out, void *user)
{
    const teller *t = user;
    bench *b = t->b;
    bench_run run = { .bench = b, .party = t->party, .out = out };
    if (open_party(&b->parties[t->party], &run.context)) {
        for (size_t i = 0; i < b->case_count; ++i)
            bench_send_note(&run, i, clv_error_message());
        return CLI_OK;
    }
    for (size_t i = 0; i < b->case_count; ++i) {
        const bench_case *c = &b->cases[i];
        const bench_cell *cell = &b->cells[i][t->party];
        char doing[120];
        if (!takes_part(b, t->party, i)) continue;
        if (cell->kept) {
            run.seconds_per_effort = bench_working_s(cell) / c->workload->effort(c);
            continue;
        }
        if (!bench_hurry(b, t->until, b->case_count - i)) {
            bench_send_left_out(&run, i, no_time, true);
            continue;
        }
        snprintf(doing, sizeof doing, "%s %s", c->workload->name, c->name);
        bench_say(&run, doing);
        if (c->workload->measure(&run, i)) bench_send_note(&run, i, clv_error_message());
    }
    if (b->plan.runtime && b->parties[t->party].kind != BENCH_REFERENCE && bench_runtime(&run))
        cli_say(stderr, "cleave bench: %s: %s\n", b->parties[t->party].name, clv_error_message());
    clv_context_free(run.context);
    return CLI_OK;
}

static void on_line(const char *line, void *user)
{
    const teller *t = user;
    const char *doing = bench_take(t->b, t->party, line);
    if (doing)
        tell(doing, user);
    else
        t->orders->keep(t->orders->user);
}

/* Returns in how many parts a party has something to measure, of those that had no time if `again`. */
static size_t parts_of(const bench *b, size_t party, bool again)
{
    bool compute = b->plan.runtime && b->parties[party].kind != BENCH_REFERENCE, files = false;
    for (size_t i = 0; i < b->case_count; ++i) {
        const bench_workload *w = b->cases[i].workload;
        if (!takes_part(b, party, i) || (again && !b->cells[i][party].late)) continue;
        compute = true;
        files |= b->plan.files && w->command && !b->cases[i].part;
    }
    return (size_t)compute + (size_t)files;
}

static size_t all_parts(const bench *b, size_t ours, bool again)
{
    size_t parts = 0;
    for (size_t p = 0; p < ours; ++p)
        parts += parts_of(b, p, again);
    return parts;
}

/* Begins the next part of the run, which may take its share of the budget. */
static void begin_part(teller *t)
{
    t->until = bench_share_until(t->b, t->parts);
    if (t->parts > 1) --t->parts;
}

/* Notes why the cases have no figures whose party ended early. */
static void note_missing(const teller *t, const char *note, bool late)
{
    for (size_t i = 0; i < t->b->case_count; ++i) {
        bench_cell *cell = &t->b->cells[i][t->party];
        if (!takes_part(t->b, t->party, i) || cell->stat[BENCH_COMPUTE].count || cell->kept ||
            (late && *cell->note))
            continue;
        clv_copy_string(cell->note, sizeof cell->note, note);
        cell->late = late;
    }
}

static clv_status measure_party(teller *t)
{
    static const double mercy_s = 10; /* for the case that is running when the time is over */
    const size_t parts = parts_of(t->b, t->party, t->again);
    if (!parts) return CLV_OK;
    begin_part(t);
    const cli_apart apart = { .body = be_party,
                              .line = on_line,
                              .user = t,
                              .until = t->until + fmin(mercy_s, t->b->plan.budget_s / 10) };
    clv_status status = cli_apart_run(&apart);
    const bool late = status && status != CLV_E_CANCELLED && clv_now() > t->until;
    if (status && status != CLV_E_CANCELLED)
        note_missing(t, late ? no_time : clv_error_message(), late);
    if (late) status = CLV_OK, t->b->runtime_late |= t->b->plan.runtime;
    if (parts < 2) return status;
    begin_part(t);
    return status ? status : bench_files(t->b, t->party, t->until, tell, t);
}

/* ---- all of it ------------------------------------------------------------------------------------------- */

/* Reads the time that all cores together have spent since the machine started: working, and in total. */
static bool read_ticks(double *work, double *all)
{
    enum { STATES = 8, IDLE = 3, WAITING = 4 };
    unsigned long long t[STATES] = { 0 };
    FILE *file = fopen("/proc/stat", "re");
    const int found = file ? fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0],
                                    &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7])
                           : 0;
    if (file) fclose(file);
    *work = *all = 0;
    for (int i = 0; i < STATES; ++i) {
        *all += (double)t[i];
        if (i != IDLE && i != WAITING) *work += (double)t[i];
    }
    return found > WAITING;
}

/* Returns how many cores other programs keep busy now. The load of the last minute would include programs that have
 * ended. */
static double machine_load(void)
{
    static const double look_s = 0.5;
    double work[2], all[2], load;
    const double cores = (double)sysconf(_SC_NPROCESSORS_ONLN); /* cores of the whole machine */
    if (read_ticks(&work[0], &all[0])) {
        clv_sleep(look_s);
        if (read_ticks(&work[1], &all[1]) && all[1] > all[0])
            return (work[1] - work[0]) / (all[1] - all[0]) * cores;
    }
    return getloadavg(&load, 1) == 1 ? load : -1;
}

/* Takes a turn: each of our own parties, then each outside program. */
static clv_status take_turn(teller *t, size_t ours, bool *failed)
{
    bench *b = t->b;
    clv_status status = CLV_OK;
    for (t->party = 0; t->party < ours && status != CLV_E_CANCELLED; ++t->party) {
        status = measure_party(t);
        if (status && status != CLV_E_CANCELLED) {
            end_telling(t);
            t->orders->warn(b->parties[t->party].name);
            *failed = true;
            status = CLV_OK;
        }
    }
    t->party = SIZE_MAX;
    if (!t->orders->scripts || status || t->again) return status;
    begin_part(t);
    if (bench_peers(b, t->orders->scripts, t->orders->environments, t->until, tell, t)) {
        end_telling(t);
        t->orders->warn("outside programs");
        *failed = true;
        if (cli_interrupted()) status = clv_fail(CLV_E_CANCELLED, "interrupted");
    }
    return status;
}

/* Measures what had no time in the time that is left, while this makes a difference. */
static clv_status take_turns_again(teller *t, size_t ours, bool *failed)
{
    bench *b = t->b;
    clv_status status = CLV_OK;
    t->again = true;
    for (size_t late = bench_late(b), before = SIZE_MAX; late && late < before && !status;
         before = late, late = bench_late(b)) {
        if (clv_now() + b->plan.budget_s / 20 > b->plan.until) break;
        t->parts = all_parts(b, ours, true);
        for (size_t c = 0; c < b->case_count; ++c)
            for (size_t p = 0; p < b->party_count; ++p)
                b->cells[c][p].kept = b->cells[c][p].stat[BENCH_COMPUTE].count > 0 ||
                                      b->cells[c][p].stat[BENCH_FILES].count > 0;
        status = take_turn(t, ours, failed);
    }
    return status;
}

clv_status bench_measure(bench *b, const bench_orders *orders, bool *failed)
{
    size_t ours = 0; /* outside programs, which --resume may have added, follow our own parties */
    while (ours < b->party_count && b->parties[ours].kind != BENCH_PEER)
        ++ours;
    const bool runtime = b->plan.runtime;
    const size_t parts = all_parts(b, ours, false) + (orders->scripts ? 1 : 0);
    teller t = { .b = b, .orders = orders, .parts = b->plan.turns * parts };
    clv_status status = CLV_OK;
    b->plan.load_before = machine_load();
    if (b->plan.files || orders->scripts) status = bench_prepare(b);
    for (size_t turn = 0; turn < b->plan.turns && !status; ++turn) {
        status = take_turn(&t, ours, failed);
        b->plan.runtime = false; /* measured once */
    }
    if (!status) status = take_turns_again(&t, ours, failed);
    b->plan.runtime = runtime;
    b->plan.load_after = machine_load();
    b->ended = !status;
    end_telling(&t);
    return status;
}
