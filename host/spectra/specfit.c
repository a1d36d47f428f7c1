/* SPDX-License-Identifier: Apache-2.0 */
/* clv_specfit: plan, job, and the final results of a fit: errors, warnings. */
#include "host/spectra/spectra_pass.h"
#include "host/spectra/spectra_reject.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = CLV_SPECTRA_UNKNOWNS };

static const double bad_fit = 3; /* chi-square per degree of freedom */

static double at(const float *normal, size_t a, size_t b)
{
    return (double)(a >= b ? normal[a * (a + 1) / 2 + b] : normal[b * (b + 1) / 2 + a]);
}

/* Inverts the block of the unknowns which[0..n), after scaling it to a unit diagonal. */
static bool invert(const float *normal, const size_t *which, size_t n, double *out)
{
    double l[N][N], x[N];
    for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b <= a; ++b) {
            const double scale =
                sqrt(at(normal, which[a], which[a]) * at(normal, which[b], which[b]));
            double v = scale > 0 ? at(normal, which[a], which[b]) / scale : 0;
            for (size_t k = 0; k < b; ++k)
                v -= l[a][k] * l[b][k];
            if (a == b && !(v > 1e-9)) return false;
            l[a][b] = a == b ? sqrt(v) : v / l[b][b];
        }
    for (size_t c = 0; c < n; ++c) {
        for (size_t a = 0; a < n; ++a) {
            x[a] = a == c;
            for (size_t k = 0; k < a; ++k)
                x[a] -= l[a][k] * x[k];
            x[a] /= l[a][a];
        }
        for (size_t a = n; a-- > 0;) {
            for (size_t k = a + 1; k < n; ++k)
                x[a] -= l[k][a] * x[k];
            x[a] /= l[a][a];
            out[a * n + c] =
                x[a] / sqrt(at(normal, which[a], which[a]) * at(normal, which[c], which[c]));
        }
    }
    return true;
}

/* Computes the errors. Fixed unknowns have none, and are left out of the errors of the others. */
static void set_errors(const float *normal, unsigned fixed, clv_specfit_result *r)
{
    double all[N * N], four[16], whole_of[N][N] = { { 0 } };
    double *const error[4] = { &r->teff_error, &r->logg_error, &r->feh_error, &r->alpha_error };
    size_t unknown[N], free_all = 0, parameter[4], free_four = 0;
    for (size_t a = 0; a < N; ++a) {
        if (fixed >> a & 1) continue;
        unknown[free_all++] = a;
        if (a >= 2) parameter[free_four++] = a;
    }
    r->velocity_error = fixed & 1 ? 0 : 1 / sqrt(at(normal, 0, 0));
    if (!isfinite(r->velocity_error))
        r->velocity_error = NAN, r->warnings |= CLV_SPECFIT_BAD_HESSIAN;
    const bool whole = invert(normal, unknown, free_all, all),
               part = invert(normal, parameter, free_four, four);
    for (size_t a = 0; a < free_all; ++a)
        for (size_t b = 0; b < free_all; ++b)
            whole_of[unknown[a]][unknown[b]] = whole ? all[a * free_all + b] : NAN;
    for (size_t a = 0, e = 0; a < N; ++a)
        for (size_t b = 0; b <= a; ++b, ++e)
            r->covariance[e] = whole_of[a][b];
    for (size_t k = 0; k < free_four; ++k) {
        const size_t a = parameter[k];
        *error[a - 2] = part ? sqrt(four[k * (free_four + 1)]) : 1 / sqrt(at(normal, a, a));
    }
    if (!part) r->warnings |= CLV_SPECFIT_BAD_HESSIAN;
}

static bool near_limit(double x, double low, double high, double by)
{
    return x < low + by || x > high - by;
}

static void set_warnings(const clv_spectra_plan *plan, unsigned fixed, clv_specfit_result *r)
{
    const bool given[3] = { fixed >> 2 & 1, fixed >> 3 & 1, fixed >> 4 & 1 };
    const double errors[4] = { r->teff_error, r->logg_error, r->feh_error, r->alpha_error };
    double chi = 0, continuum = 0, freedom = -N;
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        chi += r->chisq[i], continuum += r->chisq_continuum[i];
        if (r->pixels[i]) freedom += (double)r->pixels[i] - plan->options.terms;
    }
    if (!(chi <= bad_fit * fmax(freedom, 1))) r->warnings |= CLV_SPECFIT_BAD_FIT;
    for (size_t k = 0; k < 4; ++k)
        if (!(errors[k] * sqrt(12) < plan->box.high[2 + k] - plan->box.low[2 + k]))
            r->warnings |= CLV_SPECFIT_WIDE_ERROR;
    if (!(continuum - chi >= 50)) r->warnings |= CLV_SPECFIT_LOW_CONTRAST;
    if (!(fixed & 1) && near_limit(r->velocity, plan->box.low[0], plan->box.high[0], 5))
        r->warnings |= CLV_SPECFIT_VELOCITY_EDGE;
    if (!(r->velocity_error <= 100)) r->warnings |= CLV_SPECFIT_VELOCITY_ERROR;
    if ((!given[0] && near_limit(r->teff, plan->box.low[2], plan->box.high[2], 10)) ||
        (!given[1] && near_limit(r->logg, plan->box.low[3], plan->box.high[3], 0.01)) ||
        (!given[2] && near_limit(r->feh, plan->box.low[4], plan->box.high[4], 0.01)))
        r->warnings |= CLV_SPECFIT_PARAMETER_EDGE;
    if (r->vsini > 100) r->warnings |= CLV_SPECFIT_FAST_ROTATION;
}

/* Marks a star as not fitted: every number that a fit would give becomes NaN. */
static void set_unfitted(clv_specfit_result *r)
{
    r->velocity = r->vsini = r->teff = r->logg = r->feh = r->alpha = NAN;
    r->velocity_error = r->skewness = r->kurtosis = r->start_velocity = r->neg2logl = NAN;
    r->teff_error = r->logg_error = r->feh_error = r->alpha_error = NAN;
    for (size_t e = 0; e < CLV_LEN(r->covariance); ++e)
        r->covariance[e] = NAN;
    r->warnings = CLV_SPECFIT_BAD_SPECTRUM;
}

static clv_status keep_models(const clv_spectra_plan *plan, const clv_star_facts *facts,
                              const float *models, clv_specfit_result *r)
{
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        const clv_spectra_grid *g = &plan->grid[i];
        if (!facts->present[i]) continue;
        r->model[i] = clv_alloc(g->pixels, sizeof(float));
        if (!r->model[i]) return clv_fail(CLV_E_MEMORY, "specfit: no memory for a model");
        const double scale = facts->scale[i];
        for (size_t k = 0; k < g->pixels; ++k)
            r->model[i][k] = (float)((double)models[g->first + k] * scale);
    }
    return CLV_OK;
}

/* Returns the minimised value, without the penalty for points outside a grid of templates. */
static double height_of(const float *s)
{
    return (double)s[CLV_S_VALUE] + (double)s[CLV_S_LOST] + (double)s[CLV_S_PRIOR_VALUE];
}

static clv_status finish_star(const clv_spectra_plan *plan, const clv_star_facts *facts,
                              unsigned starts, const float *states, const float *found,
                              const float *models, clv_specfit_result *r)
{
    const float *best = NULL;
    unsigned which = 0;
    double lowest = INFINITY;
    *r = (clv_specfit_result){ 0 };
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        r->pixels[i] = facts->good[i];
        r->chisq_continuum[i] = facts->chisq_continuum[i];
        r->signal_to_noise[i] = facts->signal_to_noise[i];
    }
    for (unsigned k = 0; k < starts; ++k) {
        const float *s = states + (size_t)k * CLV_SPECTRA_STATE;
        const double value = height_of(s);
        if (s[CLV_S_STATUS] >= 0.5f && s[CLV_S_STATUS] < 2.5f && isfinite(value) && value < lowest)
            lowest = value, best = s, which = k;
    }
    if (!best || !facts->usable) {
        set_unfitted(r);
        return CLV_OK;
    }
    for (unsigned k = 0; k < starts; ++k) {
        const float *s = states + (size_t)k * CLV_SPECTRA_STATE;
        r->starts_agreed += height_of(s) <= lowest + 0.5;
    }
    const float *x = best + CLV_S_BEST;
    r->velocity = (double)x[0], r->vsini = (double)x[1], r->teff = (double)x[2];
    r->logg = (double)x[3], r->feh = (double)x[4], r->alpha = (double)x[5];
    r->start_velocity = (double)found[0];
    r->skewness = r->kurtosis = NAN;
    r->neg2logl = (double)best[CLV_S_VALUE] + (double)best[CLV_S_LOST] + facts->log_sigmas;
    r->rounds = (unsigned)best[CLV_S_ROUNDS];
    for (size_t i = 0; i < plan->stars.spectra; ++i)
        r->chisq[i] = facts->present[i] ? (double)best[CLV_S_CHI_OF + i] : 0;
    if (best[CLV_S_FLAGS] > 0) r->warnings |= CLV_SPECFIT_BAD_HESSIAN;
    const unsigned fixed = (unsigned)best[CLV_S_FIXED];
    set_errors(best + CLV_S_NORMAL, fixed, r);
    if (!(fixed & 1) && best[CLV_S_SCAN_TURN] != 0 && isfinite(best[CLV_S_SCAN + 1])) {
        r->velocity_error = (double)best[CLV_S_SCAN + 1];
        r->skewness = (double)best[CLV_S_SCAN + 2], r->kurtosis = (double)best[CLV_S_SCAN + 3];
    }
    set_warnings(plan, fixed, r);
    if (best[CLV_S_PENALTY] > 0) r->warnings |= CLV_SPECFIT_PARAMETER_EDGE;
    return models ? keep_models(plan, facts, models + which * plan->sizes.all_pixels, r) : CLV_OK;
}

/* Stores the values along velocity of stars [first, first + count). */
static clv_status keep_scans(const clv_spectra_plan *plan, const clv_slot *slot, size_t first,
                             size_t count)
{
    const float *values = clv_slot_result(slot, CLV_SPECTRA_SCANS);
    const size_t pitch = clv_scan_velocities(plan), n = plan->wish.scan_count;
    for (size_t i = 0; i < count; ++i) {
        const clv_star_facts *facts = &plan->run.facts[first + i];
        const float *v = values + i * 2 * pitch;
        for (size_t k = 0; k < n; ++k)
            plan->wish.scan_values[(first + i) * n + k] =
                facts->usable ? (double)v[k] + (double)v[pitch + k] + facts->log_sigmas : NAN;
    }
    return CLV_OK;
}

clv_status clv_spectra_commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    clv_spectra_plan *plan = user;
    const size_t starts = plan->options.starts;
    const float *states = clv_slot_result(slot, CLV_SPECTRA_STATES);
    const float *found = clv_slot_result(slot, CLV_SPECTRA_FOUND);
    const float *models = plan->options.models ? clv_slot_result(slot, CLV_SPECTRA_MODELS) : NULL;
    if (plan->wish.scan_count) {
        pthread_mutex_lock(&plan->run.lock);
        const clv_status status = keep_scans(plan, slot, first, count);
        pthread_mutex_unlock(&plan->run.lock);
        return status;
    }
    for (size_t i = 0; i < count; ++i) {
        pthread_mutex_lock(&plan->run.lock);
        const clv_star_facts facts = plan->run.facts[first + i];
        pthread_mutex_unlock(&plan->run.lock);
        for (size_t k = 0; plan->wish.points && k < starts; ++k) /* every point is a result */
            CLV_TRY(finish_star(plan, &facts, 1, states + (i * starts + k) * CLV_SPECTRA_STATE,
                                found + 2 * i,
                                models ? models + (i * starts + k) * plan->sizes.all_pixels : NULL,
                                &plan->run.results[(first + i) * starts + k]));
        if (plan->wish.points) continue;
        CLV_TRY(finish_star(plan, &facts, plan->options.starts,
                            states + i * starts * CLV_SPECTRA_STATE, found + 2 * i,
                            models ? models + i * starts * plan->sizes.all_pixels : NULL,
                            &plan->run.results[first + i]));
    }
    return CLV_OK;
}

/* What to do with the stars: a fit, values at points, or values along velocity. */
typedef struct order {
    const char *name;
    const double *points;
    size_t count; /* results per star */
    double scan_from, scan_step;
    size_t scan_count;
    double *scan_values;
} order;

static clv_status run_plan(clv_context *context, clv_spectra_plan *plan, const order *o,
                           clv_report *report)
{
    char signature[128];
    snprintf(signature, sizeof signature, "W%zu T%zu K%zu P%u S%u C%zu D%zu V%zu",
             plan->tables.weight_count + plan->tables.grid_count, plan->sizes.longest_template,
             plan->sizes.all_pixels, plan->options.terms, plan->options.starts,
             plan->library->ccf_count * plan->sizes.ccf_room, plan->sizes.diagonals,
             plan->wish.scan_count);
    clv_job job = clv_spectra_job(o->name, plan->stars.count);
    job.signature = signature;
    job.commit = clv_spectra_commit, job.reference = clv_spectra_reference;
    job.progress = plan->options.progress, job.progress_user = plan->options.progress_user;
    return clv_job_run(context, &job, plan, report);
}

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

/* Copies the spectra of the stars number[0..count). Where `masks` has outliers, the copy gets a new mask with these and
 * the caller's; `own` holds the memory of the new masks. */
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

/* Fits the stars number[0..count) again, without the pixels in `masks`, and replaces their earlier results. */
static clv_status fit_listed(clv_context *context, const clv_spectra_plan *all,
                             const size_t *number, size_t count, const clv_star_masks *masks,
                             clv_report *report)
{
    const size_t spectra = all->stars.spectra;
    clv_spectrum *items = clv_alloc(count * spectra, sizeof *items);
    clv_specfit_result *results = clv_zalloc(count, sizeof *results);
    clv_star_masks *own = clv_zalloc(count, sizeof *own);
    clv_star_prior *priors = all->stars.priors ? clv_alloc(count, sizeof *priors) : NULL;
    clv_specfit_options options = all->options;
    retold progress = { &all->options, all->stars.count };
    const order fit = { .name = "specfit", .count = 1 };
    clv_spectra_plan *plan = NULL;
    clv_status status = items && results && own && (priors || !all->stars.priors)
                            ? mask_listed(all, number, count, masks, items, own)
                            : clv_fail(CLV_E_MEMORY, "specfit: no memory for a second fit");
    const clv_spectra_stars stars = { sizeof stars, count, spectra, items, priors };
    for (size_t n = 0; priors && n < count; ++n)
        priors[n] = all->stars.priors[number[n]];
    if (options.progress) options.progress = tell_again, options.progress_user = &progress;
    if (!status) status = clv_spectra_plan_create(all->library, &stars, &options, &plan);
    if (!status) {
        plan->run.results = results, plan->wish.threads = all->wish.threads;
        plan->wish.scans = true;
        status = run_plan(context, plan, &fit, report);
    }
    for (size_t n = 0; !status && n < count; ++n) {
        clv_specfit_result *to = &all->run.results[number[n]];
        memcpy(results[n].rejected, to->rejected, sizeof to->rejected);
        clv_specfit_results_clear(to, 1);
        *to = results[n];
        memset(results[n].model, 0, sizeof results[n].model);
    }
    if (results) clv_specfit_results_clear(results, count);
    clv_spectra_plan_free(plan);
    clv_star_masks_clear(own, count);
    clv_free(items), clv_free(results), clv_free(own), clv_free(priors);
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
static clv_status fit_without_outliers(clv_context *context, const clv_spectra_plan *plan,
                                       clv_report *report)
{
    size_t count = plan->stars.count;
    clv_star_masks *masks = clv_zalloc(count, sizeof *masks);
    size_t *number = clv_alloc(count, sizeof *number);
    clv_status status = CLV_OK;
    if (!masks || !number) status = clv_fail(CLV_E_MEMORY, "specfit: no memory for masks");
    for (size_t n = 0; !status && n < count; ++n)
        number[n] = n;
    for (int round = 0; round < CLV_REJECT_ROUNDS && count && !status; ++round) {
        status = find_outliers(plan, number, &count, masks);
        if (!status && count) status = fit_listed(context, plan, number, count, masks, report);
    }
    clv_star_masks_clear(masks, plan->stars.count);
    clv_free(masks), clv_free(number);
    return status;
}

static void drop_models(clv_specfit_result *results, size_t count)
{
    for (size_t n = 0; n < count; ++n)
        for (size_t i = 0; i < CLV_SPECTRA_MAX_SPECTRA; ++i) {
            clv_free(results[n].model[i]);
            results[n].model[i] = NULL;
        }
}

static clv_status run(clv_context *context, const clv_spectra_library *library,
                      const clv_spectra_stars *stars, const order *o,
                      const clv_specfit_options *options, clv_specfit_result *results,
                      clv_report *report)
{
    clv_spectra_plan *plan;
    clv_spectra_stars own;
    if (!context || !stars) return clv_fail(CLV_E_ARGUMENT, "specfit: context or stars is NULL");
    CLV_TRY(clv_take_struct(&own, sizeof own, stars, "clv_specfit", "clv_spectra_stars"));
    if (own.count && !results && !o->scan_values)
        return clv_fail(CLV_E_ARGUMENT, "specfit: results is NULL");
    if (results) memset(results, 0, own.count * o->count * sizeof *results);
    CLV_TRY(clv_spectra_plan_create(library, &own, options, &plan));
    plan->run.results = results;
    plan->wish.threads = clv_context_probe(context)->host.threads_allowed;
    if (o->points) plan->wish.points = o->points, plan->options.starts = (unsigned)o->count;
    plan->wish.scans = !o->points || o->scan_count;
    plan->wish.scan_count = o->scan_count, plan->wish.scan_values = o->scan_values;
    plan->wish.scan_from = (float)o->scan_from, plan->wish.scan_step = (float)o->scan_step;
    const bool models = plan->options.models,
               rejects = !o->points && !o->scan_count && isfinite(plan->options.reject_sigma);
    plan->options.models |= rejects;
    clv_status status = own.count ? run_plan(context, plan, o, report) : CLV_OK;
    if (!status && own.count && rejects) status = fit_without_outliers(context, plan, report);
    if (!status && rejects && !models) drop_models(results, own.count);
    if (status) clv_specfit_results_clear(results, own.count * o->count);
    clv_spectra_plan_free(plan);
    return status;
}

clv_status clv_specfit(clv_context *context, const clv_spectra_library *library,
                       const clv_spectra_stars *stars, const clv_specfit_options *options,
                       clv_specfit_result *results, clv_report *report)
{
    const order fit = { .name = "specfit", .count = 1 };
    return run(context, library, stars, &fit, options, results, report);
}

clv_status clv_specfit_at(clv_context *context, const clv_spectra_library *library,
                          const clv_spectra_stars *stars, const double *points, size_t count,
                          const clv_specfit_options *options, clv_specfit_result *results,
                          clv_report *report)
{
    if (!points || !count || count > 1024)
        return clv_fail(CLV_E_ARGUMENT, "specfit: %zu points a star given, expected 1 to 1024",
                        points ? count : 0);
    const order at = { .name = "specfit_at", .points = points, .count = count };
    return run(context, library, stars, &at, options, results, report);
}

clv_status clv_specfit_scan(clv_context *context, const clv_spectra_library *library,
                            const clv_spectra_stars *stars, const double *points,
                            double velocity_kms, double step_kms, size_t count,
                            const clv_specfit_options *options, double *values, clv_report *report)
{
    const double last = velocity_kms + step_kms * (double)count;
    if (!points || !values || !count || count > 16384 || !(step_kms > 0) ||
        !(velocity_kms > -10000) || !(last < 10000))
        return clv_fail(CLV_E_ARGUMENT,
                        "specfit: points, values, and 1 to 16384 rising velocities within "
                        "+-10000 km/s expected; %zu from %g by %g given",
                        count, velocity_kms, step_kms);
    const order scan = { .name = "specfit_scan",
                         .points = points,
                         .count = 1,
                         .scan_from = velocity_kms,
                         .scan_step = step_kms,
                         .scan_count = count,
                         .scan_values = values };
    return run(context, library, stars, &scan, options, NULL, report);
}

void clv_specfit_results_clear(clv_specfit_result *results, size_t count)
{
    for (size_t i = 0; results && i < count; ++i) {
        for (size_t k = 0; k < CLV_SPECTRA_MAX_SPECTRA; ++k)
            clv_free(results[i].model[k]);
        results[i] = (clv_specfit_result){ 0 };
    }
}
