/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts how long a device will take for a chunk, from the chunks it has done. */
#include "runtime/job/balance/speed.h"

#include "base/alloc.h"

#include <math.h>

static const double FADE = 0.8;  /* weight a sample keeps per newer sample: about five count */
static const double FAR = 1.5;   /* a chunk is doubted if measured / predicted is above this or
                                    below 1/this */
static const double SAME = 1.35; /* two doubted chunks within this factor mean a new pace */
static const double ALIKE = 0.1; /* spread of chunk sizes that differ by half */
static const double USUAL_NOISE = 0.03; /* assumed until it is measured */

static void absorb(clv_speed *speed, double units, double seconds)
{
    const double x = 1 / seconds, y = units / seconds;
    speed->xx = FADE * speed->xx + x * x;
    speed->xy = FADE * speed->xy + x * y;
    speed->yy = FADE * speed->yy + y * y;
    speed->x = FADE * speed->x + x;
    speed->y = FADE * speed->y + y;
    speed->shortest = speed->shortest > 0 ? fmin(speed->shortest, seconds) : seconds;
    speed->fewest = speed->fewest > 0 ? fmin(speed->fewest, units) : units;
    speed->most = fmax(speed->most, units);
}

/* Fits the model by least squares over the sums. The more alike the chunk sizes are, the less they distinguish the
 * fixed cost from the cost of units, and the more the fixed cost keeps its old value, so that noise invents no fixed
 * cost. */
static void solve(clv_speed *speed)
{
    const double whole = speed->y / speed->yy; /* seconds per unit if there were no fixed cost */
    const double scale = speed->xx * speed->yy;
    const double spread = fmax(scale - speed->xy * speed->xy, 0) / scale;
    double chunk_s = speed->chunk_s;
    if (spread > 1e-6) {
        const double found = (speed->x * speed->yy - speed->y * speed->xy) / (spread * scale);
        chunk_s += spread / (spread + ALIKE) * (found - chunk_s);
    }
    chunk_s = fmin(fmax(chunk_s, 0), speed->shortest);
    const double unit_s = (speed->y - chunk_s * speed->xy) / speed->yy;
    speed->unit_s = fmax(unit_s, 1e-3 * whole);
    speed->chunk_s = chunk_s;
}

clv_speed clv_speed_start(double units_per_s, double chunk_s, double chunk_units)
{
    clv_speed speed = { .noise = USUAL_NOISE, .extra = fmax(chunk_units, 0) };
    if (chunk_s > 0) speed.chunk_s = chunk_s;
    if (!(units_per_s > 0) || !isfinite(units_per_s)) return speed;
    speed.unit_s = 1 / units_per_s;
    /* History counts as two chunks. One of them is so short that it holds the fixed cost in place. */
    const double few = fmax(speed.chunk_s, 1e-4) / speed.unit_s;
    absorb(&speed, few, speed.chunk_s + few * speed.unit_s);
    absorb(&speed, 50 * few, speed.chunk_s + 50 * few * speed.unit_s);
    speed.fewest = speed.most = 0;
    return speed;
}

bool clv_speed_known(const clv_speed *speed)
{
    return speed->unit_s > 0;
}

/* Returns whether a sample is too far from the model to be trusted alone, at a size at which the model was tested. */
static bool doubtful(const clv_speed *speed, double units, double ratio)
{
    const bool history_only = speed->most <= 0;
    const bool tested = history_only || (units <= 2 * speed->most && units >= speed->fewest / 2);
    return tested && (ratio > FAR || ratio < 1 / FAR);
}

void clv_speed_observe(clv_speed *speed, size_t units, double seconds)
{
    const double n = (double)units + speed->extra, s = fmax(seconds, 1e-9);
    ++speed->samples;
    if (!clv_speed_known(speed)) {
        speed->unit_s = fmax(s - speed->chunk_s, 0.1 * s) / n;
        speed->chunk_s = fmin(speed->chunk_s, s);
        absorb(speed, n, s);
        return;
    }
    const double ratio = s / (speed->chunk_s + n * speed->unit_s);
    if (doubtful(speed, n, ratio)) {
        const double before = speed->doubt;
        if (!(before > 0) || ratio > before * SAME || ratio < before / SAME) {
            speed->doubt = ratio, speed->doubt_n = n, speed->doubt_s = s;
            return;
        }
        /* Two such samples in a row mean that the pace has changed. Both parts of the model move with it. */
        speed->xx = speed->xy = speed->yy = speed->x = speed->y = 0;
        speed->chunk_s *= CLV_MIN(before, ratio);
        speed->shortest = 0;
        absorb(speed, speed->doubt_n, speed->doubt_s);
    } else if (speed->samples > 2) {
        speed->noise = FADE * speed->noise + (1 - FADE) * fmin(fabs(ratio - 1), 0.5);
    }
    speed->doubt = 0;
    absorb(speed, n, s);
    solve(speed);
}

double clv_speed_predict(const clv_speed *speed, double units)
{
    return (speed->chunk_s + (units + speed->extra) * speed->unit_s) * fmax(speed->doubt, 1);
}

double clv_speed_predict_most(const clv_speed *speed, double units)
{
    const double n = units + speed->extra, seconds = clv_speed_predict(speed, units);
    const bool beyond = speed->most > 0 && n > 2 * speed->most;
    return beyond ? fmax(seconds, n * speed->y / speed->yy) : seconds;
}

double clv_speed_slack(const clv_speed *speed)
{
    return 2 * speed->noise;
}
