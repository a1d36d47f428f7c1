/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the units of a job among ranks, in ranges that shrink, so that there are few ranges and all ranks end at
 * about the same time.
 *
 * If the ranks exchange messages, rank 0 divides the units. Each request for a range reports how fast the rank was. The
 * rank gets a third of its share of the units that are left; its share is its speed divided by the sum of all speeds. A
 * rank that has not computed anything yet gets a small range, because its speed is not known. A slow rank gets nothing
 * more if the other ranks will have done the rest before it could finish its smallest range.
 *
 * If the ranks use one-sided operations, no rank divides the units. A rank draws a number, its ticket, which stands for
 * the same range on all ranks and does not depend on their speeds. */
#ifndef CLEAVE_HOST_CLI_RANGES_H
#define CLEAVE_HOST_CLI_RANGES_H

#include <stddef.h>
#include <stdint.h>

/* A request for a range, in the form that rank 0 receives. */
typedef struct cli_wish {
    uint64_t job;         /* number of the job, from 0 */
    uint64_t units;       /* number of the job's units */
    uint64_t step, least; /* ranges begin at multiples of `step` and have at least `least` units */
    uint64_t done, ns;    /* the rank's last range of this job: units and nanoseconds; 0: none */
} cli_wish;

/* The progress of a job's division, on rank 0. */
typedef struct cli_division {
    size_t ranks;
    double
        *speeds; /* [ranks] in units per second, 0: not known; allocated by cli_division_create */
    double sum, top;    /* sum and maximum of the known speeds */
    size_t known, gone; /* number of ranks of known speed; of ranks that get no more units */
    uint64_t job, next; /* number of the job; first unit that is left */
} cli_division;

/* Creates a division among `ranks` ranks; returns NULL if there is no memory. Free it with clv_free. */
cli_division *cli_division_create(size_t ranks);
/* Assigns the next range to a rank; *count is 0 if the rank gets none. */
void cli_divide(cli_division *division, const cli_wish *wish, size_t rank, uint64_t *first,
                uint64_t *count);

/* A cursor over the ranges that tickets stand for. */
typedef struct cli_tickets {
    size_t units, step, least, ranks;
    uint64_t number; /* the ticket of the next range */
    size_t first;    /* first unit of that range */
} cli_tickets;
/* Finds the range of a ticket, which must not be lower than an earlier one. *count is 0 beyond the last unit. */
void cli_tickets_find(cli_tickets *tickets, uint64_t ticket, size_t *first, size_t *count);

#endif
