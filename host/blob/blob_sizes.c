/* SPDX-License-Identifier: Apache-2.0 */
/* Determines spot widths. On a ladder of sigmas in steps of half a pixel, a parabola through three responses is off by
 * up to 12 %, and it ignores the effects of pixels and truncated kernels on small spots. Therefore the ratio of two
 * responses is looked up in a table that was computed with the same kernels. */
#include "host/blob/blob_plan.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>

/* Spots lie up to half a pixel away from the centre of a pixel; this is the root mean square of that distance. */
static const double usual_offset = 0.2887;

/* Computes, along one axis, the sums of a level's two kernels over a spot's light. */
static void along(const clv_blob_plan *plan, size_t level, double width, double *first,
                  double *second)
{
    const double *tap = plan->tap + 2 * plan->first_tap[level];
    const int64_t radius = plan->radius[level];
    double before = erf((-(double)radius - 0.5 - usual_offset) / width * sqrt(0.5));
    *first = *second = 0;
    for (int64_t j = -radius; j <= radius; ++j) {
        const double after = erf(((double)j + 0.5 - usual_offset) / width * sqrt(0.5));
        const size_t at = (size_t)(j < 0 ? -j : j);
        *first += tap[2 * at] * (after - before), *second += tap[2 * at + 1] * (after - before);
        before = after;
    }
}

static double response(const clv_blob_plan *plan, size_t scale, double width)
{
    double g, q, g2, q2;
    along(plan, scale, width, &g, &q);
    if (!plan->options.dog) return 2 * g * q;
    along(plan, scale + 1, width, &g2, &q2);
    return g * g - g2 * g2;
}

/* Selects the two scales whose responses are compared for a peak of scale k. */
static void compared(const clv_blob_plan *plan, size_t k, size_t *low, size_t *high)
{
    *low = k ? k - 1 : 0;
    *high = k + 1 < plan->scales ? k + 1 : k;
}

clv_status clv_blob_sizes_create(const clv_blob_plan *plan, clv_blob_sizes *sizes)
{
    const double least = plan->sigma[0] / 2, most = plan->sigma[plan->scales - 1] * 1.6;
    double *all = clv_alloc(plan->scales, CLV_BLOB_WIDTHS * sizeof *all);
    sizes->ratio = clv_alloc(plan->scales, CLV_BLOB_WIDTHS * sizeof *sizes->ratio);
    if (!sizes->ratio || !all) {
        clv_free(all);
        return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for a table of widths");
    }
    for (size_t i = 0; i < CLV_BLOB_WIDTHS; ++i) {
        sizes->width[i] = least * pow(most / least, (double)i / (CLV_BLOB_WIDTHS - 1));
        for (size_t k = 0; k < plan->scales; ++k)
            all[k * CLV_BLOB_WIDTHS + i] = response(plan, k, sizes->width[i]);
    }
    for (size_t k = 0; k < plan->scales; ++k) {
        size_t low, high;
        compared(plan, k, &low, &high);
        for (size_t i = 0; i < CLV_BLOB_WIDTHS; ++i)
            sizes->ratio[k * CLV_BLOB_WIDTHS + i] =
                log(all[high * CLV_BLOB_WIDTHS + i] / all[low * CLV_BLOB_WIDTHS + i]);
    }
    clv_free(all);
    return CLV_OK;
}

void clv_blob_sizes_clear(clv_blob_sizes *sizes)
{
    clv_free(sizes->ratio);
    sizes->ratio = NULL;
}

double clv_blob_width(const clv_blob_plan *plan, size_t k, double below, double here, double above)
{
    const double *ratio = plan->sizes.ratio + k * CLV_BLOB_WIDTHS, *width = plan->sizes.width;
    size_t low, high;
    compared(plan, k, &low, &high);
    const double bottom = low < k ? below : here, top = high > k ? above : here;
    if (low == high || !(bottom > 0) || !(top > 0)) return plan->sigma[k];
    const double is = log(top / bottom);
    size_t from = 0, to = CLV_BLOB_WIDTHS - 1;
    if (!(is > ratio[from])) return width[from];
    if (!(is < ratio[to])) return width[to];
    while (to - from > 1) {
        const size_t middle = (from + to) / 2;
        if (ratio[middle] <= is)
            from = middle;
        else
            to = middle;
    }
    const double part = (is - ratio[from]) / (ratio[to] - ratio[from]);
    return width[from] + part * (width[to] - width[from]);
}
