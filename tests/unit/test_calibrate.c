/* SPDX-License-Identifier: Apache-2.0 */
/* What a value of an S/N map is worth near the star, where few others are left to compare it with. */
#include "test.h"

#include "base/alloc.h"
#include "host/patch/calibrate.h"

#include <math.h>

enum { SIDE = 61, STAR = 30 };

/* A hump of the given height and place over noise with the standard deviation 0.3; what its peak is worth alone. */
static double worth(double height, double x0, double y0)
{
    static float snr[SIDE * SIDE];
    static const bool masked[SIDE * SIDE];
    const double fwhm = 4, sigma = fwhm / 2.3548;
    uint32_t state = 28;
    double value = NAN;
    for (size_t p = 0; p < SIDE * SIDE; ++p) {
        const double x = (double)(p % SIDE) - x0, y = (double)(p / SIDE) - y0;
        double sum = 0; /* of 12 uniform numbers: normal enough */
        for (int i = 0; i < 12; ++i) {
            state = state * 1664525u + 1013904223u;
            sum += state * 0x1p-32;
        }
        snr[p] = (float)(0.3 * (sum - 6) + height * exp(-0.5 * (x * x + y * y) / (sigma * sigma)));
    }
    EXPECT_OK(clv_calibrated_alone(snr, SIDE, SIDE, STAR, STAR, fwhm, masked,
                                   (size_t)y0 * SIDE + (size_t)x0, &value));
    return value;
}

/* A disc of one FWHM about a peak on the star leaves almost nothing of its annulus. The noise further out says nothing
 * of the star: the peak itself counts as noise there. */
static void a_peak_on_the_star_is_no_detection(void **state)
{
    (void)state;
    assert_true(worth(3, STAR, STAR) < 2);
    assert_true(worth(3, STAR + 1, STAR) < 2);
    assert_true(worth(10, STAR + 1, STAR) < 2);
    assert_true(worth(3, STAR + 16, STAR) > 5);
}

/* A separation of as many annuli as no memory holds, or as no integer holds. */
static void a_centre_far_from_the_map_is_refused(void **unused)
{
    (void)unused;
    enum { EDGE = 16 };
    static const double far[] = { 321, -321, 1e12, 1.3e19, 1e300, -1e300 };
    static float snr[EDGE * EDGE], out[EDGE * EDGE];
    uint64_t state = 5;
    for (size_t p = 0; p < EDGE * EDGE; ++p)
        snr[p] = (float)test_uniform(&state, -1, 1);
    EXPECT_OK(clv_paco_calibrate(snr, NULL, EDGE, EDGE, 320, -20, 3, NULL, 0, out));
    for (size_t i = 0; i < CLV_LEN(far); ++i) {
        EXPECT_FAIL(CLV_E_ARGUMENT, "it must be at most 320 pixels away from the first pixel",
                    clv_paco_calibrate(snr, NULL, EDGE, EDGE, far[i], 7, 3, NULL, 0, out));
        EXPECT_FAIL(CLV_E_ARGUMENT, "it must be at most 320 pixels away from the first pixel",
                    clv_paco_calibrate(snr, NULL, EDGE, EDGE, 7, far[i], 3, NULL, 0, out));
    }
}

static void companions_far_outside_change_nothing(void **unused)
{
    (void)unused;
    enum { EDGE = 16, PSF = 9, FRAMES = 2 };
    static float cube[FRAMES * EDGE * EDGE], psf[PSF * PSF];
    static const double angles[FRAMES] = { 0, 30 };
    const clv_paco_input in = { .size = sizeof in,
                                .cube = cube,
                                .frames = FRAMES,
                                .height = EDGE,
                                .width = EDGE,
                                .angles = angles,
                                .psf = psf,
                                .psf_size = PSF };
    psf[PSF * PSF / 2] = 1;
    static const double far[] = { 1e6, -1e7, 9.3e18, -1e300 };
    for (size_t i = 0; i < CLV_LEN(far); ++i) {
        const clv_companion one = { .x = far[i], .y = 7, .flux = 3 };
        EXPECT_OK(clv_paco_subtract(&in, NULL, &one, 1, cube));
        for (size_t p = 0; p < CLV_LEN(cube); ++p)
            assert_true(cube[p] == 0);
    }
    clv_companion one = { .x = 7, .y = (double)NAN, .flux = 3 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "companion 0 is at x 7, y nan, but its position must be finite",
                clv_paco_subtract(&in, NULL, &one, 1, cube));
    one.x = (double)INFINITY, one.y = 7;
    EXPECT_FAIL(CLV_E_ARGUMENT, "companion 0 is at x inf, y 7, but its position must be finite",
                clv_paco_subtract(&in, NULL, &one, 1, cube));
    one.flux = (double)NAN;
    EXPECT_OK(clv_paco_subtract(&in, NULL, &one, 1, cube)); /* left out */
    clv_paco_input wide = in; /* the product of these strides wraps around to a short frame */
    wide.height = EDGE + 1;
    wide.row_stride = SIZE_MAX / EDGE + 1, wide.frame_stride = EDGE;
    EXPECT_FAIL(CLV_E_SHAPE, "reach beyond what can be addressed",
                clv_paco_subtract(&wide, NULL, &one, 1, cube));
    one = (clv_companion){ .x = 7, .y = 7, .flux = 3 };
    EXPECT_OK(clv_paco_subtract(&in, NULL, &one, 1, cube));
    assert_true(cube[7 * EDGE + 7] == -3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peak_on_the_star_is_no_detection),
        cmocka_unit_test(a_centre_far_from_the_map_is_refused),
        cmocka_unit_test(companions_far_outside_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
