/* SPDX-License-Identifier: Apache-2.0 */
/* Time, and patience. */
#ifndef CLEAVE_BASE_CLOCK_H
#define CLEAVE_BASE_CLOCK_H

#include <stddef.h>

double clv_now(void);           /* seconds, monotonic, arbitrary zero */
void clv_sleep(double seconds); /* at least; returns at once for <= 0 */

/* Patience with others: so many seconds in which this process could run. A wait that lasts much longer
 * than it was to tells that the process was stopped, frozen or starved, most likely with those it
 * waits for; that time does not count.
 *
 *     clv_deadline deadline = clv_deadline_after(clv_now(), seconds);
 *     for (double wait; (wait = clv_deadline_wait(&deadline, clv_now())) > 0;)
 *         ... wait so long, look whether they are done ...
 */
typedef struct clv_deadline {
    double until;   /* on the clock of clv_now */
    double planned; /* when the wait under way ends; 0: none is */
} clv_deadline;

clv_deadline clv_deadline_after(double now, double seconds);
/* Called when a wait is over: how long the next may last, a tenth of a second at most; <= 0: the
 * time is up. */
double clv_deadline_wait(clv_deadline *deadline, double now);

void clv_utc(char *out, size_t capacity); /* "2026-01-31T12:34:56Z" */

#endif
