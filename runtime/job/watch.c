/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the progress of calls that are not jobs, and ends them when the caller wants that. */
#include "runtime/job/watch.h"

#include "base/clock.h"
#include "base/error.h"

static const double interval_s = 0.1;

clv_watch clv_watch_begin(const char *name, clv_progress *progress, void *user, size_t total)
{
    return (clv_watch){ .name = name,
                        .progress = progress,
                        .user = user,
                        .total = total,
                        .next = progress ? clv_now() + interval_s : 0 };
}

clv_status clv_watch_tell(clv_watch *watch, size_t done)
{
    if (!watch->progress) return CLV_OK;
    const double now = clv_now();
    if (now < watch->next) return CLV_OK;
    watch->next = now + interval_s;
    if (!watch->progress(watch->name, done, watch->total, watch->user)) return CLV_OK;
    return clv_fail(CLV_E_CANCELLED, "%s: cancelled after %zu of %zu", watch->name, done,
                    watch->total);
}

void clv_watch_end(const clv_watch *watch)
{
    if (watch->progress)
        (void)watch->progress(watch->name, watch->total, watch->total, watch->user);
}
