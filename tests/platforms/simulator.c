/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that exist only as numbers, on a clock that jumps from event to event. */
#include "simulator.h"

#include "ledger.h"

#include "test.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sim_trace;

enum { MANY_EVENTS = 1000000 };

typedef struct chunk {
    unsigned id;
    size_t first, count;
    double asked_at;
    bool speculative, unsteady, fails;
} chunk;

typedef enum state { ADMITTING, SETTING_UP, WORKING, HANGING, GONE } state;

typedef struct worker {
    const sim_device *device;
    state state;
    chunk queue[CLV_BALANCE_MAX_DEPTH];
    size_t queued;
    double delay; /* seconds until its first chunk begins to work: a kernel is being compiled */
    double work;  /* seconds at full speed that its first chunk then needs, or its set-up */
    double since; /* when these two were true */
    double pace;
    double served_at; /* when its first chunk began */
    double wake;      /* when it asks again; infinity: after an event */
    bool warm;
    uint64_t random;
    double prefix[SIM_BLOCKS + 1]; /* cost of the units before a block boundary; the last is 1 */
} worker;

typedef struct simulation {
    const sim_scenario *scenario;
    clv_balance *balance;
    worker actors[SIM_DEVICES];
    double now, tick_at;
    uint64_t random;
    ledger committed; /* kept apart from the balancer's own book */
    sim_result result;
} simulation;

static const double START = 1000; /* the clock's zero is arbitrary */

static void blame(simulation *sim, const char *fault)
{
    if (!sim->result.fault) sim->result.fault = fault;
}

#define TRACE(...) (sim_trace ? (void)printf(__VA_ARGS__) : (void)0)

/* ---- time ----------------------------------------------------------------------------------- */

/* Costs wander over the units, by what the job is and by what the device is; the mean is 1 and
 * every run sees the same. */
static void prepare_noise(const sim_scenario *scenario, worker *actor, uint64_t seed)
{
    uint64_t shared = scenario->seed * 5;
    double own = 0, common = 0, sum = 0, cost[SIM_BLOCKS];
    for (size_t i = 0; i < SIM_BLOCKS; ++i) {
        own = 0.8 * own + 0.6 * test_uniform(&seed, -1.7, 1.7);
        common = 0.95 * common + 0.3 * test_uniform(&shared, -1.7, 1.7);
        cost[i] = 1 + actor->device->noise * fmax(fmin(own, 3), -3);
        cost[i] *= exp(scenario->uneven * common);
        sum += cost[i];
    }
    actor->prefix[0] = 0;
    for (size_t i = 0; i < SIM_BLOCKS; ++i)
        actor->prefix[i + 1] = actor->prefix[i] + cost[i] / sum;
}

static double cost_before(const worker *actor, double part)
{
    const double at = fmin(fmax(part, 0), 1) * SIM_BLOCKS;
    const size_t i = at >= SIM_BLOCKS ? SIM_BLOCKS - 1 : (size_t)at;
    return actor->prefix[i] + (at - (double)i) * (actor->prefix[i + 1] - actor->prefix[i]);
}

static bool serving(const worker *actor)
{
    return actor->state == SETTING_UP || (actor->state == WORKING && actor->queued);
}

/* Members of a pool that work at the same time share what there is. */
static double sharing(const simulation *sim, const worker *actor)
{
    size_t at_work = 0;
    if (actor->device->told.pool < 0) return 1;
    for (size_t i = 0; i < sim->scenario->device_count; ++i) {
        const worker *other = &sim->actors[i];
        at_work += other->device->told.pool == actor->device->told.pool &&
                   other->state == WORKING && other->queued && other->delay <= 0;
    }
    return at_work > 1 ? 1.0 / (double)at_work : 1;
}

/* When its first chunk ends, or begins to work, or its set-up ends. */
static double end_of(const worker *actor)
{
    if (!serving(actor)) return INFINITY;
    if (actor->delay > 0) return actor->since + actor->delay;
    if (actor->work <= 0) return actor->since;
    return actor->pace > 0 ? actor->since + actor->work / actor->pace : INFINITY;
}

static void set_paces(simulation *sim)
{
    for (size_t i = 0; i < sim->scenario->device_count; ++i) {
        worker *a = &sim->actors[i];
        if (!serving(a)) continue;
        if (a->delay > 0) {
            a->delay -= sim->now - a->since;
            if (a->delay < 1e-9) a->delay = 0; /* the clock tells no shorter times apart */
        } else {
            a->work = fmax(a->work - (sim->now - a->since) * a->pace, 0);
        }
        a->since = sim->now;
    }
    for (size_t i = 0; i < sim->scenario->device_count; ++i) {
        worker *a = &sim->actors[i];
        const double pace = sim_pace_of(a->device, START, sim->now);
        a->pace = a->state == SETTING_UP ? 1 : pace * sharing(sim, a);
    }
}

static void serve(simulation *sim, worker *actor, double queued_for)
{
    const sim_device *device = actor->device;
    const clv_balance_job *job = &sim->scenario->job;
    chunk *head = &actor->queue[0];
    const double units = (double)job->units;
    const double first = (double)head->first / units;
    const double part =
        cost_before(actor, first + (double)head->count / units) - cost_before(actor, first);
    const double extra = fmax(job->chunk_units, 0) / device->units_per_s;
    actor->work = part * units / device->units_per_s + extra + device->chunk_s;
    actor->work -= fmin(device->overlap * device->chunk_s, queued_for);
    actor->work *= 1 + device->jitter * test_uniform(&actor->random, -1, 1);
    head->fails = test_uniform(&actor->random, 0, 1) < device->failing;
    if (head->fails) actor->work *= test_uniform(&actor->random, 0, 1);
    if (device->room && head->count > device->room) actor->work = device->chunk_s;
    head->unsteady = !actor->warm;
    actor->delay = actor->warm ? 0 : device->first_s;
    actor->warm = true;
    actor->since = actor->served_at = sim->now;
    actor->pace = 0;
}

/* ---- questions ------------------------------------------------------------------------------ */

static bool held_by_other(const simulation *sim, const worker *asking, size_t first, size_t count)
{
    for (size_t i = 0; i < sim->scenario->device_count; ++i) {
        const worker *other = &sim->actors[i];
        if (other == asking || other->state == GONE) continue;
        for (size_t k = 0; k < other->queued; ++k)
            if (other->queue[k].first < first + count &&
                first < other->queue[k].first + other->queue[k].count &&
                !ledger_has_any(&sim->committed, other->queue[k].first, other->queue[k].count))
                return true;
    }
    return false;
}

static void check_lease(simulation *sim, const worker *actor, const clv_balance_lease *lease)
{
    const clv_balance_job *job = &sim->scenario->job;
    const size_t align = CLV_MAX(job->align, 1);
    const size_t least = clv_round_up(CLV_MAX(job->min_chunk, align), align);
    const size_t end = lease->first + lease->count;
    if (!lease->count || end > job->units) blame(sim, "a lease is empty or leaves the job");
    if (lease->first % align) blame(sim, "a lease does not begin at a multiple of align");
    if (actor->device->told.max_chunk && lease->count > actor->device->told.max_chunk)
        blame(sim, "a lease is larger than max_chunk");
    if (job->batch && lease->count > CLV_MAX(job->batch, least))
        blame(sim, "a lease is larger than batch");
    if (ledger_has_any(&sim->committed, lease->first, lease->count))
        blame(sim, "a lease holds committed units");
    const bool held = held_by_other(sim, actor, lease->first, lease->count);
    if (held != lease->speculative) blame(sim, "speculative says the wrong thing");
    if (lease->speculative && job->schedule != CLV_SCHEDULE_ADAPTIVE)
        blame(sim, "only adaptive speculates");
    const bool last = end == job->units || ledger_has_any(&sim->committed, end, 1) ||
                      held_by_other(sim, NULL, end, 1) || lease->speculative;
    if (lease->count < least && !last) blame(sim, "a lease is smaller than min_chunk");
    for (size_t k = 0; k < actor->queued; ++k)
        if (actor->queue[k].first < end &&
            lease->first < actor->queue[k].first + actor->queue[k].count &&
            !ledger_has_any(&sim->committed, actor->queue[k].first, actor->queue[k].count))
            blame(sim, "a device got units that it holds already");
}

static void take(simulation *sim, size_t i, const clv_balance_lease *lease)
{
    worker *actor = &sim->actors[i];
    check_lease(sim, actor, lease);
    TRACE("%10.6f  device %zu takes %u: %zu + %zu%s, expects %g s\n", sim->now - START, i,
          lease->id, lease->first, lease->count, lease->speculative ? " again" : "",
          lease->expected_s);
    actor->queue[actor->queued++] = (chunk){ .id = lease->id,
                                             .first = lease->first,
                                             .count = lease->count,
                                             .asked_at = sim->now,
                                             .speculative = lease->speculative };
    sim->result.speculative += lease->speculative;
    if (actor->queued == 1) serve(sim, actor, 0);
}

static void ask(simulation *sim, size_t i)
{
    worker *actor = &sim->actors[i];
    const double comes = START + actor->device->late_s;
    actor->wake = sim->now < comes ? comes : INFINITY;
    while (sim->now >= comes && (actor->state == ADMITTING || actor->state == WORKING) &&
           actor->queued < actor->device->told.depth) {
        const bool admitting = actor->state == ADMITTING;
        const clv_balance_lease lease = admitting ? clv_balance_admit(sim->balance, i, sim->now)
                                                  : clv_balance_next(sim->balance, i, sim->now);
        ++sim->result.questions;
        if (lease.act == CLV_BALANCE_LEAVE) {
            if (!actor->queued) actor->state = GONE;
            TRACE("%10.6f  device %zu leaves\n", sim->now - START, i);
            return;
        }
        if (lease.act == CLV_BALANCE_WAIT) {
            actor->wake = lease.until;
            if (!(lease.until > sim->now)) blame(sim, "a device is to wait for the past");
            TRACE("%10.6f  device %zu waits until %g\n", sim->now - START, i, lease.until - START);
            return;
        }
        if (admitting) {
            actor->state = SETTING_UP;
            actor->work = actor->device->setup_s;
            actor->since = sim->now;
            actor->pace = 1;
            TRACE("%10.6f  device %zu sets up\n", sim->now - START, i);
            return;
        }
        take(sim, i, &lease);
    }
}

/* Threads wake in any order. */
static void ask_all(simulation *sim)
{
    size_t order[SIM_DEVICES];
    const size_t count = sim->scenario->device_count;
    for (size_t i = 0; i < count; ++i) {
        const size_t k = (size_t)(test_random(&sim->random) % (i + 1));
        order[i] = order[k];
        order[k] = i;
    }
    for (size_t i = 0; i < count; ++i)
        ask(sim, order[i]);
}

/* ---- events --------------------------------------------------------------------------------- */

static void drop_head(worker *actor)
{
    memmove(actor->queue, actor->queue + 1, --actor->queued * sizeof *actor->queue);
}

static void end_chunk(simulation *sim, size_t i)
{
    worker *actor = &sim->actors[i];
    const chunk head = actor->queue[0];
    const sim_device *device = actor->device;
    const bool no_room = device->room && head.count > device->room;
    drop_head(actor);
    if (no_room || head.fails) {
        TRACE("%10.6f  device %zu fails %u%s\n", sim->now - START, i, head.id,
              no_room ? ": memory" : "");
        const bool on = clv_balance_failed(sim->balance, i, head.id, sim->now,
                                           no_room ? CLV_BALANCE_NO_MEMORY : CLV_BALANCE_FAILED);
        if (!on) actor->state = GONE, actor->queued = 0;
    } else {
        const bool late = ledger_has_any(&sim->committed, head.first, head.count);
        const bool good = clv_balance_done(sim->balance, i, head.id, sim->now, !head.unsteady);
        TRACE("%10.6f  device %zu ends %u%s\n", sim->now - START, i, head.id,
              good ? "" : ", dropped");
        if (good) {
            if (!ledger_add(&sim->committed, head.first, head.count))
                blame(sim, "a unit was committed twice");
            sim->result.longest = fmax(sim->result.longest, sim->now - actor->served_at);
            ++sim->result.chunks;
        } else {
            ++sim->result.dropped;
            if (!late) blame(sim, "a result was dropped although none of its units was committed");
        }
    }
    if (actor->queued) serve(sim, actor, sim->now - actor->queue[0].asked_at);
    if (clv_balance_finished(sim->balance) && !sim->result.finished) {
        sim->result.finished = true;
        sim->result.makespan = sim->now - START;
    }
}

static void die(simulation *sim, size_t i)
{
    worker *actor = &sim->actors[i];
    if (actor->state == GONE || actor->state == HANGING) return;
    TRACE("%10.6f  device %zu dies%s\n", sim->now - START, i,
          actor->device->silently ? " silently" : "");
    if (actor->device->silently && actor->state == WORKING && actor->queued) {
        actor->state = HANGING;
        return;
    }
    actor->queued = 0;
    actor->state = GONE;
    if (clv_balance_failed(sim->balance, i, 0, sim->now, CLV_BALANCE_LOST))
        blame(sim, "a lost device may go on");
}

static bool tick(simulation *sim)
{
    size_t lost = clv_balance_tick(sim->balance, sim->now, &sim->tick_at);
    const bool news = lost > 0;
    sim->result.hung += lost;
    for (size_t i = 0; i < sim->scenario->device_count; ++i) {
        worker *actor = &sim->actors[i];
        if (actor->state == GONE || !clv_balance_get_stats(sim->balance, i).out) continue;
        TRACE("%10.6f  device %zu is given up\n", sim->now - START, i);
        if (lost) --lost;
        actor->queued = 0;
        actor->state = GONE;
    }
    if (lost) blame(sim, "tick lost devices that are not out");
    if (!(sim->tick_at > sim->now)) blame(sim, "tick wants to be called in the past");
    return news;
}

typedef enum event { NOTHING, END, DEATH, PACE, WAKE, TICK } event;

static event next_event(const simulation *sim, size_t *who, double *when)
{
    event what = NOTHING;
    *when = INFINITY;
    for (size_t i = 0; i < sim->scenario->device_count; ++i) {
        const worker *actor = &sim->actors[i];
        if (actor->state == GONE || actor->state == HANGING) continue;
        const double times[] = { end_of(actor), START + actor->device->dies_at,
                                 sim_next_pace(actor->device, START, sim->now), actor->wake };
        for (size_t k = 0; k < CLV_LEN(times); ++k)
            if (times[k] < *when) *when = times[k], *who = i, what = (event)(END + k);
    }
    if (sim->tick_at < *when) *when = sim->tick_at, what = TICK;
    return what;
}

static void happen(simulation *sim, event what, size_t i)
{
    worker *actor = &sim->actors[i];
    bool news = false;
    switch (what) {
    case END:
        if (actor->state == SETTING_UP) {
            actor->state = WORKING;
            ask(sim, i);
        } else if (actor->delay <= 0) {
            end_chunk(sim, i);
            news = true;
        }
        break;
    case DEATH:
        die(sim, i);
        news = true;
        break;
    case WAKE:
        ask(sim, i);
        break;
    default:
        break;
    }
    news |= tick(sim);
    if (news && !clv_balance_stuck(sim->balance)) ask_all(sim);
    (void)tick(sim); /* new leases, new deadlines */
}

static void run(simulation *sim)
{
    ask_all(sim);
    set_paces(sim);
    (void)tick(sim);
    double drained = START;
    while (!sim->result.fault) {
        size_t who = 0;
        double when;
        const event what = next_event(sim, &who, &when);
        if (clv_balance_stuck(sim->balance)) {
            sim->result.stuck = true;
            break;
        }
        if (what == NOTHING || !isfinite(when)) {
            if (!sim->result.finished) blame(sim, "everybody waits for ever");
            break;
        }
        if (sim->result.finished) {
            bool busy = false;
            for (size_t i = 0; i < sim->scenario->device_count; ++i)
                busy |= sim->actors[i].state == WORKING && sim->actors[i].queued;
            if (!busy) break;
        }
        if (++sim->result.events > MANY_EVENTS) blame(sim, "it does not end");
        sim->now = fmax(when, sim->now);
        if (sim->result.events == sim->scenario->death_event) {
            happen(sim, DEATH, sim->scenario->death_device);
            set_paces(sim);
            continue;
        }
        if (what == END && sim->actors[who].state == WORKING) drained = sim->now;
        happen(sim, what, who);
        set_paces(sim);
    }
    sim->result.drained = fmax(drained - START, sim->result.makespan);
}

sim_result sim_run(const sim_scenario *scenario)
{
    simulation sim = { .scenario = scenario, .now = START, .random = scenario->seed };
    clv_balance_device told[SIM_DEVICES];
    for (size_t i = 0; i < scenario->device_count; ++i) {
        worker *actor = &sim.actors[i];
        told[i] = scenario->devices[i].told;
        *actor = (worker){ .device = &scenario->devices[i],
                           .wake = INFINITY,
                           .random = scenario->seed * 31 + i };
        prepare_noise(scenario, actor, scenario->seed * 77 + i);
        if (scenario->taking_part && !(scenario->taking_part >> i & 1)) actor->state = GONE;
    }
    if (clv_balance_create(&scenario->job, told, scenario->device_count, START, &sim.balance)) {
        sim.result.fault = "create failed";
        return sim.result;
    }
    for (size_t i = 0; i < scenario->device_count; ++i)
        if (sim.actors[i].state == GONE)
            (void)clv_balance_failed(sim.balance, i, 0, START, CLV_BALANCE_LOST);
    run(&sim);
    if (sim.result.finished && !ledger_is_whole(&sim.committed, scenario->job.units))
        blame(&sim, "units are missing");
    clv_balance_quality(sim.balance, sim.now, &sim.result.imbalance, &sim.result.efficiency);
    for (size_t i = 0; i < scenario->device_count; ++i) {
        sim.result.stats[i] = clv_balance_get_stats(sim.balance, i);
        clv_text text = { 0 };
        if (sim_trace) clv_balance_explain(sim.balance, i, &text);
        clv_copy_string(sim.result.why[i], sizeof sim.result.why[i], clv_text_get(&text));
        clv_text_clear(&text);
    }
    clv_balance_free(sim.balance);
    ledger_clear(&sim.committed);
    return sim.result;
}
