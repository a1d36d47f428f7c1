/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the time, and waits without counting the time in which the system did not run this process. */
#ifndef CLEAVE_BASE_CLOCK_H
#define CLEAVE_BASE_CLOCK_H

#include <stddef.h>

double clv_now(void);           /* seconds since an arbitrary zero; monotonic */
void clv_sleep(double seconds); /* sleeps at least this long; returns at once for <= 0 */

/* A time limit for waiting for other threads or processes, in seconds during which this process could run. A wait
 * that lasts much longer than planned shows that this process was stopped, frozen or starved, most likely together
 * with those it waits for. The excess of such a wait does not count.
 *
 *     clv_deadline deadline = clv_deadline_after(clv_now(), seconds);
 *     for (double wait; (wait = clv_deadline_wait(&deadline, clv_now())) > 0;)
 *         ... wait for that long, then check whether the others are done ...
 */
typedef struct clv_deadline {
    double until;   /* on the clock of clv_now */
    double planned; /* when the present wait should end; 0: nobody waits */
} clv_deadline;

clv_deadline clv_deadline_after(double now, double seconds);
/* Call it when a wait is over. Returns how many seconds the next wait may last, at most 0.1; <= 0: the time is up. */
double clv_deadline_wait(clv_deadline *deadline, double now);

void clv_utc(char *out, size_t capacity); /* writes the time, such as "2026-01-31T12:34:56Z" */

#endif
