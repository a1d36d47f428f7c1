/* SPDX-License-Identifier: Apache-2.0 */
/* Implements clv_specfit, clv_specfit_at and clv_specfit_scan: each makes the plan of a run and runs that plan. */
#include "host/spectra/spectra_again.h"
#include "host/spectra/spectra_job.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* What a call computes for the stars: a fit, the values at given points, or the values along velocity. */
typedef struct order {
    const char *name;
    const double *points;
    size_t count; /* results per star */
    double scan_from, scan_step;
    size_t scan_count;
    double *scan_values;
} order;

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
    const bool models = plan->options.models, fits = !o->points && !o->scan_count,
               rejects = fits && isfinite(plan->options.reject_sigma);
    plan->options.models |= rejects;
    if (fits) {
        plan->run.peaks = clv_zalloc(CLV_MAX(own.count, (size_t)1) * CLV_SPECTRA_FOUND_BY_STAR,
                                     sizeof *plan->run.peaks);
        if (!plan->run.peaks) {
            clv_spectra_plan_free(plan);
            return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for minima");
        }
    }
    clv_status status = own.count ? clv_spectra_run_plan(context, plan, o->name, report) : CLV_OK;
    if (!status && own.count && fits) status = clv_spectra_fit_again(context, plan, models, report);
    if (!status && rejects && !models) drop_models(results, own.count);
    if (status) clv_specfit_results_clear(results, own.count * o->count);
    clv_free(plan->run.peaks), clv_spectra_plan_free(plan);
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
        return clv_fail(CLV_E_ARGUMENT, "specfit: got %zu points per star, expected 1 to 1024",
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
                        "specfit: points or values is NULL, or the velocities (%zu from %g by %g "
                        "km/s) are not 1 to 16384 rising values within +-10000 km/s",
                        count, velocity_kms, step_kms);
    const double finest =
        fmax(fmax(fabs(velocity_kms), fabs(last)) * (double)FLT_EPSILON, (double)FLT_MIN);
    if (step_kms < finest)
        return clv_fail(CLV_E_ARGUMENT,
                        "specfit_scan: the step is %g km/s, but from %g to %g km/s float32 has no "
                        "steps below %g km/s; use a larger step, or velocities would be equal",
                        step_kms, velocity_kms, last, finest);
    const order scan = { .name = "specfit_scan",
                         .points = points,
                         .count = 1,
                         .scan_from = velocity_kms,
                         .scan_step = step_kms,
                         .scan_count = count,
                         .scan_values = values };
    return run(context, library, stars, &scan, options, NULL, report);
}
