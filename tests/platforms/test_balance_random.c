/* SPDX-License-Identifier: Apache-2.0 */
/* The balancer's promises on random machines and jobs: every unit exactly once under every schedule,
 * and for the adaptive one never much slower than the best single device.
 *
 * CLEAVE_BALANCE_SEED=n runs scenario n alone and prints every step; CLEAVE_BALANCE_RUNS=n runs so
 * many instead of ten thousand. */
#include "test.h"

#include "base/alloc.h"
#include "simulator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What is promised depends on what can be known. Times are those of the best single device in the
 * same scenario under the same balancer; "fine" means that the smallest chunk is at most 1 % of the
 * job, "sound" that the device is neither disturbed nor faulty. */
typedef enum kind {
    KNOWN,      /* fine, all sound, all speeds known; any length */
    UNKNOWN,    /* fine, all sound, no speeds known; a second or more */
    TRIED,      /* the same with pools of unknown members, whose trials take chunks below 1/20000 */
    SURROUNDED, /* fine, a second or more, the best device is sound; others may do anything */
    UNEVEN,     /* fine, all sound, a second or more; units differ in cost by up to ten times */
    BRIEF,      /* as UNKNOWN, but shorter */
    JOSTLED,    /* as SURROUNDED with known speeds, but shorter: the job may be a chunk or two */
    FEW,        /* all sound, known, but few units: which device is best is within its noise */
    AWAY,       /* fine, all sound, known or long; some come late, which nobody knows */
    KINDS
} kind;

static const struct promise {
    const char *name;
    double times, plus_s; /* of the best single device */
    double ideal;         /* times the ideal, plus the longest chunk; 0: no promise */
} promises[KINDS] = {
    [KNOWN] = { "speeds known", 1.02, 0, 1.05 },
    [UNKNOWN] = { "speeds unknown, >= 1 s", 1.02, 0, 1.05 },
    [TRIED] = { "pools of unknown members, >= 1 s", 1.02, 0, 0 },
    [SURROUNDED] = { "others disturbed or faulty, >= 1 s", 1.02, 0, 0 },
    [UNEVEN] = { "units of unequal cost, >= 1 s", 1.02, 0, 1.05 },
    [BRIEF] = { "speeds unknown, < 1 s", 1.02, 0.1, 0 },
    [JOSTLED] = { "others disturbed or faulty, < 1 s", 3, 0, 0 },
    [FEW] = { "few units", 1.1, 0, 1.1 },
    [AWAY] = { "threads that come late", 1.02, 0.3, 0 },
};

/* If the speeds are known, all chunks, also those that came too late to be committed, are back by then. */
static const double DRAINED = 1.5;

/* What was seen of a kind. */
static struct seen {
    double *ratios;
    size_t count, capacity;
    double worst, worst_ideal, worst_excess_s;
    uint64_t worst_seed;
} seen[KINDS];

static struct totals {
    size_t scenarios, chunks, dropped, questions, stuck;
    double drained; /* worst time until all chunks were back, against the best device: KNOWN */
} totals;

/* ---- facts of a scenario -------------------------------------------------------------------- */

static size_t least_chunk(const clv_balance_job *job)
{
    const size_t align = CLV_MAX(job->align, 1);
    return CLV_MIN(clv_round_up(CLV_MAX(job->min_chunk, align), align), job->units);
}

static bool is_sound(const sim_device *device)
{
    return !device->pace_count && device->failing <= 0 && isinf(device->dies_at) && !device->room;
}

/* It can do the whole job if it has to, and nothing that it does looks like hanging: ten times
 * slower than it should be, or unknown and minutes long. */
static bool survives(const sim_scenario *scenario, size_t i)
{
    const sim_device *device = &scenario->devices[i];
    const size_t least = least_chunk(&scenario->job);
    const double told = device->told.units_per_s, true_speed = device->units_per_s;
    const bool plausible =
        told > 0 ? told < 5 * true_speed : (double)scenario->job.units / true_speed < 200;
    const bool even = scenario->uneven <= 0 || (double)least / true_speed < 0.1;
    return plausible && even && !device->pace_count && device->failing <= 0 &&
           isinf(device->dies_at) && (!device->room || device->room >= least) &&
           (!device->told.max_chunk || device->told.max_chunk >= least);
}

static bool some_survive(const sim_scenario *scenario)
{
    for (size_t i = 0; i < scenario->device_count; ++i)
        if (survives(scenario, i)) return true;
    return false;
}

/* Everybody who shares the device's cores is sound too, and it is there from the beginning. */
static bool can_be_relied_on(const sim_scenario *scenario, size_t best, double alone_s)
{
    const sim_device *device = &scenario->devices[best];
    for (size_t i = 0; i < scenario->device_count; ++i) {
        const sim_device *other = &scenario->devices[i];
        const bool shares =
            i == best || (other->told.pool >= 0 && other->told.pool == device->told.pool);
        if (shares && !is_sound(other)) return false;
    }
    return device->setup_s < 0.05 * alone_s;
}

static bool has_pool(const sim_scenario *scenario)
{
    size_t members[SIM_DEVICES] = { 0 };
    for (size_t i = 0; i < scenario->device_count; ++i) {
        const int pool = scenario->devices[i].told.pool;
        if (pool >= 0 && ++members[pool] > 1) return true;
    }
    return false;
}

/* KINDS: nothing is promised. */
static kind kind_of(const sim_scenario *scenario, const sim_traits *traits, size_t best,
                    double alone_s)
{
    const double pieces = (double)scenario->job.units / (double)least_chunk(&scenario->job);
    bool sound = true, away = false;
    for (size_t i = 0; i < scenario->device_count; ++i) {
        sound &= is_sound(&scenario->devices[i]);
        away |= scenario->devices[i].late_s > 0;
    }
    const bool known = traits->warm, lasts = alone_s >= 1, tried = !known && has_pool(scenario);
    if (traits->stale || (!lasts && !known && (tried || away))) return KINDS;
    if (pieces < 100) return known && sound && !away && !traits->uneven ? FEW : KINDS;
    if (tried && pieces < 20000) return KINDS;
    if (!sound) {
        if (away || traits->uneven || !can_be_relied_on(scenario, best, alone_s)) return KINDS;
        return lasts ? SURROUNDED : known ? JOSTLED : KINDS;
    }
    if (away) return AWAY;
    if (traits->uneven) return lasts ? UNEVEN : KINDS;
    if (known) return KNOWN;
    if (!lasts) return BRIEF;
    return tried ? TRIED : UNKNOWN;
}

/* ---- one scenario --------------------------------------------------------------------------- */

static void complain(const sim_scenario *scenario, const sim_result *result, const char *what)
{
    sim_print(scenario, result);
    fail_msg("seed %llu: %s; replay it with CLEAVE_BALANCE_SEED=%llu",
             (unsigned long long)scenario->seed, what, (unsigned long long)scenario->seed);
}

static sim_result run_checked(const sim_scenario *scenario)
{
    const sim_result result = sim_run(scenario);
    if (result.fault) complain(scenario, &result, result.fault);
    if (!result.finished && some_survive(scenario))
        complain(scenario, &result, "units are left although a device survives");
    totals.questions += result.questions;
    totals.dropped += result.dropped;
    totals.chunks += result.chunks;
    return result;
}

/* The best device alone; infinity when none could do it. */
static double best_alone(const sim_scenario *scenario, size_t *best)
{
    double seconds = INFINITY;
    for (size_t i = 0; i < scenario->device_count; ++i) {
        sim_scenario alone = *scenario;
        alone.taking_part = 1u << i;
        const sim_result result = sim_run(&alone);
        if (result.fault) complain(&alone, &result, result.fault);
        if (!result.finished && survives(scenario, i))
            complain(&alone, &result, "it could have done it alone");
        if (result.finished && result.makespan < seconds) seconds = result.makespan, *best = i;
    }
    return seconds;
}

static void note(struct seen *s, double ratio, double excess_s, double ideal, uint64_t seed)
{
    assert_true(clv_reserve(&s->ratios, &s->capacity, s->count + 1, sizeof *s->ratios));
    s->ratios[s->count++] = ratio;
    s->worst_excess_s = fmax(s->worst_excess_s, excess_s);
    s->worst_ideal = fmax(s->worst_ideal, ideal);
    if (ratio <= s->worst) return;
    s->worst = ratio;
    s->worst_seed = seed;
}

static void check_promise(const sim_scenario *scenario, const sim_traits *traits,
                          const sim_result *result)
{
    size_t best = 0;
    const double alone_s = best_alone(scenario, &best);
    if (!result->finished || isinf(alone_s)) return;
    const kind what_kind = kind_of(scenario, traits, best, alone_s);
    if (what_kind == KINDS) return;
    const struct promise *promise = &promises[what_kind];
    const double ideal = sim_ideal(scenario), makespan = result->makespan;
    note(&seen[what_kind], makespan / alone_s, makespan - alone_s,
         (makespan - result->longest) / ideal, scenario->seed);
    char what[200];
    snprintf(what, sizeof what,
             "%s: %.6g s, device %zu alone %.6g s, ideal %.6g s, longest chunk %.3g s",
             promise->name, makespan, best, alone_s, ideal, result->longest);
    if (makespan > promise->times * alone_s + promise->plus_s) complain(scenario, result, what);
    if (what_kind == KNOWN) {
        totals.drained = fmax(totals.drained, result->drained / alone_s);
        if (result->drained > DRAINED * alone_s)
            complain(scenario, result, "a late chunk holds the job up");
    }
    if (promise->ideal > 0 && makespan > promise->ideal * ideal + result->longest)
        complain(scenario, result, what);
}

static void run_one(uint64_t seed)
{
    sim_traits traits;
    sim_scenario scenario = sim_random(seed, &traits);
    for (int schedule = CLV_SCHEDULE_STATIC; schedule <= CLV_SCHEDULE_HGUIDED; ++schedule) {
        scenario.job.schedule = (clv_schedule)schedule;
        (void)run_checked(&scenario);
    }
    scenario.job.schedule = CLV_SCHEDULE_ADAPTIVE;
    const sim_result result = run_checked(&scenario);
    totals.stuck += result.stuck;
    ++totals.scenarios;
    check_promise(&scenario, &traits, &result);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_seen(void)
{
    print_message("%zu scenarios, all four schedules: %zu chunks, %zu results dropped, %zu "
                  "questions; in %zu no device survived\n",
                  totals.scenarios, totals.chunks, totals.dropped, totals.questions, totals.stuck);
    print_message("time against the best single device:\n%-36s %6s %7s %7s %7s %7s %8s %9s  %s\n",
                  "", "runs", "median", "90 %", "99 %", "99.9 %", "worst", "excess", "seed");
    for (size_t k = 0; k < KINDS; ++k) {
        struct seen *s = &seen[k];
        if (!s->count) continue;
        qsort(s->ratios, s->count, sizeof *s->ratios, by_size);
        const double last = (double)(s->count - 1);
        print_message("%-36s %6zu %7.4f %7.4f %7.4f %7.4f %8.4f %7.1f ms  %llu", promises[k].name,
                      s->count, s->ratios[(size_t)(0.5 * last)], s->ratios[(size_t)(0.9 * last)],
                      s->ratios[(size_t)(0.99 * last)], s->ratios[(size_t)(0.999 * last)], s->worst,
                      s->worst_excess_s * 1e3, (unsigned long long)s->worst_seed);
        print_message(promises[k].ideal > 0 ? "; ideal x %.3f + a chunk\n" : "\n", s->worst_ideal);
        clv_free(s->ratios);
        *s = (struct seen){ 0 };
    }
    print_message("speeds known, until the last late chunk is back: at most %.3f\n",
                  totals.drained);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void promises_hold_on_random_machines(void **state)
{
    (void)state;
    const uint64_t runs = from_environment("CLEAVE_BALANCE_RUNS", 10000);
    const uint64_t seed = from_environment("CLEAVE_BALANCE_SEED", 0);
    if (seed) {
        sim_traits traits;
        const sim_scenario scenario = sim_random(seed, &traits);
        sim_trace = true;
        const sim_result result = sim_run(&scenario);
        sim_trace = false;
        sim_print(&scenario, &result);
        run_one(seed);
    } else {
        print_message("seeds 1 to %llu\n", (unsigned long long)runs);
        for (uint64_t i = 1; i <= runs; ++i)
            run_one(i);
    }
    print_seen();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(promises_hold_on_random_machines) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
