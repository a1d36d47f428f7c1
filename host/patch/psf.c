/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the width and scale of a PSF. */
#include "host/patch/paco_plan.h"

#include "base/error.h"
#include "base/linalg.h"

#include <cleave/patch.h>

#include <math.h>

enum { PARAMETERS = 5 }; /* height, row, column, sigma, background */

static const double fwhm_per_sigma = 2.3548200450309493; /* 2 sqrt(2 ln 2) */

/* Builds the normal equations of the Gauss-Newton step at `p`; returns the sum of squared residuals. */
static double normal_equations(const float *psf, size_t size, const double *p, double *jtj,
                               double *jtr)
{
    double chi2 = 0;
    for (int i = 0; i < PARAMETERS * PARAMETERS; ++i)
        jtj[i] = 0;
    for (int i = 0; i < PARAMETERS; ++i)
        jtr[i] = 0;
    for (size_t i = 0; i < size * size; ++i) {
        const double dy = (double)(i / size) - p[1], dx = (double)(i % size) - p[2],
                     s2 = p[3] * p[3];
        const double shape = exp(-0.5 * (dy * dy + dx * dx) / s2), value = p[0] * shape;
        const double j[PARAMETERS] = { shape, value * dy / s2, value * dx / s2,
                                       value * (dy * dy + dx * dx) / (s2 * p[3]), 1 };
        const double residual = psf[i] - value - p[4];
        chi2 += residual * residual;
        for (int a = 0; a < PARAMETERS; ++a) {
            jtr[a] += j[a] * residual;
            for (int b = 0; b <= a; ++b)
                jtj[a * PARAMETERS + b] += j[a] * j[b];
        }
    }
    return chi2;
}

/* Fits a Gaussian: height, row, column, sigma and background. */
static clv_status fit_gaussian(const float *psf, size_t size, double *p)
{
    if (size < 5)
        return clv_fail(CLV_E_SHAPE, "psf: the image of %zux%zu is too small to measure its width",
                        size, size);
    const double middle = (double)(size / 2);
    double low = psf[0], high = psf[0];
    for (size_t i = 0; i < size * size; ++i) {
        if (!isfinite(psf[i])) return clv_fail(CLV_E_ARGUMENT, "psf: a value is not finite");
        low = fmin(low, psf[i]), high = fmax(high, psf[i]);
    }
    double jtj[PARAMETERS * PARAMETERS], scratch[PARAMETERS * PARAMETERS], jtr[PARAMETERS];
    p[0] = high - low, p[1] = p[2] = middle, p[3] = 2, p[4] = low;
    double lambda = 1e-3, chi2 = normal_equations(psf, size, p, jtj, jtr);
    for (int iteration = 0; iteration < 200 && lambda < 1e12; ++iteration) {
        double step[PARAMETERS], trial[PARAMETERS], try_jtj[PARAMETERS * PARAMETERS],
            try_jtr[PARAMETERS];
        if (!clv_damped_step(jtj, PARAMETERS, lambda, jtr, scratch, step)) {
            lambda *= 10;
            continue;
        }
        for (int a = 0; a < PARAMETERS; ++a)
            trial[a] = p[a] + step[a];
        trial[3] = fmin(fmax(trial[3], 0.2), (double)size);
        const double next = normal_equations(psf, size, trial, try_jtj, try_jtr);
        if (!(next < chi2)) {
            lambda *= 10;
            continue;
        }
        const bool settled = chi2 - next < 1e-12 * chi2;
        for (int a = 0; a < PARAMETERS; ++a)
            p[a] = trial[a];
        for (int a = 0; a < PARAMETERS * PARAMETERS; ++a)
            jtj[a] = try_jtj[a];
        for (int a = 0; a < PARAMETERS; ++a)
            jtr[a] = try_jtr[a];
        chi2 = next;
        lambda *= 0.1;
        if (settled) break;
    }
    if (!(p[0] > 0) || hypot(p[1] - middle, p[2] - middle) > 0.25 * (double)size ||
        p[3] >= (double)size)
        return clv_fail(
            CLV_E_FORMAT,
            "psf: no peak near the centre of the %zux%zu image (fit: height %.3g at (%.1f, %.1f))",
            size, size, p[0], p[2], p[1]);
    return CLV_OK;
}

clv_status clv_psf_fwhm(const float *psf, size_t size, double *fwhm_px)
{
    double p[PARAMETERS];
    if (!psf || !fwhm_px) return clv_fail(CLV_E_ARGUMENT, "psf: NULL");
    CLV_TRY(fit_gaussian(psf, size, p));
    *fwhm_px = p[3] * fwhm_per_sigma;
    return CLV_OK;
}

clv_status clv_psf_recentre(float *psf, size_t size, double *dx, double *dy)
{
    double p[PARAMETERS];
    if (!psf || !dx || !dy) return clv_fail(CLV_E_ARGUMENT, "psf: NULL");
    CLV_TRY(fit_gaussian(psf, size, p));
    *dx = p[2] - (double)(size / 2), *dy = p[1] - (double)(size / 2);
    if (hypot(*dx, *dy) < 0.02) return CLV_OK; /* the shift is below the fit's error */
    return clv_psf_move(psf, size, -*dy, -*dx);
}

/* Returns the flux in a disc of diameter `fwhm` around the centre pixel; pixels on the disc's edge count by the share
 * of their area inside it. */
static double aperture_flux(const float *psf, size_t size, double fwhm)
{
    enum { FINE = 32 };
    const double middle = (double)(size / 2), r2 = 0.25 * fwhm * fwhm;
    double sum = 0;
    for (size_t i = 0; i < size * size; ++i) {
        const double y = (double)(i / size) - middle, x = (double)(i % size) - middle;
        if (hypot(fmax(fabs(y) - 0.5, 0), fmax(fabs(x) - 0.5, 0)) * 2 > fwhm) continue;
        int inside = 0;
        for (int k = 0; k < FINE * FINE; ++k) {
            const double v = y + ((double)(k / FINE) + 0.5) / FINE - 0.5,
                         u = x + ((double)(k % FINE) + 0.5) / FINE - 0.5;
            inside += v * v + u * u <= r2;
        }
        sum += psf[i] * (double)inside / (FINE * FINE);
    }
    return sum;
}

clv_status clv_psf_normalize(float *psf, size_t size, clv_psf_norm norm, double fwhm_px)
{
    if (!psf || !size) return clv_fail(CLV_E_ARGUMENT, "psf: the image is NULL or has no pixels");
    if (norm == CLV_PSF_NORM_NONE) return CLV_OK;
    static const char *const names[] = { "", "peak", "sum", "aperture flux" };
    double by = 0;
    if ((unsigned)norm > CLV_PSF_NORM_APERTURE)
        return clv_fail(CLV_E_ARGUMENT, "psf: %d is not one of the normalisations", (int)norm);
    if (norm == CLV_PSF_NORM_APERTURE) {
        if (!(fwhm_px > 0))
            return clv_fail(CLV_E_ARGUMENT, "psf: the FWHM is %g; expected a positive number",
                            fwhm_px);
        by = aperture_flux(psf, size, fwhm_px);
    } else {
        for (size_t i = 0; i < size * size; ++i)
            by = norm == CLV_PSF_NORM_PEAK ? fmax(by, psf[i]) : by + psf[i];
    }
    if (!(by > 0) || !isfinite(by))
        return clv_fail(CLV_E_FORMAT, "psf: its %s is %g; expected a positive number", names[norm],
                        by);
    for (size_t i = 0; i < size * size; ++i)
        psf[i] = (float)(psf[i] / by);
    return CLV_OK;
}
