/* SPDX-License-Identifier: Apache-2.0 */
/* Fits planets by Gauss-Newton with Anderson acceleration. Each planet is fitted separately, but the trials of all
 * planets run in one batch. */
#include "host/patch/fit.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/linalg.h"

#include <math.h>
#include <string.h>

static const double longest = 0.5; /* longest move, in pixels */
static const double most = 30;     /* longest move, in units of the Gauss-Newton step */

/* Inverts a symmetric positive definite 3x3 matrix, or with n = 1 its first element. Returns false if the inverse does
 * not exist. */
static bool inverse(const double *A, int n, double *out)
{
    double l[9], column[3];
    memset(out, 0, 9 * sizeof *out);
    if (n == 1) {
        out[0] = 1 / A[0];
        return A[0] > 0 && isfinite(out[0]);
    }
    memcpy(l, A, sizeof l);
    if (!clv_cholesky(l, 3)) return false;
    double rows[3][3];
    for (int i = 0; i < 3; ++i) { /* L^-1, column by column */
        for (int k = 0; k < 3; ++k)
            column[k] = i == k;
        clv_forward_substitute(l, 3, column);
        for (int k = 0; k < 3; ++k)
            rows[k][i] = column[k];
    }
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 3; ++k)
                out[3 * i + j] += rows[k][i] * rows[k][j];
    return true;
}

/* Computes the Gauss-Newton step and the errors. A move of one pixel changes the planet's image by flux * dh/dx, so a
 * planet without flux has no measurable position. */
static bool newton(clv_fit_planet *p, bool place)
{
    const double f = p->at.injected > 0 ? p->at.injected : p->at.flux;
    const int n = place && f > 0 ? 3 : 1;
    const double unit[3] = { 1, f, f };
    double A[9], covariance[9], step[3];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            A[3 * i + j] = p->at.A[3 * i + j] * unit[i] * unit[j];
    p->flux_err = p->x_err = p->y_err = NAN;
    if (!isfinite(p->at.b) || !inverse(A, n, covariance)) return false;
    double *errors[3] = { &p->flux_err, &p->x_err, &p->y_err };
    for (int i = 0; i < 3; ++i) {
        step[i] = 0;
        for (int j = 0; j < n; ++j)
            step[i] += covariance[3 * i + j] * p->at.c[j] * unit[j];
        if (i < n) *errors[i] = sqrt(covariance[4 * i]);
    }
    const bool begins = p->last[0] == 0 && p->last[1] == 0 && p->last[2] == 0;
    for (int i = 0; i < 3; ++i) {
        if (begins) p->unit[i] = *errors[i];
        p->step[i] = i < n && p->unit[i] > 0 ? step[i] / p->unit[i] : 0;
    }
    return true;
}

/* Extrapolates the remaining step from earlier rounds. With D_i the changes of the step and P_i the changes of the
 * solution, g minimises |step - sum g_i D_i|, and the move is step - sum g_i (P_i + D_i). Returns false if the move was
 * shortened. */
static bool quicken(const clv_fit_planet *p, bool place, double *move)
{
    memcpy(move, p->step, 3 * sizeof *move);
    const size_t unknowns = place ? 3 : 1;
    for (size_t use = p->known < unknowns ? p->known : unknowns; use > 0; --use) {
        double a[9], b[3], g[3];
        for (size_t i = 0; i < 3; ++i) {
            b[i] = p->step[i];
            for (size_t k = 0; k < use; ++k)
                a[i * use + k] = p->change[(p->known - 1 - k) % 3][i];
        }
        if (!clv_least_squares(a, 3, use, b, 1, g)) continue;
        double size = 0, old = 0, along = 0, next[3];
        for (size_t i = 0; i < 3; ++i) {
            next[i] = p->step[i];
            for (size_t k = 0; k < use; ++k)
                next[i] -= g[k] * (p->past[(p->known - 1 - k) % 3][i] +
                                   p->change[(p->known - 1 - k) % 3][i]);
            size += next[i] * next[i], old += p->step[i] * p->step[i];
            along += next[i] * p->step[i];
        }
        if (!isfinite(size)) continue;
        /* the move goes far beyond the range of the earlier rounds */
        if (size > most * most * old) {
            if (!(along > 0)) continue;
            for (int i = 0; i < 3; ++i)
                next[i] *= most * sqrt(old / size);
        }
        memcpy(move, next, sizeof next);
        return size <= most * most * old;
    }
    return true;
}

/* Applies a move within the limits and stores the part that was applied in `move`. */
static void apply(clv_fit_planet *p, double *move, bool place)
{
    place = place && p->unit[1] > 0 && p->unit[2] > 0;
    double dx = place ? move[1] * p->unit[1] : 0, dy = place ? move[2] * p->unit[2] : 0;
    const double length = hypot(dx, dy);
    if (!isfinite(length)) dx = dy = 0;
    if (length > longest) dx *= longest / length, dy *= longest / length;
    const double far = hypot(p->at.x + dx - p->start_x, p->at.y + dy - p->start_y);
    if (place && far > p->reach) {
        const double keep = p->reach / far;
        dx = (p->at.x + dx - p->start_x) * keep + p->start_x - p->at.x;
        dy = (p->at.y + dy - p->start_y) * keep + p->start_y - p->at.y;
    }
    double flux = p->at.flux + move[0] * p->unit[0];
    if (!place && p->step[0] > 0) p->low = p->at.flux;
    if (!place && p->step[0] < 0) p->high = p->at.flux;
    if (!(flux > p->low && flux < p->high)) {
        flux =
            isfinite(p->high) && isfinite(p->low) ? 0.5 * (p->low + p->high) : fmax(flux, p->low);
        if (!(flux < p->high)) flux = p->at.flux + p->step[0] * p->unit[0];
    }
    move[0] = (flux - p->at.flux) / p->unit[0];
    move[1] = place ? dx / p->unit[1] : 0, move[2] = place ? dy / p->unit[2] : 0;
    p->at.flux = flux, p->at.x += dx, p->at.y += dy, p->at.aside_x -= dx, p->at.aside_y -= dy;
}

/* Returns the largest component of a move, in units of this round's errors. */
static double largest(const clv_fit_planet *p, const double *move)
{
    const double errors[3] = { p->flux_err, p->x_err, p->y_err };
    double highest = 0;
    for (int i = 0; i < 3; ++i)
        if (errors[i] > 0) highest = fmax(highest, fabs(move[i]) * p->unit[i] / errors[i]);
    return highest;
}

/* Evaluates one round; returns true if the planet has converged. The Gauss-Newton step may be much shorter than the
 * remaining distance, so convergence also requires a small accelerated step. */
static bool advance(clv_fit_planet *p, bool place, bool negative, double tolerance)
{
    double before[3], move[3];
    memcpy(before, p->step, sizeof before);
    if (!newton(p, place)) return true;
    if (p->last[0] != 0 || p->last[1] != 0 || p->last[2] != 0) {
        for (int i = 0; i < 3; ++i) {
            p->past[p->known % 3][i] = p->last[i];
            p->change[p->known % 3][i] = p->step[i] - before[i];
        }
        ++p->known;
    }
    if (!negative && p->at.flux <= 0 && p->step[0] <= 0) return true;
    const bool whole = quicken(p, place, move);
    if (whole && largest(p, move) < tolerance && largest(p, p->step) < tolerance &&
        (p->known || largest(p, p->step) < 0.2 * tolerance))
        return true;
    memcpy(p->last, move, sizeof move);
    apply(p, p->last, place);
    return false;
}

/* Sums the trials over all channels. In channel l, the image is that of a planet of flux 1 times e_l, the spectrum's
 * value, so the channel's A is multiplied by e_l^2, and its c by e_l. */
static clv_status run_trials(const clv_fit *fit, const clv_fit_planet *planets, const size_t *who,
                             clv_trial *trials, size_t count)
{
    if (!fit->channels)
        return clv_trials_run(fit->context, fit->plan, trials, count, fit->progress, fit->user,
                              fit->report);
    clv_trial *one = clv_alloc(count + 1, sizeof *one);
    clv_status status =
        one ? CLV_OK : clv_fail(CLV_E_MEMORY, "paco: not enough memory for %zu planets", count);
    for (size_t i = 0; i < count && !status; ++i) {
        memset(trials[i].A, 0, sizeof trials[i].A), memset(trials[i].c, 0, sizeof trials[i].c);
        trials[i].a = trials[i].b = 0;
    }
    for (size_t l = 0; l < fit->channel_count && !status; ++l) {
        for (size_t i = 0; i < count; ++i) {
            const double e = planets[who[i]].spectrum ? planets[who[i]].spectrum[l] : 1;
            one[i] = trials[i];
            one[i].flux *= e, one[i].injected *= e;
        }
        status = clv_trials_run(fit->context, fit->channels[l], one, count, fit->progress,
                                fit->user, fit->report);
        for (size_t i = 0; i < count && !status; ++i) {
            const double e = planets[who[i]].spectrum ? planets[who[i]].spectrum[l] : 1;
            for (int k = 0; k < 9; ++k)
                trials[i].A[k] += e * e * one[i].A[k];
            for (int k = 0; k < 3; ++k)
                trials[i].c[k] += e * one[i].c[k];
            trials[i].a += e * e * one[i].a, trials[i].b += e * one[i].b;
        }
    }
    clv_free(one);
    return status;
}

clv_status clv_fit_run(const clv_fit *fit, clv_fit_planet *planets, size_t count, size_t rounds,
                       size_t warm, double tolerance)
{
    clv_trial *trials = clv_alloc(count + 1, sizeof *trials);
    size_t *who = clv_alloc(count + 1, sizeof *who);
    clv_status status =
        trials && who ? CLV_OK
                      : clv_fail(CLV_E_MEMORY, "paco: not enough memory for %zu planets", count);
    for (size_t k = 0; k < count; ++k) {
        clv_fit_planet *p = &planets[k];
        p->start_x = p->at.x, p->start_y = p->at.y, p->known = 0, p->settled = false;
        p->low = fit->negative ? -INFINITY : 0, p->high = INFINITY;
        memset(p->last, 0, sizeof p->last);
    }
    for (size_t round = 0; round < rounds + warm && !status; ++round) {
        size_t n = 0;
        for (size_t k = 0; k < count; ++k) {
            clv_fit_planet *p = &planets[k];
            if (round == warm && p->reach > 0) {
                p->settled = false, p->known = 0;
                p->low = 0.25 * p->at.flux, p->high = 4 * (p->at.flux + p->flux_err);
                memset(p->last, 0, sizeof p->last);
            }
            if (!p->settled) trials[n] = p->at, who[n++] = k;
        }
        if (!n && round >= warm) break;
        status = run_trials(fit, planets, who, trials, n);
        for (size_t i = 0; i < n && !status; ++i) {
            clv_fit_planet *p = &planets[who[i]];
            p->at = trials[i];
            p->settled = advance(p, p->reach > 0 && round >= warm, fit->negative, tolerance);
        }
    }
    clv_free(trials), clv_free(who);
    return status;
}
