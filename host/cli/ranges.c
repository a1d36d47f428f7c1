/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the units of a job among ranks. */
#include "host/cli/ranges.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <string.h>

enum {
    PART = 3,      /* a rank gets 1/PART of its share of the units that are left */
    FIRST = 32,    /* its first range is 1/FIRST of its share, because its speed is not known yet */
    MORE = 4,      /* no range is longer than MORE times the one before: few units tell little */
    OF_TICKET = 4, /* a ticket is 1/OF_TICKET of an equal share of the units that are left */
};

/* Returns the length of a range: about `length` of the `left` units that remain, in multiples of `step`, at least
 * `least`; all that remain if they are fewer. */
static uint64_t fit(uint64_t length, uint64_t step, uint64_t least, uint64_t left)
{
    length = CLV_MAX(length, CLV_MAX(least, (uint64_t)1));
    step = CLV_MAX(step, (uint64_t)1);
    if (length >= left || step >= left) return left;
    return CLV_MIN((length + step - 1) / step * step, left);
}

cli_division *cli_division_create(size_t ranks)
{
    cli_division *d = clv_zalloc(1, sizeof *d + ranks * sizeof *d->speeds);
    if (!d) return NULL;
    d->ranks = ranks, d->job = UINT64_MAX;
    d->speeds = (double *)(d + 1);
    return d;
}

/* Records a rank's speed in units per second; 0: the rank gets no more units. */
static void learn(cli_division *d, size_t rank, double speed)
{
    d->known += (size_t)(speed > 0) - (size_t)(d->speeds[rank] > 0);
    d->speeds[rank] = speed;
    d->sum = d->top = 0; /* anew, so that rounding does not add up */
    for (size_t r = 0; r < d->ranks; ++r) {
        d->sum += d->speeds[r];
        d->top = CLV_MAX(d->top, d->speeds[r]);
    }
}

/* Returns whether the rank would still compute its smallest range when the other ranks have finished the rest. This
 * is never true of the fastest rank, so that at least one rank continues. */
static bool comes_too_late(const cli_division *d, double least, double left, size_t rank)
{
    const double speed = d->speeds[rank];
    return speed < d->top && least / speed > left / (d->sum - speed) + 2 * least / d->top;
}

void cli_divide(cli_division *d, const cli_wish *wish, size_t rank, uint64_t *first,
                uint64_t *count)
{
    if (d->job != wish->job) {
        memset(d->speeds, 0, d->ranks * sizeof *d->speeds);
        d->job = wish->job, d->next = 0, d->sum = d->top = 0, d->known = d->gone = 0;
    }
    if (wish->done)
        learn(d, rank, 1e9 * (double)wish->done / (double)CLV_MAX(wish->ns, (uint64_t)1));
    const uint64_t left = wish->units > d->next ? wish->units - d->next : 0;
    *first = d->next, *count = 0;
    if (!left) return;
    double share = 1.0 / ((double)d->ranks * FIRST);
    if (wish->done) {
        const double least = (double)fit(0, wish->step, wish->least, left);
        if (comes_too_late(d, least, (double)left, rank)) {
            learn(d, rank, 0), ++d->gone;
            return;
        }
        /* a rank whose speed is not known yet counts as fast as the mean of the others */
        const double all = d->sum * (double)(d->ranks - d->gone) / (double)d->known;
        share = d->speeds[rank] / all / PART;
    }
    uint64_t length = (uint64_t)((double)left * share);
    if (wish->done) length = CLV_MIN(length, MORE * wish->done);
    *count = fit(length, wish->step, wish->least, left);
    d->next += *count;
}

void cli_tickets_find(cli_tickets *t, uint64_t ticket, size_t *first, size_t *count)
{
    for (;; ++t->number) {
        const size_t left = t->units - t->first;
        const size_t length =
            left ? (size_t)fit(left / (OF_TICKET * t->ranks), t->step, t->least, left) : 0;
        *first = t->first, *count = length;
        if (t->number == ticket || !length) return;
        t->first += length;
    }
}
