/* SPDX-License-Identifier: Apache-2.0 */
/* Forecasts when every queue will be empty, and when the job will be done if all devices end together. */
#include "runtime/job/balance/state.h"

#include "base/alloc.h"

#include <string.h>

static const double OVERHEAD_CHUNKS = 20;    /* a chunk lasts at least 20 times its fixed cost */
static const double FEW_OVERHEADS = 200;     /* ... and 200 times if that is still short */
static const double EXTRA_UNITS = 19;        /* fixed work is at most 5 % of a chunk */
static const double LONG = 2.5, LONGEST = 5; /* times target_s: longest for efficiency; at all */
static const double SETUP_DOUBT = 1.25;      /* a set-up may be this many times longer or shorter */
static const size_t COARSE = 64;             /* up to so many smallest chunks are dealt singly */

double clv_balance_shortest(const clv_balance *balance, size_t device)
{
    const clv_speed *speed = &balance->devices[device].speed;
    const double by_time = speed->unit_s > 0 ? OVERHEAD_CHUNKS * speed->chunk_s / speed->unit_s : 0;
    const double units = fmax(by_time, EXTRA_UNITS * balance->job.chunk_units);
    const double cap = LONGEST * balance->job.target_s / speed->unit_s;
    return fmax(fmin(units, cap), (double)balance->job.min_chunk);
}

/* Returns the units that the device is expected to do within its time limit. Chunks of one size cannot tell the fixed
 * cost from the cost of units, which may hide how slow the device is, so chunks at most double in size. */
static double within_time(const clv_balance *balance, const clv_member *member)
{
    const clv_speed *speed = &member->speed;
    if (!clv_speed_known(speed)) return (double)balance->job.units / CLV_BALANCE_PROBES;
    const double units = member->given.longest_s / speed->unit_s;
    return speed->most > 0 ? fmin(units, 2 * speed->most) : units;
}

size_t clv_balance_limit(const clv_balance *balance, size_t device)
{
    const clv_balance_job *job = &balance->job;
    const clv_member *member = &balance->devices[device];
    if (!(member->given.longest_s > 0)) return member->limit;
    const double most = within_time(balance, member);
    if (most >= (double)member->limit) return member->limit;
    return CLV_MIN(CLV_MAX((size_t)most / job->align * job->align, job->min_chunk), member->limit);
}

double clv_balance_longest(const clv_balance *balance, size_t device)
{
    const clv_speed *speed = &balance->devices[device].speed;
    const double target = balance->job.target_s;
    const double fixed = speed->chunk_s + speed->extra * speed->unit_s;
    const double seconds = fmin(fmax(target, FEW_OVERHEADS * fixed), LONG * target);
    return fmax(seconds / speed->unit_s, clv_balance_shortest(balance, device));
}

double clv_balance_rate(const clv_balance *balance, size_t device)
{
    const clv_member *member = &balance->devices[device];
    if (!clv_speed_known(&member->speed)) return 0;
    const double units =
        fmin(clv_balance_longest(balance, device), (double)clv_balance_limit(balance, device));
    return units / clv_speed_predict(&member->speed, units);
}

double clv_balance_hoped_setup(const clv_balance *balance, size_t device)
{
    return fmax(balance->devices[device].given.setup_s, 0) / SETUP_DOUBT;
}

bool clv_balance_absent(const clv_balance *balance, size_t device, double now)
{
    return !balance->devices[device].asked && now >= balance->start + CLV_BALANCE_MUSTER_S;
}

static double queue_start(const clv_balance *balance, size_t device, double now)
{
    const clv_member *member = &balance->devices[device];
    const double setup_s = SETUP_DOUBT * fmax(member->given.setup_s, 0);
    /* A device that could have asked since the last event, but did not, is expected after the same time again. */
    const double absent_s = member->asked_at < balance->event_at ? now - balance->event_at : 0;
    switch (member->phase) {
    case CLV_PHASE_NEW:
        return clv_balance_absent(balance, device, now) ? INFINITY : now + setup_s;
    case CLV_PHASE_SETUP:
        if (now <= member->admitted_at + setup_s) return member->admitted_at + setup_s;
        return now + (now - member->admitted_at - setup_s) + 0.1 * setup_s;
    case CLV_PHASE_ACTIVE:
        return now + absent_s;
    default:
        return INFINITY;
    }
}

/* Tells whether nobody should count on the lease any more: it takes twice as long as it should, or its
 * length is unknown. */
static bool hopeless(const clv_lease *lease, double now)
{
    return !isfinite(lease->due) || now > lease->due + (lease->due - lease->starts);
}

/* Returns whether no other lease on the same units has a predictable end. */
static bool unpredictable(const clv_balance *balance, const clv_lease *lease)
{
    for (size_t i = 0; i < balance->lease_count; ++i) {
        const clv_lease *other = &balance->leases[i];
        if (other == lease || other->doomed || !isfinite(other->ends)) continue;
        if (other->first <= lease->first && lease->first < other->first + other->count)
            return false;
    }
    return true;
}

clv_forecast clv_balance_forecast(clv_balance *balance, double now)
{
    clv_forecast forecast = { 0 };
    bool busy[CLV_BALANCE_MAX_DEVICES] = { false };
    for (size_t i = 0; i < balance->device_count; ++i)
        forecast.free_at[i] = queue_start(balance, i, now);

    for (size_t i = 0; i < balance->lease_count; ++i) {
        clv_lease *lease = &balance->leases[i];
        const clv_member *member = &balance->devices[lease->device];
        double *free_at = &forecast.free_at[lease->device];
        lease->starts =
            busy[lease->device] ? fmax(*free_at, lease->at) : fmax(member->last_end, lease->at);
        busy[lease->device] = true;
        if (!clv_speed_known(&member->speed) || !isfinite(lease->starts)) {
            lease->due = lease->ends = *free_at = INFINITY;
            continue;
        }
        const double length = clv_speed_predict(&member->speed, (double)lease->count);
        lease->due = lease->starts + length;
        lease->ends = now <= lease->due ? lease->due : now + (now - lease->due) + 0.05 * length;
        *free_at = hopeless(lease, now) ? INFINITY : lease->ends;
    }
    for (size_t i = 0; i < balance->lease_count; ++i) {
        const clv_lease *lease = &balance->leases[i];
        if (lease->doomed || lease->speculative || !hopeless(lease, now)) continue;
        if (unpredictable(balance, lease)) forecast.uncertain += (double)lease->count;
    }
    for (size_t i = 0; i < balance->device_count; ++i) {
        const clv_member *member = &balance->devices[i];
        forecast.unmeasured += member->phase != CLV_PHASE_OUT && member->owner == i &&
                               !member->declined && !clv_speed_known(&member->speed) &&
                               !clv_balance_absent(balance, i, now);
    }
    return forecast;
}

/* ---- plans --------------------------------------------------------------------------------- */

typedef struct filling {
    const clv_balance *balance;
    double now, units;
    double ready[CLV_BALANCE_MAX_DEVICES]; /* when the queue is empty and the next chunk's fixed
                                              cost is paid */
    bool in[CLV_BALANCE_MAX_DEVICES];
} filling;

/* Finds the device that would end first if it did everything alone. The other devices are its helpers. */
static void choose_fastest(const filling *fill, clv_plan *plan)
{
    double first = INFINITY;
    plan->fastest = CLV_NOBODY;
    plan->total_rate = 0;
    for (size_t i = 0; i < fill->balance->device_count; ++i) {
        if (!fill->in[i]) continue;
        plan->total_rate += plan->rate[i];
        const double end = fill->ready[i] + fill->units / plan->rate[i];
        if (end < first) first = end, plan->fastest = i;
    }
}

/* Returns how many seconds before the other devices a helper should end, so that noise does not make it the last. */
static double margin(const clv_balance *balance, size_t device, double units)
{
    const clv_speed *speed = &balance->devices[device].speed;
    const double last = fmin(clv_balance_shortest(balance, device), units);
    return clv_speed_slack(speed) * clv_speed_predict(speed, last);
}

/* Splits the units as if work flowed to every device, from the time it is ready until all devices end at once. A
 * device that is not ready by then takes nothing. */
static void pour(filling *fill, clv_plan *plan)
{
    const size_t count = fill->balance->device_count;
    choose_fastest(fill, plan);
    for (size_t i = 0; i < count; ++i)
        if (fill->in[i] && i != plan->fastest)
            fill->ready[i] += margin(fill->balance, i, fill->units);
    for (bool settled = false; !settled;) {
        double rate = 0, weighted = 0;
        settled = true;
        for (size_t i = 0; i < count; ++i)
            if (fill->in[i])
                rate += plan->rate[i], weighted += plan->rate[i] * (fill->ready[i] - fill->now);
        if (rate <= 0) break;
        plan->finish = fill->now + (fill->units + weighted) / rate;
        for (size_t i = 0; i < count; ++i)
            if (fill->in[i] && fill->ready[i] >= plan->finish) fill->in[i] = settled = false;
    }
    for (size_t i = 0; i < count; ++i)
        plan->share[i] = fill->in[i] ? plan->rate[i] * (plan->finish - fill->ready[i]) : 0;
    choose_fastest(fill, plan);
}

/* Deals out the last few chunks, each to the device that ends it first. A helper that would end a chunk only just as
 * early as the fastest device is likely to be late, so its noise counts against it. */
static void deal(filling *fill, clv_plan *plan, double chunk)
{
    const clv_balance *balance = fill->balance;
    choose_fastest(fill, plan);
    memset(plan->share, 0, sizeof plan->share);
    plan->finish = fill->now;
    double left = fill->units;
    while (left > 0) {
        const double units = fmin(left, chunk);
        left -= chunk;
        size_t best = CLV_NOBODY;
        double best_end = INFINITY;
        for (size_t i = 0; i < balance->device_count; ++i) {
            if (!fill->in[i]) continue;
            double end = fill->ready[i] + (plan->share[i] + units) / plan->rate[i];
            if (i != plan->fastest)
                end += clv_speed_slack(&balance->devices[i].speed) * (end - fill->now);
            if (end < best_end || (end <= best_end && i == plan->fastest)) best = i, best_end = end;
        }
        if (best == CLV_NOBODY) return;
        plan->share[best] += units;
        plan->finish = fmax(plan->finish, best_end);
    }
    for (size_t i = 0; i < balance->device_count; ++i)
        if (plan->share[i] <= 0) fill->in[i] = false;
    choose_fastest(fill, plan);
}

/* Returns the units that a helper can do before the fastest device is set up, even if that set-up goes
 * well. */
static double free_help(const filling *fill, const clv_plan *plan, size_t helper)
{
    const clv_member *fastest = &fill->balance->devices[plan->fastest];
    if (fastest->phase == CLV_PHASE_ACTIVE) return 0;
    const double begins = fastest->phase == CLV_PHASE_SETUP ? fastest->admitted_at : fill->now;
    const double ready = begins + clv_balance_hoped_setup(fill->balance, plan->fastest);
    return plan->rate[helper] * (ready - fill->ready[helper]);
}

/* Returns the helper that gains least, if it gains too little, else CLV_NOBODY. A helper must take more
 * off the fastest device than that device loses if it has to redo the helper's chunk. */
static size_t useless(const filling *fill, clv_plan *plan)
{
    const clv_balance *balance = fill->balance;
    if (plan->fastest == CLV_NOBODY) return CLV_NOBODY;
    const clv_speed *best = &balance->devices[plan->fastest].speed;
    const double need_s = 2 * best->chunk_s + 0.002 * (plan->finish - fill->now);
    size_t worst = CLV_NOBODY;
    for (size_t i = 0; i < balance->device_count; ++i) {
        if (!fill->in[i] || i == plan->fastest) continue;
        const double least = fmax(need_s * plan->rate[plan->fastest],
                                  fmin((double)balance->job.min_chunk, fill->units));
        if (plan->share[i] >= least) continue;
        const double before = free_help(fill, plan, i);
        if (before >= (double)balance->job.min_chunk) {
            plan->share[i] = fmin(plan->share[i], before);
            continue;
        }
        if (worst == CLV_NOBODY || plan->share[i] < plan->share[worst]) worst = i;
    }
    return worst;
}

clv_plan clv_balance_plan(const clv_balance *balance, const clv_forecast *forecast, double units,
                          size_t asking, size_t without, double now)
{
    clv_plan plan = { .finish = INFINITY, .fastest = CLV_NOBODY };
    filling fill = { .balance = balance, .now = now, .units = units };
    size_t candidates = 0;
    for (size_t i = 0; i < balance->device_count; ++i) {
        const clv_member *member = &balance->devices[i];
        plan.rate[i] = member->phase == CLV_PHASE_OUT ? 0 : clv_balance_rate(balance, i);
        fill.ready[i] = forecast->free_at[i] + member->speed.chunk_s +
                        member->speed.extra * member->speed.unit_s;
        fill.in[i] = i != without && plan.rate[i] > 0 && isfinite(fill.ready[i]) &&
                     (i == asking || (member->owner == i && !member->declined));
        candidates += fill.in[i];
    }
    if (!candidates) return plan;

    const double chunk = (double)balance->job.min_chunk;
    filling all = fill;
    for (;;) {
        fill = all;
        if (units <= (double)COARSE * chunk)
            deal(&fill, &plan, chunk);
        else
            pour(&fill, &plan);
        const size_t out = useless(&fill, &plan);
        if (out == CLV_NOBODY) break;
        all.in[out] = false;
    }
    for (size_t i = 0; i < balance->lease_count; ++i) {
        const clv_lease *lease = &balance->leases[i];
        if (!lease->doomed && !hopeless(lease, now)) plan.finish = fmax(plan.finish, lease->ends);
    }
    return plan;
}
