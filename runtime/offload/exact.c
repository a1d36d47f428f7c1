/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose sides are close, by their exact shape. Pure. */
#include "runtime/offload/exact.h"

#include "base/alloc.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double close = 1.7;                      /* one side's time to the other's, at most */
static const double least_s = 5e-6, longest_s = 4e-3; /* of a call that is timed */
static const double patience_s = 0.15;                /* about what timing a shape lasts */
static const double most_timed_s = 1.5;               /* of a kind in a process */
static const char version[] = "1";

static const double wakes_s = 10e-3, try_s = 15e-3, pause_s = 5e-3; /* of calls on a side */
static const int try_calls = 5;                                     /* that teach */
static const double most_tried_s = 60e-3; /* of them all: pauses make none of them teach */
static const double too_long_s = 50e-3;   /* such calls are not made to hear of a side */
static const double clearly_slower = 1.5;
static const double least_wait_s = 0.04, first_wait_s = 0.15, longest_wait_s = 4, wait_calls = 60;
static const double silent_calls = 30;    /* at least, where silence ends a wait */
static const double wait_for_gap_s = 0.2; /* times how much slower the side is */
static const double silence_s = 5, fades_s = 5, fresh_s = 1; /* by the clock */
static const int most_confirmed = 5;
static const double near_gap = 0.1, most_silence_s = 160;
static const double usual_s = 2;      /* of calls: what they showed on the whole */
static const double try_tells = 0.25; /* as much as 0.7 s of them: it is news */
static const double shared = 0.5;     /* of what one side shows, with the other */
static const double follows_s = 2e-3, least_part = 0.1, most_part = 0.5, most_step = 0.2;
static const double most_lean = 3; /* 20 times: threads of some drivers sleep that deeply */

uint64_t clv_exact_name(const clv_offload_request *r)
{
    uint64_t work;
    memcpy(&work, &r->work, sizeof work);
    const uint64_t name = clv_offload_shape(r->shape, work);
    return name ? name : 1;
}

bool clv_exact_doubts(double host_s, double device_s)
{
    const double low = fmin(host_s, device_s), high = fmax(host_s, device_s);
    return low >= least_s && high <= longest_s && high < close * low;
}

bool clv_exact_follows(double host_s, double device_s)
{
    const double low = fmin(host_s, device_s), high = fmax(host_s, device_s);
    return high > longest_s && high < close * low;
}

clv_exact *clv_exact_find(clv_exacts *exacts, uint64_t name)
{
    for (size_t i = 0; i < CLV_EXACT_SHAPES; ++i)
        if (exacts->at[i].name == name) {
            exacts->at[i].used = ++exacts->uses;
            return &exacts->at[i];
        }
    return NULL;
}

bool clv_exact_is_due(const clv_exacts *exacts, uint64_t name, double next_s, bool asked)
{
    double spent = next_s;
    if (exacts->timed_s >= most_timed_s) return false;
    for (size_t i = 0; i < CLV_EXACT_WAITING; ++i)
        if (exacts->waiting[i].name == name) spent += exacts->waiting[i].spent_s;
    return asked || spent >= patience_s;
}

void clv_exact_waits(clv_exacts *exacts, uint64_t name, double seconds)
{
    size_t least = 0;
    for (size_t i = 0; i < CLV_EXACT_WAITING; ++i) {
        if (exacts->waiting[i].name == name) {
            exacts->waiting[i].spent_s += seconds;
            return;
        }
        if (exacts->waiting[i].spent_s < exacts->waiting[least].spent_s) least = i;
    }
    exacts->waiting[least].name = name;
    exacts->waiting[least].spent_s = seconds;
}

double clv_exact_between(double by_curve_s, double timed_s)
{
    static const double mood = 2;
    const double times = timed_s / by_curve_s;
    return times < mood && times > 1 / mood ? sqrt(by_curve_s * timed_s) : timed_s;
}

clv_exact *clv_exact_put(clv_exacts *exacts, uint64_t name, double host_s, double device_s)
{
    clv_exact *to = clv_exact_find(exacts, name);
    for (size_t i = 0; i < CLV_EXACT_WAITING; ++i)
        if (exacts->waiting[i].name == name) {
            exacts->waiting[i].name = 0;
            exacts->waiting[i].spent_s = 0;
        }
    if (!to) to = &exacts->at[0];
    for (size_t i = 0; i < CLV_EXACT_SHAPES && to->name && to->name != name; ++i)
        if (!exacts->at[i].name || exacts->at[i].used < to->used) to = &exacts->at[i];
    *to = (clv_exact){ .name = name,
                       .host_s = host_s,
                       .device_s = device_s,
                       .used = ++exacts->uses,
                       .wait_s = first_wait_s,
                       .left_s = first_wait_s };
    return to;
}

void clv_exact_predict(const clv_exact *exact, double *host_s, double *device_s)
{
    *host_s = exact->host_s * exp(exact->lean[0]);
    *device_s = exact->device_s * exp(exact->lean[1]);
}

/* How much slower the slower side is: 0.1 for 10 %. */
static double gap(const clv_exact *e)
{
    double host_s, device_s;
    clv_exact_predict(e, &host_s, &device_s);
    return fmax(host_s, device_s) / fmin(host_s, device_s) - 1;
}

/* Seconds of calls until the side that is not called is tried first. */
static double first_wait(const clv_exact *e)
{
    return fmax(least_wait_s, fmin(wait_for_gap_s * gap(e), first_wait_s));
}

/* Seconds by the clock without a word of that side, after which it is tried. */
static double bears_silence_s(const clv_exact *e)
{
    return fmin(ldexp(silence_s, e->confirmed) * fmax(1, gap(e) / near_gap), most_silence_s);
}

static clv_side other(clv_side side)
{
    return side == CLV_SIDE_DEVICE ? CLV_SIDE_HOST : CLV_SIDE_DEVICE;
}

/* A try of side `at` is over. Tries within seconds are of one mood: they count once. */
static void confirm(clv_exact *e, int at, double now)
{
    double seconds[2];
    clv_exact_predict(e, &seconds[0], &seconds[1]);
    if (seconds[at] < seconds[!at]) {
        e->confirmed = 0;
    } else if (!e->confirmed || now - e->asked > silence_s) {
        e->confirmed = CLV_MIN(e->confirmed + 1, most_confirmed);
        e->asked = now;
    }
}

/* A try of side `at`, whose calls take `seconds`, is over. */
static void end_try(clv_exact *e, int at, bool taught, double seconds, double now)
{
    e->trying = false;
    e->deaf = !taught;
    if (taught) {
        e->usual[at] += (e->lean[at] - e->usual[at]) * try_tells;
        confirm(e, at, now);
    }
    e->wait_s = fmin(2 * e->wait_s, longest_wait_s);
    e->left_s = fmax(e->wait_s, wait_calls * seconds);
}

void clv_exact_fade(clv_exact *e, double now)
{
    const double since = now - e->faded;
    if (e->trying && e->now != e->last && e->row >= try_calls && now - e->ended > pause_s) {
        const int at = e->now == CLV_SIDE_DEVICE; /* a pause, and that was enough before it */
        end_try(e, at, true, (at ? e->device_s : e->host_s) * exp(e->lean[at]), now);
    }
    if (e->faded && since < fresh_s / 4) return;
    if (e->faded)
        for (int side = 0; side < 2; ++side) {
            if (now - e->heard[side] < fresh_s) continue;
            const double known = e->heard[side] > 0 ? e->usual[!side] : 0;
            const double beside = now - e->heard[!side] < fresh_s ? e->lean[!side] - known : 0;
            const double to = e->usual[side] + shared * beside;
            e->lean[side] = to + (e->lean[side] - to) * exp(-since / fades_s);
        }
    e->faded = now;
}

clv_side clv_exact_turn(clv_exact *e, clv_side chosen, double now)
{
    if (e->trying) return other(e->last);
    const double silent_s = now - e->heard[chosen == CLV_SIDE_HOST];
    double host_s, device_s;
    clv_exact_predict(e, &host_s, &device_s);
    if (e->last != chosen) {
        const int before = e->last == CLV_SIDE_DEVICE; /* slow now: news, but not each time anew */
        if (e->last && now - e->told > silence_s) {
            e->usual[before] += (e->lean[before] - e->usual[before]) * try_tells;
            e->told = now;
        }
        e->wait_s = e->left_s = first_wait(e);
        e->confirmed = 0;
    } else if (silent_s > bears_silence_s(e) &&
               !e->deaf) { /* a try of long calls costs as much as it lasts */
        const double long_s = silent_calls * fmax(host_s, device_s);
        e->wait_s = fmin(e->wait_s, first_wait(e));
        e->left_s = fmin(e->left_s, long_s);
    }
    e->last = chosen;
    e->trying = !(e->left_s > 0) && fmax(host_s, device_s) < too_long_s;
    e->tried_s = 0;
    return e->trying ? other(chosen) : chosen;
}

/* Towards what was seen: short calls by small steps, as many of them are one disturbance. */
static void lean(double *to, double predicted, double seconds)
{
    const double part = fmax(least_part, fmin(predicted / follows_s, most_part));
    const double most = part * (predicted > 5e-3 ? 0.7 : most_step);
    const double step = fmax(-most, fmin(part * log(seconds / predicted), most));
    *to = fmax(-most_lean, fmin(*to + step, most_lean));
}

bool clv_exact_saw(clv_exact *e, clv_side side, double predicted, double seconds, double now)
{
    if (!(predicted > 0) || !(seconds > 0)) return false;
    const bool pause = e->now && e->row && now - seconds - e->ended > pause_s;
    e->ended = now;
    if (pause) e->row_s = 0, e->row = 0;
    if (e->now != side) {
        e->row_s = e->now ? 0 : wakes_s; /* its first ones come after the timing */
        e->row = 0;
        e->now = side;
    }
    const bool teaches = e->row_s >= wakes_s;
    e->row_s += seconds, e->row += teaches;
    if (teaches) {
        const int at = side == CLV_SIDE_DEVICE;
        lean(&e->lean[at], predicted, seconds);
        e->usual[at] += (e->lean[at] - e->usual[at]) * seconds / (seconds + usual_s);
        e->heard[at] = now;
    }
    if (!e->trying) {
        e->left_s -= seconds;
    } else if (side != e->last) {
        const double there = e->last == CLV_SIDE_DEVICE ? e->device_s * exp(e->lean[1])
                                                        : e->host_s * exp(e->lean[0]);
        e->tried_s += seconds;
        e->trying = (e->row_s < try_s || e->row < try_calls) && e->tried_s < most_tried_s &&
                    !(teaches && e->row_s >= try_s && seconds > clearly_slower * there);
        if (!e->trying) end_try(e, side == CLV_SIDE_DEVICE, teaches, seconds, now);
    }
    return teaches;
}

bool clv_exact_settle(clv_exacts *exacts)
{
    static const double worth_noting = 0.05;
    bool changed = false;
    for (size_t i = 0; i < CLV_EXACT_SHAPES; ++i)
        for (int side = 0; side < 2; ++side) {
            clv_exact *e = &exacts->at[i];
            if (!e->name || fabs(e->usual[side]) < worth_noting) continue;
            *(side ? &e->device_s : &e->host_s) *= exp(e->usual[side]);
            e->lean[side] -= e->usual[side], e->usual[side] = 0;
            changed = true;
        }
    return changed;
}

void clv_exact_failed(clv_exact *e)
{
    if (!e->trying) return;
    e->trying = false;
    e->deaf = true;
    e->wait_s = e->left_s = longest_wait_s;
}

void clv_exact_read(const char *text, clv_exacts *exacts)
{
    uint64_t name;
    char seconds[2][24];
    double host, device;
    int length = 0;
    memset(exacts->at, 0, sizeof exacts->at);
    if (strncmp(text, version, sizeof version - 1) != 0) return;
    text += sizeof version - 1;
    for (size_t i = 0; i < CLV_EXACT_SHAPES; ++i, text += length) {
        if (sscanf(text, " %16" SCNx64 ":%23[0-9.e+-]:%23[0-9.e+-]%n", &name, seconds[0],
                   seconds[1], &length) != 3)
            return;
        if (!name || !clv_parse_double(seconds[0], &host) || !(host > 0) ||
            !clv_parse_double(seconds[1], &device) || !(device > 0) || !isfinite(host + device))
            return;
        (void)clv_exact_put(exacts, name, host, device);
    }
}

void clv_exact_write(const clv_exacts *exacts, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "%s", version);
    for (size_t i = 0; i < CLV_EXACT_SHAPES && used < room; ++i)
        if (exacts->at[i].name)
            used +=
                (size_t)snprintf(text + used, room - used, " %" PRIx64 ":%.4g:%.4g",
                                 exacts->at[i].name, exacts->at[i].host_s, exacts->at[i].device_s);
}
