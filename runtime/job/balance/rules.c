/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the schedules that follow a fixed rule: static, dynamic and hguided. */
#include "runtime/job/balance/state.h"

#include "base/alloc.h"

static const size_t DYNAMIC_CHUNKS = 128;

clv_choice clv_balance_wait(double until)
{
    return (clv_choice){ .until = until };
}

size_t clv_balance_cut(const clv_balance *balance, size_t device, double wanted,
                       const clv_segment *segment)
{
    const clv_balance_job *job = &balance->job;
    const size_t limit = clv_balance_limit(balance, device);
    const double whole = fmin(fmax(wanted, (double)job->min_chunk), (double)segment->count);
    size_t units = (size_t)whole / job->align * job->align;
    units = CLV_MIN(CLV_MAX(units, job->min_chunk), limit);
    if (units >= segment->count) return segment->count;
    const size_t rest = segment->count - units;
    const bool crumb = rest <= units / (rest < job->min_chunk ? 4 : 32);
    return crumb && segment->count <= limit ? segment->count : units;
}

static bool takes_part(const clv_balance *balance, size_t device)
{
    const clv_member *member = &balance->devices[device];
    return member->phase != CLV_PHASE_OUT && member->owner == device;
}

/* Computes the devices' weights for a split: their speeds, or 1 for all if any speed is unknown; 0 for a
 * device that takes no part. */
static void weigh(const clv_balance *balance, double weights[CLV_BALANCE_MAX_DEVICES])
{
    bool equal = false;
    for (size_t i = 0; i < balance->device_count; ++i)
        equal |= takes_part(balance, i) && !clv_speed_known(&balance->devices[i].speed);
    for (size_t i = 0; i < balance->device_count; ++i) {
        const double rate = equal ? 1 : clv_balance_rate(balance, i);
        weights[i] = takes_part(balance, i) ? rate : 0;
    }
}

static double sum(const double *weights, size_t count)
{
    double total = 0;
    for (size_t i = 0; i < count; ++i)
        total += weights[i];
    return total;
}

/* Drops the devices, slowest first, whose share would be less than the smallest useful chunk. */
static void drop_small(const clv_balance *balance, double units, double *weights)
{
    for (;;) {
        const double total = sum(weights, balance->device_count);
        size_t worst = CLV_NOBODY, working = 0;
        for (size_t i = 0; i < balance->device_count; ++i) {
            if (weights[i] <= 0) continue;
            ++working;
            if (worst == CLV_NOBODY || weights[i] < weights[worst]) worst = i;
        }
        if (working < 2 || units * weights[worst] / total >= (double)balance->job.min_chunk) return;
        weights[worst] = 0;
    }
}

/* Splits the units in proportion to speed, in blocks of `align` units. The blocks that are left over go to the
 * devices with the largest remainders. */
void clv_balance_share_out(clv_balance *balance)
{
    size_t meant = 0;
    for (size_t i = 0; i < balance->device_count; ++i) {
        if (!takes_part(balance, i)) balance->devices[i].share = 0;
        meant += balance->devices[i].share;
    }
    if (meant >= balance->book.free) return;

    const size_t align = balance->job.align, left = balance->book.free - meant;
    const size_t blocks = left / align + (left % align != 0);
    double weights[CLV_BALANCE_MAX_DEVICES], remainders[CLV_BALANCE_MAX_DEVICES] = { 0 };
    weigh(balance, weights);
    drop_small(balance, (double)left, weights);
    const double total = sum(weights, balance->device_count);
    if (total <= 0) return;
    size_t given = 0;
    for (size_t i = 0; i < balance->device_count; ++i) {
        const double quota = (double)blocks * (weights[i] / total);
        const size_t whole = CLV_MIN((size_t)quota, blocks - given);
        balance->devices[i].share += whole * align;
        given += whole;
        remainders[i] = weights[i] > 0 ? quota - (double)whole : -INFINITY;
    }
    for (; given < blocks; ++given) {
        size_t best = 0;
        for (size_t i = 1; i < balance->device_count; ++i)
            if (remainders[i] > remainders[best]) best = i;
        balance->devices[best].share += align;
        remainders[best] -= 1;
    }
}

static double hguided(const clv_balance *balance, size_t device)
{
    double weights[CLV_BALANCE_MAX_DEVICES];
    weigh(balance, weights);
    const double total = sum(weights, balance->device_count);
    return (double)balance->book.free * weights[device] / (2 * total);
}

clv_choice clv_balance_by_rule(const clv_balance *balance, size_t device)
{
    const clv_member *member = &balance->devices[device];
    const clv_segment *segment = clv_book_lowest(&balance->book);
    if (!takes_part(balance, device) || !segment) return clv_balance_wait(INFINITY);
    double wanted = 0;
    switch (balance->job.schedule) {
    case CLV_SCHEDULE_STATIC:
        if (!member->share) return clv_balance_wait(INFINITY);
        wanted = (double)member->share;
        break;
    case CLV_SCHEDULE_DYNAMIC:
        wanted = ceil((double)balance->job.units / (double)DYNAMIC_CHUNKS);
        break;
    default:
        wanted = hguided(balance, device);
        break;
    }
    return (clv_choice){ .first = segment->first,
                         .count = clv_balance_cut(balance, device, wanted, segment) };
}

/* Returns whether a verdict is a refusal. The first refusal says best why a device that never worked was left out, so
 * later ones do not replace it. */
static bool is_refusal(clv_verdict verdict)
{
    return verdict == CLV_VERDICT_TOO_LATE || verdict == CLV_VERDICT_NO_GAIN ||
           verdict == CLV_VERDICT_SETUP || verdict == CLV_VERDICT_NO_WORK;
}

void clv_balance_judge(clv_balance *balance, size_t device, clv_verdict verdict, double with,
                       double without, double now)
{
    clv_member *member = &balance->devices[device];
    if (!member->ever_lent && is_refusal(verdict) && is_refusal(member->verdict)) return;
    member->verdict = verdict;
    member->with_s = with - now;
    member->without_s = without - now;
}
