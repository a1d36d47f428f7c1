/* SPDX-License-Identifier: Apache-2.0 */
/* Reports what each device did in a job: figures, and one sentence per device that gives the reason in
 * numbers. */
#include "runtime/job/balance/state.h"

clv_balance_stats clv_balance_get_stats(const clv_balance *balance, size_t device)
{
    const clv_member *member = &balance->devices[device];
    clv_balance_stats stats = member->stats;
    stats.samples = member->speed.samples;
    stats.units_per_s = clv_speed_known(&member->speed) ? 1 / member->speed.unit_s : 0;
    stats.chunk_s = member->speed.chunk_s;
    stats.out = member->phase == CLV_PHASE_OUT;
    if (clv_balance_finished(balance)) stats.dropped += member->in_flight; /* now too late */
    return stats;
}

static void add_speed(const clv_speed *speed, clv_text *text)
{
    char fixed[24];
    if (!clv_speed_known(speed)) {
        clv_text_add(text, "speed unknown");
        return;
    }
    clv_text_add(text, "%.4g units/s", 1 / speed->unit_s);
    if (speed->chunk_s > 1e-6)
        clv_text_add(text, " and %s a chunk", clv_format_seconds(speed->chunk_s, fixed));
}

static void add_reason(const clv_balance *balance, const clv_member *member, clv_text *text)
{
    char with[24], without[24], setup[24];
    clv_format_seconds(fmax(member->with_s, 0), with);
    clv_format_seconds(fmax(member->without_s, 0), without);
    clv_format_seconds(fmax(member->given.setup_s, 0), setup);
    switch (member->verdict) {
    case CLV_VERDICT_NONE:
        clv_text_add(text, "it did not ask for work");
        break;
    case CLV_VERDICT_WORKS:
        clv_text_add(text, "it had work to the end");
        break;
    case CLV_VERDICT_TOO_LATE:
        clv_text_add(
            text,
            "its next chunk would have ended after %s, all work of the other devices after %s",
            with, without);
        break;
    case CLV_VERDICT_NO_GAIN:
        clv_text_add(text,
                     "its help would have saved too little of the %s left to risk a late chunk",
                     without);
        break;
    case CLV_VERDICT_SETUP:
        clv_text_add(text, "its set-up takes %s, all work of the other devices %s", setup, without);
        break;
    case CLV_VERDICT_POOL:
        clv_text_add(text, "device %zu works on the cores they share", member->owner);
        break;
    case CLV_VERDICT_SLOWER:
        clv_text_add(text, "device %zu is faster on the cores they share, %.4g units/s",
                     member->owner, clv_balance_rate(balance, member->owner));
        break;
    case CLV_VERDICT_NO_WORK:
        clv_text_add(text, "nothing was left that it could end earlier");
        break;
    case CLV_VERDICT_MEMORY:
        clv_text_add(text, "its memory does not hold the smallest chunk, %zu units",
                     balance->job.min_chunk);
        break;
    case CLV_VERDICT_FAILED:
        clv_text_add(text, "it was dropped after a failure");
        break;
    case CLV_VERDICT_LOST:
        clv_text_add(text, "it was lost");
        break;
    case CLV_VERDICT_HUNG:
        clv_text_add(text, "it did not finish a chunk and was dropped");
        break;
    }
}

void clv_balance_explain(const clv_balance *balance, size_t device, clv_text *text)
{
    const clv_member *member = &balance->devices[device];
    const clv_balance_stats *stats = &member->stats;
    if (stats->chunks)
        clv_text_add(text, "%zu of %zu units in %zu chunks, ", stats->units, balance->job.units,
                     stats->chunks);
    else
        clv_text_add(text, "left out, ");
    add_speed(&member->speed, text);
    clv_text_add(text, ": ");
    add_reason(balance, member, text);
}

void clv_balance_quality(const clv_balance *balance, double now, double *imbalance,
                         double *efficiency)
{
    double latest = 0, sum = 0, rate = 0;
    size_t worked = 0;
    for (size_t i = 0; i < balance->device_count; ++i) {
        const clv_member *member = &balance->devices[i];
        if (!member->stats.chunks) continue;
        const double finish = member->stats.finish - balance->start;
        ++worked;
        sum += finish;
        latest = fmax(latest, finish);
        if (clv_speed_known(&member->speed)) rate += 1 / member->speed.unit_s;
    }
    const double end = clv_balance_finished(balance) ? balance->finished_at : now;
    const double taken = end - balance->start;
    const double units = (double)(balance->job.units - balance->book.open);
    *imbalance = worked && sum > 0 ? latest / (sum / (double)worked) - 1 : 0;
    *efficiency = rate > 0 && taken > 0 ? fmin(units / rate / taken, 1) : 0;
}
