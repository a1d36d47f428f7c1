/* SPDX-License-Identifier: Apache-2.0 */
/* Fits some of the stars again: without their outliers, and from other points where the minimum is ambiguous. */
#include "host/spectra/spectra_again.h"

#include "host/spectra/spectra_job.h"
#include "host/spectra/spectra_reject.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { N = CLV_SPECTRA_UNKNOWNS };

/* Progress of stars that are fitted again: the run has already reported all of them as done, so the total is reported
 * again. */
typedef struct retold {
    const clv_specfit_options *options;
    size_t total;
} retold;

static int tell_again(const char *job, size_t done, size_t total, void *user)
{
    const retold *r = user;
    (void)done, (void)total;
    return r->options->progress(job, r->total, r->total, r->options->progress_user);
}

/* Copies the spectra of the stars number[0..count). Where `masks` has outliers, the copy gets a new mask that contains
 * the outliers and the caller's mask. `own` holds the memory of the new masks. */
static clv_status mask_listed(const clv_spectra_plan *all, const size_t *number, size_t count,
                              const clv_star_masks *masks, clv_spectrum *items, clv_star_masks *own)
{
    const size_t spectra = all->stars.spectra;
    for (size_t n = 0; n < count; ++n)
        for (size_t i = 0; i < spectra; ++i) {
            clv_spectrum *to = &items[n * spectra + i];
            const int32_t *mask = masks[number[n]].of[i];
            *to = all->stars.items[number[n] * spectra + i];
            if (!mask) continue;
            int32_t *both = own[n].of[i] = clv_alloc(to->pixels, sizeof *both);
            if (!both) return clv_fail(CLV_E_MEMORY, "specfit: no memory for a mask");
            for (size_t k = 0; k < to->pixels; ++k)
                both[k] = mask[k] || (to->mask && to->mask[k] > 0);
            to->mask = both;
        }
    return CLV_OK;
}

/* Which stars to fit again, and how. */
typedef struct again {
    const size_t *number; /* [count] of the stars */
    size_t count;
    const clv_star_masks *masks; /* of all stars */
    const double *begin;         /* [count,starts,6] points to fit from; NULL: the usual ones */
    unsigned starts;
    bool models;
    double *
        scans; /* [count,velocities of the start's grid] values at the points in place of a fit; NULL: fit */
} again;

/* Returns the step of the start's grid of velocities, km/s. */
static double scan_step(const clv_spectra_plan *plan)
{
    return (plan->box.high[0] - plan->box.low[0]) / (double)(plan->sizes.velocities - 1);
}

/* Fits the stars of `a` again without the pixels in their masks. The caller clears results [a->count].
 * `peaks`: as in clv_spectra_run. */
static clv_status fit_listed(clv_context *context, const clv_spectra_plan *all, const again *a,
                             clv_specfit_result *results, float *peaks, clv_report *report)
{
    const size_t spectra = all->stars.spectra;
    clv_spectrum *items = clv_alloc(a->count * spectra, sizeof *items);
    clv_star_masks *own = clv_zalloc(a->count, sizeof *own);
    clv_star_prior *priors = all->stars.priors ? clv_alloc(a->count, sizeof *priors) : NULL;
    clv_specfit_options options = all->options;
    retold progress = { &all->options, all->stars.count };
    clv_spectra_plan *plan = NULL;
    clv_status status = items && own && (priors || !all->stars.priors)
                            ? mask_listed(all, a->number, a->count, a->masks, items, own)
                            : clv_fail(CLV_E_MEMORY, "specfit: no memory for a second fit");
    const clv_spectra_stars stars = { sizeof stars, a->count, spectra, items, priors };
    for (size_t n = 0; priors && n < a->count; ++n)
        priors[n] = all->stars.priors[a->number[n]];
    if (options.progress) options.progress = tell_again, options.progress_user = &progress;
    options.starts = a->starts, options.models = a->models;
    if (!status) status = clv_spectra_plan_create(all->library, &stars, &options, &plan);
    if (!status) {
        plan->run.results = results, plan->run.peaks = peaks;
        plan->wish.threads = all->wish.threads;
        plan->wish.scans = true;
        if (a->scans) {
            plan->wish.points = a->begin, plan->wish.scan_values = a->scans;
            plan->wish.scan_from = (float)plan->box.low[0];
            plan->wish.scan_step = (float)scan_step(plan);
            plan->wish.scan_count = plan->sizes.velocities;
        } else {
            plan->wish.begin = a->begin;
        }
        status = clv_spectra_run_plan(context, plan, "specfit", report);
    }
    clv_spectra_plan_free(plan);
    clv_star_masks_clear(own, a->count);
    clv_free(items), clv_free(own), clv_free(priors);
    return status;
}

/* Replaces a result by a newer one. The newer one is empty afterwards. */
static void replace(clv_specfit_result *to, clv_specfit_result *by)
{
    memcpy(by->rejected, to->rejected, sizeof to->rejected);
    clv_specfit_results_clear(to, 1);
    *to = *by;
    memset(by->model, 0, sizeof by->model);
}

/* Fits stars again without their outliers, and replaces their results. */
static clv_status fit_masked(clv_context *context, const clv_spectra_plan *plan,
                             const size_t *number, size_t count, const clv_star_masks *masks,
                             clv_report *report)
{
    const again all = { number, count, masks, NULL, plan->options.starts, true, NULL };
    const size_t room = CLV_SPECTRA_FOUND_BY_STAR * sizeof(float);
    clv_specfit_result *results = clv_zalloc(count, sizeof *results);
    float *peaks = clv_zalloc(count, room);
    const clv_status status = results && peaks
                                  ? fit_listed(context, plan, &all, results, peaks, report)
                                  : clv_fail(CLV_E_MEMORY, "specfit: no memory for a second fit");
    for (size_t n = 0; !status && n < count; ++n) {
        replace(&plan->run.results[number[n]], &results[n]);
        memcpy(plan->run.peaks + number[n] * CLV_SPECTRA_FOUND_BY_STAR,
               peaks + n * CLV_SPECTRA_FOUND_BY_STAR, room);
    }
    clv_specfit_results_clear(results, results ? count : 0);
    clv_free(results), clv_free(peaks);
    return status;
}

/* Keeps in number[0..*count) the stars whose outliers have changed, and stores the outliers in `masks`. */
static clv_status find_outliers(const clv_spectra_plan *plan, size_t *number, size_t *count,
                                clv_star_masks *masks)
{
    const size_t spectra = plan->stars.spectra,
                 longest = CLV_MAX(plan->sizes.longest_spectrum, (size_t)1);
    double *scratch = clv_alloc(4 * longest, sizeof *scratch);
    unsigned char *flags = clv_alloc(longest, 1);
    clv_status status = CLV_OK;
    size_t kept = 0;
    if (!scratch || !flags) status = clv_fail(CLV_E_MEMORY, "specfit: no memory for residuals");
    for (size_t n = 0; !status && n < *count; ++n) {
        bool more = false;
        status = clv_reject_find(plan->stars.items + number[n] * spectra, spectra, &plan->options,
                                 plan->sizes.diagonals > 0, &plan->run.results[number[n]],
                                 &masks[number[n]], scratch, flags, &more);
        if (more) number[kept++] = number[n];
    }
    *count = kept;
    clv_free(scratch), clv_free(flags);
    return status;
}

/* Leaves out outliers and fits their stars again, until there are no more, at most CLV_REJECT_ROUNDS times. */
static clv_status reject(clv_context *context, const clv_spectra_plan *plan, size_t *number,
                         clv_star_masks *masks, clv_report *report)
{
    size_t count = plan->stars.count;
    clv_status status = CLV_OK;
    for (size_t n = 0; n < count; ++n)
        number[n] = n;
    for (int round = 0; round < CLV_REJECT_ROUNDS && count && !status; ++round) {
        status = find_outliers(plan, number, &count, masks);
        if (!status && count) status = fit_masked(context, plan, number, count, masks, report);
    }
    return status;
}

/* ---- ambiguous minima -------------------------------------------------------------------------- */

/* If a star may have a lower minimum, it is also fitted from these points: both ends of the range of its least certain
 * parameter; other rotations, if its template is weak; and the other minima of the cross-correlation. */
enum { ENDS = 2, ROTATIONS = 4, OTHER_STARTS = ENDS + ROTATIONS + CLV_SPECTRA_PEAKS - 1 };
static const double rotation[ROTATIONS] = { 0, 20, 50, 120 }; /* km/s */
static const double little = 1000,
                    near = 30; /* of chi-square: gained by the template; of another minimum */

static double covariance(const clv_specfit_result *r, int a, int b)
{
    return a >= b ? r->covariance[a * (a + 1) / 2 + b] : r->covariance[b * (b + 1) / 2 + a];
}

static bool is_held(const clv_spectra_plan *plan, size_t star, int a)
{
    return plan->stars.priors && plan->stars.priors[star].fixed[a];
}

/* Moves a point into the box, and sets its held unknowns to their values. */
static void settle(const clv_spectra_plan *plan, size_t star, double x[N])
{
    for (int a = 0; a < N; ++a) {
        const double margin = 1e-3 * (plan->box.high[a] - plan->box.low[a]);
        x[a] = is_held(plan, star, a)
                   ? plan->stars.priors[star].value[a]
                   : fmin(fmax(x[a], plan->box.low[a] + margin), plan->box.high[a] - margin);
    }
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

/* Returns the parameter whose error is the largest part of its range; -1 if all are held. */
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

/* Sets the further starting points and returns their number. Unused ones are NaN. */
static size_t set_points(const clv_spectra_plan *plan, size_t star, double x[OTHER_STARTS][N])
{
    const clv_specfit_result *r = &plan->run.results[star];
    const float *peaks = plan->run.peaks + star * CLV_SPECTRA_FOUND_BY_STAR;
    const unsigned uncertain = CLV_SPECFIT_WIDE_ERROR | CLV_SPECFIT_PARAMETER_EDGE;
    double chi = 0;
    size_t count = 0;
    for (size_t k = 0; k < OTHER_STARTS; ++k)
        for (int a = 0; a < N; ++a)
            x[k][a] = NAN;
    if (r->warnings & CLV_SPECFIT_BAD_SPECTRUM) return 0;
    for (size_t i = 0; i < plan->stars.spectra; ++i)
        chi += r->chisq_continuum[i] - r->chisq[i];
    const int a = least_certain(plan, star, r);
    for (int end = 0; end < ENDS && r->warnings & uncertain && a >= 0; ++end)
        move_to(plan, star, r, a, end ? plan->box.high[a] : plan->box.low[a], x[count++]);
    for (int k = 0; k < ROTATIONS && chi < little && !is_held(plan, star, 1); ++k)
        move_to(plan, star, r, 1, rotation[k], x[count++]);
    for (size_t k = 1; k < CLV_SPECTRA_PEAKS && !is_held(plan, star, 0); ++k)
        if ((double)peaks[CLV_SPECTRA_PEAK * k + 2] < near)
            begin_at_peak(plan, star, peaks + CLV_SPECTRA_PEAK * k, x[count++]);
    return count;
}

/* Returns the value that the fit has minimised. */
static double height_of(const clv_spectra_plan *plan, size_t star, const clv_specfit_result *r)
{
    const double x[N] = { r->velocity, r->vsini, r->teff, r->logg, r->feh, r->alpha };
    double value = r->neg2logl;
    for (int a = 0; a < N && plan->stars.priors; ++a) {
        const clv_star_prior *p = &plan->stars.priors[star];
        const double off = (x[a] - p->value[a]) / p->sigma[a];
        if (!p->fixed[a] && p->sigma[a] > 0) value += off * off;
    }
    return value;
}

/* Keeps the lower one of two results of a star. */
static void keep_lower(const clv_spectra_plan *plan, size_t star, clv_specfit_result *other)
{
    clv_specfit_result *r = &plan->run.results[star];
    const double before = height_of(plan, star, r), now = height_of(plan, star, other);
    const unsigned agreed = r->starts_agreed, more = other->starts_agreed;
    const bool lower = now < before, same = fabs(now - before) <= 0.5;
    other->start_velocity = r->start_velocity;
    if (lower) replace(r, other);
    r->starts_agreed = same ? agreed + more : lower ? more : agreed;
}

/* ---- a search along velocity ------------------------------------------------------------------- */

enum {
    SCANS = CLV_SPECTRA_PEAKS + 1
}; /* per star: with its fit's template without rotation, and with those found */

/* Replaces the minima of a star by the lowest ones of its scans that are `apart`. */
static void find_minima(const clv_spectra_plan *plan, const double *values, float *peaks)
{
    const size_t count = plan->sizes.velocities;
    float found[CLV_SPECTRA_FOUND_BY_STAR];
    for (size_t k = 1; k < CLV_SPECTRA_PEAKS; ++k) {
        float *peak = found + CLV_SPECTRA_PEAK * k;
        double least = INFINITY;
        peak[0] = CLV_SPECTRA_NO_PEAK, peak[1] = 0, peak[2] = CLV_SPECTRA_NO_PEAK;
        for (size_t i = 0; i < SCANS * count; ++i) {
            const double v = plan->box.low[0] + scan_step(plan) * (double)(i % count);
            bool apart = values[i] < least;
            for (size_t j = 1; j < k; ++j)
                apart = apart && fabs(v - (double)found[CLV_SPECTRA_PEAK * j]) >= CLV_SPECTRA_APART;
            if (!apart) continue;
            least = values[i], peak[0] = (float)v, peak[2] = 0;
            peak[1] = peaks[CLV_SPECTRA_PEAK * (i / count ? i / count - 1 : 0) + 1];
        }
    }
    memcpy(peaks + CLV_SPECTRA_PEAK, found + CLV_SPECTRA_PEAK,
           (CLV_SPECTRA_PEAKS - 1) * CLV_SPECTRA_PEAK * sizeof *peaks);
}

/* Searches other velocities for stars whose fit is hardly better than a continuum. The cross-correlation has missed
 * these velocities, because it divides by a continuum and keeps only the best velocity of each template. */
static clv_status search_velocities(clv_context *context, const clv_spectra_plan *plan,
                                    size_t *number, const clv_star_masks *masks, clv_report *report)
{
    const size_t velocities = plan->sizes.velocities;
    size_t count = 0;
    for (size_t n = 0; n < plan->stars.count; ++n)
        if ((plan->run.results[n].warnings & CLV_SPECFIT_LOW_CONTRAST) && !is_held(plan, n, 0))
            number[count++] = n;
    if (!count) return CLV_OK;
    size_t *each = clv_alloc(count * SCANS, sizeof *each);
    double(*points)[N] = clv_alloc(count * SCANS, sizeof *points);
    double *values = clv_alloc(count * SCANS * velocities, sizeof *values);
    clv_status status = each && points && values
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "specfit: no memory for velocities");
    for (size_t i = 0; !status && i < count * SCANS; ++i) {
        const size_t star = each[i] = number[i / SCANS], k = i % SCANS;
        const float *peaks = plan->run.peaks + star * CLV_SPECTRA_FOUND_BY_STAR;
        if (k)
            begin_at_peak(plan, star, peaks + CLV_SPECTRA_PEAK * (k - 1), points[i]);
        else
            move_to(plan, star, &plan->run.results[star], 1, 0, points[i]);
    }
    const again scans = { each, count * SCANS, masks, points ? points[0] : NULL, 1, false, values };
    if (!status) status = fit_listed(context, plan, &scans, NULL, NULL, report);
    for (size_t i = 0; !status && i < count; ++i)
        find_minima(plan, values + i * SCANS * velocities,
                    plan->run.peaks + number[i] * CLV_SPECTRA_FOUND_BY_STAR);
    clv_free(each), clv_free(points), clv_free(values);
    return status;
}

/* Fits ambiguous stars from other points as well, and keeps their lowest minima. */
static clv_status look_elsewhere(clv_context *context, const clv_spectra_plan *plan, size_t *number,
                                 const clv_star_masks *masks, bool models, clv_report *report)
{
    const size_t all = plan->stars.count;
    size_t count = 0;
    double(*points)[OTHER_STARTS][N] = clv_alloc(all, sizeof *points);
    if (!points) return clv_fail(CLV_E_MEMORY, "specfit: no memory for other points");
    for (size_t n = 0; n < all; ++n)
        if (set_points(plan, n, points[count])) number[count++] = n;
    clv_specfit_result *results = clv_zalloc(CLV_MAX(count, (size_t)1), sizeof *results);
    const again others = { number, count, masks, points[0][0], OTHER_STARTS, models, NULL };
    clv_status status = CLV_OK;
    if (!results) status = clv_fail(CLV_E_MEMORY, "specfit: no memory for other points");
    if (!status && count) status = fit_listed(context, plan, &others, results, NULL, report);
    for (size_t n = 0; !status && n < count; ++n)
        keep_lower(plan, number[n], &results[n]);
    clv_specfit_results_clear(results, count);
    clv_free(points), clv_free(results);
    return status;
}

clv_status clv_spectra_fit_again(clv_context *context, const clv_spectra_plan *plan, bool models,
                                 clv_report *report)
{
    const size_t count = plan->stars.count;
    clv_star_masks *masks = clv_zalloc(count, sizeof *masks);
    size_t *number = clv_alloc(count, sizeof *number);
    clv_status status = CLV_OK;
    if (!masks || !number) status = clv_fail(CLV_E_MEMORY, "specfit: no memory for masks");
    if (!status && isfinite(plan->options.reject_sigma))
        status = reject(context, plan, number, masks, report);
    if (!status) status = search_velocities(context, plan, number, masks, report);
    if (!status) status = look_elsewhere(context, plan, number, masks, models, report);
    clv_star_masks_clear(masks, count);
    clv_free(masks), clv_free(number);
    return status;
}
