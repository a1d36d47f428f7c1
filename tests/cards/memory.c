/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the largest chunks of all jobs for cards with 4 to 24 GB of memory, one in each slot, and checks what they
 * allocate: no buffer exceeds the largest allocation, the chunks stay within the budget, and a job that is too large
 * for one chunk uses most of one of the two. Nothing is executed: the buffers of the simulated card have no memory
 * (CLEAVE_CARD_HOLLOW), and the queues only note launches.
 *
 * usage: card_memory [-v] */
#include "memory.h"

#include "base/alloc.h"
#include "host/spectra/spectra_feed.h"
#include "runtime/device/memory.h"
#include "runtime/device/pool.h"
#include "runtime/job/run.h"
#include "runtime/job/tune.h"
#include "runtime/job/turn.h"
#include "runtime/record/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Least share of the budget, or of the largest allocation, that the chunks of a large job take. */
static const double FAIR = 0.7;

static const struct {
    const char *name;
    uint64_t memory, largest; /* as the drivers report them */
} cards[] = {
    { "GTX 1650, 4 GB", 4095279104, 1023819776 },
    { "RTX 3060 Ti, 8 GB", 8589410304, 2147352576 },
    { "RTX 3060, 12 GB", 12622168064, 3155542016 },
    { "RX 6700 XT, 12 GB", 12868124672, 10937905968 },
    { "RTX 4090, 24 GB", 25393692672, 6348423168 },
};

static struct {
    char name[96];
    size_t plans, failures, units, variant, variants;
    bool verbose, last_card;
} test;

void memory_name(const char *what, ...)
{
    va_list list;
    va_start(list, what);
    vsnprintf(test.name, sizeof test.name, what, list);
    va_end(list);
}

void memory_last_card(bool alone)
{
    test.last_card = alone;
}

size_t memory_units(void)
{
    return test.units;
}

void memory_require(clv_status status)
{
    if (!status || status == CLV_E_CANCELLED) return;
    fprintf(stderr, "card_memory: %s: %s\n", test.name, clv_error_message());
    exit(1);
}

/* The chunks are planned with each variant of a kernel, whichever would be the fastest. */
void __wrap_clv_tune(clv_worker *worker, const char *kernel, const char *problem,
                     const char *const *names, clv_tune_trial *trial, void *user);
void __wrap_clv_tune(clv_worker *worker, const char *kernel, const char *problem,
                     const char *const *names, clv_tune_trial *trial, void *user)
{
    (void)kernel, (void)problem, (void)trial, (void)user;
    for (test.variants = 0; names[test.variants];)
        ++test.variants;
    clv_worker_use_variant(worker, test.variant);
}

/* Preparing real stars takes long, and their numbers do not matter. */
clv_status __wrap_clv_star_feed_bring(clv_star_feed *feed, size_t first, size_t count, size_t ahead,
                                      clv_star_use *use, void *user);
clv_status __wrap_clv_star_feed_bring(clv_star_feed *feed, size_t first, size_t count, size_t ahead,
                                      clv_star_use *use, void *user)
{
    (void)feed, (void)first, (void)count, (void)ahead, (void)use, (void)user;
    return CLV_OK;
}

static size_t largest_of(const clv_worker *worker)
{
    size_t largest = 0;
    for (unsigned i = 0; i < worker->depth; ++i)
        for (size_t k = 0; k < worker->slots[i].keyed_count; ++k)
            largest = CLV_MAX(largest, clv_buffer_bytes(worker->slots[i].keyed[k].buffer));
    return largest;
}

/* Returns whether even the smallest chunk of the job needs more than its share of the memory, so that slots take
 * turns. */
static bool is_alone(const clv_worker *worker, size_t chunk)
{
    const clv_job *job = &worker->run->job;
    const size_t least = CLV_MAX(CLV_MAX(job->min_chunk, job->align), (size_t)1);
    return chunk == least && job->cost &&
           job->cost(0, chunk, worker->run->user).memory_bytes >
               worker->device->budget / worker->depth;
}

/* Enqueues the same chunk, which has neighbours on both sides, in the slots. */
static clv_status fill_slots(clv_worker *worker, size_t chunk, bool alone)
{
    const clv_run *run = worker->run;
    const size_t step = CLV_MAX(run->job.align, (size_t)1);
    const size_t first = (run->job.units - chunk) / 2 / step * step;
    if (run->job.setup) CLV_TRY(run->job.setup(worker, run->user));
    for (unsigned i = 0; i < (alone ? 1 : worker->depth); ++i) {
        clv_slot_begin(&worker->slots[i]);
        CLV_TRY(run->job.enqueue(&worker->slots[i], first, chunk, run->user));
    }
    return CLV_OK;
}

static void plan_on(clv_worker *worker, size_t card)
{
    const clv_run *run = worker->run;
    clv_device *device = worker->device;
    const uint64_t largest = cards[card].largest;
    device->budget = (uint64_t)(0.85 * (double)cards[card].memory) - 400000000; /* as budget_of */
    ((clv_probe_device *)(uintptr_t)device->facts)->max_alloc_bytes = largest;
    device->pool->max_alloc = (size_t)largest;
    const size_t chunk =
        CLV_MIN(clv_job_fitting_chunk(device, &run->job, run->user), run->job.units);
    const bool alone = is_alone(worker, chunk);
    const clv_status status = fill_slots(worker, chunk, alone);
    const double used = (double)clv_device_memory(device).used_bytes, of = (double)device->budget;
    const size_t buffer = largest_of(worker);
    const bool all = chunk == run->job.units,
               fair = all || alone || used >= FAIR * of || (double)buffer >= FAIR * (double)largest;
    ++test.plans;
    if (status || !fair) ++test.failures;
    if (status || !fair || test.verbose)
        printf("%s%s, variant %zu, on a %s: chunks of %zu of %zu units use %.2f of %.2f GB, the "
               "largest buffer %.2f of %.2f GB%s%s\n",
               status  ? "FAILED "
               : !fair ? "NOT FAIR "
                       : "",
               test.name, test.variant, cards[card].name, chunk, run->job.units, 1e-9 * used,
               1e-9 * of, 1e-9 * (double)buffer, 1e-9 * (double)largest, status ? ": " : "",
               status ? clv_error_message() : "");
    for (unsigned i = 0; i < worker->depth; ++i)
        clv_keyed_free(worker->slots[i].keyed, &worker->slots[i].keyed_count);
    clv_keyed_free(worker->keyed, &worker->keyed_count);
    clv_device_trim(device);
}

/* Runs on the device's thread. */
static void plan(void *argument)
{
    clv_worker *worker = argument;
    clv_run *run = worker->run;
    clv_jobs_serve(run->context);
    memory_require(clv_worker_open(worker));
    for (unsigned i = 0; i < worker->depth; ++i)
        worker->slots[i].queue->rehearsing = true;
    test.variants = 1;
    for (test.variant = 0; test.variant < test.variants; ++test.variant)
        for (size_t card = test.last_card ? CLV_LEN(cards) - 1 : 0; card < CLV_LEN(cards); ++card)
            plan_on(worker, card);
    for (unsigned i = 0; i < worker->depth; ++i)
        worker->slots[i].queue->rehearsing = false;
    clv_jobs_serve(NULL);
    pthread_mutex_lock(&run->lock);
    worker->gone = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    clv_run_let_go(run);
}

/* Takes the place of the function that executes jobs. */
clv_status __wrap_clv_job_run_by(clv_context *context, const clv_job *job, void *user,
                                 clv_side side, clv_report *report, bool *plain);
clv_status __wrap_clv_job_run_by(clv_context *context, const clv_job *job, void *user,
                                 clv_side side, clv_report *report, bool *plain)
{
    (void)side, (void)report, (void)plain;
    clv_run *run = clv_run_take(context, job, user);
    test.units = job->units;
    if (!run) return clv_fail(CLV_E_MEMORY, "out of memory");
    clv_worker *worker = &run->workers[0];
    *worker = (clv_worker){ .run = run, .device = &context->devices[0] };
    if (clv_worker_start(worker, plan)) {
        pthread_mutex_lock(&run->lock);
        while (!worker->gone)
            pthread_cond_wait(&run->changed, &run->lock);
        pthread_mutex_unlock(&run->lock);
    }
    clv_run_let_go(run);
    return clv_fail(CLV_E_CANCELLED, "only planned");
}

int main(int argc, char **argv)
{
    const clv_context_options options = { .size = sizeof options,
                                          .mode = CLV_MODE_GPU,
                                          .no_qualification = true };
    clv_context *context;
    test.verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    memory_name("context");
    memory_require(clv_context_create(&options, &context));
    memory_plan_jobs(context);
    clv_context_free(context);
    printf("%zu plans, %zu failed\n", test.plans, test.failures);
    return test.failures || !test.plans;
}
