/* SPDX-License-Identifier: Apache-2.0 */
/* The PSF at sub-pixel positions against the sum over all frequencies of the Fourier shift: PSFs with negative pixels,
 * and with rows and columns of zeros. */
#include "test.h"

#include "base/alloc.h"
#include "host/patch/paco_plan.h"

#include <complex.h>
#include <math.h>

#define PI 3.14159265358979323846

enum { RADIUS = 2 };

/* The kernel of a shift by s pixels on n (even) points, at the distance d. */
static double complex kernel(int n, double s, int d)
{
    double complex sum = 0;
    for (int k = -n / 2; k < n / 2; ++k)
        sum += cexp(2 * PI * I * k * (d - s) / n);
    return sum / n;
}

static double shifted(const clv_paco_plan *plan, double fy, double fx, size_t pixel)
{
    const int size = (int)plan->in.psf_size, n = size + 2 + (size & 1);
    const int row = size / 2 + plan->offset[pixel].dy, column = size / 2 + plan->offset[pixel].dx;
    double complex sum = 0;
    for (int y = 0; y < size; ++y)
        for (int x = 0; x < size; ++x)
            sum += plan->psf[y * size + x] * kernel(n, fy, row - y) * kernel(n, fx, column - x);
    return creal(sum);
}

/* Compares all pixels of a patch. The PSF has numbers of both signs, and `zeros` rings of zeros around them. */
static void check(size_t size, size_t zeros)
{
    clv_paco_plan *plan = clv_zalloc(1, sizeof *plan);
    assert_non_null(plan);
    plan->in.psf_size = size, plan->radius = RADIUS;
    plan->psf = clv_zalloc(size * size, sizeof *plan->psf);
    assert_non_null(plan->psf);
    for (size_t y = zeros; y < size - zeros; ++y)
        for (size_t x = zeros; x < size - zeros; ++x)
            plan->psf[y * size + x] = sin(1.7 * (double)(y * size + x)) + 0.2;
    for (int dy = -RADIUS; dy <= RADIUS; ++dy)
        for (int dx = -RADIUS; dx <= RADIUS; ++dx)
            if (dy * dy + dx * dx <= RADIUS * RADIUS)
                plan->offset[plan->pixels++] = (clv_offset){ dy, dx };
    static const double places[][2] = { { 0.3, -0.45 }, { -0.5, 0.5 }, { 0, 0.25 }, { 0.4, 0 } };
    for (size_t i = 0; i < CLV_LEN(places); ++i) {
        double h[CLV_PACO_MAX_PIXELS];
        clv_psf_shifted(plan, places[i][0], places[i][1], h);
        for (size_t k = 0; k < plan->pixels; ++k) {
            const double want = shifted(plan, places[i][0], places[i][1], k);
            if (!(fabs(h[k] - want) <= 1e-12))
                fail_msg("%zux%zu, moved by (%g, %g): pixel %zu is %.15g, expected %.15g", size,
                         size, places[i][0], places[i][1], k, h[k], want);
        }
    }
    clv_free(plan->psf);
    clv_free(plan);
}

static void a_psf_moves_as_its_frequencies_do(void **state)
{
    (void)state;
    check(9, 0);
    check(10, 0);
    check(15, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_psf_moves_as_its_frequencies_do) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
