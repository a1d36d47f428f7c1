/* SPDX-License-Identifier: Apache-2.0 */
/* Manages devices that share their cores (all CPU platforms of a machine): only one of them, the owner, works.
 *
 * Where speeds are unknown, every other member challenges the owner. It first does a tiny chunk beside the owner,
 * which absorbs the cost of first launches, and then two measured chunks for which the owner pauses. All of these
 * chunks are short, because a challenger may be a hundred times slower and a chunk cannot be called back. */
#include "runtime/job/balance/state.h"

static const double WORTH_S = 0.25;   /* seconds: a trial pays only if the job still takes longer */
static const double COARSE = 0.02;    /* ... and its smallest chunk takes at most this part */
static const double TINY = 5e-5;      /* a trial chunk takes the owner this part of the time left */
static const double TRIAL_COSTS = 2;  /* ... but at least this many times its cost of a chunk */
static const double SECOND = 6;       /* the second is this much larger, to show fixed costs */
static const double PAUSE = 0.001;    /* part of the time left that the owner waits for a trial */
static const double PAUSE_EVEN = 3;   /* ... or this many times what the owner itself would take */
static const double CLEARLY = 1.1;    /* times the owner's speed: the challenger wins */
static const unsigned TRIALS = 4;     /* most trials per device, if not all of them are steady */
static const double TURN_S = 0.01;    /* seconds to begin a trial once the cores are free */
static const double STALLED_S = 0.25; /* seconds: a later owner is replaced by another member */
static const double FIRST_S = 0.02;   /* ... even sooner in its first chunk, of unknown length */

static bool same_pool(const clv_balance *balance, size_t a, size_t b)
{
    return a == b || (balance->devices[a].given.pool >= 0 &&
                      balance->devices[a].given.pool == balance->devices[b].given.pool);
}

/* ---- the owner ----------------------------------------------------------------------------- */

/* Returns the seconds that the device alone would need for all open units. */
static double alone(const clv_balance *balance, size_t device)
{
    const clv_member *member = &balance->devices[device];
    const double delay = member->phase == CLV_PHASE_ACTIVE ? 0 : fmax(member->given.setup_s, 0);
    const double rate = clv_balance_rate(balance, device);
    return rate > 0 ? delay + (double)balance->book.open / rate : INFINITY;
}

typedef struct merit {
    bool suspended;
    double together, alone, setup_s; /* end of the job with the device; end with it alone; its
                                        set-up time */
} merit;

static merit merit_of(const clv_balance *balance, clv_forecast *forecast, size_t device)
{
    const clv_member *member = &balance->devices[device];
    if (member->phase == CLV_PHASE_NEW) /* its set-up may as well be shorter as longer */
        forecast->free_at[device] = balance->event_at + fmax(member->given.setup_s, 0);
    const clv_plan plan = clv_balance_plan(balance, forecast, (double)balance->book.open, device,
                                           member->owner, balance->event_at);
    return (merit){ .suspended = member->suspended,
                    .together = plan.finish,
                    .alone = alone(balance, device),
                    .setup_s = member->given.setup_s };
}

static bool better(const merit *a, const merit *b)
{
    if (a->suspended != b->suspended) return b->suspended;
    if (a->together != b->together) return a->together < b->together;
    if (a->alone != b->alone) return a->alone < b->alone;
    return a->setup_s < b->setup_s;
}

/* Returns the best member, apart from `except`, of the pool that contains `device`. */
static size_t best_of(clv_balance *balance, size_t device, size_t except)
{
    clv_forecast forecast = clv_balance_forecast(balance, balance->event_at);
    size_t best = CLV_NOBODY;
    merit best_merit = { 0 };
    for (size_t i = 0; i < balance->device_count; ++i) {
        if (i == except || !same_pool(balance, i, device)) continue;
        if (balance->devices[i].phase == CLV_PHASE_OUT) continue;
        const merit of = merit_of(balance, &forecast, i);
        if (best == CLV_NOBODY || better(&of, &best_merit)) best = i, best_merit = of;
    }
    return best;
}

/* Makes `owner` (CLV_NOBODY: no device) the owner of the pool that contains `device`. */
static void give_pool(clv_balance *balance, size_t owner, size_t device)
{
    const bool trials = balance->job.schedule == CLV_SCHEDULE_ADAPTIVE;
    for (size_t i = 0; i < balance->device_count; ++i) {
        clv_member *member = &balance->devices[i];
        if (!same_pool(balance, i, device)) continue;
        member->owner = owner;
        if (i == owner)
            member->trial = CLV_TRIAL_NONE, member->declined = false;
        else if (member->trial != CLV_TRIAL_NONE)
            continue;
        else if (trials && !clv_speed_known(&member->speed))
            member->trial = CLV_TRIAL_WARM_UP;
        else
            member->trial = CLV_TRIAL_JUDGED;
    }
}

void clv_balance_choose_owners(clv_balance *balance)
{
    for (size_t i = 0; i < balance->device_count; ++i) {
        const size_t owner = balance->devices[i].owner;
        if (owner != CLV_NOBODY && balance->devices[owner].phase != CLV_PHASE_OUT) continue;
        give_pool(balance, best_of(balance, i, CLV_NOBODY), i);
    }
}

/* ---- owners that do not end their chunk ---------------------------------------------------- */

/* Returns when the owner has to be replaced: it never asked, is long past the end of its chunk, or is still
 * in its first one, whose length is unknown. Infinity means that it works. */
static double owner_fails_at(const clv_balance *balance, size_t owner, double patience_s)
{
    const clv_member *member = &balance->devices[owner];
    if (!member->asked) return balance->start + CLV_BALANCE_MUSTER_S;
    for (size_t i = 0; i < balance->lease_count; ++i) {
        const clv_lease *lease = &balance->leases[i];
        if (lease->device != owner) continue;
        if (isfinite(lease->due)) return lease->due + 3 * (lease->due - lease->starts) + STALLED_S;
        return member->stats.chunks + member->stats.dropped ? INFINITY : lease->at + patience_s;
    }
    return INFINITY;
}

double clv_balance_reserve_until(clv_balance *balance, size_t device, double now)
{
    const clv_member *member = &balance->devices[device];
    const size_t owner = member->owner;
    const double when = owner_fails_at(balance, owner, FIRST_S);
    if (when > now) return when;
    const size_t next = best_of(balance, device, owner);
    if (!balance->devices[next].suspended) {
        balance->devices[owner].suspended = true;
        give_pool(balance, next, next);
    }
    return member->owner == device ? now : INFINITY;
}

bool clv_balance_pool_settle(clv_balance *balance, size_t device)
{
    const size_t owner = balance->devices[device].owner;
    if (balance->devices[device].given.pool < 0 || owner == CLV_NOBODY) return false;
    bool back = false;
    for (size_t i = 0; i < balance->device_count; ++i) {
        clv_member *member = &balance->devices[i];
        if (member->owner != owner || !member->suspended || !member->asked || member->in_flight)
            continue;
        member->suspended = false;
        back = true;
    }
    if (!back) return false;
    const size_t best = best_of(balance, device, CLV_NOBODY);
    if (best == owner) return false;
    balance->devices[best].suspended = balance->devices[owner].in_flight > 0;
    if (!balance->devices[best].suspended) give_pool(balance, best, best);
    return true;
}

/* ---- trials -------------------------------------------------------------------------------- */

bool clv_balance_challenges(const clv_balance *balance, size_t device)
{
    const clv_member *member = &balance->devices[device];
    return member->phase != CLV_PHASE_OUT && member->trial != CLV_TRIAL_NONE &&
           member->trial != CLV_TRIAL_JUDGED;
}

static void lose(clv_balance *balance, size_t device, double now)
{
    balance->devices[device].trial = CLV_TRIAL_JUDGED;
    clv_balance_judge(balance, device, CLV_VERDICT_SLOWER, now, now, now);
}

static bool worth(const clv_balance *balance, size_t owner, double remaining_s)
{
    const double least_s = (double)balance->job.min_chunk * balance->devices[owner].speed.unit_s;
    return remaining_s >= WORTH_S && least_s <= COARSE * remaining_s;
}

/* Tells the owner to work, or to wait while the cores are promised to a challenger. */
static clv_turn owner_turn(clv_balance *balance, size_t owner, double remaining_s, double now,
                           double *until)
{
    *until = INFINITY;
    if (clv_balance_pool_settle(balance, owner)) return CLV_TURN_WAIT;
    for (size_t i = 0; i < balance->device_count; ++i) {
        clv_member *member = &balance->devices[i];
        if (i == owner || member->owner != owner || !clv_balance_challenges(balance, i)) continue;
        const bool ready = member->trial == CLV_TRIAL_READY && worth(balance, owner, remaining_s);
        if (!ready && member->trial != CLV_TRIAL_RUNNING) continue;
        if (ready && !balance->devices[owner].in_flight && member->trial_end <= 0)
            member->trial_end = now + TURN_S;
        *until = ready && member->trial_end <= 0 ? INFINITY : member->trial_end;
        if (now < *until) return CLV_TURN_WAIT;
        lose(balance, i, now);
    }
    return CLV_TURN_WORK;
}

/* Returns how long the owner's first chunk may take before this challenger tries as well: FIRST_S for the
 * first challenger, twice as long for each further one. */
static double patience(const clv_balance *balance, size_t device)
{
    double seconds = FIRST_S;
    for (size_t i = 0; i < device; ++i)
        if (i != balance->devices[device].owner && same_pool(balance, i, device) &&
            clv_balance_challenges(balance, i))
            seconds *= 2;
    return seconds;
}

/* Lets a challenger run its trial: one at a time, and only once the owner has paused. */
static clv_turn trial_turn(const clv_balance *balance, size_t device, double now, double *until)
{
    clv_turn turn = CLV_TURN_TRIAL;
    for (size_t i = 0; i < balance->device_count; ++i) {
        const clv_member *other = &balance->devices[i];
        if (i == device || !same_pool(balance, i, device)) continue;
        if (other->trial == CLV_TRIAL_RUNNING && now < other->trial_end)
            *until = fmin(*until, other->trial_end);
        else if (!(i < device && other->trial == CLV_TRIAL_READY) &&
                 !(i == other->owner && other->in_flight))
            continue;
        turn = CLV_TURN_WAIT;
    }
    return turn;
}

clv_turn clv_balance_pool_turn(clv_balance *balance, size_t device, double remaining_s, double now,
                               double *until)
{
    clv_member *member = &balance->devices[device];
    if (member->owner == device) return owner_turn(balance, device, remaining_s, now, until);
    *until = INFINITY;
    if (member->in_flight) return CLV_TURN_WAIT;
    if (!clv_balance_challenges(balance, device)) {
        *until = clv_balance_reserve_until(balance, device, now);
        return *until > now ? CLV_TURN_WAIT : CLV_TURN_WORK;
    }
    if (!clv_speed_known(&balance->devices[member->owner].speed)) {
        const double when = owner_fails_at(balance, member->owner, patience(balance, device));
        if (when <= now) return CLV_TURN_WARM_UP;
        *until = when;
        return CLV_TURN_WAIT;
    }
    if (!worth(balance, member->owner, remaining_s)) {
        if (member->trial == CLV_TRIAL_READY) lose(balance, device, now);
        return CLV_TURN_WAIT;
    }
    if (member->trial == CLV_TRIAL_WARM_UP) return CLV_TURN_WARM_UP;
    return trial_turn(balance, device, now, until);
}

double clv_balance_trial_units(const clv_balance *balance, size_t device, double remaining_s)
{
    const clv_member *member = &balance->devices[device];
    const clv_speed *owner = &balance->devices[member->owner].speed;
    if (!clv_speed_known(owner)) return TINY * (double)balance->job.units;
    const double seconds = fmax(TINY * remaining_s, TRIAL_COSTS * owner->chunk_s);
    return (clv_speed_known(&member->speed) ? SECOND : 1) * seconds / owner->unit_s;
}

void clv_balance_trial_begin(clv_balance *balance, size_t device, size_t units, double remaining_s,
                             double now)
{
    clv_member *member = &balance->devices[device];
    if (member->trial != CLV_TRIAL_READY) return; /* a warm-up, for which nobody waits */
    const clv_speed *owner = &balance->devices[member->owner].speed;
    const double even_s = clv_speed_predict(owner, (double)units);
    member->trial = CLV_TRIAL_RUNNING;
    member->trial_end = now + fmax(PAUSE * remaining_s, PAUSE_EVEN * even_s) + 1e-3;
    ++member->trials;
}

void clv_balance_trial_judge(clv_balance *balance, size_t device, double now)
{
    clv_member *member = &balance->devices[device];
    const size_t owner = member->owner;
    if (member->trial == CLV_TRIAL_WARM_UP && !clv_speed_known(&balance->devices[owner].speed) &&
        !balance->devices[owner].stats.chunks) {
        give_pool(balance, device, device); /* ended before the owner's first: owns the pool */
        return;
    }
    const bool more = member->speed.samples < 2 && member->trials < TRIALS;
    if (member->trial == CLV_TRIAL_WARM_UP || (member->trial == CLV_TRIAL_RUNNING && more)) {
        member->trial = CLV_TRIAL_READY;
        member->trial_end = 0;
        return;
    }
    if (member->trial != CLV_TRIAL_RUNNING) return; /* the owner went on before the trial ended */
    const double faster = clv_balance_rate(balance, device) / clv_balance_rate(balance, owner);
    if (!(faster > CLEARLY) || balance->devices[owner].in_flight) {
        lose(balance, device, now);
        return;
    }
    lose(balance, owner, now);
    give_pool(balance, device, device);
}

double clv_balance_pool_cap(const clv_balance *balance, size_t device, double remaining_s,
                            double now)
{
    const double gone_s = now - balance->start;
    const double chunk_s = balance->devices[device].speed.chunk_s;
    const double soon = fmax(fmax(10 * chunk_s, 5e-4), 0.005 * gone_s);
    double cap = INFINITY;
    for (size_t i = 0; i < balance->device_count; ++i) {
        const clv_member *member = &balance->devices[i];
        if (i == device || member->owner != device) continue;
        if (member->suspended) cap = fmin(cap, fmax(fmax(20 * chunk_s, 0.01), 0.05 * gone_s));
        if (!clv_balance_challenges(balance, i) || !worth(balance, device, remaining_s)) continue;
        const double ready = member->admitted_at + member->given.setup_s;
        if (member->phase == CLV_PHASE_SETUP) cap = fmin(cap, fmax(soon, ready - now));
        if (member->phase == CLV_PHASE_ACTIVE) cap = fmin(cap, soon);
    }
    return cap;
}
