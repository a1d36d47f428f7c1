/* SPDX-License-Identifier: Apache-2.0 */
/* Random machines and jobs for the simulator. */
#include "simulator.h"

#include "test.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>

static double log_uniform(uint64_t *random, double low, double high)
{
    return low * pow(high / low, test_uniform(random, 0, 1));
}

static bool chance(uint64_t *random, double probability)
{
    return test_uniform(random, 0, 1) < probability;
}

static size_t pick(uint64_t *random, const size_t *values, size_t count)
{
    return values[test_random(random) % count];
}

/* One to a hundred million units; sometimes so few that every chunk counts. */
static clv_balance_job random_job(uint64_t *random)
{
    static const size_t aligns[] = { 0, 1, 1, 1, 4, 64, 100 };
    clv_balance_job job = { .schedule = CLV_SCHEDULE_ADAPTIVE };
    job.units = (size_t)(chance(random, 0.15) ? log_uniform(random, 1, 100)
                                              : log_uniform(random, 100, 1e8));
    job.align = pick(random, aligns, CLV_LEN(aligns));
    if (job.align * 20 > job.units) job.align = 1;
    if (chance(random, 0.3))
        job.min_chunk = 1 + (size_t)((double)job.units * test_uniform(random, 0, 0.01));
    if (chance(random, 0.1))
        job.batch = 1 + (size_t)((double)job.units * test_uniform(random, 0.005, 0.2));
    if (chance(random, 0.1)) job.chunk_units = (double)job.units * test_uniform(random, 0, 2e-4);
    return job;
}

static void disturb(uint64_t *random, sim_device *device, double job_s)
{
    double t = 0;
    const size_t count = 1 + test_random(random) % 4;
    for (size_t i = 0; i < count; ++i) {
        t += test_uniform(random, 0, job_s);
        const bool stall = chance(random, 0.25);
        const double factor = stall ? 0 : log_uniform(random, 0.1, 1);
        device->paces[device->pace_count++] = (sim_pace){ t, factor };
        if (!stall) continue;
        t += log_uniform(random, 1e-3, 1) * fmax(job_s, 0.1);
        device->paces[device->pace_count++] = (sim_pace){ t, 1 };
    }
}

static void spoil(uint64_t *random, sim_device *device, const clv_balance_job *job, double job_s)
{
    switch (test_random(random) % 4) {
    case 0:
        device->dies_at = test_uniform(random, 0, 1.2) * job_s;
        device->silently = chance(random, 0.5);
        break;
    case 1:
        device->room = 1 + (size_t)(log_uniform(random, 1e-4, 1) * (double)job->units);
        break;
    case 2:
        device->failing = log_uniform(random, 0.01, 1);
        break;
    default:
        device->told.max_chunk = 1 + (size_t)(log_uniform(random, 1e-3, 1) * (double)job->units);
    }
}

static void tell_history(uint64_t *random, sim_device *device)
{
    device->told.units_per_s = device->units_per_s * test_uniform(random, 0.96, 1.04);
    device->told.chunk_s = device->chunk_s * test_uniform(random, 0.8, 1.2);
    device->told.setup_s = device->setup_s * test_uniform(random, 0.96, 1.04);
}

static sim_device random_device(uint64_t *random, double units_per_s, bool pooled)
{
    sim_device device = { .units_per_s = units_per_s, .dies_at = INFINITY };
    device.chunk_s = log_uniform(random, 3e-6, pooled ? 5e-4 : 2e-3);
    device.overlap = chance(random, 0.5) ? test_uniform(random, 0, 1) : 0;
    device.noise = test_uniform(random, 0, 0.05);
    device.jitter = test_uniform(random, 0, 0.01);
    if (units_per_s > 0) { /* a stream of its own, which the other draws do not notice */
        uint64_t guesses = *random ^ 0x5DEECE66Du;
        if (chance(&guesses, 0.5))
            device.told.guess_units_per_s = units_per_s * log_uniform(&guesses, 0.1, 10);
    }
    if (chance(random, 0.5)) device.setup_s = log_uniform(random, 1e-3, 5);
    if (chance(random, 0.5)) device.first_s = log_uniform(random, 1e-3, 0.2);
    if (chance(random, 0.1)) device.late_s = log_uniform(random, 1e-4, 2);
    device.told.setup_s = device.setup_s * test_uniform(random, 0.8, 1.2);
    device.told.depth = 1 + (unsigned)(test_random(random) % 2);
    device.told.pool = -1;
    return device;
}

sim_scenario sim_random(uint64_t seed, sim_traits *traits)
{
    uint64_t random = seed;
    (void)test_random(&random);
    sim_scenario scenario = { .seed = seed, .job = random_job(&random) };
    const size_t count = scenario.device_count = 1 + test_random(&random) % SIM_DEVICES;
    const double solo_s = log_uniform(&random, 1e-3, 30);
    const double fastest = (double)scenario.job.units / solo_s;
    const size_t best = test_random(&random) % count;
    const bool pools = chance(&random, 0.25);
    *traits = (sim_traits){ .warm = chance(&random, 0.5),
                            .disturbed = chance(&random, 0.4),
                            .faulty = chance(&random, 0.3) };
    const bool half_known = !traits->warm && chance(&random, 0.2);
    traits->stale = half_known && chance(&random, 0.3);
    traits->best_is_sound = chance(&random, 0.7);
    traits->uneven = chance(&random, 0.2);
    if (traits->uneven) scenario.uneven = test_uniform(&random, 0, 1);
    for (size_t i = 0; i < count; ++i) {
        const bool pooled = pools && chance(&random, 0.6);
        /* Platforms on the same cores differ less than devices do. */
        const double speed =
            i == best ? fastest : fastest / log_uniform(&random, 1, pooled ? 50 : 1000);
        sim_device *device = &scenario.devices[i];
        *device = random_device(&random, speed, pooled);
        if (pooled) device->told.pool = (int)(test_random(&random) % 2);
        if (traits->warm || (half_known && chance(&random, 0.5))) tell_history(&random, device);
        if (traits->warm) device->first_s = 0;
        if (traits->stale) device->told.units_per_s *= log_uniform(&random, 0.1, 10);
        if (i == best && traits->best_is_sound) continue;
        if (traits->disturbed && chance(&random, 0.4)) disturb(&random, device, solo_s);
        if (traits->faulty && chance(&random, 0.4)) spoil(&random, device, &scenario.job, solo_s);
    }
    return scenario;
}

void sim_print(const sim_scenario *scenario, const sim_result *result)
{
    const clv_balance_job *job = &scenario->job;
    printf(
        "seed %llu: %zu units, align %zu, min %zu, batch %zu, extra %g, uneven %.2g, schedule %d\n",
        (unsigned long long)scenario->seed, job->units, job->align, job->min_chunk, job->batch,
        job->chunk_units, scenario->uneven, (int)job->schedule);
    for (size_t i = 0; i < scenario->device_count; ++i) {
        const sim_device *d = &scenario->devices[i];
        printf("  %zu: solo %.4g s (told %.4g), chunk %.3g ms (told %.3g), setup %.4g (told %.4g), "
               "first %.3g, late %.3g, depth %u, pool %d, overlap %.2g, noise %.3f, jitter %.3f, "
               "max %zu, "
               "room %zu, failing %.2g, dies %.3g%s",
               i, (double)job->units / d->units_per_s,
               d->told.units_per_s > 0 ? (double)job->units / d->told.units_per_s : 0,
               d->chunk_s * 1e3, d->told.chunk_s * 1e3, d->setup_s, d->told.setup_s, d->first_s,
               d->late_s, d->told.depth, d->told.pool, d->overlap, d->noise, d->jitter,
               d->told.max_chunk, d->room, d->failing, d->dies_at, d->silently ? " silently" : "");
        for (size_t k = 0; k < d->pace_count; ++k)
            printf(", x%.2g at %.3g", d->paces[k].factor, d->paces[k].at);
        printf("\n");
        if (!result) continue;
        const clv_balance_stats *s = &result->stats[i];
        printf(
            "     %zu units in %zu chunks, dropped %zu, failed %zu, busy %.4g, solo by speed %.4g, "
            "chunk %.3g ms; %s\n",
            s->units, s->chunks, s->dropped, s->failed, s->busy_s,
            s->units_per_s > 0 ? (double)job->units / s->units_per_s : 0, s->chunk_s * 1e3,
            result->why[i]);
    }
    if (result)
        printf("  makespan %.6g s, drained %.6g s, %zu chunks, %zu again, %zu dropped, %zu "
               "hung%s%s%s\n",
               result->makespan, result->drained, result->chunks, result->speculative,
               result->dropped, result->hung, result->stuck ? ", stuck" : "",
               result->fault ? ", FAULT: " : "", result->fault ? result->fault : "");
}
