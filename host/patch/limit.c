/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the flux at which a planet is just detected, by the rule of false position on the S/N of trials. All planets
 * are tried in one batch. */
#include "host/patch/limit.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>

enum { MOST_STEPS = 40 };

int clv_limit_progress(const char *job, size_t done, size_t total, void *user)
{
    const clv_limits *l = user;
    (void)job, (void)done, (void)total;
    return l->progress ? l->progress("paco contrast", l->settled, l->total, l->user) : 0;
}

/* Injects a planet at each position that is not done, and computes the S/N and flux at that position. With `both`,
 * injects a planet of either sign and takes half of the difference, so that the noise at the position cancels. */
static clv_status hide(clv_limits *l, const clv_sought *s, size_t count, bool both, double *snr,
                       double *flux)
{
    const size_t signs = both ? 2 : 1;
    clv_trial *trials = clv_alloc(signs * count + 1, sizeof *trials);
    size_t n = 0;
    if (!trials)
        return clv_fail(CLV_E_MEMORY, "contrast: not enough memory for %zu planets", count);
    /* subtracts nothing: the planet is part of the statistics, as in a search */
    for (size_t k = 0; k < count; ++k)
        for (size_t i = 0; i < signs && !s[k].done; ++i)
            trials[n++] =
                (clv_trial){ .x = s[k].x, .y = s[k].y, .injected = i ? -s[k].flux : s[k].flux };
    const clv_status status =
        clv_trials_run(l->context, l->plan, trials, n, clv_limit_progress, l, l->report);
    n = 0;
    for (size_t k = 0; k < count && !status; ++k) {
        if (s[k].done) continue;
        const clv_trial *t = &trials[n];
        snr[k] = t[0].b / sqrt(t[0].a), flux[k] = t[0].b / t[0].a;
        if (both) {
            snr[k] = 0.5 * (snr[k] - t[1].b / sqrt(t[1].a));
            flux[k] = 0.5 * (flux[k] - t[1].b / t[1].a);
        }
        n += signs;
    }
    clv_free(trials);
    return status;
}

/* Chooses the next flux to try. It grows until the S/N exceeds the target, and then lies between the two ends of the
 * interval, by the Illinois variant of the rule of false position, which halves the weight of an end that stays. */
static void step(clv_sought *s, double snr, double recovered)
{
    s->recovered = recovered;
    if (!isfinite(snr)) {
        s->flux = NAN, s->done = true; /* a patch leaves the frame or cannot be used */
        return;
    }
    if (snr >= s->target) {
        s->high = s->flux, s->high_snr = snr;
        if (s->side > 0) s->low_snr = s->target + 0.5 * (s->low_snr - s->target);
        s->side = 1;
    } else if (isinf(s->high)) {
        /* a brighter planet suppresses more of its own signal; if the S/N falls again, the target is never reached */
        const bool hopeless = snr < s->low_snr && s->flux * s->root > 4 * s->target;
        s->low = s->flux, s->low_snr = snr;
        s->flux = hopeless || s->flux * s->root > 1e4 * s->target ? INFINITY : 1.6 * s->flux;
        s->done = isinf(s->flux);
        return;
    } else {
        s->low = s->flux, s->low_snr = snr;
        if (s->side < 0) s->high_snr = s->target + 0.5 * (s->high_snr - s->target);
        s->side = -1;
    }
    if (fabs(snr - s->target) < 2e-3 * fabs(s->target) || s->high - s->low < 2e-3 * s->high) {
        s->done = true;
        return;
    }
    const double t = (s->target - s->low_snr) / (s->high_snr - s->low_snr);
    s->flux = s->low + fmin(fmax(t, 0.02), 0.98) * (s->high - s->low);
}

/* Finds the flux of every planet whose `target` is set. */
clv_status clv_limit_seek(clv_limits *l, clv_sought *s, size_t count, bool both)
{
    double *snr = clv_alloc(2 * count + 1, sizeof *snr), *flux = snr + count;
    clv_status status =
        snr ? CLV_OK : clv_fail(CLV_E_MEMORY, "contrast: not enough memory for %zu planets", count);
    const size_t before = l->settled;
    for (int turn = 0; turn < MOST_STEPS && !status; ++turn) {
        size_t left = 0;
        status = hide(l, s, count, both, snr, flux);
        for (size_t k = 0; k < count && !status; ++k) {
            if (s[k].done) continue;
            step(&s[k], snr[k], flux[k]);
            left += !s[k].done;
        }
        l->settled = before + count - left;
        if (!left) break;
    }
    clv_free(snr);
    return status;
}

/* Stores the values of each position without a planet: the noise and sqrt(a). */
clv_status clv_limit_look(clv_limits *l, clv_sought *s, size_t count)
{
    clv_trial *trials = clv_alloc(count + 1, sizeof *trials);
    if (!trials)
        return clv_fail(CLV_E_MEMORY, "contrast: not enough memory for %zu planets", count);
    for (size_t k = 0; k < count; ++k)
        trials[k] = (clv_trial){ .x = s[k].x, .y = s[k].y };
    const clv_status status =
        clv_trials_run(l->context, l->plan, trials, count, clv_limit_progress, l, l->report);
    for (size_t k = 0; k < count && !status; ++k) {
        s[k].root = sqrt(trials[k].a);
        s[k].without = trials[k].b / trials[k].a;
        s[k].done = !isfinite(s[k].root) || !isfinite(s[k].without);
        if (s[k].done) s[k].flux = NAN;
    }
    clv_free(trials);
    return status;
}

/* Prepares a search for the S/N `target`. The first flux is 1.5 times the flux that would reach the target if the
 * planet lost nothing. */
void clv_limit_begin(clv_sought *s, double target, bool both)
{
    if (isnan(s->flux)) return; /* the position cannot be used */
    const double there = both ? 0 : s->without * s->root;
    s->target = target;
    s->low = 0, s->low_snr = there, s->high = INFINITY, s->high_snr = 0;
    s->side = 0, s->recovered = s->without, s->done = false;
    s->flux = 1.5 * fmax(target - there, 0.3) / s->root;
    if (there >= target) s->flux = 0, s->done = true; /* the noise alone is a detection */
}

double clv_limit_threshold(const clv_limits *l, double x, double y)
{
    return l->wanted->raw ? l->snr : clv_uncalibrated(&l->noise, l->snr, x, y);
}

double clv_limit_target(const clv_limits *l, double x, double y)
{
    const double r = hypot(x - l->plan->centre_x, y - l->plan->centre_y);
    double factor = l->rings ? l->shortfall[l->rings - 1] : 1;
    for (size_t i = l->rings; i-- > 0 && r < l->ring[i];) {
        const size_t before = i ? i - 1 : 0;
        const double t = i ? fmax((r - l->ring[before]) / (l->ring[i] - l->ring[before]), 0) : 0;
        factor = l->shortfall[before] + t * (l->shortfall[i] - l->shortfall[before]);
    }
    return factor * clv_limit_threshold(l, x, y);
}

bool clv_limit_known(const clv_limits *l, double x, double y)
{
    for (size_t k = 0; k < l->wanted->known_count; ++k)
        if (hypot(l->wanted->known_xy[2 * k] - x, l->wanted->known_xy[2 * k + 1] - y) <= l->fwhm)
            return true;
    return false;
}
