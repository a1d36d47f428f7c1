/* SPDX-License-Identifier: Apache-2.0 */
/* Fits some stars again: without their outliers, and, where the minimum is ambiguous, from other starting points. */
#include "host/spectra/spectra_again.h"

#include "host/spectra/spectra_job.h"
#include "host/spectra/spectra_reject.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* Fits stars again without the pixels in their masks of outliers, and replaces their results. */
static clv_status fit_masked(clv_context *context, const clv_spectra_plan *plan,
                             const size_t *number, size_t count, const clv_star_masks *masks,
                             clv_report *report)
{
    const clv_again all = { number, count, masks, NULL, plan->options.starts, true, NULL };
    const size_t room = CLV_SPECTRA_FOUND_BY_STAR * sizeof(float);
    clv_specfit_result *results = clv_zalloc(count, sizeof *results);
    float *peaks = clv_zalloc(count, room);
    const clv_status status =
        results && peaks ? clv_fit_listed(context, plan, &all, results, peaks, report)
                         : clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a second fit");
    for (size_t n = 0; !status && n < count; ++n) {
        clv_replace_result(&plan->run.results[number[n]], &results[n]);
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
    if (!scratch || !flags)
        status = clv_fail(CLV_E_MEMORY, "specfit: not enough memory for residuals");
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

/* Rejects outliers and fits the affected stars again, until no star's outliers change, at most CLV_REJECT_ROUNDS
 * times. */
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

clv_status clv_spectra_fit_again(clv_context *context, const clv_spectra_plan *plan, bool models,
                                 clv_report *report)
{
    const size_t count = plan->stars.count;
    clv_star_masks *masks = clv_zalloc(count, sizeof *masks);
    size_t *number = clv_alloc(count, sizeof *number);
    clv_status status = CLV_OK;
    if (!masks || !number) status = clv_fail(CLV_E_MEMORY, "specfit: not enough memory for masks");
    if (!status && isfinite(plan->options.reject_sigma))
        status = reject(context, plan, number, masks, report);
    if (!status) status = clv_look_elsewhere(context, plan, number, masks, models, report);
    clv_star_masks_clear(masks, count);
    clv_free(masks), clv_free(number);
    return status;
}
