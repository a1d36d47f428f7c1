/* SPDX-License-Identifier: Apache-2.0 */
/* What simulated devices could do at best. */
#include "simulator.h"

#include "base/alloc.h"

#include <math.h>

static const double LONG_S = 0.25; /* no chunk needs to be longer */

double sim_pace_of(const sim_device *device, double start, double t)
{
    double factor = 1;
    for (size_t i = 0; i < device->pace_count && start + device->paces[i].at <= t; ++i)
        factor = device->paces[i].factor;
    return factor;
}

double sim_next_pace(const sim_device *device, double start, double t)
{
    for (size_t i = 0; i < device->pace_count; ++i)
        if (start + device->paces[i].at > t) return start + device->paces[i].at;
    return INFINITY;
}

/* Units a second in the largest chunks that it may have and that last at most LONG_S. */
static double best_rate(const clv_balance_job *job, const sim_device *device)
{
    double units = fmin((double)job->units, LONG_S * device->units_per_s);
    if (job->batch) units = fmin(units, (double)CLV_MAX(job->batch, job->min_chunk));
    if (device->told.max_chunk) units = fmin(units, (double)device->told.max_chunk);
    if (device->room) units = fmin(units, (double)device->room);
    const double work = (units + fmax(job->chunk_units, 0)) / device->units_per_s;
    const double hidden = device->told.depth > 1 ? device->overlap * device->chunk_s : 0;
    const double whole = device->chunk_s + work;
    return units /
           fmax(whole - hidden, whole / 2); /* no more than the chunk before can be hidden */
}

/* Returns how many units one device can do until `end`. */
static double capacity(const clv_balance_job *job, const sim_device *device, double end)
{
    const size_t least = CLV_MIN(CLV_MAX(job->min_chunk, CLV_MAX(job->align, 1)), job->units);
    if (device->told.max_chunk && device->told.max_chunk < least) return 0;
    const double rate = best_rate(job, device);
    double units = 0;
    for (double t = device->late_s + device->setup_s; t < end;) {
        const double next = fmin(sim_next_pace(device, 0, t), end);
        units += (next - t) * sim_pace_of(device, 0, t) * rate;
        t = next;
    }
    return units;
}

static double capacity_of_all(const sim_scenario *scenario, double end)
{
    double sum = 0, pools[SIM_DEVICES] = { 0 };
    for (size_t i = 0; i < scenario->device_count; ++i) {
        if (scenario->taking_part && !(scenario->taking_part >> i & 1)) continue;
        const double units = capacity(&scenario->job, &scenario->devices[i], end);
        const int pool = scenario->devices[i].told.pool;
        if (pool < 0)
            sum += units;
        else
            pools[pool % SIM_DEVICES] = fmax(pools[pool % SIM_DEVICES], units);
    }
    for (size_t i = 0; i < SIM_DEVICES; ++i)
        sum += pools[i];
    return sum;
}

double sim_ideal(const sim_scenario *scenario)
{
    double low = 0, high = 1e-6;
    while (capacity_of_all(scenario, high) < (double)scenario->job.units && high < 1e12)
        high *= 2;
    for (int i = 0; i < 60; ++i) {
        const double middle = 0.5 * (low + high);
        if (capacity_of_all(scenario, middle) < (double)scenario->job.units)
            low = middle;
        else
            high = middle;
    }
    return high;
}
