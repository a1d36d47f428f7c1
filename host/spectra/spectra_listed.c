/* SPDX-License-Identifier: Apache-2.0 */
/* Fits some of a plan's stars once more, by making a second plan of these stars and running it. */
#include "host/spectra/spectra_again.h"

#include "host/spectra/spectra_job.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

/* Reports the progress while stars are fitted again. The run has already reported all its stars as done, so every
 * report repeats the total. */
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

/* Copies the spectrum structs of the stars number[0..count). Where `masks` has outliers, the copy gets a new mask that
 * joins the outliers with the caller's mask. `own` receives the memory of the new masks. */
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
            if (!both) return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a mask");
            for (size_t k = 0; k < to->pixels; ++k)
                both[k] = mask[k] || (to->mask && to->mask[k] > 0);
            to->mask = both;
        }
    return CLV_OK;
}

double clv_scan_step(const clv_spectra_plan *plan)
{
    return (plan->box.high[0] - plan->box.low[0]) / (double)(plan->sizes.velocities - 1);
}

clv_status clv_fit_listed(clv_context *context, const clv_spectra_plan *all, const clv_again *a,
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
                            : clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a second fit");
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
            plan->wish.scan_step = (float)clv_scan_step(plan);
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

void clv_replace_result(clv_specfit_result *to, clv_specfit_result *by)
{
    memcpy(by->rejected, to->rejected, sizeof to->rejected);
    clv_specfit_results_clear(to, 1);
    *to = *by;
    memset(by->model, 0, sizeof by->model);
}
