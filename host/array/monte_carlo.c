/* SPDX-License-Identifier: Apache-2.0 */
/* Counts random points on every device: a unit of the job is a block of samples, and each block returns its count. */
#include "host/array/group.h"
#include "host/array/philox.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "cl_embedded.h"
#include "runtime/job/results.h"
#include "runtime/offload/call.h"

#include <cleave/array.h>

enum {
    COUNTS = 0,
    ITEMS = 32 /* work-items per unit, each with a count of its own */
};

static const size_t BLOCK = 131072;  /* samples per unit: a count stays below 2^32 / 2 */
static const double OPERATIONS = 45; /* integer operations per sample */

typedef struct experiment {
    uint32_t key[2];
    uint64_t samples, inside;
    clv_job job;
} experiment;

/* Returns the number of samples per vector of a work-item: more than 1 on CPU cores; 1 on other devices, where
 * neighbouring work-items compute neighbouring samples. */
static size_t lanes_of(const clv_device *device)
{
    return clv_device_facts(device)->device_class == CLV_CLASS_CPU ? 8 : 1;
}

static clv_cost cost(size_t first, size_t count, void *user)
{
    (void)first, (void)user;
    const double bytes = (double)count * ITEMS * sizeof(uint32_t);
    return (clv_cost){ .flops = (double)count * (double)BLOCK * OPERATIONS,
                       .traffic_bytes = bytes,
                       .transfer_bytes = bytes,
                       .memory_bytes = (uint64_t)bytes };
}

static clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const experiment *e = user;
    const clv_device *device = clv_worker_device(clv_slot_worker(slot));
    const size_t lanes = lanes_of(device), items = count * ITEMS;
    const size_t group = lanes > 1 ? 1 : clv_array_group(clv_device_facts(device), items);
    clv_buffer *counts;
    CLV_TRY(clv_slot_output(slot, COUNTS, items * sizeof(uint32_t), &counts));
    const clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_array_philox,
        .kernel = "clv_array_pi",
        .defines = { { "LANES", (long)lanes }, { "TURNS", (long)(BLOCK / 2 / ITEMS / lanes) } },
        .global = { clv_round_up(items, group) },
        .local = { group },
    };
    const clv_arg args[] = { clv_arg_buffer(counts), clv_arg_u64((uint64_t)first * (BLOCK / 2)),
                             clv_arg_u32(e->key[0]), clv_arg_u32(e->key[1]),
                             clv_arg_u32((uint32_t)items) };
    return clv_launch_enqueue(clv_slot_queue(slot), &launch, args, CLV_LEN(args), NULL);
}

static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    experiment *e = user;
    (void)first;
    const uint32_t *counts;
    CLV_TRY(clv_slot_take(slot, COUNTS, count * ITEMS * sizeof *counts, &counts));
    for (size_t i = 0; i < count * ITEMS; ++i)
        e->inside += counts[i];
    return CLV_OK;
}

static clv_status reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const experiment *e = user;
    void *counts;
    CLV_TRY(clv_slot_result_create(slot, COUNTS, count * ITEMS * sizeof(uint32_t), &counts));
    const uint64_t part = BLOCK / ITEMS;
    for (size_t i = 0; i < count * ITEMS; ++i)
        ((uint32_t *)counts)[i] =
            (uint32_t)clv_philox_count(first * BLOCK + i * part, part, e->key);
    return CLV_OK;
}

/* Counts the hits among the samples after the last whole block, on the calling thread. */
static clv_status prepare(void *user)
{
    experiment *e = user;
    const uint64_t rest = e->samples % BLOCK;
    e->inside = clv_philox_count(e->samples - rest, rest, e->key);
    return CLV_OK;
}

static clv_status sample(clv_context *context, const clv_call *like, double amount,
                         clv_sample *out);

static void describe(experiment *e, const clv_monte_carlo_options *o, clv_call *c)
{
    const double samples = (double)e->samples;
    e->job = (clv_job){
        .size = sizeof(clv_job),
        .name = "monte carlo",
        .units = (size_t)(e->samples / BLOCK),
        .cost = cost,
        .enqueue = enqueue,
        .rehearse = true,
        .commit = commit,
        .reference = reference,
        .progress = o->progress,
        .progress_user = o->progress_user,
    };
    const double bytes = (double)e->job.units * ITEMS * sizeof(uint32_t);
    *c = (clv_call){ .operation = "monte carlo",
                     .work = { .kind = "monte carlo",
                               .amount = samples,
                               .least = 2.0 * (double)BLOCK,
                               .most = (double)BLOCK * 1024,
                               .flops = OPERATIONS * samples,
                               .host_flops = 25e9,
                               .bytes = bytes,
                               .transfer_bytes = bytes },
                     .job = &e->job,
                     .prepare = prepare,
                     .user = e,
                     .sample = sample };
}

typedef struct sampled {
    experiment experiment;
    clv_call call;
} sampled;

static clv_status sample(clv_context *context, const clv_call *like, double amount, clv_sample *out)
{
    static const clv_monte_carlo_options none = { .size = sizeof(clv_monte_carlo_options) };
    (void)context, (void)like;
    sampled *s = clv_zalloc(1, sizeof *s);
    if (!s) return clv_fail(CLV_E_MEMORY, "monte carlo: not enough memory for a trial run");
    s->experiment.samples = (uint64_t)CLV_MAX(amount, 1);
    describe(&s->experiment, &none, &s->call);
    *out = (clv_sample){ .call = &s->call, .memory = s, .end = clv_free };
    return CLV_OK;
}

clv_status clv_monte_carlo_pi(clv_context *context, uint64_t samples,
                              const clv_monte_carlo_options *options, uint64_t *inside,
                              clv_report *report)
{
    if (!context || !inside)
        return clv_fail(CLV_E_ARGUMENT, "monte carlo: context or result is NULL");
    *inside = 0;
    if (samples > (uint64_t)1 << 63)
        return clv_fail(CLV_E_ARGUMENT,
                        "monte carlo: got %llu samples, but at most 2^63 are possible",
                        (unsigned long long)samples);
    clv_monte_carlo_options o;
    CLV_TRY(
        clv_take_struct(&o, sizeof o, options, "clv_monte_carlo_pi", "clv_monte_carlo_options"));
    experiment e = { .key = { o.key[0], o.key[1] }, .samples = samples };
    if (!samples) return CLV_OK;
    clv_call call;
    describe(&e, &o, &call);
    call.report = report;
    clv_call_take_orders(&call);
    CLV_TRY(clv_call_run(context, &call));
    *inside = e.inside;
    return CLV_OK;
}
