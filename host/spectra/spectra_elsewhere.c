/* SPDX-License-Identifier: Apache-2.0 */
/* Fits stars again, from other starting points, if their minimum is ambiguous. */
#include "host/spectra/spectra_again.h"

#include "host/spectra/spectra_grid.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { N = CLV_SPECTRA_UNKNOWNS };

/* A star that may have a lower minimum is also fitted from further points, at most MOST per round:
 *   1. from low minima along velocity, if its template hardly lowers chi-square, or if it rotates fast and has a weak
 *      template;
 *   2. from both ends of the range of its least certain parameter; from other rotations, if its template is weak; and
 *      from the other minima of the cross-correlation;
 *   3. from both ends of that range again, but with the star's other parameters unchanged; from both ends of the
 *      ranges of its other uncertain parameters; and from further rotations, if the round has room for them;
 *   4. from the neighbouring cells of a grid, if the fit ended where faces of cells cross;
 *   5. from the other faces of a gap in a grid, if the fit ended at a face of the gap. */
enum { ENDS = 2, ROTATIONS = 4, FURTHER = 2, MOST = CLV_AGAIN_MOST };
_Static_assert(MOST >= ENDS + ROTATIONS + CLV_SPECTRA_PEAKS - 1,
               "a round has no room for its points");
static const double rotation[ROTATIONS] = { 0, 20, 50, 120 },
                    further[FURTHER] = { 8, 250 }; /* km/s */
static const double little = 1000,
                    near = 30; /* of chi-square: gained by the template; of another minimum */
static const unsigned uncertain = CLV_SPECFIT_WIDE_ERROR | CLV_SPECFIT_PARAMETER_EDGE;

static double covariance(const clv_specfit_result *r, int a, int b)
{
    return a >= b ? r->covariance[a * (a + 1) / 2 + b] : r->covariance[b * (b + 1) / 2 + a];
}

static bool is_held(const clv_spectra_plan *plan, size_t star, int a)
{
    return plan->stars.priors && plan->stars.priors[star].fixed[a];
}

/* Moves a point into the box and into a grid cell that has all its corners, and sets the held unknowns to the values at
 * which they are held. */
static void settle(const clv_spectra_plan *plan, size_t star, double x[N])
{
    for (int a = 0; a < N; ++a) {
        const double margin = 1e-3 * (plan->box.high[a] - plan->box.low[a]);
        x[a] = fmin(fmax(x[a], plan->box.low[a] + margin), plan->box.high[a] - margin);
    }
    clv_grid_enter(plan->library, x + 2);
    for (int a = 0; a < N; ++a)
        if (is_held(plan, star, a)) x[a] = plan->stars.priors[star].value[a];
}

/* Sets the point at which unknown `a` has the given value and the other unknowns have the values of least chi-square,
 * as the covariance predicts them. */
static void move_to(const clv_spectra_plan *plan, size_t star, const clv_specfit_result *r, int a,
                    double value, double x[N])
{
    const double from[N] = { r->velocity, r->vsini, r->teff, r->logg, r->feh, r->alpha };
    for (int b = 0; b < N; ++b) {
        const double slope = covariance(r, b, a) / covariance(r, a, a);
        x[b] = b == a ? value : from[b] + (isfinite(slope) ? slope * (value - from[a]) : 0);
    }
    settle(plan, star, x);
}

/* Returns the parameter whose error is the largest share of the parameter's range; -1 if all are held. */
static int least_certain(const clv_spectra_plan *plan, size_t star, const clv_specfit_result *r)
{
    const double error[N] = { 0, 0, r->teff_error, r->logg_error, r->feh_error, r->alpha_error };
    double most = 0;
    int found = -1;
    for (int a = 2; a < N; ++a) {
        const double part = error[a] / (plan->box.high[a] - plan->box.low[a]);
        if (!is_held(plan, star, a) && part > most) most = part, found = a;
    }
    return found;
}

/* Sets a point to a minimum of the cross-correlation. */
static void begin_at_peak(const clv_spectra_plan *plan, size_t star,
                          const float peak[CLV_SPECTRA_PEAK], double x[N])
{
    const float *q = plan->tables.ccf_points + CLV_SPECTRA_PARAMETERS * (size_t)peak[1];
    x[0] = (double)peak[0], x[1] = 20;
    for (size_t p = 0; p < CLV_SPECTRA_PARAMETERS; ++p)
        x[2 + p] = (double)q[p];
    if (x[5] <= CLV_SPECTRA_NO_ALPHA) x[5] = 0.2;
    settle(plan, star, x);
}

/* Returns by how much the template lowers chi-square below that of a continuum alone. */
static double gained(const clv_spectra_plan *plan, const clv_specfit_result *r)
{
    double chi = 0;
    for (size_t i = 0; i < plan->stars.spectra; ++i)
        chi += r->chisq_continuum[i] - r->chisq[i];
    return chi;
}

/* Sets points at both ends of a parameter's range, and returns the number of points. */
static size_t set_ends(const clv_spectra_plan *plan, size_t star, int a, double x[ENDS][N])
{
    move_to(plan, star, &plan->run.results[star], a, plan->box.low[a], x[0]);
    move_to(plan, star, &plan->run.results[star], a, plan->box.high[a], x[1]);
    return ENDS;
}

/* Sets points that differ from the star's fit in their rotation, and returns their number. */
static size_t set_rotations(const clv_spectra_plan *plan, size_t star, const double *vsini,
                            size_t count, double x[][N])
{
    if (gained(plan, &plan->run.results[star]) >= little || is_held(plan, star, 1)) return 0;
    for (size_t k = 0; k < count; ++k)
        move_to(plan, star, &plan->run.results[star], 1, vsini[k], x[k]);
    return count;
}

/* Type of the functions that set the points of one round for a star; they return the number of points. */
typedef size_t set_points(const clv_spectra_plan *plan, size_t star, double x[MOST][N]);

static size_t set_first(const clv_spectra_plan *plan, size_t star, double x[MOST][N])
{
    const clv_specfit_result *r = &plan->run.results[star];
    const float *peaks = plan->run.peaks + star * CLV_SPECTRA_FOUND_BY_STAR;
    const int a = least_certain(plan, star, r);
    size_t count = r->warnings & uncertain && a >= 0 ? set_ends(plan, star, a, x) : 0;
    count += set_rotations(plan, star, rotation, ROTATIONS, x + count);
    for (size_t k = 1; k < CLV_SPECTRA_PEAKS && !is_held(plan, star, 0); ++k)
        if ((double)peaks[CLV_SPECTRA_PEAK * k + 2] < near)
            begin_at_peak(plan, star, peaks + CLV_SPECTRA_PEAK * k, x[count++]);
    return count;
}

static size_t set_second(const clv_spectra_plan *plan, size_t star, double x[MOST][N])
{
    const clv_specfit_result *r = &plan->run.results[star];
    const double error[N] = { 0, 0, r->teff_error, r->logg_error, r->feh_error, r->alpha_error };
    const int least = least_certain(plan, star, r);
    size_t count = 0;
    if (!(r->warnings & uncertain)) return 0;
    for (int end = 0; end < ENDS && least >= 0; ++end) { /* the covariance may be wrong */
        const double from[N] = { r->velocity, r->vsini, r->teff, r->logg, r->feh, r->alpha };
        memcpy(x[count], from, sizeof from);
        x[count][least] = end ? plan->box.high[least] : plan->box.low[least];
        settle(plan, star, x[count++]);
    }
    for (int a = 2; a < N; ++a) {
        const bool wide = !(error[a] * sqrt(12) < plan->box.high[a] - plan->box.low[a]);
        if (wide && a != least && !is_held(plan, star, a))
            count += set_ends(plan, star, a, x + count);
    }
    if (count + FURTHER > MOST) return count;
    return count + set_rotations(plan, star, further, FURTHER, x + count);
}

/* If the fit ended where faces of grid cells cross, sets a point just inside each of the cells that meet there. The
 * interpolated flux has another slope in each of these cells, but the fit only tried to cross all the faces at once. */
static size_t set_beside(const clv_spectra_plan *plan, size_t star, double x[MOST][N])
{
    const clv_specfit_result *r = &plan->run.results[star];
    const double from[N] = { r->velocity, r->vsini, r->teff, r->logg, r->feh, r->alpha };
    const double *limit[2] = { plan->box.low + 2, plan->box.high + 2 };
    double face[2][4], inward[4];
    int axis[4], faces = 0;
    size_t count = 0;
    memcpy(face[0], limit[0], sizeof face[0]), memcpy(face[1], limit[1], sizeof face[1]);
    clv_spectra_cell(plan, from + 2, face[0], face[1]);
    for (int i = 0; i < 8; ++i) {
        const int k = i / 2, up = i % 2;
        const double step = face[1][k] - face[0][k];
        const bool on = fabs(from[2 + k] - face[up][k]) * CLV_GRID_CLOSE < step;
        if (!on || face[up][k] == limit[up][k] || is_held(plan, star, 2 + k)) continue;
        axis[faces] = 2 + k, inward[faces++] = (up ? -0.05 : 0.05) * step;
    }
    for (int side = 0; faces > 1 && side < 1 << faces && count < MOST; ++side) {
        memcpy(x[count], from, sizeof from);
        for (int i = 0; i < faces; ++i)
            x[count][axis[i]] += side >> i & 1 ? -inward[i] : inward[i];
        if (clv_spectra_penalty(plan, x[count] + 2) == 0) ++count;
    }
    return count;
}

size_t clv_points_around(const clv_spectra_plan *plan, size_t star, double x[CLV_AGAIN_MOST][N])
{
    const clv_specfit_result *r = &plan->run.results[star];
    const double q[4] = { r->teff, r->logg, r->feh, r->alpha };
    double wall[2][4];
    size_t count = 0;
    if (!(r->warnings & CLV_SPECFIT_PARAMETER_EDGE)) return 0;
    memcpy(wall[0], plan->box.low + 2, sizeof wall[0]);
    memcpy(wall[1], plan->box.high + 2, sizeof wall[1]);
    clv_spectra_walls(plan, q, wall[0], wall[1]);
    for (int i = 0; i < 8; ++i) {
        const int k = i / 2, up = i % 2;
        const double limit = up ? plan->box.high[2 + k] : plan->box.low[2 + k],
                     close = 1e-3 * (plan->box.high[2 + k] - plan->box.low[2 + k]);
        if (fabs(wall[up][k] - limit) < close || fabs(q[k] - wall[up][k]) > close) continue;
        for (int j = 0; j < 16 && count < MOST && !is_held(plan, star, 2 + k); ++j) {
            const int axis = j % 8 / 2, beyond = j < 8;
            double p[4] = { q[0], q[1], q[2], q[3] };
            p[k] = wall[up][k] + (up == beyond ? close : -close);
            if (axis == k || is_held(plan, star, 2 + axis)) continue;
            if (!clv_grid_walk(plan->library, axis, j % 2, p)) continue;
            x[count][0] = r->velocity, x[count][1] = r->vsini;
            memcpy(x[count++] + 2, p, sizeof p);
        }
    }
    return count;
}

/* Returns the value that the fit minimised for a star. */
static double height_of(const clv_spectra_plan *plan, size_t star, const clv_specfit_result *r)
{
    const double x[N] = { r->velocity, r->vsini, r->teff, r->logg, r->feh, r->alpha };
    double value = r->neg2logl + clv_spectra_penalty(plan, x + 2);
    for (int a = 0; a < N && plan->stars.priors; ++a) {
        const clv_star_prior *p = &plan->stars.priors[star];
        const double off = (x[a] - p->value[a]) / p->sigma[a];
        if (!p->fixed[a] && p->sigma[a] > 0) value += off * off;
    }
    return value;
}

/* Keeps the result with the lower minimum: a star's present one in the plan, or `other`. */
static void keep_lower(const clv_spectra_plan *plan, size_t star, clv_specfit_result *other)
{
    clv_specfit_result *r = &plan->run.results[star];
    const double before = height_of(plan, star, r), now = height_of(plan, star, other);
    const unsigned agreed = r->starts_agreed, more = other->starts_agreed;
    const bool lower = now < before, same = fabs(now - before) <= 0.5;
    other->start_velocity = r->start_velocity;
    if (lower) clv_replace_result(r, other);
    r->starts_agreed = same ? agreed + more : lower ? more : agreed;
}

/* Fits the stars number[0..count) from the points [count,MOST], where NaN marks an unused point, and stores each star's
 * lowest minimum. */
static clv_status fit_from(clv_context *context, const clv_spectra_plan *plan, const size_t *number,
                           size_t count, const clv_star_masks *masks, const double *points,
                           bool models, clv_report *report)
{
    if (!count) return CLV_OK;
    clv_specfit_result *results = clv_zalloc(count, sizeof *results);
    const clv_again others = { number, count, masks, points, MOST, models, NULL };
    clv_status status =
        results ? clv_fit_listed(context, plan, &others, results, NULL, report)
                : clv_fail(CLV_E_MEMORY, "specfit: not enough memory for further starting points");
    for (size_t n = 0; !status && n < count; ++n)
        keep_lower(plan, number[n], &results[n]);
    clv_specfit_results_clear(results, results ? count : 0);
    clv_free(results);
    return status;
}

/* Marks all points as unused. */
static void clear_points(double x[MOST][N])
{
    for (size_t k = 0; k < MOST; ++k)
        for (int a = 0; a < N; ++a)
            x[k][a] = NAN;
}

/* Runs one round: fits ambiguous stars from the points that `set` chooses. */
static clv_status fit_round(clv_context *context, const clv_spectra_plan *plan, set_points *set,
                            size_t *number, const clv_star_masks *masks, bool models,
                            clv_report *report)
{
    const size_t all = plan->stars.count;
    size_t count = 0;
    double(*points)[MOST][N] = clv_alloc(all, sizeof *points);
    if (!points)
        return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for further starting points");
    for (size_t n = 0; n < all; ++n) {
        if (plan->run.results[n].warnings & CLV_SPECFIT_BAD_SPECTRUM) continue;
        clear_points(points[count]);
        if (set(plan, n, points[count])) number[count++] = n;
    }
    const clv_status status =
        fit_from(context, plan, number, count, masks, points[0][0], models, report);
    clv_free(points);
    return status;
}

/* ---- a search along velocity ------------------------------------------------------------------- */

/* A star is scanned with the template of its fit, with the templates of the cross-correlation's minima, and with three
 * templates spread over the range of temperatures; with each of them once without rotation and once with a fast one. */
enum {
    GENERAL = 3,
    TEMPLATES = 1 + CLV_SPECTRA_PEAKS + GENERAL,
    SPEEDS = 2,
    SCANS = TEMPLATES * SPEEDS
};
static const double speed[SPEEDS] = { 0, 200 }, /* km/s, of a scan */
    begun[SPEEDS] = { 20, 200 },                /* of the fit from the scan's minimum */
    general[GENERAL] = { 0.15, 0.45, 0.8 };     /* fraction of the range of ln teff */

/* Sets `x` to the parameters and the rotation of the template with which scan number `scan` is made. */
static void set_scan(const clv_spectra_plan *plan, size_t star, size_t scan, double x[N])
{
    const float *peaks = plan->run.peaks + star * CLV_SPECTRA_FOUND_BY_STAR;
    const size_t k = scan / SPEEDS;
    const double *low = plan->box.low, *high = plan->box.high;
    if (k == 0) {
        move_to(plan, star, &plan->run.results[star], 1, speed[scan % SPEEDS], x);
        return;
    }
    if (k <= CLV_SPECTRA_PEAKS) {
        begin_at_peak(plan, star, peaks + CLV_SPECTRA_PEAK * (k - 1), x);
    } else {
        x[0] = 0;
        x[2] = low[2] * pow(high[2] / low[2], general[k - 1 - CLV_SPECTRA_PEAKS]);
        for (int a = 3; a < N; ++a)
            x[a] = 0.5 * (low[a] + high[a]);
    }
    x[1] = speed[scan % SPEEDS];
    settle(plan, star, x);
}

/* Sets the points of a star to the lowest minima of its scans that lie at least CLV_SPECTRA_APART from each other. */
static void set_minima(const clv_spectra_plan *plan, size_t star, const double *values,
                       double templates[SCANS][N], double x[MOST][N])
{
    const size_t count = plan->sizes.velocities;
    clear_points(x);
    for (size_t k = 0; k < MOST; ++k) {
        double least = INFINITY;
        for (size_t i = 0; i < SCANS * count; ++i) {
            const double v = plan->box.low[0] + clv_scan_step(plan) * (double)(i % count);
            bool apart = values[i] < least;
            for (size_t j = 0; apart && j < k; ++j)
                apart = fabs(v - x[j][0]) >= CLV_SPECTRA_APART;
            if (!apart) continue;
            least = values[i];
            memcpy(x[k], templates[i / count], sizeof x[k]);
            x[k][0] = v, x[k][1] = begun[i / count % SPEEDS];
        }
        if (least == INFINITY) return;
        const double v = x[k][0];
        settle(plan, star, x[k]);
        x[k][0] = v;
    }
}

/* Tries other velocities for stars whose fit is hardly better than a continuum, and for stars that seem to rotate fast
 * but have a weak template. The cross-correlation may miss their velocities, because it divides by a continuum, does
 * not broaden its templates by rotation, and finds only the best velocity of each template. */
static clv_status search_velocities(clv_context *context, const clv_spectra_plan *plan,
                                    size_t *number, const clv_star_masks *masks, bool models,
                                    clv_report *report)
{
    const size_t velocities = plan->sizes.velocities;
    size_t count = 0;
    for (size_t n = 0; n < plan->stars.count; ++n) {
        const clv_specfit_result *r = &plan->run.results[n];
        if (r->warnings & CLV_SPECFIT_BAD_SPECTRUM || is_held(plan, n, 0)) continue;
        if (r->warnings & (CLV_SPECFIT_LOW_CONTRAST | CLV_SPECFIT_VELOCITY_EDGE) ||
            (r->warnings & CLV_SPECFIT_FAST_ROTATION && gained(plan, r) < little))
            number[count++] = n;
    }
    if (!count) return CLV_OK;
    size_t *each = clv_alloc(count * SCANS, sizeof *each);
    double(*templates)[SCANS][N] = clv_alloc(count, sizeof *templates);
    double(*points)[MOST][N] = clv_alloc(count, sizeof *points);
    double *values = clv_alloc(count * SCANS * velocities, sizeof *values);
    clv_status status = each && templates && points && values
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "specfit: not enough memory for velocities");
    for (size_t i = 0; !status && i < count * SCANS; ++i) {
        each[i] = number[i / SCANS];
        set_scan(plan, each[i], i % SCANS, templates[i / SCANS][i % SCANS]);
    }
    const clv_again scans = { each, count * SCANS, masks, templates ? templates[0][0] : NULL,
                              1,    false,         values };
    if (!status) status = clv_fit_listed(context, plan, &scans, NULL, NULL, report);
    for (size_t i = 0; !status && i < count; ++i)
        set_minima(plan, number[i], values + i * SCANS * velocities, templates[i], points[i]);
    if (!status)
        status = fit_from(context, plan, number, count, masks, points[0][0], models, report);
    clv_free(each), clv_free(templates), clv_free(points), clv_free(values);
    return status;
}

clv_status clv_look_elsewhere(clv_context *context, const clv_spectra_plan *plan, size_t *number,
                              const clv_star_masks *masks, bool models, clv_report *report)
{
    CLV_TRY(search_velocities(context, plan, number, masks, models, report));
    CLV_TRY(fit_round(context, plan, set_first, number, masks, models, report));
    CLV_TRY(fit_round(context, plan, set_second, number, masks, models, report));
    CLV_TRY(fit_round(context, plan, set_beside, number, masks, models, report));
    return fit_round(context, plan, clv_points_around, number, masks, models, report);
}
