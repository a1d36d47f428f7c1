/* SPDX-License-Identifier: Apache-2.0 */
/* Times both sides of an operation, on operands of its own, so that each call goes to the faster side. */
#include "runtime/offload/measure.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "runtime/job/turn.h"
#include "runtime/offload/carry.h"
#include "runtime/record/context.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TURNS = 5 };                 /* most turns of both sides, if they are about as fast */
static const double budget_s = 0.4; /* seconds for a curve, once it has four points */
static const double shape_s = 0.1;  /* seconds for a shape */
static const double clear = 0.45;   /* the device clearly wins below this part of the host's time */
static const double alike = 0.6;    /* of each other's time: above it one turn does not decide */
static const double clearly =
    1.1; /* apart: every turn of one side takes this many times as long as any of the other */

/* Threads of a driver, or ours, settle on their cores within settles_s; earlier times would mislead a program that
 * makes frequent calls. Calls of the host shorter than alone_s use no threads. */
static const double settles_s = 10e-3, alone_s = 40e-6;

double (*clv_measure_clock)(void) = clv_jobs_clock;

/* The timings at one amount of work; the curve gets their median. */
typedef struct spot {
    double work, seconds[CLV_SIDES][TURNS];
    int turns;
} spot;

typedef struct survey {
    clv_context *context;
    const clv_call *like;
    double started;
    double useful_s; /* the usual seconds of all calls so far */
    spot spots[CLV_CURVE_POINTS];
    int count;
} survey;

static survey begin(clv_context *context, const clv_call *like)
{
    return (survey){ .context = context, .like = like, .started = clv_measure_clock() };
}

/* Sorts the values and returns the quantile: the value below which the given part of them lies. */
static double quantile(double *values, int count, double part)
{
    for (int i = 1; i < count; ++i)
        for (int k = i; k && values[k] < values[k - 1]; --k) {
            const double kept = values[k];
            values[k] = values[k - 1], values[k - 1] = kept;
        }
    return values[(int)(part * (count - 1))];
}

static clv_status once(const survey *s, const clv_call *call, int side)
{
    bool by_host;
    return side == CLV_HOST ? clv_carry_to_host(s->context, call)
                            : clv_carry_to_device(s->context, call, &by_host);
}

/* Times a side: the median of several calls within a short time. */
static clv_status time_side(survey *s, clv_call *call, int side, double *seconds)
{
    enum { LEAST = 4, MOST = 100 };
    static const double enough_s = 4e-3, most_s = 60e-3;
    double spent = 0, longest = 0, took[MOST];
    int count = 0, others = 1;
    call->forced = side == CLV_HOST ? CLV_SIDE_HOST : CLV_SIDE_DEVICE;
    CLV_TRY(once(s, call, side)); /* the first call compiles and allocates */
    const double woken = clv_measure_clock();
    do {
        CLV_TRY(once(s, call, side));
        ++others;
        if (side == CLV_HOST && clv_measure_clock() - woken < alone_s) break;
    } while (clv_measure_clock() - woken < settles_s);
    /* drivers may compile once more, for another size, so the longest call is not counted */
    while (count < MOST && (count < LEAST || spent < enough_s) && spent - longest < most_s) {
        const double started = clv_measure_clock();
        CLV_TRY(once(s, call, side));
        took[count] = clv_measure_clock() - started;
        longest = CLV_MAX(longest, took[count]);
        spent += took[count++];
    }
    *seconds = CLV_MAX(quantile(took, count, 0.5), 1e-8);
    s->useful_s += (count + others) * *seconds;
    return CLV_OK;
}

/* ---- do the results of both sides agree? --------------------------------------------------------- */

static clv_status compare(const survey *s, const clv_sample *sample, const float *want)
{
    double largest = 0, worst = 0;
    for (size_t i = 0; i < sample->results; ++i) {
        largest = fmax(largest, fabs((double)want[i]));
        const double off = fabs((double)sample->result[i] - (double)want[i]);
        if (!(off <= worst)) worst = isnan(off) ? INFINITY : off;
    }
    if (worst <= sample->tolerance * largest) return CLV_OK;
    return clv_fail(
        CLV_E_WRONG_RESULT,
        "%s: the device's result differs from the host's by %.3g times the host's largest element, "
        "expected at most %.3g times",
        s->like->operation, worst / largest, sample->tolerance);
}

static clv_status check(const survey *s, clv_sample *sample)
{
    if (!sample->results || !(sample->tolerance > 0)) return CLV_OK;
    float *want = clv_alloc(sample->results, sizeof *want);
    if (!want)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory to compare", s->like->operation);
    sample->call->forced = CLV_SIDE_HOST;
    clv_status status = once(s, sample->call, CLV_HOST);
    memcpy(want, sample->result, sample->results * sizeof *want);
    sample->call->forced = CLV_SIDE_DEVICE;
    if (!status) status = once(s, sample->call, CLV_DEVICE);
    if (!status) status = compare(s, sample, want);
    clv_free(want);
    return status;
}

/* ---- timings ------------------------------------------------------------------------------------- */

/* Times both sides at this amount of work. */
static clv_status time_both(survey *s, double work, double seconds[CLV_SIDES])
{
    clv_sample sample = { 0 };
    CLV_TRY(s->like->sample(s->context, s->like, work, &sample));
    clv_status status = s->useful_s > 0 ? CLV_OK : check(s, &sample);
    for (int side = 0; side < CLV_SIDES && !status; ++side) {
        status = time_side(s, sample.call, side, &seconds[side]);
        if (sample.times > 0) seconds[side] *= sample.times;
    }
    if (sample.end) sample.end(sample.memory);
    return status;
}

/* Returns the seconds that count against the budget. Compilers and the choice among kernels do not count;
 * otherwise the curve would end where it has just begun. */
static double lasted(const survey *s)
{
    static const double most_s = 20;
    return clv_measure_clock() - s->started < most_s ? s->useful_s : INFINITY;
}

/* Adds a turn to a spot: times both sides there once. Each turn has a little more or less work, because an amount
 * that cores happen to share evenly is not typical. */
static clv_status look(survey *s, spot *at)
{
    static const double times[TURNS] = { 1, 1.07, 0.94, 1.03, 0.97 };
    const double off = times[at->turns];
    double seconds[CLV_SIDES];
    CLV_TRY(time_both(s, at->work * off, seconds));
    for (int side = 0; side < CLV_SIDES; ++side)
        at->seconds[side][at->turns] = seconds[side] / off;
    ++at->turns;
    return CLV_OK;
}

static clv_status look_first(survey *s, double work)
{
    s->spots[s->count] = (spot){ .work = work };
    return look(s, &s->spots[s->count++]);
}

/* Returns the median of the turns. */
static double usual(const double *values, int count)
{
    double sorted[TURNS];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    return quantile(sorted, count, 0.5);
}

/* Times the spots again at which both sides take about the same time, up to `turns` turns each. Proceeds in rounds
 * over the spots, because a driver's moods last longer than a timing, and stops at twice the budget. */
static clv_status look_again(survey *s, int turns)
{
    for (int round = 1; round < turns; ++round)
        for (int i = 0; i < s->count; ++i) {
            spot *at = &s->spots[i];
            if (lasted(s) > 2 * budget_s) return CLV_OK;
            const double ratio =
                usual(at->seconds[CLV_DEVICE], at->turns) / usual(at->seconds[CLV_HOST], at->turns);
            if (at->turns > round || ratio < alike || ratio > 1 / alike) continue;
            CLV_TRY(look(s, at));
        }
    return CLV_OK;
}

static void draw(const survey *s, clv_curve *curve)
{
    *curve = (clv_curve){ 0 };
    for (int i = 0; i < s->count; ++i) {
        const spot *at = &s->spots[i];
        clv_curve_add(curve, at->work, usual(at->seconds[CLV_HOST], at->turns),
                      usual(at->seconds[CLV_DEVICE], at->turns));
    }
    clv_curve_smooth(curve);
}

clv_status clv_measure_curve(clv_context *context, const clv_call *like, clv_curve *curve)
{
    enum { COARSE = 10, FINE = 12 };
    survey s = begin(context, like);
    double work = like->work.least;
    while (work <= like->work.most * 1.001 && s.count < COARSE) {
        CLV_TRY(look_first(&s, work));
        const spot *last = &s.spots[s.count - 1];
        if (last->seconds[CLV_DEVICE][0] < clear * last->seconds[CLV_HOST][0]) break;
        if (s.count >= 2 && lasted(&s) > budget_s) break;
        work *= 4;
    }
    CLV_TRY(look_again(&s, 3));
    draw(&s, curve);
    for (int i = 0; i < FINE && lasted(&s) < 2 * budget_s && clv_curve_next(curve, &work); ++i) {
        CLV_TRY(look_first(&s, work));
        CLV_TRY(look_again(&s, 3));
        draw(&s, curve);
    }
    CLV_TRY(look_again(&s, TURNS));
    draw(&s, curve);
    return CLV_OK;
}

static bool are_apart(const spot *at)
{
    bool below = true, above = true;
    for (int i = 0; i < at->turns; ++i)
        for (int k = 0; k < at->turns; ++k) {
            below &= at->seconds[CLV_HOST][i] * clearly < at->seconds[CLV_DEVICE][k];
            above &= at->seconds[CLV_DEVICE][k] * clearly < at->seconds[CLV_HOST][i];
        }
    return at->turns > 1 && (below || above);
}

clv_status clv_measure_shape(clv_context *context, const clv_call *like, double seconds[CLV_SIDES])
{
    survey s = begin(context, like);
    spot at = { 0 };
    do {
        double took[CLV_SIDES];
        CLV_TRY(time_both(&s, like->work.amount, took));
        for (int side = 0; side < CLV_SIDES; ++side)
            at.seconds[side][at.turns] = took[side];
        ++at.turns;
    } while (at.turns < TURNS && lasted(&s) < shape_s && !are_apart(&at));
    for (int side = 0; side < CLV_SIDES; ++side)
        seconds[side] = usual(at.seconds[side], at.turns);
    return CLV_OK;
}

double clv_measure_transfer(clv_context *context, clv_device *device)
{
    enum { BYTES = 8 << 20 };
    char key[300], note[64];
    double rate = 0;
    if (device->zero_copy) return 0;
    snprintf(key, sizeof key, "offload transfer on %s", device->key);
    if (clv_notes_get(&context->tuned, key, note, sizeof note) && clv_parse_double(note, &rate))
        return rate;
    clv_queue *queue = NULL;
    clv_buffer *buffer = NULL;
    void *host = clv_alloc_pages(BYTES);
    double best = 0;
    if (host && !clv_queue_create(device, &queue) &&
        !clv_buffer_create(device, BYTES, CLV_BUFFER_DEVICE, &buffer)) {
        memset(host, 1, BYTES);
        for (int i = 0; i < 4; ++i) {
            const double started = clv_now();
            if (clv_write(queue, buffer, 0, host, BYTES) || clv_read(queue, buffer, 0, host, BYTES))
                break;
            const double took = clv_now() - started;
            if (i && (best == 0 || took < best)) best = took;
        }
    }
    clv_buffer_free(buffer);
    clv_queue_free(queue);
    clv_free(host);
    rate = best > 0 ? 2.0 * BYTES / best : 6e9;
    clv_format(note, sizeof note, "%.4g", rate);
    clv_notes_set(&context->tuned, key, note);
    return rate;
}
