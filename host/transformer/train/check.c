/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a step on a device with the same step in plain C, from the same weights. */
#include "host/transformer/train/bits.h"
#include "host/transformer/train/check.h"
#include "host/transformer/train/watch.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* CHUNK: number of values that are read back and compared at a time; differences are relative to the largest value of
 * a chunk. */
enum { CHUNK = 1 << 16, BLOCKS = 3 };
static const double part_of_each = 1e-3, part_of_most = 1e-3, part_of_all = 1e-5;
/* Tolerance of max pooling, where a rounding error can decide which element of a column gets the slope. */
static const double part_of_length = 0.02;

typedef struct blocks {
    void *all[BLOCKS]; /* weights, moments; NULL: the optimiser has no such moments */
} blocks;

static blocks blocks_of(const clv_trainer *t)
{
    return (blocks){ { t->net.weights, t->first, t->second } };
}

bool clv_check_due(const clv_trainer *t)
{
    if (t->is_reference || !t->options.check_every) return false;
    return !t->looked || t->steps % t->options.check_every == 0;
}

/* Sets *fits to whether the steps since the last check can have changed the twin's weights and moments to those of the
 * device. Adds the bits of the device's values to *found. */
static clv_status compare_ways(clv_trainer *t, bool *fits, clv_bits *found)
{
    const blocks here = blocks_of(t);
    float *got = clv_alloc(CHUNK, sizeof *got);
    clv_status status =
        got ? CLV_OK : clv_fail(CLV_E_MEMORY, "training: not enough memory for %d weights", CHUNK);
    *fits = true;
    for (size_t i = 0; i < BLOCKS; ++i)
        for (size_t at = 0; here.all[i] && at < t->count && *fits && !status; at += CHUNK) {
            const size_t count = CLV_MIN((size_t)CHUNK, t->count - at);
            status = t->ops->get(t->ops, (clv_mem){ here.all[i], at }, got, count);
            if (!status) *fits = clv_watch_fits(t, i, at, got, count);
            if (!status) clv_bits_add(i, got, count, found);
        }
    clv_free(got);
    return status;
}

static clv_status check_ways(clv_trainer *t)
{
    bool fits = true;
    clv_bits found = { 0 };
    if (!t->looked) return CLV_OK;
    CLV_TRY(compare_ways(t, &fits, &found));
    if (fits && clv_bits_fit(t, &found)) return CLV_OK;
    if (fits) return clv_check_flipped(t, t->steps);
    const clv_status status = clv_watch_fail(t, "The weights are those before the first of them.");
    CLV_TRY(clv_check_undo(t));
    return status;
}

clv_status clv_check_begin(clv_trainer *t, bool *due)
{
    const clv_status status = t->twin ? CLV_OK : clv_trainer_open_twin(t);
    if (status == CLV_E_MEMORY) {
        clv_log(CLV_LOG_WARN, "the steps are not checked against plain C: %s", clv_error_message());
        t->options.check_every = 0;
        *due = false;
        return CLV_OK;
    }
    CLV_TRY(status);
    CLV_TRY(check_ways(t));
    const blocks here = blocks_of(t), there = blocks_of(t->twin);
    for (size_t i = 0; i < BLOCKS; ++i)
        if (here.all[i])
            CLV_TRY(t->ops->get(t->ops, (clv_mem){ here.all[i], 0 }, there.all[i], t->count));
    t->twin->steps = t->steps;
    t->looked = true;
    clv_watch_restart(t);
    return CLV_OK;
}

void clv_check_end(clv_trainer *t)
{
    clv_trainer_close(t->twin);
    t->twin = NULL;
    t->looked = t->summed = false;
}

clv_status clv_check_undo(clv_trainer *t)
{
    const blocks here = blocks_of(t), there = blocks_of(t->twin);
    for (size_t i = 0; i < BLOCKS; ++i)
        if (here.all[i])
            CLV_TRY(t->ops->put(t->ops, (clv_mem){ here.all[i], 0 }, there.all[i], t->count));
    t->steps = t->twin->steps;
    t->summed = false;
    clv_watch_restart(t);
    return CLV_OK;
}

clv_status clv_check_flipped(clv_trainer *t, uint64_t step)
{
    char then[64];
    if (!t->twin || !t->looked) return clv_bits_fail(t, step, "The weights are wrong.");
    CLV_TRY(clv_check_undo(t));
    snprintf(then, sizeof then, "The weights are those of step %" PRIu64 ".", t->steps);
    return clv_bits_fail(t, step, then);
}

/* ---- gradients ----------------------------------------------------------------------------------- */

static double largest(const float *values, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; ++i)
        if (fabs((double)values[i]) > most) most = fabs((double)values[i]);
    return most;
}

/* Returns whether gradients agree. Skips values that are NaN or infinite in plain C: a learning rate that is too high
 * causes them, and the caller sees them in the loss. */
static bool slopes_same(const float *got, const float *want, size_t count, double room, bool jumps)
{
    const double most = largest(want, count);
    double apart = 0, length = 0;
    bool same = true;
    for (size_t i = 0; i < count; ++i) {
        if (!isfinite(want[i])) continue;
        const double away = fabs((double)got[i] - (double)want[i]);
        if (!(away <= part_of_each * fabs((double)want[i]) + part_of_most * most + room))
            same = false;
        apart += away * away;
        length += (double)want[i] * (double)want[i];
    }
    return same || (jumps && sqrt(apart) <= part_of_length * sqrt(length));
}

static bool losses_same(double got, double want)
{
    return !isfinite(want) || fabs(got - want) <= 1e-4 * fabs(want) + 1e-5;
}

static clv_status compare_gradient(clv_trainer *t, float *got, bool *same)
{
    const bool jumps = t->net.config.pooling == CLV_MODEL_MAX;
    float *want = t->twin->net.gradient;
    const double room = part_of_all * largest(want, t->count);
    for (size_t i = 0; i < t->part_count && *same; ++i)
        for (size_t done = 0; done < t->parts[i].count && *same; done += CHUNK) {
            const size_t at = t->parts[i].at + done;
            const size_t count = CLV_MIN((size_t)CHUNK, t->parts[i].count - done);
            CLV_TRY(t->ops->get(t->ops, (clv_mem){ t->net.gradient, at }, got, count));
            *same = slopes_same(got, want + at, count, room, jumps);
            if (*same) memcpy(want + at, got, count * sizeof *got);
        }
    return CLV_OK;
}

clv_status clv_check_gradient(clv_trainer *t, const clv_train_result *found,
                              const clv_train_result *expected, bool *same)
{
    *same = found->counted == expected->counted && losses_same(found->loss, expected->loss);
    if (!*same) return CLV_OK;
    float *got = clv_alloc(CHUNK, sizeof *got);
    if (!got) return clv_fail(CLV_E_MEMORY, "training: not enough memory for %d gradients", CHUNK);
    const clv_status status = compare_gradient(t, got, same);
    clv_free(got);
    return status;
}

/* ---- new weights --------------------------------------------------------------------------------- */

typedef struct chunk {
    float *old[BLOCKS], *want[BLOCKS], *got[BLOCKS], *slopes;
    size_t count;
    double scale, rate;
    bool adamw;
} chunk;

/* Returns whether a chunk of new values agrees with plain C. Values in single precision may differ by a few units in
 * the last place of the largest number from which they are computed. */
static bool numbers_same(const chunk *c, size_t which)
{
    for (size_t i = 0; i < c->count; ++i) {
        const double want = (double)c->want[which][i], old = (double)c->old[which][i];
        const double slope = fabs((double)c->slopes[i] * c->scale);
        const double drive = c->old[1] ? fabs((double)c->old[1][i]) + slope : slope;
        double room =
            1e-5 * (fabs(want) + fabs(old) + (which == 2 ? slope * slope : slope)) + 1e-37;
        if (which == 0)
            room = 1e-6 * fabs(want) + 1e-3 * fabs(want - old) +
                   c->rate * (c->adamw ? 1e-4 : 1e-5 * drive);
        if (isfinite(want) && !(fabs((double)c->got[which][i] - want) <= room)) return false;
    }
    return true;
}

static clv_status compare_chunk(clv_trainer *t, const clv_train_update *update, chunk *c,
                                bool *same)
{
    const blocks here = blocks_of(t), there = blocks_of(t->twin);
    const clv_train_rule rule = clv_trainer_rule(t);
    clv_train_update u = *update;
    void **const places[BLOCKS] = { &u.weights, &u.first, &u.second };
    c->count = u.count;
    c->slopes = (float *)t->twin->net.gradient + u.at;
    for (size_t i = 0; i < BLOCKS; ++i) {
        c->old[i] = here.all[i] ? (float *)there.all[i] + u.at : NULL;
        if (!here.all[i]) continue;
        memcpy(c->want[i], c->old[i], u.count * sizeof(float));
        CLV_TRY(t->ops->get(t->ops, (clv_mem){ here.all[i], u.at }, c->got[i], u.count));
        *places[i] = c->want[i];
    }
    u.gradient = c->slopes;
    u.at = 0;
    CLV_TRY(t->twin->ops->update(t->twin->ops, &rule, &u));
    for (size_t i = 0; i < BLOCKS && *same; ++i)
        if (here.all[i]) *same = numbers_same(c, i);
    return CLV_OK;
}

static clv_status compare_update(clv_trainer *t, double rate, chunk *c, bool *same)
{
    clv_train_result unused = { 0 };
    float scale;
    CLV_TRY(clv_trainer_shorten(t->twin, &unused, &scale));
    c->scale = (double)scale;
    c->rate = rate;
    c->adamw = t->options.optimizer == CLV_OPTIMIZER_ADAMW;
    for (size_t i = 0; i < t->part_count && *same; ++i)
        for (size_t done = 0; done < t->parts[i].count && *same; done += CHUNK) {
            clv_train_update u = clv_trainer_update_of(t, &t->parts[i], scale, rate);
            u.at += done;
            u.count = CLV_MIN((size_t)CHUNK, t->parts[i].count - done);
            CLV_TRY(compare_chunk(t, &u, c, same));
        }
    return CLV_OK;
}

clv_status clv_check_update(clv_trainer *t, double rate, bool *same)
{
    chunk c = { 0 };
    float *room = clv_alloc((size_t)2 * BLOCKS * CHUNK, sizeof *room);
    *same = true;
    if (!room) return clv_fail(CLV_E_MEMORY, "training: not enough memory for %d weights", CHUNK);
    for (size_t i = 0; i < BLOCKS; ++i) {
        c.want[i] = room + 2 * i * CHUNK;
        c.got[i] = c.want[i] + CHUNK;
    }
    const clv_status status = compare_update(t, rate, &c, same);
    clv_free(room);
    return status;
}
