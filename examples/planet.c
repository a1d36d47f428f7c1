/* SPDX-License-Identifier: Apache-2.0 */
/* Injects a planet into a synthetic sequence of rotating frames and finds it again by PACO. */
#include <cleave/cleave.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRAMES = 30, SIDE = 48, PSF = 11, ROW = 14, COLUMN = 30 };

/* Returns simple noise in (-0.5, 0.5), the same on every machine. */
static float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (1 << 24) - 0.5f;
}

/* Returns the PSF at an offset: a Gaussian with an FWHM of 3.5 pixels and a peak of 1. */
static float star_at(double dy, double dx)
{
    return (float)exp(-(dy * dy + dx * dx) / (2 * 1.486 * 1.486));
}

int main(void)
{
    static float cube[FRAMES][SIDE][SIDE], psf[PSF][PSF], snr[SIDE * SIDE], flux[SIDE * SIDE],
        sigma[SIDE * SIDE];
    static double a[SIDE * SIDE], b[SIDE * SIDE];
    double angles[FRAMES];
    uint32_t state = 1;
    for (int y = 0; y < PSF; ++y)
        for (int x = 0; x < PSF; ++x)
            psf[y][x] = star_at(y - PSF / 2, x - PSF / 2);
    for (int t = 0; t < FRAMES; ++t) {
        const double turn = (angles[t] = 2.0 * t) * acos(-1) / 180;
        const double dy = ROW - SIDE / 2, dx = COLUMN - SIDE / 2; /* from the star, derotated */
        const double y0 = SIDE / 2 + dy * cos(turn) - dx * sin(turn);
        const double x0 = SIDE / 2 + dx * cos(turn) + dy * sin(turn);
        for (int y = 0; y < SIDE; ++y)
            for (int x = 0; x < SIDE; ++x)
                cube[t][y][x] = 10 + noise(&state) + 0.4f * star_at(y - y0, x - x0);
    }

    const clv_paco_input input = { .size = sizeof(clv_paco_input),
                                   .cube = &cube[0][0][0],
                                   .frames = FRAMES,
                                   .height = SIDE,
                                   .width = SIDE,
                                   .angles = angles,
                                   .psf = &psf[0][0],
                                   .psf_size = PSF };
    clv_context *context = NULL;
    clv_detection *found = NULL;
    size_t count = 0;
    clv_status status = clv_context_create(NULL, &context);
    if (!status) status = clv_paco(context, &input, NULL, a, b, NULL, NULL);
    if (!status) {
        clv_paco_maps(a, b, SIDE * SIDE, snr, flux, sigma);
        status = clv_paco_detect(snr, flux, sigma, SIDE, SIDE, SIDE / 2, SIDE / 2, 3.5, 5, &found,
                                 &count);
    }
    if (status) fprintf(stderr, "%s\n%s\n", clv_error_message(), clv_error_detail());
    for (size_t i = 0; i < count; ++i)
        printf("row %zu, column %zu: S/N %.1f, flux %.2f +- %.2f\n", found[i].y, found[i].x,
               found[i].snr, found[i].flux, found[i].sigma);
    const int right = count > 0 && found[0].y == ROW && found[0].x == COLUMN;
    clv_free(found), clv_context_free(context);
    return status == CLV_OK && right ? EXIT_SUCCESS : EXIT_FAILURE;
}
