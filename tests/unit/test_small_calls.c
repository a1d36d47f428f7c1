/* SPDX-License-Identifier: Apache-2.0 */
/* Public calls that need no device: the width and scale of a PSF, the ladder of sigmas, names, sizes. */
#include "test.h"

#include <cleave/cleave.h>

#include <math.h>
#include <string.h>

enum { SIZE = 21 };

static void gaussian(float psf[SIZE * SIZE], double fwhm, double peak, double background)
{
    const double sigma = fwhm / 2.3548200450309493;
    for (int y = 0; y < SIZE; ++y)
        for (int x = 0; x < SIZE; ++x) {
            const double r2 = pow(y - SIZE / 2, 2) + pow(x - SIZE / 2, 2);
            psf[y * SIZE + x] = (float)(background + peak * exp(-r2 / (2 * sigma * sigma)));
        }
}

static void a_psf_has_a_width(void **state)
{
    (void)state;
    float psf[SIZE * SIZE];
    double fwhm = 0;
    for (double want = 2.5; want < 7; want += 1.25) {
        gaussian(psf, want, 40, 3);
        EXPECT_OK(clv_psf_fwhm(psf, SIZE, &fwhm));
        assert_true(fabs(fwhm - want) < 1e-3 * want);
    }
    memset(psf, 0, sizeof psf);
    EXPECT_FAIL(CLV_E_FORMAT, "", clv_psf_fwhm(psf, SIZE, &fwhm));
}

static void a_psf_is_scaled(void **state)
{
    (void)state;
    float psf[SIZE * SIZE], given[SIZE * SIZE];
    const double fwhm = 5;
    gaussian(given, fwhm, 40, 0);
    for (clv_psf_norm norm = CLV_PSF_NORM_NONE; norm <= CLV_PSF_NORM_APERTURE; ++norm) {
        double sum = 0, disc = 0, peak = 0;
        memcpy(psf, given, sizeof psf);
        EXPECT_OK(clv_psf_normalize(psf, SIZE, norm, fwhm));
        for (int i = 0; i < SIZE * SIZE; ++i) {
            const double r = hypot(i / SIZE - SIZE / 2, i % SIZE - SIZE / 2), v = (double)psf[i];
            sum += v, peak = fmax(peak, v);
            if (r <= fwhm / 2 + 1) disc += v; /* the disc and its rim */
        }
        if (norm == CLV_PSF_NORM_NONE) assert_memory_equal(psf, given, sizeof psf);
        if (norm == CLV_PSF_NORM_PEAK) assert_true(fabs(peak - 1) < 1e-6);
        if (norm == CLV_PSF_NORM_SUM) assert_true(fabs(sum - 1) < 1e-5);
        /* half of a Gaussian's flux lies within its FWHM */
        if (norm == CLV_PSF_NORM_APERTURE) assert_true(fabs(sum - 2) < 0.1 && disc > 1);
    }
    memset(psf, 0, sizeof psf);
    EXPECT_FAIL(CLV_E_FORMAT, "", clv_psf_normalize(psf, SIZE, CLV_PSF_NORM_PEAK, fwhm));
}

static void the_ladder_is_the_one_of_the_options(void **state)
{
    (void)state;
    double sigma[CLV_BLOB_MAX_SCALES];
    size_t count = 0;
    EXPECT_OK(clv_blobs_ladder(NULL, sigma, &count));
    assert_int_equal(count, 5);
    for (size_t i = 0; i < 5; ++i)
        assert_true(fabs(sigma[i] - (1 + 0.5 * (double)i)) < 1e-12);
    const clv_blob_options rising = { .size = sizeof(clv_blob_options),
                                      .min_sigma_px = 2,
                                      .max_sigma_px = 16,
                                      .num_sigma = 4,
                                      .log_scale = true };
    EXPECT_OK(clv_blobs_ladder(&rising, sigma, &count));
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 4; ++i)
        assert_true(fabs(sigma[i] - (double)(2 << i)) < 1e-12);
    const clv_blob_options dog = { .size = sizeof(clv_blob_options),
                                   .min_sigma_px = 1,
                                   .max_sigma_px = 9,
                                   .dog = true,
                                   .sigma_ratio = 2 };
    EXPECT_OK(clv_blobs_ladder(&dog, sigma, &count)); /* 1 2 4 8: as many differences as fit */
    assert_int_equal(count, 4);
    assert_true(sigma[0] == 1 && sigma[3] == 8);
    const clv_blob_options many = {
        .size = sizeof(clv_blob_options), .min_sigma_px = 1, .max_sigma_px = 9, .num_sigma = 65
    };
    EXPECT_FAIL(CLV_E_ARGUMENT, "65", clv_blobs_ladder(&many, sigma, &count));
    assert_int_equal(count, 0);
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_blobs_ladder(NULL, NULL, &count));
}

static void names_are_read_and_said(void **state)
{
    (void)state;
    for (clv_mode mode = CLV_MODE_AUTO; mode <= CLV_MODE_REFERENCE; ++mode) {
        clv_mode back = CLV_MODE_AUTO;
        EXPECT_OK(clv_mode_parse(clv_mode_name(mode), &back));
        assert_int_equal(back, mode);
    }
    clv_mode mode;
    EXPECT_FAIL(CLV_E_ARGUMENT, "fpga", clv_mode_parse("fpga", &mode));
    assert_string_equal(clv_side_name(CLV_SIDE_AUTO), "auto");
    assert_string_equal(clv_side_name(CLV_SIDE_HOST), "host");
    assert_string_equal(clv_side_name(CLV_SIDE_DEVICE), "device");
}

static void sizes_are_those_of_the_headers(void **state)
{
    (void)state;
    assert_int_equal(clv_size_of("clv_paco_input"), sizeof(clv_paco_input));
    assert_int_equal(clv_size_of("clv_offload"), sizeof(clv_offload));
    assert_int_equal(clv_size_of("clv_spot"), sizeof(clv_spot));
    assert_int_equal(clv_size_of("clv_nonsense"), 0);
    assert_int_equal(clv_size_of(""), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_psf_has_a_width),
        cmocka_unit_test(a_psf_is_scaled),
        cmocka_unit_test(the_ladder_is_the_one_of_the_options),
        cmocka_unit_test(names_are_read_and_said),
        cmocka_unit_test(sizes_are_those_of_the_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
