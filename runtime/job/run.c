/* SPDX-License-Identifier: Apache-2.0 */
/* Manages the shared state of runs. A context keeps finished runs and reuses them, so that a later job need not
 * allocate one. */
#include "runtime/job/run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/record/context.h"

#include <math.h>
#include <string.h>

static const double late_s = 0.1; /* seconds: if a wait ends this much too late, the process could
                                     not run */

/* Fills the context's empty shelf. A run comes back from its last holder, which may be the late thread of a device.
 * The shelf therefore begins with one run more than there are devices, so that the next job need not wait for a late
 * one. */
static void fill_shelf(clv_context *context)
{
    enum { SENTENCE = 1024 }; /* bytes; longer than any text the balancer writes about a device */
    for (size_t i = 0; i <= context->device_count; ++i) {
        clv_run *run =
            clv_zalloc(1, sizeof *run + (context->device_count + 1) * sizeof *run->workers);
        if (!run) return;
        const clv_balance_job nothing = { 0 }; /* errors here do not matter: the job tries again */
        (void)clv_balance_create(&nothing, NULL, 0, 0, &run->balance);
        (void)clv_reserve(&run->why.data, &run->why.capacity, SENTENCE, 1);
        clv_mutex_init(&run->lock);
        clv_mutex_init(&run->commit_lock);
        clv_cond_init(&run->changed);
        run->context = context;
        run->next = context->shelf;
        context->shelf = run;
    }
}

clv_run *clv_run_take(clv_context *context, const clv_job *job, void *user)
{
    pthread_mutex_lock(&context->shelf_lock);
    if (!context->shelf) fill_shelf(context);
    clv_run *run = context->shelf;
    if (run) context->shelf = run->next;
    pthread_mutex_unlock(&context->shelf_lock);
    if (!run) return NULL;
    run->holders = 1;
    run->user = user;
    run->over = false;
    run->committed = run->worker_count = 0;
    run->started = clv_now();
    run->asleep = 0;
    run->job = *job;
    clv_copy_string(run->name, sizeof run->name, job->name);
    return run;
}

double clv_run_now(const clv_run *run)
{
    return clv_now() - run->asleep;
}

void clv_run_wait(clv_run *run, double until)
{
    const double planned = until + run->asleep;
    if (isinf(planned)) {
        pthread_cond_wait(&run->changed, &run->lock);
        return;
    }
    clv_cond_wait_until(&run->changed, &run->lock, planned);
    const double late = clv_now() - planned;
    if (late > late_s) run->asleep = fmax(run->asleep, planned - until + late);
}

void clv_run_fail(clv_run *run, clv_status status)
{
    if (!run->over && !run->error.status) clv_error_take(&run->error, status);
    run->over = true;
    pthread_cond_broadcast(&run->changed);
}

void clv_run_let_go(clv_run *run)
{
    pthread_mutex_lock(&run->lock);
    const bool last = --run->holders == 0;
    pthread_mutex_unlock(&run->lock);
    if (!last) return;
    clv_context *context = run->context;
    clv_error_clear(&run->error);
    for (size_t i = 0; i <= context->device_count; ++i)
        clv_error_clear(&run->workers[i].error);
    pthread_mutex_lock(&context->shelf_lock);
    run->next = context->shelf;
    context->shelf = run;
    pthread_mutex_unlock(&context->shelf_lock);
}

void clv_runs_free(clv_context *context)
{
    while (context->shelf) {
        clv_run *run = context->shelf;
        context->shelf = run->next;
        clv_balance_free(run->balance);
        clv_text_clear(&run->why);
        pthread_cond_destroy(&run->changed);
        pthread_mutex_destroy(&run->commit_lock);
        pthread_mutex_destroy(&run->lock);
        clv_free(run);
    }
}
