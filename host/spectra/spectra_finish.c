/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the results of a fit (errors, warnings, models) from the states that the kernels leave, and runs a plan's
 * job. */
#include "host/spectra/spectra_pass.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/job/results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = CLV_SPECTRA_UNKNOWNS };

static const double bad_fit = 3; /* warns above this chi-square per degree of freedom */

static double at(const float *normal, size_t a, size_t b)
{
    return (double)(a >= b ? normal[a * (a + 1) / 2 + b] : normal[b * (b + 1) / 2 + a]);
}

/* Inverts the block of the normal matrix for the unknowns which[0..n), after scaling the block to a unit diagonal. */
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

/* Computes the errors. Fixed unknowns have no errors, and the errors of the others do not include them. */
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

/* Returns whether a slightly different value of a free parameter lies in a grid cell that lacks a corner. Fits do not
 * enter such cells. */
static bool near_gap(const clv_spectra_plan *plan, unsigned fixed, const clv_specfit_result *r)
{
    static const double by[4] = { 10, 0.01, 0.01, 0.01 }; /* K; dex */
    const double x[4] = { r->teff, r->logg, r->feh, r->alpha };
    if (clv_spectra_penalty(plan, x) > 0) return true;
    for (int k = 0; k < 4; ++k)
        for (int side = -1; side < 2 && !(fixed >> (2 + k) & 1); side += 2) {
            double q[4];
            memcpy(q, x, sizeof q);
            q[k] += side * by[k];
            if (q[k] > plan->box.low[2 + k] && q[k] < plan->box.high[2 + k] &&
                clv_spectra_penalty(plan, q) > 0)
                return true;
        }
    return false;
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
        (!given[2] && near_limit(r->feh, plan->box.low[4], plan->box.high[4], 0.01)) ||
        near_gap(plan, fixed, r))
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
        if (!r->model[i]) return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a model");
        const double scale = facts->scale[i];
        for (size_t k = 0; k < g->pixels; ++k)
            r->model[i][k] = (float)((double)models[g->first + k] * scale);
    }
    return CLV_OK;
}

/* Returns the value that the fit minimised. It includes the penalty for points outside a grid of templates, because a
 * fit that ends outside has the template of the nearest node, which without the penalty might seem the best fit. */
static double height_of(const float *s)
{
    return (double)s[CLV_S_VALUE] + (double)s[CLV_S_LOST] + (double)s[CLV_S_PENALTY] +
           (double)s[CLV_S_PRIOR_VALUE];
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
    const bool converged = best[CLV_S_STATUS] > 1.5f;
    if (best[CLV_S_FLAGS] > 0 || !converged) r->warnings |= CLV_SPECFIT_BAD_HESSIAN;
    const unsigned fixed = (unsigned)best[CLV_S_FIXED];
    set_errors(best + CLV_S_NORMAL, fixed, r);
    if (!(fixed & 1) && best[CLV_S_SCAN_TURN] != 0 && isfinite(best[CLV_S_SCAN + 1])) {
        r->velocity_error = (double)best[CLV_S_SCAN + 1];
        r->skewness = (double)best[CLV_S_SCAN + 2], r->kurtosis = (double)best[CLV_S_SCAN + 3];
    }
    set_warnings(plan, fixed, r);
    return models ? keep_models(plan, facts, models + which * plan->sizes.all_pixels, r) : CLV_OK;
}

/* Stores the values along velocity of stars [first, first + count). */
static clv_status keep_scans(const clv_spectra_plan *plan, const clv_slot *slot, size_t first,
                             size_t count, const clv_star_facts *facts)
{
    const size_t pitch = clv_scan_velocities(plan), n = plan->wish.scan_count;
    const float *values;
    CLV_TRY(clv_slot_take(slot, CLV_SPECTRA_SCANS, count * 2 * pitch * sizeof *values, &values));
    for (size_t i = 0; i < count; ++i) {
        const float *v = values + i * 2 * pitch;
        for (size_t k = 0; k < n; ++k)
            plan->wish.scan_values[(first + i) * n + k] =
                facts[i].usable ? (double)v[k] + (double)v[pitch + k] + facts[i].log_sigmas : NAN;
    }
    return CLV_OK;
}

clv_status clv_spectra_commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    clv_spectra_plan *plan = user;
    const size_t starts = plan->options.starts, items = count * starts;
    const float *states, *found, *models = NULL;
    const clv_star_facts *all;
    CLV_TRY(clv_slot_take(slot, CLV_SPECTRA_FACTS, count * sizeof *all, &all));
    if (plan->wish.scan_count) return keep_scans(plan, slot, first, count, all);
    CLV_TRY(clv_slot_take(slot, CLV_SPECTRA_STATES, items * CLV_SPECTRA_STATE * sizeof *states,
                          &states));
    CLV_TRY(clv_slot_take(slot, CLV_SPECTRA_FOUND,
                          count * CLV_SPECTRA_FOUND_BY_STAR * sizeof *found, &found));
    if (plan->options.models)
        CLV_TRY(clv_slot_take(slot, CLV_SPECTRA_MODELS,
                              items * plan->sizes.all_pixels * sizeof *models, &models));
    for (size_t i = 0; i < count; ++i) {
        const clv_star_facts facts = all[i];
        for (size_t k = 0; plan->wish.points && k < starts; ++k) /* one result per given point */
            CLV_TRY(finish_star(plan, &facts, 1, states + (i * starts + k) * CLV_SPECTRA_STATE,
                                found + CLV_SPECTRA_FOUND_BY_STAR * i,
                                models ? models + (i * starts + k) * plan->sizes.all_pixels : NULL,
                                &plan->run.results[(first + i) * starts + k]));
        if (plan->wish.points) continue;
        if (plan->run.peaks)
            memcpy(plan->run.peaks + (first + i) * CLV_SPECTRA_FOUND_BY_STAR,
                   found + i * CLV_SPECTRA_FOUND_BY_STAR,
                   CLV_SPECTRA_FOUND_BY_STAR * sizeof *found);
        CLV_TRY(finish_star(plan, &facts, plan->options.starts,
                            states + i * starts * CLV_SPECTRA_STATE,
                            found + CLV_SPECTRA_FOUND_BY_STAR * i,
                            models ? models + i * starts * plan->sizes.all_pixels : NULL,
                            &plan->run.results[first + i]));
    }
    return CLV_OK;
}
clv_status clv_spectra_run_plan(clv_context *context, clv_spectra_plan *plan, const char *name,
                                clv_report *report)
{
    char signature[128];
    snprintf(signature, sizeof signature, "W%zu T%zu K%zu P%u S%u C%zu D%zu V%zu",
             plan->tables.weight_count + plan->tables.grid_count, plan->sizes.longest_template,
             plan->sizes.all_pixels, plan->options.terms, plan->options.starts,
             plan->library->ccf_count * plan->sizes.ccf_room, plan->sizes.diagonals,
             plan->wish.scan_count);
    clv_job job = clv_spectra_job(name, plan->stars.count);
    job.signature = signature;
    job.commit = clv_spectra_commit, job.reference = clv_spectra_reference;
    job.progress = plan->options.progress, job.progress_user = plan->options.progress_user;
    return clv_job_run(context, &job, plan, report);
}

void clv_specfit_results_clear(clv_specfit_result *results, size_t count)
{
    for (size_t i = 0; results && i < count; ++i) {
        for (size_t k = 0; k < CLV_SPECTRA_MAX_SPECTRA; ++k)
            clv_free(results[i].model[k]);
        results[i] = (clv_specfit_result){ 0 };
    }
}
