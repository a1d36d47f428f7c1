/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the time, and waits without counting the time in which the system did not run this process. */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

double clv_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void clv_sleep(double seconds)
{
    if (!(seconds > 0)) return;
    struct timespec left = { .tv_sec = (time_t)seconds };
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) == -1 && errno == EINTR)
        continue;
}

clv_deadline clv_deadline_after(double now, double seconds)
{
    return (clv_deadline){ .until = now + seconds };
}

double clv_deadline_wait(clv_deadline *deadline, double now)
{
    static const double step_s = 0.1, late_s = 0.1;
    const double late = deadline->planned > 0 ? now - deadline->planned : 0;
    if (late > late_s) deadline->until += late;
    const double left = deadline->until - now, wait = left < step_s ? left : step_s;
    deadline->planned = now + wait;
    return wait;
}

void clv_utc(char *out, size_t capacity)
{
    const time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || !strftime(out, capacity, "%Y-%m-%dT%H:%M:%SZ", &utc))
        if (capacity) out[0] = '\0';
}
