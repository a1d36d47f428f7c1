/* SPDX-License-Identifier: Apache-2.0 */
/* Fits spectra of synthetic stars with a synthetic library of templates. usage: stars */
#include <cleave/cleave.h>

#include <math.h>
#include <stdio.h>

enum { LINES = 40, TEMPLATES = 16, POINTS = 1024, PIXELS = 500, STARS = 3 };
static const double first = 4480, last = 4920; /* Angstrom */
/* The true parameters of the stars: km/s, K, log g, [Fe/H], [alpha/Fe]. */
static const double truth[STARS][5] = { { 120, 4700, 2.4, -1.3, 0.1 },
                                        { -63, 5300, 4.2, -0.2, 0.3 },
                                        { 5, 5600, 3.5, -0.7, 0.2 } };

/* Returns ln of a template's flux: lines whose depths are linear in log10 teff, log g, [Fe/H] and [alpha/Fe]. */
static double log_flux(double angstrom, const double q[4])
{
    double sum = 0;
    for (int i = 0; i < LINES; ++i) {
        const double apart = angstrom - (4500 + 10.13 * i + i * i % 7);
        const double depth = 0.3 + 2 * (i % 5 - 2) * (q[0] - 3.7) + 0.05 * (i % 3 - 1) * q[1] +
                             0.04 * (i % 7 - 3) * q[2] + 0.1 * (i % 2) * q[3];
        sum -= depth * exp(-apart * apart / 1.5);
    }
    return sum;
}

int main(void)
{
    /* a regular grid of templates, which also serve as start templates */
    static const double axes[4][2] = { { 3.62, 3.78 }, { 1, 5 }, { -2, 0 }, { 0, 0.4 } };
    static float grid[TEMPLATES][POINTS], ccf[TEMPLATES][POINTS], flux[STARS][PIXELS], ivar[PIXELS];
    double starts[TEMPLATES][4], wavelength[PIXELS];
    int32_t node[TEMPLATES];
    for (int t = 0; t < TEMPLATES; ++t) {
        for (int k = 0; k < 4; ++k)
            starts[t][k] = axes[k][t >> (3 - k) & 1];
        for (int i = 0; i < POINTS; ++i) {
            const double angstrom = first * pow(last / first, i / (POINTS - 1.0));
            grid[t][i] = (float)log_flux(angstrom, starts[t]);
            ccf[t][i] = expf(grid[t][i]);
        }
        node[t] = t, starts[t][0] = pow(10, starts[t][0]);
    }
    clv_spectra_arm arm = { "arm", .points = POINTS, .first = first, .last = last };
    arm.grid = node, arm.grid_spectra = TEMPLATES, arm.grid_log_flux = grid[0];
    for (int k = 0; k < 4; ++k)
        arm.nodes[k] = 2, arm.axis[k] = axes[k];
    arm.ccf = ccf[0], arm.ccf_points = POINTS, arm.ccf_spline_kms = 3000;
    arm.ccf_log0 = log(first), arm.ccf_log1 = log(last);
    clv_spectrum spectra[STARS];
    unsigned state = 1, bad = 0;
    for (int s = 0; s < STARS; ++s) {
        const double *x = truth[s], q[4] = { log10(x[1]), x[2], x[3], x[4] };
        for (int i = 0; i < PIXELS; ++i) { /* a slope, and noise of 0.01 */
            wavelength[i] = 4500 + 0.8 * i, ivar[i] = 1e4f;
            state = state * 1664525u + 1013904223u;
            const double noise = ((double)(state >> 8) / (1 << 24) - 0.5) * 0.0346;
            const double at = wavelength[i] / (1 + x[0] / 299792.458);
            flux[s][i] = (float)((1 + 1e-4 * i) * exp(log_flux(at, q)) + noise);
        }
        spectra[s] = (clv_spectrum){ 0, PIXELS, wavelength, flux[s], ivar, NULL, NULL, 0 };
    }
    const clv_spectra_library library = { sizeof(clv_spectra_library), 1, &arm, TEMPLATES,
                                          starts[0] };
    const clv_spectra_stars stars = { sizeof(clv_spectra_stars), STARS, 1, spectra };
    clv_specfit_result fits[STARS] = { 0 };
    clv_context *context = NULL;
    clv_status status = clv_context_create(NULL, &context);
    if (!status) status = clv_specfit(context, &library, &stars, NULL, fits, NULL);
    if (status) fprintf(stderr, "stars: %s\n", clv_error_message());
    for (const clv_specfit_result *f = fits; f < fits + STARS && !status; ++f) {
        printf("%.1f +- %.1f km/s, teff %.0f +- %.0f K, log g %.2f, [Fe/H] %.2f\n", f->velocity,
               f->velocity_error, f->teff, f->teff_error, f->logg, f->feh);
        bad |= !(fabs(f->velocity - truth[f - fits][0]) < 2) ||
               !(fabs(f->teff - truth[f - fits][1]) < 40);
    }
    clv_context_free(context);
    return status || bad;
}
