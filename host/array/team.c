/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the threads that share work on arrays with the thread that calls, when they are first needed. */
#include "host/array/team.h"

#include "base/alloc.h"
#include "runtime/record/context.h"

clv_team *clv_array_team(clv_context *context)
{
    enum { MOST = 7 };
    pthread_mutex_lock(&context->array_lock);
    if (!context->team_tried) {
        const size_t threads =
            context->plain_threads ? context->plain_threads : context->probe->host.threads_allowed;
        context->team_tried = true;
        context->team = clv_team_start((unsigned)CLV_MIN(threads - 1, (size_t)MOST));
    }
    clv_team *team = context->team;
    pthread_mutex_unlock(&context->array_lock);
    return team;
}
