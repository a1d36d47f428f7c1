/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the highest peak of an S/N map that is not a known companion. Each peak is calibrated with the noise outside
 * the peak. */
#include "host/patch/peaks.h"
#include "host/patch/calibrate.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>

#define PI 3.14159265358979323846

/* Returns whether pixel p is within one FWHM of a companion that was found. */
static bool known(const clv_peaks *s, size_t p)
{
    for (size_t k = 0; k < s->count; ++k)
        if (hypot((double)(p % s->width) - s->places[2 * k],
                  (double)(p / s->width) - s->places[2 * k + 1]) <= s->fwhm)
            return true;
    return false;
}

/* Returns whether pixel p is at least as high as its eight neighbours. */
static bool is_peak(const clv_peaks *s, size_t p)
{
    const size_t width = s->width, height = s->height, x = p % width, y = p / width;
    for (size_t v = y ? y - 1 : 0; v <= y + 1 && v < height; ++v)
        for (size_t u = x ? x - 1 : 0; u <= x + 1 && u < width; ++u)
            if (s->calibrated[v * width + u] > s->calibrated[p]) return false;
    return true;
}

/* Returns an upper limit of a peak's S/N after the peak has been excluded from the noise: a peak as wide as the PSF
 * contributes the share z^2 F / (2 pi r) of the variance in its annulus. */
static double at_most(const clv_peaks *s, size_t p)
{
    const double z = s->calibrated[p],
                 r = hypot((double)(p % s->width) - s->cx, (double)(p / s->width) - s->cy);
    const double share = z * z * s->fwhm / (2 * PI * fmax(r, 0.5 * s->fwhm));
    return 1.1 * z / sqrt(fmax(1 - share, 0.04));
}

clv_status clv_peaks_best(const clv_peaks *s, double threshold, size_t *best, double *value,
                          bool *any)
{
    const size_t plane = s->height * s->width;
    bool *masked = NULL;
    clv_status status = CLV_OK;
    *any = false, *value = threshold;
    for (size_t p = 0; p < plane && !status; ++p) {
        if (!(s->calibrated[p] > 0) || !(at_most(s, p) > *value) || !is_peak(s, p) || known(s, p))
            continue;
        if (!masked) {
            masked = clv_alloc(plane, sizeof *masked);
            if (!masked) return clv_fail(CLV_E_MEMORY, "search: not enough memory for a mask");
            for (size_t q = 0; q < plane; ++q)
                masked[q] = known(s, q);
        }
        double alone;
        status = clv_calibrated_alone(s->raw, s->height, s->width, s->cx, s->cy, s->fwhm, masked, p,
                                      &alone);
        if (!status && alone > *value) *value = alone, *best = p, *any = true;
    }
    clv_free(masked);
    return status;
}

/* Returns the false-alarm probability from the geometry of random fields (Adler 1981). Neighbouring pixels of a smooth
 * map are correlated, but its peaks may lie anywhere: in an area A, on average A 4 ln 2 / F^2 (2 pi)^-3/2 z exp(-z^2 /
 * 2) peaks exceed z. This assumes that the noise is correlated like the autocorrelation of the PSF. */
double clv_false_alarm(double snr, double pixels, double fwhm)
{
    const double z = fmax(snr, 1); /* the formula holds for high peaks */
    const double peaks =
        pixels / (fwhm * fwhm) * 4 * log(2) / pow(2 * PI, 1.5) * z * exp(-0.5 * z * z);
    return -expm1(-peaks);
}
