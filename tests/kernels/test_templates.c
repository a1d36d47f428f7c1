/* SPDX-License-Identifier: Apache-2.0 */
/* Tests templates made from finer spectra, on every device, with waves of known period: a formula gives their smoothed
 * form. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "cl_embedded.h"

#include <cleave/templates.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 36001, SPECTRA = 33 };

static const double first = 5000, step = 0.005, sigma = 0.6, own = 0.05;
static const double sigmas_in_fwhm = 2.3548200450309493;

static double period_of(size_t spectrum)
{
    return 3 + 0.37 * (double)spectrum;
}

static double *wavelengths(void)
{
    double *wave = clv_alloc(POINTS, sizeof *wave);
    assert_non_null(wave);
    for (size_t i = 0; i < POINTS; ++i)
        wave[i] = first + step * (double)i;
    return wave;
}

/* Photons 1 + 0.5 cos, as energy, in units from 1e-20 to 1e+12. */
static float *spectra(const double *wave)
{
    float *flux = clv_alloc((size_t)SPECTRA * POINTS, sizeof *flux);
    assert_non_null(flux);
    for (size_t s = 0; s < SPECTRA; ++s)
        for (size_t i = 0; i < POINTS; ++i)
            flux[s * POINTS + i] =
                (float)(pow(10, (double)s - 20) / wave[i] *
                        (1 + 0.5 * cos(6.283185307179586 / period_of(s) * wave[i])));
    return flux;
}

/* What the mean over l1 to l2 of the smoothed photons is, as energy. */
static double expected(double lam, double l1, double l2, double width, double period)
{
    const double k = 6.283185307179586 / period;
    return (1 + 0.5 * exp(-0.5 * k * k * width * width) * (sin(k * l2) - sin(k * l1)) /
                    (k * (l2 - l1))) /
           lam;
}

static void smoothed_on(test_device *device)
{
    /* two blocks of 16 lanes and one spectrum, or one block and one */
    const size_t count = device->tiny ? 17 : SPECTRA;
    double *wave = wavelengths();
    float *flux = spectra(wave);
    const double middle = 5090, power = middle / (own * sigmas_in_fwhm);
    const clv_template_source source = { sizeof source, POINTS, wave, power };
    const clv_template_arm arm = { .size = sizeof arm,
                                   .first = 5040,
                                   .last = 5140,
                                   .step = 0.25,
                                   .sigma = sigma,
                                   .margin_kms = 1200,
                                   .keep_slope = true };
    clv_template_maker *maker;
    EXPECT_OK(clv_template_maker_create(&source, &arm, &maker));
    const clv_template_grid g = clv_template_maker_grid(maker);
    const double dln = log(g.last / g.first) / (double)(g.points - 1);
    assert_true(fabs(g.first * (1 + 1200 / 299792.458) / 5040 - 1) < 1e-12);
    assert_true(fabs(dln - log1p(0.25 / middle)) < 1e-12);
    assert_int_equal(g.ccf_points, 512);
    float *out = clv_alloc(count * g.points, sizeof *out);
    assert_non_null(out);
    EXPECT_OK(clv_template_maker_run(maker, device->context, flux, count, out, NULL));
    double worst = 0;
    for (size_t s = 0; s < count; ++s) {
        double shift = 0, most = 0, least = 0;
        for (size_t n = 0; n < g.points; ++n) {
            const double lam = g.first * exp(dln * (double)n),
                         below = n ? lam * -expm1(-dln) : lam * expm1(dln),
                         above = n + 1 < g.points ? lam * expm1(dln) : below,
                         there = lam / power / sigmas_in_fwhm;
            const double want = log(expected(lam, lam - below / 2, lam + above / 2,
                                             sqrt(sigma * sigma - there * there), period_of(s)));
            const double off = (double)out[s * g.points + n] - want;
            if (n == 0) shift = off;
            most = fmax(most, off - shift), least = fmin(least, off - shift);
        }
        worst = fmax(worst, most - least);
    }
    printf("%s: ln flux within %.1e\n", device->name, worst);
    assert_true(worst < 1e-5);
    clv_free(out), clv_free(flux), clv_free(wave);
    clv_template_maker_free(maker);
}

static void waves_are_smoothed(void **state)
{
    (void)state;
    test_each_device(smoothed_on);
}

/* The kernel by itself, with weights that do not fade towards the ends as those of a Gaussian do: none is left out,
 * and work-items beyond the last point write nothing. */
static void sums_on(test_device *device)
{
    enum { LANES = 16, BLOCKS = 3, TO = 37, USED = 400, MOST = 90, GROUP = 32 };
    static float in[BLOCKS * USED * LANES], weight[TO * MOST];
    static double want[BLOCKS * TO * LANES], allowed[BLOCKS * TO * LANES];
    int32_t from[TO], start[TO + 1] = { 0 };
    uint64_t seed = 5;
    for (size_t i = 0; i < CLV_LEN(in); ++i)
        in[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t i = 0; i < CLV_LEN(weight); ++i)
        weight[i] = (float)test_uniform(&seed, -1, 1);
    for (int n = 0; n < TO; ++n) {
        from[n] = (int32_t)test_uniform(&seed, 0, USED - MOST);
        start[n + 1] = start[n] + 1 + 7 * n % MOST; /* 1 to 90: also whole parts of 32 */
    }
    const size_t blocks = device->tiny ? 1 : BLOCKS;
    for (size_t b = 0; b < blocks; ++b)
        for (size_t n = 0; n < TO; ++n)
            for (size_t lane = 0; lane < LANES; ++lane) {
                const size_t at = (b * TO + n) * LANES + lane;
                double sum = 0, size = 0;
                for (int32_t j = start[n]; j < start[n + 1]; ++j) {
                    const size_t x = b * USED + (size_t)(from[n] + j - start[n]);
                    const double term = (double)weight[j] * (double)in[x * LANES + lane];
                    sum += term, size += fabs(term);
                }
                want[at] = sum, allowed[at] = 40 * 0x1p-24 * size;
            }
    test_array x = test_array_from(device, in, sizeof in),
               f = test_array_from(device, from, sizeof from),
               s = test_array_from(device, start, sizeof start),
               w = test_array_from(device, weight, (size_t)start[TO] * sizeof *weight),
               out = test_array_new(device, blocks * TO * LANES * sizeof(float));
    const clv_launch launch = { .size = sizeof launch,
                                .source = &clv_cl_spectra_smooth,
                                .kernel = "clv_spectra_smooth",
                                .global = { 2 * GROUP, blocks, 1 },
                                .local = { GROUP, 1, 1 } };
    const clv_arg args[] = {
        clv_arg_buffer(x.buffer), clv_arg_buffer(f.buffer),   clv_arg_buffer(s.buffer),
        clv_arg_buffer(w.buffer), clv_arg_buffer(out.buffer), clv_arg_u32(USED),
        clv_arg_u32(TO)
    };
    EXPECT_OK(clv_launch_enqueue(device->queue, &launch, args, CLV_LEN(args), NULL));
    EXPECT_OK(clv_queue_wait(device->queue));
    test_array_read(&out);
    test_expect_within("sum", want, (const float *)(const void *)out.host, allowed,
                       blocks * TO * LANES);
    test_array_free(&x), test_array_free(&f), test_array_free(&s), test_array_free(&w),
        test_array_free(&out);
}

static void sums_have_all_their_terms(void **state)
{
    (void)state;
    test_each_device(sums_on);
}

/* A smooth spectrum is its own continuum; of one with a line only the line is left. */
static void starts_have_no_continuum(void **state)
{
    (void)state;
    double *wave = wavelengths();
    const clv_template_source source = { sizeof source, POINTS, wave, 0 };
    const clv_template_arm arm = {
        .size = sizeof arm, .first = 5040, .last = 5140, .step = 0.25, .sigma = sigma
    };
    clv_template_maker *maker;
    EXPECT_OK(clv_template_maker_create(&source, &arm, &maker));
    const clv_template_grid g = clv_template_maker_grid(maker);
    float *log_flux = clv_alloc(2 * g.points, sizeof *log_flux),
          *ccf = clv_alloc(2 * g.ccf_points, sizeof *ccf);
    assert_true(log_flux && ccf);
    const double dln = log(g.last / g.first) / (double)(g.points - 1);
    for (size_t n = 0; n < g.points; ++n) {
        const double lam = g.first * exp(dln * (double)n), u = (lam - 5090) / 60,
                     w = (lam - 5090) / 1.5;
        log_flux[n] = (float)(0.3 * u + 0.05 * u * u);
        log_flux[g.points + n] = (float)(0.3 * u + 0.05 * u * u - 0.5 * exp(-0.5 * w * w));
    }
    EXPECT_OK(clv_template_maker_starts(maker, log_flux, 2, ccf));
    for (size_t k = 0; k < g.ccf_points; ++k) {
        const double x =
            g.ccf_log0 + (g.ccf_log1 - g.ccf_log0) * (double)k / (double)(g.ccf_points - 1);
        const double w = (exp(x) - 5090) / 1.5;
        assert_true(fabs((double)ccf[k] - 1) < 5e-3);
        assert_true(fabs((double)ccf[g.ccf_points + k] - exp(-0.5 * exp(-0.5 * w * w))) < 0.06);
    }
    clv_free(log_flux), clv_free(ccf), clv_free(wave);
    clv_template_maker_free(maker);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    double *wave = wavelengths();
    const clv_template_source source = { sizeof source, POINTS, wave, 0 };
    const clv_template_arm good = {
        .size = sizeof good, .first = 5040, .last = 5140, .step = 0.25, .sigma = sigma
    };
    clv_template_arm arm = good;
    clv_template_source other = source;
    clv_template_maker *maker;
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_template_maker_create(NULL, &good, &maker));
    arm.resolving_power = 1000;
    EXPECT_FAIL(CLV_E_ARGUMENT, "one of them above 0",
                clv_template_maker_create(&source, &arm, &maker));
    arm = good, arm.step = 0;
    EXPECT_FAIL(CLV_E_ARGUMENT, "rising numbers", clv_template_maker_create(&source, &arm, &maker));
    arm = good, arm.step = 5;
    EXPECT_FAIL(CLV_E_ARGUMENT, "points; expected 64",
                clv_template_maker_create(&source, &arm, &maker));
    arm = good, arm.last = 5190;
    EXPECT_FAIL(CLV_E_SHAPE, "are needed for 5040.00 to 5190.00",
                clv_template_maker_create(&source, &arm, &maker));
    other.resolving_power = 1000;
    EXPECT_FAIL(CLV_E_ARGUMENT, "must be larger", clv_template_maker_create(&other, &good, &maker));
    wave[7] = wave[6];
    EXPECT_FAIL(CLV_E_SHAPE, "wavelength 7", clv_template_maker_create(&source, &good, &maker));
    assert_null(maker);
    wave[7] = first + 7 * step;
    EXPECT_OK(clv_template_maker_create(&source, &good, &maker));
    const size_t points = clv_template_maker_grid(maker).points;
    float *flux = spectra(wave), *out = clv_alloc(2 * points, sizeof *out);
    assert_non_null(out);
    EXPECT_FAIL(CLV_E_ARGUMENT, "no spectra",
                clv_template_maker_run(maker, context, flux, 0, out, NULL));
    flux[POINTS + POINTS / 2] = NAN;
    EXPECT_FAIL(CLV_E_FORMAT, "of spectrum 1 is not a number",
                clv_template_maker_run(maker, context, flux, 2, out, NULL));
    for (size_t i = POINTS / 2 - 2000; i < POINTS / 2 + 2000; ++i)
        flux[i] = 0;
    EXPECT_FAIL(CLV_E_FORMAT, "spectrum 0: the flux at",
                clv_template_maker_run(maker, context, flux, 1, out, NULL));
    clv_free(flux), clv_free(out), clv_free(wave);
    clv_template_maker_free(maker);
    clv_context_free(context);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waves_are_smoothed),
        cmocka_unit_test(sums_have_all_their_terms),
        cmocka_unit_test(starts_have_no_continuum),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    test_choose(argc, argv);
    test_isolate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
