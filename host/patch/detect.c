/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a list of detections from an S/N map. */
#include "base/alloc.h"
#include "base/error.h"

#include <cleave/patch.h>

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

/* Returns true if no pixel within `reach` is higher. Of equal pixels, the first in row-major order counts. */
static bool is_peak(const float *snr, size_t height, size_t width, size_t y, size_t x, double reach)
{
    const float value = snr[y * width + x];
    const size_t r = (size_t)fmin(reach, 1e6), y0 = y > r ? y - r : 0, x0 = x > r ? x - r : 0;
    for (size_t v = y0; v <= y + r && v < height; ++v)
        for (size_t u = x0; u <= x + r && u < width; ++u) {
            const double dy = (double)v - (double)y, dx = (double)u - (double)x;
            if (dy * dy + dx * dx > reach * reach) continue;
            const float other = snr[v * width + u];
            if (other > value || (other == value && v * width + u < y * width + x)) return false;
        }
    return true;
}

static int by_snr(const void *a, const void *b)
{
    const clv_detection *x = a, *y = b;
    if (x->snr != y->snr) return x->snr > y->snr ? -1 : 1;
    return x->y != y->y ? (x->y > y->y) - (x->y < y->y) : (x->x > y->x) - (x->x < y->x);
}

clv_status clv_paco_detect(const float *snr, const float *flux, const float *sigma, size_t height,
                           size_t width, double centre_x, double centre_y, double fwhm_px,
                           double threshold, clv_detection **detections, size_t *count)
{
    size_t capacity = 0;
    if (!detections || !count) return clv_fail(CLV_E_ARGUMENT, "detect: result is NULL");
    *detections = NULL;
    *count = 0;
    if (!snr || !flux || !sigma) return clv_fail(CLV_E_ARGUMENT, "detect: a map is NULL");
    if (!(fwhm_px > 0) || !isfinite(threshold))
        return clv_fail(CLV_E_ARGUMENT,
                        "detect: the FWHM is %g and the threshold %g, but the FWHM must be "
                        "positive and the threshold finite",
                        fwhm_px, threshold);
    if (!width) return CLV_OK; /* an empty map */
    for (size_t i = 0; i < height * width; ++i) {
        if (!(snr[i] > threshold) || !is_peak(snr, height, width, i / width, i % width, fwhm_px))
            continue;
        if (!clv_reserve(detections, &capacity, *count + 1, sizeof **detections)) {
            clv_free(*detections);
            *detections = NULL;
            *count = 0;
            return clv_fail(CLV_E_MEMORY, "detect: not enough memory for detections");
        }
        const double dy = (double)(i / width) - centre_y, dx = (double)(i % width) - centre_x;
        const double angle = atan2(-dx, dy) * (180 / PI);
        (*detections)[(*count)++] = (clv_detection){
            .x = i % width,
            .y = i / width,
            .separation_px = hypot(dx, dy),
            .position_angle = angle < 0 ? angle + 360 : angle + 0.0, /* avoids -0 */
            .snr = snr[i],
            .flux = flux[i],
            .sigma = sigma[i],
        };
    }
    if (*count) qsort(*detections, *count, sizeof **detections, by_snr);
    return CLV_OK;
}
