/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the outliers of a fitted star. Most stars have none; for these a single pass over the pixels suffices. */
#include "host/spectra/spectra_reject.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

static const double to_sigma =
    1.4826; /* from the median of |x| to a Gaussian's standard deviation */

/* An outlier distorts the first fit, so that good pixels near it deviate as well. So each round rejects only pixels
 * whose deviation is at least this share of the largest one, and readmits pixels that turn out to be good. */
static const double share_of_furthest = 0.1;

/* Returns whether a spectrum may have outliers: a pixel is far from the model, or pixels are already left out. */
static bool is_suspect(const clv_spectrum *s, const int32_t *mask, const float *model, double limit)
{
    for (size_t k = 0; k < s->pixels && !mask; ++k) {
        const double r = (double)s->flux[k] - (double)model[k];
        if (r * r * (double)s->ivar[k] > limit * limit) return true;
    }
    return mask != NULL;
}

/* Returns the standard deviation of the residuals around pixel `at`, estimated from the median of their absolute
 * values. */
static double local_scatter(const double *residual, const unsigned char *bad, size_t pixels,
                            size_t at, double *scratch)
{
    const size_t from = at > CLV_REJECT_WINDOW ? at - CLV_REJECT_WINDOW : 0;
    const size_t end = CLV_MIN(at + CLV_REJECT_WINDOW + 1, pixels);
    size_t n = 0;
    for (size_t k = from; k < end; ++k)
        if (!bad[k] && k != at) scratch[n++] = fabs(residual[k]);
    return n ? to_sigma * clv_median(scratch, n) : 0;
}

/* Marks in `found` the pixels to leave out of the next fit, and returns their number. `bad` marks the pixels that the
 * caller left out, `mask` (may be NULL) the outliers that were left out of the last fit. */
static size_t mark(const double *residual, const unsigned char *bad, const int32_t *mask, size_t n,
                   double limit, double *found, double *scratch)
{
    double furthest = 0;
    size_t count = 0;
    for (size_t k = 0; k < n; ++k)
        if (!bad[k] && !(mask && mask[k])) furthest = fmax(furthest, fabs(residual[k]));
    for (size_t k = 0; k < n; ++k) {
        const double r = fabs(residual[k]);
        const bool out = mask && mask[k];
        found[k] = !bad[k] && r > limit && (out || r >= share_of_furthest * furthest) &&
                   r > limit * local_scatter(residual, bad, n, k, scratch);
        count += found[k] > 0;
    }
    return count;
}

static clv_status reject_in(const clv_spectrum *s, size_t i, const clv_specfit_options *options,
                            bool edges, clv_specfit_result *fit, clv_star_masks *masks,
                            double *scratch, unsigned char *bad, bool *more)
{
    const size_t n = s->pixels, most = CLV_MAX(n / CLV_REJECT_SHARE, (size_t)1);
    double *residual = scratch, *sigma = scratch + n, *work = scratch + 2 * n;
    const double limit = options->reject_sigma;
    if (!n || !fit->model[i] || !is_suspect(s, masks->of[i], fit->model[i], limit)) return CLV_OK;
    if (!clv_spectrum_prepare(s, options, edges, residual, sigma, bad, work)) return CLV_OK;
    for (size_t k = 0; k < n; ++k)
        residual[k] = (residual[k] - (double)fit->model[i][k]) / sigma[k];
    double *found = sigma; /* the errors are no longer needed */
    const size_t count = mark(residual, bad, masks->of[i], n, limit, found, work);
    if (count > most || (!count && !masks->of[i])) return CLV_OK;
    if (!masks->of[i]) {
        masks->of[i] = clv_zalloc(n, sizeof *masks->of[i]);
        if (!masks->of[i]) return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a mask");
    }
    for (size_t k = 0; k < n; ++k) {
        *more |= (masks->of[i][k] > 0) != (found[k] > 0);
        masks->of[i][k] = found[k] > 0;
    }
    fit->rejected[i] = count;
    return CLV_OK;
}

clv_status clv_reject_find(const clv_spectrum *items, size_t spectra,
                           const clv_specfit_options *options, bool edges, clv_specfit_result *fit,
                           clv_star_masks *masks, double *scratch, unsigned char *flags, bool *more)
{
    *more = false;
    if (fit->warnings & CLV_SPECFIT_BAD_SPECTRUM) return CLV_OK;
    for (size_t i = 0; i < spectra; ++i)
        CLV_TRY(reject_in(&items[i], i, options, edges, fit, masks, scratch, flags, more));
    return CLV_OK;
}

void clv_star_masks_clear(clv_star_masks *masks, size_t count)
{
    for (size_t n = 0; masks && n < count; ++n)
        for (size_t i = 0; i < CLV_SPECTRA_MAX_SPECTRA; ++i)
            clv_free(masks[n].of[i]);
}
