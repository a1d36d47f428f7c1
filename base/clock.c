/* SPDX-License-Identifier: Apache-2.0 */
/* Time. */
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

void clv_utc(char *out, size_t capacity)
{
    const time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || !strftime(out, capacity, "%Y-%m-%dT%H:%M:%SZ", &utc))
        if (capacity) out[0] = '\0';
}
