/* SPDX-License-Identifier: Apache-2.0 */
/* Timing both sides of an operation once, so that later calls know where to go. */
#include "runtime/offload/measure.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/job/turn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TURNS = 5 };                 /* of both sides, where they are alike */
static const double budget_s = 0.4; /* of a curve, once it has four points */
static const double clear = 0.45;   /* of the host's time: the device wins from here on */
static const double alike = 0.6;    /* of each other's time: one turn does not tell */

/* Threads, of a driver or of ours, find their cores in this time; what a program that calls once in a
 * while sees before is not what it is about. Shorter calls of the host use none. */
static const double settles_s = 10e-3, alone_s = 40e-6;
static _Thread_local bool on_host;
static _Thread_local double useful_s; /* what calls took as they usually do */

/* The value below which that part of all lies. */
static double quantile(double *values, int count, double part)
{
    for (int i = 1; i < count; ++i)
        for (int k = i; k && values[k] < values[k - 1]; --k) {
            const double kept = values[k];
            values[k] = values[k - 1], values[k - 1] = kept;
        }
    return values[(int)(part * (count - 1))];
}

clv_status clv_offload_time(clv_status (*body)(void *user), void *user, double *seconds)
{
    enum { LEAST = 4, MOST = 100 };
    static const double enough_s = 4e-3, most_s = 60e-3;
    double spent = 0, longest = 0, took[MOST];
    int count = 0, others = 1;
    CLV_TRY(body(user)); /* compiles, allocates */
    const double woken = clv_jobs_clock();
    do {
        CLV_TRY(body(user));
        ++others;
        if (on_host && clv_jobs_clock() - woken < alone_s) break;
    } while (clv_jobs_clock() - woken < settles_s);
    /* drivers may compile once more, for another size: that call is not what the others are like */
    while (count < MOST && (count < LEAST || spent < enough_s) && spent - longest < most_s) {
        const double started = clv_jobs_clock();
        CLV_TRY(body(user));
        took[count] = clv_jobs_clock() - started;
        longest = CLV_MAX(longest, took[count]);
        spent += took[count++];
    }
    *seconds = CLV_MAX(quantile(took, count, 0.5), 1e-8);
    useful_s += (count + others) * *seconds;
    return CLV_OK;
}

static clv_status time_both(clv_context *context, const clv_offload_request *r, double work,
                            double *host, double *device)
{
    const clv_side before = clv_offload_force(CLV_SIDE_HOST);
    const bool dry = clv_offload_dry(false);
    on_host = true;
    clv_status status = r->trial(context, work, CLV_SIDE_HOST, host, r->user);
    on_host = false;
    if (!status) {
        clv_offload_force(CLV_SIDE_DEVICE);
        status = r->trial(context, work, CLV_SIDE_DEVICE, device, r->user);
    }
    clv_offload_force(before);
    clv_offload_dry(dry);
    return status;
}

/* Of the budget. What a compiler or a choice among forms takes is no part of it: the curve would end
 * where it has just begun. */
static double lasted(double started)
{
    static const double most_s = 20;
    return clv_jobs_clock() - started < most_s ? useful_s : INFINITY;
}

/* Timings of one amount of work; the curve gets what is usual. */
typedef struct spot {
    double work, host[TURNS], device[TURNS];
    int turns;
} spot;

typedef struct survey {
    clv_context *context;
    const clv_offload_request *request;
    double started;
    spot spots[CLV_CURVE_POINTS];
    int count;
} survey;

/* Each turn is of a little more or less work: work that cores share out without a rest is no rule. */
static clv_status look(const survey *s, spot *at)
{
    static const double times[TURNS] = { 1, 1.07, 0.94, 1.03, 0.97 };
    const double off = times[at->turns];
    double host = 0, device = 0;
    CLV_TRY(time_both(s->context, s->request, at->work * off, &host, &device));
    at->host[at->turns] = host / off, at->device[at->turns++] = device / off;
    return CLV_OK;
}

static clv_status look_first(survey *s, double work)
{
    s->spots[s->count] = (spot){ .work = work };
    return look(s, &s->spots[s->count++]);
}

/* Of the turns, the median. */
static double usual(const double *values, int count)
{
    double sorted[TURNS];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    return quantile(sorted, count, 0.5);
}

/* Once more wherever the sides are alike, up to `turns`: in rounds, as a driver's moods last longer
 * than a timing; not beyond twice the budget. */
static clv_status look_again(survey *s, int turns)
{
    for (int round = 1; round < turns; ++round)
        for (int i = 0; i < s->count; ++i) {
            spot *at = &s->spots[i];
            if (lasted(s->started) > 2 * budget_s) return CLV_OK;
            const double ratio = usual(at->device, at->turns) / usual(at->host, at->turns);
            if (at->turns > round || ratio < alike || ratio > 1 / alike) continue;
            CLV_TRY(look(s, at));
        }
    return CLV_OK;
}

static void draw(const survey *s, clv_curve *curve)
{
    *curve = (clv_curve){ 0 };
    for (int i = 0; i < s->count; ++i)
        clv_curve_add(curve, s->spots[i].work, usual(s->spots[i].host, s->spots[i].turns),
                      usual(s->spots[i].device, s->spots[i].turns));
    clv_curve_smooth(curve);
}

clv_status clv_offload_measure(clv_context *context, const clv_offload_request *r, clv_curve *curve)
{
    enum { COARSE = 10, FINE = 12 };
    survey s = { .context = context, .request = r, .started = clv_jobs_clock() };
    useful_s = 0;
    double work = r->least_work;
    while (work <= r->most_work * 1.001 && s.count < COARSE) {
        CLV_TRY(look_first(&s, work));
        const spot *last = &s.spots[s.count - 1];
        if (last->device[0] < clear * last->host[0]) break;
        if (s.count >= 2 && lasted(s.started) > budget_s) break;
        work *= 4;
    }
    CLV_TRY(look_again(&s, 3));
    draw(&s, curve);
    for (int i = 0; i < FINE && lasted(s.started) < 2 * budget_s && clv_curve_next(curve, &work);
         ++i) {
        CLV_TRY(look_first(&s, work));
        CLV_TRY(look_again(&s, 3));
        draw(&s, curve);
    }
    CLV_TRY(look_again(&s, TURNS));
    draw(&s, curve);
    return CLV_OK;
}

static bool are_apart(const double *host, const double *device, int count)
{
    static const double clearly = 1.1;
    bool below = true, above = true;
    for (int i = 0; i < count; ++i)
        for (int k = 0; k < count; ++k) {
            below &= host[i] * clearly < device[k];
            above &= device[k] * clearly < host[i];
        }
    return count > 1 && (below || above);
}

clv_status clv_offload_measure_exact(clv_context *context, const clv_offload_request *r,
                                     double *host_s, double *device_s, double *lasted_s)
{
    static const double shape_s = 0.1;
    double host[TURNS], device[TURNS];
    int turns = 0;
    useful_s = 0;
    const double started = clv_jobs_clock();
    do {
        CLV_TRY(time_both(context, r, r->work, &host[turns], &device[turns]));
        ++turns;
    } while (turns < TURNS && lasted(started) < shape_s && !are_apart(host, device, turns));
    *host_s = usual(host, turns), *device_s = usual(device, turns), *lasted_s = useful_s;
    return CLV_OK;
}

double clv_offload_transfer_rate(clv_context *context, clv_device *device)
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
    snprintf(note, sizeof note, "%.4g", rate);
    clv_notes_set(&context->tuned, key, note);
    return rate;
}

static double host_guess(const clv_offload_request *r)
{
    const double host_flops = r->host_flops > 0 ? r->host_flops : 3e9;
    return 3e-7 + CLV_MAX(r->flops / host_flops, r->bytes / 8e9);
}

bool clv_offload_is_short(const clv_offload_request *r)
{
    return !(r->resident_bytes > 0) && host_guess(r) < 2e-6;
}

void clv_offload_guess(const clv_device *device, const clv_offload_request *r, double *host_s,
                       double *device_s, double *launch_s)
{
    const bool core = device && device->facts->device_class == CLV_CLASS_CPU;
    const double host_flops = r->host_flops > 0 ? r->host_flops : 3e9;
    *host_s = host_guess(r);
    *launch_s = core ? 60e-6 : 30e-6;
    *device_s = *launch_s + (core ? CLV_MAX(r->flops / (4 * host_flops), r->bytes / 10e9)
                                  : CLV_MAX(r->flops / 1e12, r->bytes / 1e11));
    if (device && !device->zero_copy) *device_s += r->transfer_bytes / 6e9;
}
