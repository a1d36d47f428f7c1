/* SPDX-License-Identifier: Apache-2.0 */
/* Lets threads take turns: a context runs one job, or one call on a device, at a time. */
#include "runtime/job/turn.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"
#include "runtime/record/caller.h"
#include "runtime/record/context.h"

void clv_jobs_serve(const clv_context *context)
{
    clv_caller_here()->serves = context;
}

bool clv_jobs_held(clv_context *context)
{
    const clv_caller *caller = clv_caller_here();
    return caller->serves == context || atomic_load(&context->job_owner) == (uintptr_t)caller;
}

bool clv_jobs_lock(clv_context *context)
{
    clv_caller *caller = clv_caller_here();
    if (clv_is_forked(context->born) || clv_jobs_held(context)) return false;
    const double started = clv_now();
    pthread_mutex_lock(&context->job_lock);
    atomic_store(&context->job_owner, (uintptr_t)caller);
    caller->waited_s += clv_now() - started;
    return true;
}

void clv_jobs_unlock(clv_context *context)
{
    atomic_store(&context->job_owner, 0);
    pthread_mutex_unlock(&context->job_lock);
}

clv_status clv_jobs_refuse(const char *what)
{
    return clv_fail(CLV_E_BUSY,
                    "%s: called from inside another call on this context, which holds the devices "
                    "until it returns",
                    what);
}

double clv_jobs_clock(void)
{
    return clv_now() - clv_caller_here()->waited_s;
}
