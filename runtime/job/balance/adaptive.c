/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the default schedule: measured speeds, guided chunk sizes, admission of devices, a rule for the end of the
 * job, and speculation.
 *
 * A job is never much slower than on the best single device, for these reasons. The best device is idle only while
 * other devices hold all open units and will finish them sooner than it could. If a chunk of another device is later
 * than noise explains, the best device computes that chunk again at once. The best device never computes its own units
 * twice. The job therefore takes at most as long as the best device would take alone, plus the fixed cost of a few more
 * chunks, plus the time to repeat one last chunk. */
#include "runtime/job/balance/state.h"

#include "base/alloc.h"

/* a device of unknown speed tries 1 / CLV_BALANCE_PROBES of the job ... */
static const double PROBE_S = 0.002; /* ... or what the fastest device does in this time, if less */
static const double GUESSED = 8;     /* ... up to this many times 1/4096 if its speed is guessed */
static const double PROBE_PART = 0.02; /* a first try is made only while one more chunk costs the
                                          fastest device at most this part of the time left */
static const double ALONE = 2.5;       /* times target_s: longest chunk if no other can help */
static const double WHOLE = 1.5;       /* times the shortest chunk: a smaller share is not split */
static const double PATIENCE_S = 0.01; /* seconds before a device of unknown speed redoes a chunk */
static const double RACE_S = 0.25;     /* seconds: a chunk with more left is worth a race */
static const double SETUP_LATE_S = 0.1;   /* seconds: a set-up is never late before this */
static const double GRACE = 0.01;         /* part of its set-up time: its wait for speeds */
static const double RECHECK_S = 1e-3;     /* a device asks again after at least this ... */
static const double RECHECK_PART = 0.002; /* ... plus this part of the time gone, so that even a
                                             stalled job asks a bounded number of times */

static double next_question(const clv_balance *balance, double when, double now)
{
    const double muster = balance->start + CLV_BALANCE_MUSTER_S;
    for (size_t i = 0; i < balance->device_count && now < muster; ++i)
        if (!balance->devices[i].asked && balance->devices[i].phase == CLV_PHASE_NEW)
            when = fmin(when, muster);
    return fmax(when, now + RECHECK_S + RECHECK_PART * (now - balance->start));
}

static clv_choice ask_again(const clv_balance *balance, double when, double now)
{
    return clv_balance_wait(next_question(balance, when, now));
}

static double open_units(const clv_balance *balance, const clv_forecast *forecast)
{
    return (double)balance->book.free + forecast->uncertain;
}

static clv_choice take(const clv_balance *balance, size_t device, double wanted,
                       const clv_segment *segment)
{
    return (clv_choice){ .first = segment->first,
                         .count = clv_balance_cut(balance, device, wanted, segment) };
}

/* Returns whether this device must work because no other one does: it was told to wait before, and no other device
 * has come since then. */
static bool somebody_must(const clv_balance *balance, size_t device, double now)
{
    const clv_member *member = &balance->devices[device];
    for (size_t i = 0; i < balance->device_count; ++i) {
        const clv_member *other = &balance->devices[i];
        const double late = other->admitted_at + fmax(2 * other->given.setup_s, SETUP_LATE_S);
        if (other->phase == CLV_PHASE_SETUP && other->owner == i && now < late) return false;
    }
    return !balance->lease_count && member->wait_until > 0 && now >= member->wait_until &&
           balance->event_at < member->told_at;
}

/* Returns when the first of the devices in set-up can begin, or 0 when none is in set-up. */
static double first_ready(const clv_balance *balance, const clv_forecast *forecast)
{
    double when = INFINITY;
    for (size_t i = 0; i < balance->device_count; ++i)
        if (balance->devices[i].phase == CLV_PHASE_SETUP) when = fmin(when, forecast->free_at[i]);
    return isfinite(when) ? when : 0;
}

/* ---- speed unknown ------------------------------------------------------------------------- */

static double probe_units(const clv_balance *balance, size_t device, const clv_plan *others)
{
    const double guess = balance->devices[device].given.guess_units_per_s;
    double units = (double)balance->job.units / CLV_BALANCE_PROBES;
    if (guess > 0) units = fmin(guess * PROBE_S, GUESSED * units);
    if (others->fastest != CLV_NOBODY) {
        const clv_speed *best = &balance->devices[others->fastest].speed;
        units = fmin(units, PROBE_S / best->unit_s);
    }
    return units;
}

static clv_choice probe(clv_balance *balance, const clv_forecast *forecast, size_t device,
                        const clv_segment *segment, double now)
{
    const clv_plan others =
        clv_balance_plan(balance, forecast, open_units(balance, forecast), CLV_NOBODY, device, now);
    if (balance->devices[device].in_flight) return clv_balance_wait(INFINITY); /* one probe */
    if (others.fastest != CLV_NOBODY && !somebody_must(balance, device, now)) {
        /* If the probe is lost, the fastest device has to do one more chunk. */
        const double cost = balance->devices[others.fastest].speed.chunk_s;
        if (cost > PROBE_PART * (others.finish - now)) {
            clv_balance_judge(balance, device, CLV_VERDICT_NO_WORK, now, others.finish, now);
            return ask_again(balance, others.finish, now);
        }
    }
    return take(balance, device, probe_units(balance, device, &others), segment);
}

/* ---- speed known --------------------------------------------------------------------------- */

static bool others_may_come(const clv_balance *balance, const clv_forecast *forecast, size_t device)
{
    if (forecast->unmeasured > 0) return true;
    for (size_t i = 0; i < balance->device_count; ++i) {
        const clv_member *member = &balance->devices[i];
        if (i != device && member->owner == i && member->phase == CLV_PHASE_SETUP) return true;
    }
    return false;
}

/* Returns the guided size of a chunk: a part of the device's share that leaves enough units to correct the other
 * devices' shares, and that is neither too short to be efficient nor too long to be responsive. A share too small to
 * be split is taken whole. */
static double guided(const clv_balance *balance, const clv_forecast *forecast, const clv_plan *plan,
                     size_t device, double now)
{
    const clv_speed *speed = &balance->devices[device].speed;
    const double share = plan->share[device], left_s = plan->finish - now;
    const double others = 1 - plan->rate[device] / plan->total_rate + (double)forecast->unmeasured;
    const double shortest = clv_balance_shortest(balance, device);
    double longest = clv_balance_longest(balance, device);
    if (others <= 0 && !others_may_come(balance, forecast, device))
        longest = fmax(longest, ALONE * balance->job.target_s / speed->unit_s);
    longest = fmin(longest, clv_balance_pool_cap(balance, device, left_s, now) / speed->unit_s);
    if (share <= WHOLE * shortest) { /* the device's last chunk */
        const double haste = device == plan->fastest ? 1 : 1 / (1 + clv_speed_slack(speed));
        return fmin(share * haste, longest);
    }
    return fmin(fmax(share / (1 + others), shortest), longest);
}

static clv_choice known(clv_balance *balance, const clv_forecast *forecast, size_t device,
                        const clv_segment *segment, double now)
{
    const double open = open_units(balance, forecast);
    const clv_plan plan = clv_balance_plan(balance, forecast, open, device, CLV_NOBODY, now);
    double wanted = 0;
    if (plan.share[device] > 0) {
        wanted = guided(balance, forecast, &plan, device, now);
    } else if (!somebody_must(balance, device, now)) {
        const clv_speed *speed = &balance->devices[device].speed;
        const double end =
            forecast->free_at[device] + clv_speed_predict(speed, (double)balance->job.min_chunk);
        const clv_verdict verdict = end > plan.finish ? CLV_VERDICT_TOO_LATE : CLV_VERDICT_NO_GAIN;
        clv_balance_judge(balance, device, verdict, end, plan.finish, now);
        const double news = balance->lease_count ? plan.finish : first_ready(balance, forecast);
        return ask_again(balance, news, now);
    }
    return take(balance, device, wanted, segment);
}

/* ---- speculation --------------------------------------------------------------------------- */

/* The lease that is predicted to end first, among all leases on the same units. */
typedef struct clv_holding {
    double starts, due, ends; /* infinity: unknown */
    double slack;             /* seconds by which noise alone may make it late */
    double at;                /* when the oldest lease on the same units was given */
} clv_holding;

static bool covers(const clv_lease *lease, const clv_segment *segment)
{
    return !lease->doomed && lease->first <= segment->first &&
           segment->first < lease->first + lease->count;
}

static clv_holding holding(const clv_balance *balance, const clv_segment *segment)
{
    clv_holding best = { .starts = INFINITY, .due = INFINITY, .ends = INFINITY, .at = INFINITY };
    for (size_t i = 0; i < balance->lease_count; ++i) {
        const clv_lease *lease = &balance->leases[i];
        if (!covers(lease, segment)) continue;
        best.at = fmin(best.at, lease->at);
        if (lease->ends >= best.ends) continue;
        best.starts = lease->starts, best.due = lease->due, best.ends = lease->ends;
        best.slack =
            clv_speed_slack(&balance->devices[lease->device].speed) * (lease->due - lease->starts);
    }
    return best;
}

/* Predicts the seconds in which the device can redo `units`, in pieces if its memory is too small for all at once. */
static double redo_s(const clv_balance *balance, size_t device, size_t units)
{
    const clv_member *member = &balance->devices[device];
    const double pieces = ceil((double)units / (double)clv_balance_limit(balance, device));
    return clv_speed_predict(&member->speed, (double)units) + (pieces - 1) * member->speed.chunk_s;
}

static bool holds(const clv_balance *balance, size_t device, const clv_segment *segment)
{
    for (size_t i = 0; i < balance->lease_count; ++i)
        if (balance->leases[i].device == device && covers(&balance->leases[i], segment))
            return true;
    return false;
}

/* Returns the earliest time at which another device can begin the segment and still end it before `than`; infinity if
 * there is no such device. A device begins when its queue is empty. */
static double sooner_elsewhere(const clv_balance *balance, const clv_forecast *forecast,
                               size_t device, const clv_segment *segment, double than)
{
    double soonest = INFINITY;
    for (size_t i = 0; i < balance->device_count; ++i) {
        const clv_member *member = &balance->devices[i];
        if (i == device || member->owner != i || member->phase != CLV_PHASE_ACTIVE ||
            !clv_speed_known(&member->speed) || !isfinite(forecast->free_at[i]) ||
            holds(balance, i, segment))
            continue;
        if (forecast->free_at[i] + redo_s(balance, i, segment->count) < than)
            soonest = fmin(soonest, forecast->free_at[i]);
    }
    return soonest;
}

/* Returns when a device of unknown speed should redo the units. A race costs nothing but this device's own time,
 * which no other work needs, but it must promise a gain. */
static double race_at(const clv_holding *held, double now)
{
    const double overdue = held->due + (held->due - held->starts);
    return held->ends - now > RACE_S || now > overdue ? held->at + PATIENCE_S : overdue;
}

/* Returns when the device should redo units that other devices hold; a time <= now means at once. */
static double redo_at(const clv_balance *balance, const clv_forecast *forecast, size_t device,
                      const clv_segment *segment, const clv_holding *held, double now)
{
    if (!clv_speed_known(&balance->devices[device].speed)) return race_at(held, now);
    const double length = redo_s(balance, device, segment->count);
    if (isfinite(held->ends) && now + length >= held->ends) {
        /* A device that is faster than the holder waits only as long as noise explains the delay. */
        const double expected = held->due - held->starts;
        const double allowance = length < expected ? held->slack : expected;
        const double when = held->due + fmin(length, allowance);
        if (when > now) return when;
    }
    const double better = sooner_elsewhere(balance, forecast, device, segment, now + length);
    return isfinite(better) ? better + 0.5 * length : now;
}

static clv_choice speculate(clv_balance *balance, const clv_forecast *forecast, size_t device,
                            double now)
{
    const clv_member *member = &balance->devices[device];
    if (member->in_flight) return clv_balance_wait(INFINITY);
    const clv_segment *latest = NULL;
    double latest_end = 0, next = INFINITY;
    for (size_t i = 0; i < balance->book.count; ++i) {
        const clv_segment *segment = &balance->book.segments[i];
        const clv_holding held = holding(balance, segment);
        const double when = redo_at(balance, forecast, device, segment, &held, now);
        if (when > now)
            next = fmin(next, when);
        else if (!latest || held.ends > latest_end)
            latest = segment, latest_end = held.ends;
    }
    if (!latest) {
        clv_balance_judge(balance, device, CLV_VERDICT_NO_WORK, now, now, now);
        return ask_again(balance, next, now);
    }
    return (clv_choice){ .first = latest->first,
                         .count = CLV_MIN(latest->count, clv_balance_limit(balance, device)),
                         .speculative = true };
}

/* ---- what a device does next; when to set it up -------------------------------------------- */

/* Asks the device's pool first. Returns true when the pool's answer, *choice, is final. */
static bool pool_answers(clv_balance *balance, const clv_forecast *forecast, size_t device,
                         const clv_segment *segment, double now, clv_choice *choice)
{
    clv_member *member = &balance->devices[device];
    if (member->given.pool < 0) return false;
    const clv_plan plan = clv_balance_plan(balance, forecast, open_units(balance, forecast),
                                           CLV_NOBODY, CLV_NOBODY, now);
    const double left_s = plan.finish - now;
    double until = INFINITY;
    const clv_turn turn = clv_balance_pool_turn(balance, device, left_s, now, &until);
    if (turn == CLV_TURN_WORK) return false;
    *choice = clv_balance_wait(until);
    if (turn != CLV_TURN_WAIT && segment) {
        *choice = take(balance, device, clv_balance_trial_units(balance, device, left_s), segment);
        clv_balance_trial_begin(balance, device, choice->count, left_s, now);
    } else if (member->owner != device && member->verdict != CLV_VERDICT_SLOWER) {
        clv_balance_judge(balance, device, CLV_VERDICT_POOL, now, now, now);
    }
    return true;
}

clv_choice clv_balance_adapt(clv_balance *balance, size_t device, double now)
{
    const clv_forecast forecast = clv_balance_forecast(balance, now);
    const clv_segment *segment = clv_book_lowest(&balance->book);
    clv_choice choice;
    if (pool_answers(balance, &forecast, device, segment, now, &choice)) return choice;
    if (!segment) return speculate(balance, &forecast, device, now);
    if (!clv_speed_known(&balance->devices[device].speed))
        return probe(balance, &forecast, device, segment, now);
    return known(balance, &forecast, device, segment, now);
}

/* Returns whether another device may be measured before this one has to begin its set-up. */
static bool news_may_come(const clv_balance *balance, size_t device)
{
    const double setup_s = balance->devices[device].given.setup_s;
    for (size_t i = 0; i < balance->device_count; ++i) {
        const clv_member *member = &balance->devices[i];
        if (i == device || member->phase == CLV_PHASE_OUT || member->owner != i) continue;
        if (member->given.setup_s < setup_s) return true;
    }
    return false;
}

double clv_balance_admit_at(clv_balance *balance, size_t device, double now)
{
    clv_member *member = &balance->devices[device];
    const double setup_s = fmax(member->given.setup_s, 0);
    clv_forecast forecast = clv_balance_forecast(balance, now);
    if (member->owner != device && !clv_balance_challenges(balance, device)) {
        const double when = clv_balance_reserve_until(balance, device, now);
        if (when > now) clv_balance_judge(balance, device, CLV_VERDICT_POOL, now, now, now);
        if (when > now) return when;
    }
    if (setup_s <= 0) return now;

    /* A set-up never takes exactly as long as before: this device's may be shorter, the others' longer. */
    forecast.free_at[device] = now + clv_balance_hoped_setup(balance, device);
    const double open = open_units(balance, &forecast);
    const clv_plan others = clv_balance_plan(balance, &forecast, open, CLV_NOBODY, device, now);
    if (others.fastest == CLV_NOBODY) {
        const double latest = balance->start + GRACE * setup_s;
        return now < latest && news_may_come(balance, device) ? latest : now;
    }
    bool helps = forecast.free_at[device] < others.finish;
    if (clv_speed_known(&member->speed)) {
        const clv_plan with = clv_balance_plan(balance, &forecast, open, device, CLV_NOBODY, now);
        helps = with.share[device] > 0;
    }
    if (helps) return now;
    clv_balance_judge(balance, device, CLV_VERDICT_SETUP, now + setup_s, others.finish, now);
    return next_question(balance, others.finish, now);
}
