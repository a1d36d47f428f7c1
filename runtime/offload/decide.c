/* SPDX-License-Identifier: Apache-2.0 */
/* Records the times of a kind of call, and decides on a side from them. Pure functions. */
#include "runtime/offload/decide.h"

#include "base/alloc.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* All constants and the measurements behind them. "2026-11-22" and "-23" are the runs of bench_offload on these days
 * in bench/results: 242 points, PoCL and Intel's CPU runtime, two cores of an AMD EPYC. "Moods" are spells in which
 * the machine runs slower or faster. */
static const struct {
    /* when a kind of call is timed */
    double patience_s;
    /* which side a call goes to */
    double leave;
    /* what a call teaches the curve */
    double curve_part, curve_step, long_s, long_step, forgets, most_lean;
    /* which shapes keep times of their own */
    double close, least_s, brief_s, mood;
    /* what a call teaches its shape */
    double wakes_s, pause_s, least_part, most_part, part_s, step, rare;
    /* tries of the other side */
    double try_s, give_up_s, price, least_wait_s, mood_s, too_long_s;
    int lessons, most_confirmed;
} is = {
    .patience_s = 0.1, /* timing a kind takes 0.1 to 1 s, by the log of any run */

    .leave = 0.96, /* two medians of one side in one run differ by 2 to 4 % (2026-11-22) */

    .curve_part = 0.5, /* part of a call's lesson that the curve takes, */
    .curve_step = 0.1, /* largest step: single calls take up to 10 times as long (2026-11-22) */
    .long_s = 5e-3,    /* a longer call is not slow by chance, so its step may be larger: */
    .long_step = 0.35, /* a sum of 1.6e6, timed at twice its time, is right after 3 calls */
    .forgets = 0.01,   /* each call lets the other side's lean fade: moods pass (2026-11-22) */
    .most_lean = 1.4,  /* e^1.4 = 4: the largest error of a curve (2026-11-22, beside compilers) */

    .close = 2,      /* curves were off by up to 2 in moods of the machine (2026-11-22) */
    .least_s = 5e-6, /* a decision takes 0.2 us (2026-11-22) */
    .brief_s = 4e-3, /* timing both sides in turns, five times, takes at most 0.1 s */
    .mood = 2,       /* the same moods as for `close` */

    .wakes_s =
        10e-3, /* threads find their cores in it: the judge's first 10 ms differ (2026-11-22) */
    .pause_s = 5e-3,   /* after such a pause the threads sleep again */
    .least_part = 0.1, /* part of a call's lesson: ten short calls make an average; */
    .most_part = 0.5,  /* two long ones do; */
    .part_s = 2e-3,    /* the part grows with the call up to this many seconds */
    .step = 0.2,       /* largest step of a shape's times, as curve_step for the curve */
    .rare = 0.25,      /* part of its lesson that a call after a pause teaches: it wakes threads */

    .try_s = 15e-3,     /* a try: 10 ms to wake up, 5 ms that teach */
    .give_up_s = 60e-3, /* or this long, if pauses let no call teach */
    .price = 0.03,      /* part of the calls' time for tries that find the other side slower */
    .least_wait_s =
        0.04,    /* between two tries, so that sides that are alike do not swap all the time */
    .mood_s = 5, /* moods lasted tenths of a second to seconds (2026-11-22) */
    .too_long_s = 50e-3, /* a call this long is not tried on the slower side */
    .lessons = 5,        /* calls that a try has to teach */
    .most_confirmed = 4, /* each try without a change doubles the wait, up to 16 times */
};
static const char version[] = "2"; /* of the shapes' text form */

bool clv_kind_is_due(const clv_kind *kind, double next_s)
{
    return kind->spent_s + next_s >= is.patience_s;
}

static int place_of(clv_side side)
{
    return side == CLV_SIDE_DEVICE ? CLV_DEVICE : CLV_HOST;
}

static clv_side other(clv_side side)
{
    return side == CLV_SIDE_DEVICE ? CLV_SIDE_HOST : CLV_SIDE_DEVICE;
}

static double within(double most, double x)
{
    return fmax(-most, fmin(most, x));
}

/* ---- shapes ------------------------------------------------------------------------------------ */

clv_shape *clv_shape_find(clv_kind *kind, uint64_t name)
{
    for (size_t i = 0; i < CLV_SHAPES; ++i)
        if (kind->shape[i].name == name) {
            kind->shape[i].used = ++kind->uses;
            return &kind->shape[i];
        }
    return NULL;
}

bool clv_shape_is_close(const double seconds[CLV_SIDES])
{
    const double low = fmin(seconds[CLV_HOST], seconds[CLV_DEVICE]);
    return low >= is.least_s && fmax(seconds[CLV_HOST], seconds[CLV_DEVICE]) < is.close * low;
}

bool clv_shape_is_brief(const double seconds[CLV_SIDES])
{
    return fmax(seconds[CLV_HOST], seconds[CLV_DEVICE]) <= is.brief_s;
}

clv_shape *clv_shape_keep(clv_kind *kind, uint64_t name, const double seconds[CLV_SIDES])
{
    clv_shape *to = clv_shape_find(kind, name);
    if (!to) to = &kind->shape[0];
    for (size_t i = 0; i < CLV_SHAPES && to->name && to->name != name; ++i)
        if (!kind->shape[i].name || kind->shape[i].used < to->used) to = &kind->shape[i];
    *to = (clv_shape){ .name = name, .used = ++kind->uses };
    memcpy(to->seconds, seconds, sizeof to->seconds);
    return to;
}

double clv_shape_between(double by_curve_s, double timed_s)
{
    const double times = timed_s / by_curve_s;
    return times < is.mood && times > 1 / is.mood ? sqrt(by_curve_s * timed_s) : timed_s;
}

/* ---- the choice -------------------------------------------------------------------------------- */

/* The curve's points before and after an amount of work, and the weight of each. */
typedef struct neighbours {
    size_t at[2];
    double weight[2];
} neighbours;

static neighbours neighbours_of(const clv_kind *kind, double work)
{
    neighbours n = { .weight = { 1, 0 } };
    if (!kind->curve.count) return n;
    n.weight[1] = clv_curve_place(&kind->curve, work, &n.at[0]);
    n.weight[0] = 1 - n.weight[1];
    n.at[1] = CLV_MIN(n.at[0] + 1, kind->curve.count - 1);
    return n;
}

static size_t nearest(const clv_kind *kind, double work)
{
    const neighbours n = neighbours_of(kind, work);
    return n.at[n.weight[1] > 0.5];
}

void clv_kind_predict(const clv_kind *kind, const clv_shape *shape, double work,
                      double seconds[CLV_SIDES])
{
    if (shape) {
        memcpy(seconds, shape->seconds, sizeof shape->seconds);
        return;
    }
    const neighbours n = neighbours_of(kind, work);
    clv_curve_at(&kind->curve, work, seconds);
    for (int side = 0; side < CLV_SIDES; ++side)
        seconds[side] *=
            exp(n.weight[0] * kind->lean[side][n.at[0]] + n.weight[1] * kind->lean[side][n.at[1]]);
}

clv_side clv_kind_choose(const clv_kind *kind, const clv_shape *shape, double work,
                         const double seconds[CLV_SIDES], double first_s)
{
    const clv_side last = shape && shape->side ? shape->side : kind->last[nearest(kind, work)];
    double host = seconds[CLV_HOST], device = seconds[CLV_DEVICE];
    if (!kind->built) device += fmax(first_s - kind->lost_s, 0);
    if (last == CLV_SIDE_HOST) host *= is.leave;
    if (last == CLV_SIDE_DEVICE) device *= is.leave;
    return device < host ? CLV_SIDE_DEVICE : CLV_SIDE_HOST;
}

/* ---- tries of the other side ------------------------------------------------------------------- */

/* Returns how much slower the other side is expected to be: 0.1 for 10 %. */
static double gap(const clv_shape *s)
{
    const int at = place_of(s->side);
    return fmax(s->seconds[!at] / s->seconds[at] - 1, 0);
}

/* Returns how many seconds of calls pass before the next try. A try may cost the part `price` of them, and less each
 * time that a try changed nothing. */
static double wait_s(const clv_shape *s)
{
    return fmax(is.least_wait_s, is.try_s * gap(s) / is.price) * ldexp(1, s->confirmed);
}

/* Ends a try. Tries within a few seconds fall into the same mood of the machine and count once. */
static void end_try(clv_shape *s, double now)
{
    const int at = place_of(s->side);
    if (s->seconds[!at] < s->seconds[at]) {
        s->confirmed = 0;
    } else if (!s->confirmed || now - s->asked > is.mood_s) {
        s->confirmed = CLV_MIN(s->confirmed + 1, is.most_confirmed);
        s->asked = now;
    }
    s->trying = false;
    s->side_s = 0;
}

clv_side clv_shape_turn(clv_shape *s, clv_side chosen, double now)
{
    if (s->trying && s->lessons >= is.lessons && now - s->ended > is.pause_s) end_try(s, now);
    if (s->trying) return other(s->side);
    if (s->side != chosen) s->side_s = 0, s->confirmed = 0;
    s->side = chosen;
    if (s->failed || s->side_s < wait_s(s) || gap(s) > is.close ||
        fmax(s->seconds[CLV_HOST], s->seconds[CLV_DEVICE]) > is.too_long_s)
        return chosen;
    s->trying = true;
    s->tried_s = 0, s->lessons = 0;
    return other(chosen);
}

void clv_shape_failed(clv_shape *s)
{
    if (!s->trying) return;
    s->trying = false;
    s->failed = true;
}

/* ---- what calls teach -------------------------------------------------------------------------- */

void clv_kind_went(clv_kind *kind, const clv_shape *shape, double work, clv_side side,
                   const double seconds[CLV_SIDES])
{
    if (side == CLV_SIDE_HOST && !kind->built)
        kind->lost_s += fmax(seconds[CLV_HOST] - seconds[CLV_DEVICE], 0);
    if (!shape && (kind->built || side == CLV_SIDE_DEVICE)) kind->last[nearest(kind, work)] = side;
}

/* Returns the weight, 0 to 1, of what a call teaches: 0 while threads wake up. */
static double worth(clv_shape *s, clv_side side, double seconds, double now)
{
    const bool moved = s->latest != side, pause = now - seconds - s->ended > is.pause_s;
    const double before_s = moved || pause ? 0 : s->row_s;
    s->row_s = before_s + seconds;
    s->latest = side;
    s->ended = now;
    return before_s >= is.wakes_s || (!moved && seconds >= is.wakes_s) ? 1
           : pause && !moved                                           ? is.rare
                                                                       : 0;
}

static void teach_shape(clv_shape *s, clv_side side, double predicted, double seconds, double part)
{
    const double most = is.step * (predicted > is.long_s ? is.long_step / is.curve_step : 1);
    part *= fmax(is.least_part, fmin(predicted / is.part_s, is.most_part));
    s->seconds[place_of(side)] *= exp(part * within(most, log(seconds / predicted)));
    s->timed = s->taught = true;
}

static void teach_curve(clv_kind *kind, double work, clv_side side, double predicted,
                        double seconds)
{
    const neighbours n = neighbours_of(kind, work);
    const int at = place_of(side);
    const double most = predicted < is.long_s ? is.curve_step : is.long_step;
    const double lesson = within(most, is.curve_part * log(seconds / predicted));
    for (int k = 0; k < 2; ++k) {
        double *lean = &kind->lean[at][n.at[k]];
        *lean = within(is.most_lean, *lean + n.weight[k] * lesson);
        kind->lean[!at][n.at[k]] *= 1 - is.forgets * n.weight[k];
    }
}

void clv_kind_saw(clv_kind *kind, clv_shape *s, double work, clv_side side, double predicted,
                  double seconds, double now)
{
    if (!kind->curve.count || !(predicted > 0) || !(seconds > 0)) return;
    if (!s) {
        teach_curve(kind, work, side, predicted, seconds);
        return;
    }
    const double part = worth(s, side, seconds, now);
    if (part > 0) teach_shape(s, side, predicted, seconds, part);
    if (!s->trying) {
        s->side_s += seconds;
    } else if (side != s->side) {
        s->tried_s += seconds;
        s->lessons += part > 0;
        if ((s->lessons >= is.lessons && s->tried_s >= is.try_s) || s->tried_s >= is.give_up_s)
            end_try(s, now);
    }
}

/* ---- as text ----------------------------------------------------------------------------------- */

void clv_shapes_read(const char *text, clv_kind *kind)
{
    uint64_t name;
    char word[CLV_SIDES][24];
    double seconds[CLV_SIDES];
    int length = 0;
    memset(kind->shape, 0, sizeof kind->shape);
    if (strncmp(text, version, sizeof version - 1) != 0) return;
    text += sizeof version - 1;
    for (size_t i = 0; i < CLV_SHAPES; ++i, text += length) {
        if (sscanf(text, " %16" SCNx64 ":%23[0-9.e+-]:%23[0-9.e+-]%n", &name, word[CLV_HOST],
                   word[CLV_DEVICE], &length) != 3)
            return;
        for (int side = 0; side < CLV_SIDES; ++side)
            if (!name || !clv_parse_double(word[side], &seconds[side]) || !(seconds[side] > 0) ||
                !isfinite(seconds[side]))
                return;
        clv_shape_keep(kind, name, seconds)->timed = true;
    }
}

void clv_shapes_write(const clv_kind *kind, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "%s", version);
    for (size_t i = 0; i < CLV_SHAPES && used < room; ++i) {
        const clv_shape *s = &kind->shape[i];
        if (s->name)
            used += (size_t)clv_format(text + used, room - used, " %" PRIx64 ":%.4g:%.4g", s->name,
                                       s->seconds[CLV_HOST], s->seconds[CLV_DEVICE]);
    }
}
