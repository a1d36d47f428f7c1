/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the balancer's state machine. adaptive.c, rules.c and pool.c decide who takes which units; this file turns the
 * decisions into leases and ends the leases. */
#include "runtime/job/balance/state.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

static const double TARGET_S = 0.1;
static const double HANG_FACTOR = 10, HANG_S = 5; /* a chunk is lost after the longer of HANG_FACTOR
                                                     times its prediction and HANG_S seconds, */
static const double HANG_FIRST_S = 60;    /* ... its device's first one, in which kernels may be
                                             compiled, after at least this */
static const double HANG_UNKNOWN_S = 600; /* ... one at unknown speed after the longer of this */
static const double HANG_SLOWER = 20;     /* ... or this many times the fastest device's time */

/* ---- beginning and end --------------------------------------------------------------------- */

/* Returns the largest chunk of at most `units` that ends at a multiple of align, or 0 if not even the
 * smallest fits. */
static size_t limit_to(const clv_balance_job *job, size_t units)
{
    if (units >= job->units) return job->units;
    const size_t aligned = units / job->align * job->align;
    return aligned >= job->min_chunk ? aligned : 0;
}

static clv_status check(const clv_balance_job *job, const clv_balance_device *devices, size_t count)
{
    if (count > CLV_BALANCE_MAX_DEVICES)
        return clv_fail(CLV_E_ARGUMENT, "balance: got %zu devices, expected 0 to %d", count,
                        CLV_BALANCE_MAX_DEVICES);
    if (job->units > SIZE_MAX / 4 || job->align > SIZE_MAX / 4 || job->min_chunk > SIZE_MAX / 4)
        return clv_fail(CLV_E_ARGUMENT, "balance: units, align or min_chunk is above 2^62");
    for (size_t i = 0; i < count; ++i)
        if (!devices[i].depth || devices[i].depth > CLV_BALANCE_MAX_DEPTH)
            return clv_fail(CLV_E_ARGUMENT, "balance: device %zu has depth %u, expected 1 to %d", i,
                            devices[i].depth, CLV_BALANCE_MAX_DEPTH);
    return CLV_OK;
}

static clv_balance_job complete(const clv_balance_job *given)
{
    clv_balance_job job = *given;
    job.align = CLV_MAX(job.align, 1);
    job.min_chunk = clv_round_up(CLV_MAX(job.min_chunk, job.align), job.align);
    job.min_chunk = CLV_MIN(job.min_chunk, CLV_MAX(job.units, 1));
    if (job.batch) job.batch = CLV_MAX(job.batch, job.min_chunk);
    if (!(job.target_s > 0)) job.target_s = TARGET_S;
    if (!(job.chunk_units > 0)) job.chunk_units = 0;
    return job;
}

clv_status clv_balance_create(const clv_balance_job *job, const clv_balance_device *devices,
                              size_t device_count, double now, clv_balance **out)
{
    enum { MOST_LEASES = CLV_BALANCE_MAX_DEVICES * CLV_BALANCE_MAX_DEPTH };
    *out = NULL;
    clv_balance *balance = clv_zalloc(1, sizeof *balance);
    if (balance) balance->leases = clv_alloc(MOST_LEASES, sizeof *balance->leases);
    clv_status status =
        balance && balance->leases
            ? clv_balance_restart(balance, job, devices, device_count, now)
            : clv_fail(CLV_E_MEMORY, "balance: not enough memory for %zu devices", device_count);
    if (status)
        clv_balance_free(balance);
    else
        *out = balance;
    return status;
}

clv_status clv_balance_restart(clv_balance *balance, const clv_balance_job *job,
                               const clv_balance_device *devices, size_t device_count, double now)
{
    CLV_TRY(check(job, devices, device_count));
    if (!clv_book_restart(&balance->book, job->units))
        return clv_fail(CLV_E_MEMORY, "balance: not enough memory for %zu devices", device_count);
    *balance = (clv_balance){ .leases = balance->leases, .book = balance->book };
    balance->job = complete(job);
    balance->start = balance->finished_at = balance->event_at = now;
    balance->device_count = device_count;
    balance->next_id = 1;
    for (size_t i = 0; i < device_count; ++i) {
        clv_member *member = &balance->devices[i];
        const clv_balance_device *given = &devices[i];
        member->given = *given;
        member->speed = clv_speed_start(given->units_per_s, given->chunk_s, job->chunk_units);
        member->owner = given->pool < 0 ? i : CLV_NOBODY;
        member->last_end = now;
        member->limit = balance->job.units;
        if (given->max_chunk) member->limit = limit_to(&balance->job, given->max_chunk);
        if (balance->job.batch)
            member->limit = CLV_MIN(member->limit, limit_to(&balance->job, balance->job.batch));
        if (!member->limit && job->units) {
            member->phase = CLV_PHASE_OUT;
            member->verdict = CLV_VERDICT_MEMORY;
        }
    }
    clv_balance_choose_owners(balance);
    if (balance->job.schedule == CLV_SCHEDULE_STATIC) clv_balance_share_out(balance);
    return CLV_OK;
}

void clv_balance_free(clv_balance *balance)
{
    if (!balance) return;
    clv_book_clear(&balance->book);
    clv_free(balance->leases);
    clv_free(balance);
}

bool clv_balance_finished(const clv_balance *balance)
{
    return balance->book.open == 0;
}

bool clv_balance_stuck(const clv_balance *balance)
{
    for (size_t i = 0; i < balance->device_count; ++i)
        if (balance->devices[i].phase != CLV_PHASE_OUT) return false;
    return balance->book.open > 0;
}

/* ---- leases -------------------------------------------------------------------------------- */

static clv_lease *find(clv_balance *balance, size_t device, unsigned id)
{
    for (size_t i = 0; i < balance->lease_count; ++i)
        if (balance->leases[i].id == id && balance->leases[i].device == device)
            return &balance->leases[i];
    return NULL;
}

static void forget(clv_balance *balance, clv_lease *lease)
{
    clv_lease *end = balance->leases + --balance->lease_count;
    memmove(lease, lease + 1, (size_t)((char *)end - (char *)lease));
}

/* Takes the lease out of its device's queue. The caller decides what happens to the lease's units. */
static clv_lease end_lease(clv_balance *balance, clv_lease *live, double now)
{
    const clv_lease lease = *live;
    clv_member *member = &balance->devices[lease.device];
    forget(balance, live);
    if (--member->in_flight == 0) member->stats.busy_s += now - member->busy_since;
    member->last_end = balance->event_at = now;
    member->stats.finish = now;
    return lease;
}

static void return_units(clv_balance *balance, const clv_lease *lease)
{
    if (!lease->doomed) clv_book_release(&balance->book, lease->first, lease->count);
}

/* Marks the other leases that share units with `winner` as doomed: once some of its units are committed,
 * a lease cannot commit any more. Its other units become free unless another lease holds them too. */
static void doom_overlapping(clv_balance *balance, const clv_lease *winner)
{
    for (size_t i = 0; i < balance->lease_count; ++i) {
        clv_lease *lease = &balance->leases[i];
        if (lease->doomed || lease->first >= winner->first + winner->count ||
            winner->first >= lease->first + lease->count)
            continue;
        clv_book_release(&balance->book, lease->first, lease->count);
        lease->doomed = true;
    }
}

static void leave(clv_balance *balance, size_t device, clv_verdict verdict, double now)
{
    clv_member *member = &balance->devices[device];
    member->phase = CLV_PHASE_OUT;
    clv_balance_judge(balance, device, verdict, now, now, now);
    for (size_t i = balance->lease_count; i-- > 0;) {
        if (balance->leases[i].device != device) continue;
        const clv_lease lease = end_lease(balance, &balance->leases[i], now);
        return_units(balance, &lease);
        ++member->stats.failed;
    }
    clv_balance_choose_owners(balance);
    if (balance->job.schedule == CLV_SCHEDULE_STATIC) clv_balance_share_out(balance);
}

/* ---- questions ----------------------------------------------------------------------------- */

static clv_balance_lease answer(clv_member *member, clv_balance_act act, double until)
{
    member->wait_until = act == CLV_BALANCE_WAIT ? until : 0;
    member->told_at = member->asked_at;
    return (clv_balance_lease){ .act = act, .until = until };
}

static clv_member *questioner(clv_balance *balance, size_t device, double now)
{
    clv_member *member = &balance->devices[device];
    member->asked = true;
    member->asked_at = now;
    (void)clv_balance_pool_settle(balance, device); /* in case an earlier owner has come back */
    return member;
}

clv_balance_lease clv_balance_admit(clv_balance *balance, size_t device, double now)
{
    clv_member *member = questioner(balance, device, now);
    if (member->phase == CLV_PHASE_OUT || clv_balance_finished(balance))
        return answer(member, CLV_BALANCE_LEAVE, now);
    double when = now;
    if (balance->job.schedule == CLV_SCHEDULE_ADAPTIVE)
        when = clv_balance_admit_at(balance, device, now);
    else if (member->owner != device)
        when = INFINITY;
    member->declined = when > now;
    if (member->declined) return answer(member, CLV_BALANCE_WAIT, when);
    member->phase = CLV_PHASE_SETUP;
    member->admitted_at = now;
    return answer(member, CLV_BALANCE_WORK, now);
}

static clv_balance_lease lend(clv_balance *balance, size_t device, const clv_choice *choice,
                              double now)
{
    clv_member *member = &balance->devices[device];
    if (!clv_book_take(&balance->book, choice->first, choice->count))
        return answer(member, CLV_BALANCE_WAIT, now + TARGET_S); /* memory may come back */
    clv_lease *lease = &balance->leases[balance->lease_count++];
    *lease = (clv_lease){ .id = balance->next_id++,
                          .device = device,
                          .first = choice->first,
                          .count = choice->count,
                          .at = now,
                          .speculative = choice->speculative };
    if (clv_speed_known(&member->speed))
        lease->expected_s = clv_speed_predict(&member->speed, (double)choice->count);
    if (member->in_flight++ == 0) member->busy_since = now;
    member->share -= CLV_MIN(member->share, choice->count);
    member->wait_until = 0;
    member->verdict = CLV_VERDICT_WORKS;
    member->ever_lent = true;
    return (clv_balance_lease){ .act = CLV_BALANCE_WORK,
                                .id = lease->id,
                                .first = lease->first,
                                .count = lease->count,
                                .speculative = lease->speculative,
                                .expected_s = lease->expected_s,
                                .until = now };
}

clv_balance_lease clv_balance_next(clv_balance *balance, size_t device, double now)
{
    clv_member *member = questioner(balance, device, now);
    if (member->phase == CLV_PHASE_OUT || clv_balance_finished(balance))
        return answer(member, CLV_BALANCE_LEAVE, now);
    if (member->phase != CLV_PHASE_ACTIVE) {
        member->phase = CLV_PHASE_ACTIVE;
        member->declined = false;
        member->last_end = now;
    }
    if (member->in_flight >= member->given.depth) return answer(member, CLV_BALANCE_WAIT, INFINITY);
    const clv_choice choice = balance->job.schedule == CLV_SCHEDULE_ADAPTIVE
                                  ? clv_balance_adapt(balance, device, now)
                                  : clv_balance_by_rule(balance, device);
    if (choice.count) return lend(balance, device, &choice, now);
    return answer(member, CLV_BALANCE_WAIT, choice.until);
}

/* ---- answers ------------------------------------------------------------------------------- */

bool clv_balance_done(clv_balance *balance, size_t device, unsigned id, double now, bool steady)
{
    clv_member *member = &balance->devices[device];
    clv_lease *live = find(balance, device, id);
    if (!live) return false; /* its device was given up before */
    const double seconds = now - fmax(live->at, member->last_end);
    const bool on_trial = member->trial == CLV_TRIAL_WARM_UP || member->trial == CLV_TRIAL_RUNNING;
    const bool measured = steady && member->trial != CLV_TRIAL_WARM_UP;
    const clv_lease lease = end_lease(balance, live, now);
    member->failures = 0;
    if (measured) clv_speed_observe(&member->speed, lease.count, seconds);
    if (on_trial) clv_balance_trial_judge(balance, device, now);
    (void)clv_balance_pool_settle(balance, device);
    if (lease.doomed) {
        ++member->stats.dropped;
        return false;
    }
    clv_book_commit(&balance->book, lease.first, lease.count);
    doom_overlapping(balance, &lease);
    member->stats.units += lease.count;
    ++member->stats.chunks;
    balance->finished_at = now;
    return true;
}

bool clv_balance_failed(clv_balance *balance, size_t device, unsigned id, double now,
                        clv_balance_failure failure)
{
    clv_member *member = &balance->devices[device];
    if (member->phase == CLV_PHASE_OUT) return false;
    clv_lease *live = failure == CLV_BALANCE_LOST ? NULL : find(balance, device, id);
    if (!live) { /* the device was lost, or its set-up failed */
        leave(balance, device, failure == CLV_BALANCE_LOST ? CLV_VERDICT_LOST : CLV_VERDICT_FAILED,
              now);
        return false;
    }
    const clv_lease lease = end_lease(balance, live, now);
    return_units(balance, &lease);
    member->share += lease.count;
    ++member->stats.failed;
    if (failure == CLV_BALANCE_FAILED) {
        if (++member->failures < 2) return true;
        leave(balance, device, CLV_VERDICT_FAILED, now);
        return false;
    }
    const clv_balance_job *job = &balance->job;
    if (lease.count <= job->min_chunk) {
        leave(balance, device, CLV_VERDICT_MEMORY, now);
        return false;
    }
    const size_t half = CLV_MAX(lease.count / 2 / job->align * job->align, job->min_chunk);
    if (half < member->limit) member->limit = member->stats.max_chunk = half;
    return true;
}

/* Returns when the device counts as hung, because of its oldest lease. */
static double hangs_at(const clv_balance *balance, const clv_lease *oldest, double fastest)
{
    const clv_member *member = &balance->devices[oldest->device];
    const double units = (double)oldest->count;
    const double expected = clv_speed_predict_most(&member->speed, units);
    double length = fmax(HANG_FACTOR * fmax(oldest->expected_s, expected), HANG_S);
    if (!member->stats.chunks && !member->stats.dropped) length = fmax(length, HANG_FIRST_S);
    if (!clv_speed_known(&member->speed))
        length = fmax(HANG_UNKNOWN_S, fastest > 0 ? HANG_SLOWER * units / fastest : 0);
    return oldest->starts + length;
}

size_t clv_balance_tick(clv_balance *balance, double now, double *until)
{
    size_t lost = 0;
    double fastest = 0;
    *until = INFINITY;
    for (size_t i = 0; i < balance->device_count; ++i)
        fastest = fmax(fastest, clv_balance_rate(balance, i));
    (void)clv_balance_forecast(balance, now);
    for (size_t i = 0; i < balance->device_count; ++i) {
        const clv_lease *oldest = NULL;
        for (size_t k = 0; k < balance->lease_count && !oldest; ++k)
            if (balance->leases[k].device == i) oldest = &balance->leases[k];
        double end = oldest ? hangs_at(balance, oldest, fastest) : INFINITY;
        if (!oldest && !balance->devices[i].asked && balance->devices[i].phase == CLV_PHASE_NEW)
            end = balance->start + HANG_FIRST_S; /* it never asked: busy with an old job */
        if (now >= end) {
            leave(balance, i, CLV_VERDICT_HUNG, now);
            ++lost;
        } else {
            *until = fmin(*until, end);
        }
    }
    return lost;
}
