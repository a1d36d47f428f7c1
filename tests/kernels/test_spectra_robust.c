/* SPDX-License-Identifier: Apache-2.0 */
/* Tests fits of spectra in any unit, with templates of any scale, with outliers, and of spectra that no template fits,
 * on every device. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/synthetic/stars.h"

#include <math.h>
#include <string.h>

enum { STARS = 4, SEED = 23 };

typedef clv_specfit_result results[STARS];

static void fit(test_device *device, const synthetic_stars *s, const clv_specfit_options *options,
                clv_specfit_result *out)
{
    EXPECT_OK(clv_specfit(device->context, &s->library, &s->stars, options, out, NULL));
}

enum { MOST_SPECTRA = 3 * STARS };

/* Spectra that a test may change, in place of the stars' own. */
typedef struct changeable {
    clv_spectrum items[MOST_SPECTRA];
    float *flux[MOST_SPECTRA], *ivar[MOST_SPECTRA];
    size_t count;
} changeable;

static void make_changeable(synthetic_stars *s, changeable *c)
{
    c->count = s->stars.count * s->stars.spectra;
    assert_true(c->count <= MOST_SPECTRA);
    for (size_t i = 0; i < c->count; ++i) {
        clv_spectrum *one = &c->items[i];
        *one = s->stars.items[i];
        c->flux[i] = clv_alloc(one->pixels, sizeof(float));
        c->ivar[i] = clv_alloc(one->pixels, sizeof(float));
        assert_true(c->flux[i] && c->ivar[i]);
        memcpy(c->flux[i], one->flux, one->pixels * sizeof(float));
        memcpy(c->ivar[i], one->ivar, one->pixels * sizeof(float));
        one->flux = c->flux[i], one->ivar = c->ivar[i];
    }
    s->stars.items = c->items;
}

static void free_changeable(changeable *c)
{
    for (size_t i = 0; i < c->count; ++i)
        clv_free(c->flux[i]), clv_free(c->ivar[i]);
}

static void multiply(changeable *c, float factor)
{
    for (size_t i = 0; i < c->count; ++i)
        for (size_t k = 0; k < c->items[i].pixels; ++k)
            c->flux[i][k] *= factor, c->ivar[i][k] /= factor * factor;
}

static void make_stars(test_device *device, synthetic_stars *s)
{
    EXPECT_OK(synthetic_stars_create(STARS, SEED, false, s));
    if (device->slow) s->stars.count = 1;
    (void)test_left_out(device, device->slow, "stars after the first");
}

static void expect_same_star(const clv_specfit_result *want, const clv_specfit_result *got)
{
    assert_true(want->velocity == got->velocity && want->vsini == got->vsini);
    assert_true(want->teff == got->teff && want->logg == got->logg && want->feh == got->feh);
    assert_true(want->velocity_error == got->velocity_error);
    assert_true(want->chisq[0] == got->chisq[0] && want->warnings == got->warnings);
}

/* Powers of two change no bit of a fit, but -2 log L: 2 ln of the unit for each pixel less each term. */
static void any_unit_on(test_device *device)
{
    static const double powers[] = { -60, 60 };
    synthetic_stars s;
    changeable c;
    results want, got;
    const clv_specfit_options options = { .size = sizeof options, .models = true };
    if (test_left_out(device, device->tiny, "fits: too long")) return;
    make_stars(device, &s);
    make_changeable(&s, &c);
    fit(device, &s, &options, want);
    for (size_t p = 0; p < CLV_LEN(powers); ++p) {
        const float factor = exp2f((float)powers[p]);
        double freedom = 0;
        multiply(&c, factor);
        for (size_t i = 0; i < c.count; ++i)
            c.items[i].unit = powers[p] > 0 ? 1e30 : 0;
        for (size_t i = 0; i < s.stars.spectra; ++i)
            freedom += (double)c.items[i].pixels - 10;
        fit(device, &s, &options, got);
        const double unit = powers[p] * log(2) + (powers[p] > 0 ? log(1e30) : 0);
        for (size_t i = 0; i < s.stars.count; ++i) {
            expect_same_star(&want[i], &got[i]);
            const double shift = got[i].neg2logl - want[i].neg2logl;
            assert_true(fabs(shift - 2 * unit * freedom) < 1e-3);
            assert_true(fabsf(got[i].model[0][9] / (want[i].model[0][9] * factor) - 1) < 1e-6f);
        }
        multiply(&c, 1 / factor);
        clv_specfit_results_clear(got, s.stars.count);
    }
    clv_specfit_results_clear(want, s.stars.count);
    free_changeable(&c);
    synthetic_stars_clear(&s);
}

static void any_unit(void **state)
{
    (void)state;
    test_each_device(any_unit_on);
}

/* PHOENIX has fluxes of 1e+14: the last bias of a network is 32 more then. */
static void any_template_scale_on(test_device *device)
{
    enum { MOST_ARMS = 3 };
    synthetic_stars s;
    results want, got;
    float *bias[MOST_ARMS];
    clv_spectra_arm arms[MOST_ARMS];
    if (test_left_out(device, device->tiny, "fits: too long")) return;
    make_stars(device, &s);
    fit(device, &s, NULL, want);
    assert_true(s.library.arm_count <= MOST_ARMS);
    for (size_t i = 0; i < s.library.arm_count; ++i) {
        arms[i] = s.library.arms[i];
        bias[i] = clv_alloc(arms[i].points, sizeof **bias);
        for (size_t k = 0; k < arms[i].points; ++k)
            bias[i][k] = arms[i].bias[arms[i].layers - 1][k] + 32;
        arms[i].bias[arms[i].layers - 1] = bias[i];
    }
    s.library.arms = arms;
    fit(device, &s, NULL, got);
    for (size_t i = 0; i < s.stars.count; ++i) {
        const double shift = got[i].neg2logl - want[i].neg2logl;
        assert_true(fabs(got[i].velocity - want[i].velocity) < 0.02 * want[i].velocity_error);
        assert_true(fabs(got[i].teff - want[i].teff) < 0.05 * want[i].teff_error);
        assert_true(fabs(got[i].chisq[0] / want[i].chisq[0] - 1) < 1e-3);
        /* log det M: 2 * 32 for each term of each spectrum */
        assert_true(fabs(shift - 64 * 10 * (double)s.stars.spectra) < 0.05);
    }
    for (size_t i = 0; i < s.library.arm_count; ++i)
        clv_free(bias[i]);
    clv_specfit_results_clear(want, s.stars.count), clv_specfit_results_clear(got, s.stars.count);
    s.library.arm_count = 0;
    synthetic_stars_clear(&s);
}

static void any_template_scale(void **state)
{
    (void)state;
    test_each_device(any_template_scale_on);
}

/* A pixel of 200 sigma and one of 12 sigma in each spectrum: they are left out, and nothing else is. Without that the
 * fit is flagged. */
static void outliers_on(test_device *device)
{
    synthetic_stars s;
    changeable c;
    results want, got, wrong;
    clv_specfit_options none = { .size = sizeof none, .reject_sigma = INFINITY };
    if (test_left_out(device, device->tiny || device->slow, "fits three times")) return;
    make_stars(device, &s);
    make_changeable(&s, &c);
    fit(device, &s, NULL, want);
    for (size_t i = 0; i < c.count; ++i)
        for (size_t k = 40 + i; k < c.items[i].pixels; k += 190)
            c.flux[i][k] += (k < 200 ? 200 : 12) / sqrtf(c.ivar[i][k]);
    fit(device, &s, NULL, got);
    fit(device, &s, &none, wrong);
    for (size_t i = 0; i < s.stars.count; ++i) {
        for (size_t k = 0; k < s.stars.spectra; ++k) {
            const clv_spectrum *one = &s.stars.items[i * s.stars.spectra + k];
            const size_t put = (one->pixels - 41 - (i * s.stars.spectra + k)) / 190 + 1;
            assert_int_equal(got[i].rejected[k], put);
            assert_int_equal(got[i].pixels[k], want[i].pixels[k] - put);
            assert_int_equal(want[i].rejected[k] + wrong[i].rejected[k], 0);
            assert_null(got[i].model[k]);
        }
        assert_true(fabs(got[i].velocity - want[i].velocity) < 0.5 * want[i].velocity_error);
        assert_false(got[i].warnings & CLV_SPECFIT_BAD_FIT);
        assert_true(wrong[i].warnings & CLV_SPECFIT_BAD_FIT);
    }
    clv_specfit_results_clear(want, s.stars.count), clv_specfit_results_clear(got, s.stars.count);
    clv_specfit_results_clear(wrong, s.stars.count);
    free_changeable(&c);
    synthetic_stars_clear(&s);
}

static void outliers(void **state)
{
    (void)state;
    test_each_device(outliers_on);
}

/* What is ignored counts for nothing, whatever is there. */
static void ignored_on(test_device *device)
{
    synthetic_stars s;
    changeable c;
    results want, got;
    if (test_left_out(device, device->tiny || device->slow, "fits twice")) return;
    make_stars(device, &s);
    make_changeable(&s, &c);
    const clv_spectrum *one = &s.stars.items[0];
    const double range[2] = { one->wavelength[100] - 0.01, one->wavelength[119] + 0.01 };
    const clv_specfit_options options = { .size = sizeof options,
                                          .ignored = range,
                                          .ignored_count = 1 };
    fit(device, &s, &options, want);
    for (size_t i = 0; i < s.stars.count; ++i)
        for (size_t k = 100; k < 120; ++k)
            c.ivar[i * s.stars.spectra][k] *= 100;
    fit(device, &s, &options, got);
    for (size_t i = 0; i < s.stars.count; ++i) {
        assert_int_equal(want[i].pixels[0], one->pixels - 20);
        expect_same_star(&want[i], &got[i]);
    }
    clv_specfit_results_clear(want, s.stars.count), clv_specfit_results_clear(got, s.stars.count);
    free_changeable(&c);
    synthetic_stars_clear(&s);
}

static void ignored(void **state)
{
    (void)state;
    test_each_device(ignored_on);
}

static void wrong_options(void **state)
{
    (void)state;
    synthetic_stars s;
    results out;
    const double range[2] = { 5000, 4000 };
    clv_context *context = test_plain_context();
    EXPECT_OK(synthetic_stars_create(1, SEED, false, &s));
    const struct {
        const char *said;
        clv_specfit_options options;
    } cases[] = {
        { "reject_sigma is 2", { .size = sizeof(clv_specfit_options), .reject_sigma = 2 } },
        { "reject_sigma is nan", { .size = sizeof(clv_specfit_options), .reject_sigma = NAN } },
        { "5000 to 4000",
          { .size = sizeof(clv_specfit_options), .ignored = range, .ignored_count = 1 } },
        { "at most 16", { .size = sizeof(clv_specfit_options), .ignored_count = 1 } },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i)
        EXPECT_FAIL(CLV_E_ARGUMENT, cases[i].said,
                    clv_specfit(context, &s.library, &s.stars, &cases[i].options, out, NULL));
    synthetic_stars_clear(&s);
    clv_context_free(context);
}

static void wrong_units(void **state)
{
    (void)state;
    static const struct {
        double unit;
        const char *said;
    } cases[] = { { -1e-17,
                    "spectrum 1: the unit of flux is -1e-17, but it must be 1e-200 to 1e+200" },
                  { (double)NAN, "the unit of flux is nan" },
                  { (double)INFINITY, "the unit of flux is inf" } };
    synthetic_stars s;
    results out;
    clv_context *context = test_plain_context();
    EXPECT_OK(synthetic_stars_create(1, SEED, false, &s));
    clv_spectrum items[2] = { s.stars.items[0], s.stars.items[1] };
    s.stars.items = items;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        items[1].unit = cases[i].unit;
        EXPECT_FAIL(CLV_E_ARGUMENT, cases[i].said,
                    clv_specfit(context, &s.library, &s.stars, NULL, out, NULL));
    }
    synthetic_stars_clear(&s);
    clv_context_free(context);
}

/* Arms without common parameters, and parameters that no number can hold. */
static void wrong_ranges(void **state)
{
    (void)state;
    static const struct {
        double mean, std;
        const char *said;
    } cases[] = { { 10, 0.1, "the library's teff goes from" },
                  { 3.7, 300, "the library's teff goes from 0 to" } };
    synthetic_stars s;
    results out;
    clv_spectra_arm arms[2];
    clv_context *context = test_plain_context();
    EXPECT_OK(synthetic_stars_create(1, SEED, false, &s));
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_spectra_library library = s.library;
        memcpy(arms, s.library.arms, sizeof arms);
        library.arms = arms;
        arms[0].mean[0] = cases[i].mean, arms[0].std[0] = cases[i].std;
        if (i) arms[1].mean[0] = cases[i].mean, arms[1].std[0] = cases[i].std;
        EXPECT_FAIL(CLV_E_ARGUMENT, cases[i].said,
                    clv_specfit(context, &library, &s.stars, NULL, out, NULL));
    }
    const double no_point[4] = { 0, 0, NAN, 0 };
    const double *const hulls[] = { NULL, no_point };
    for (size_t i = 0; i < CLV_LEN(hulls); ++i) {
        clv_spectra_library library = s.library;
        memcpy(arms, s.library.arms, sizeof arms);
        library.arms = arms;
        arms[0].hull_count = 1, arms[0].hull = hulls[i];
        EXPECT_FAIL(CLV_E_ARGUMENT, "hull is NULL, or input",
                    clv_specfit(context, &library, &s.stars, NULL, out, NULL));
    }
    synthetic_stars_clear(&s);
    clv_context_free(context);
}

static void steps_below_float(void **state)
{
    (void)state;
    static const double from[2] = { 0, 900 }, step[2] = { 1e-50, 1e-6 };
    synthetic_stars s;
    double values[3];
    clv_context *context = test_plain_context();
    EXPECT_OK(synthetic_stars_create(1, SEED, false, &s));
    for (size_t i = 0; i < 2; ++i)
        EXPECT_FAIL(CLV_E_ARGUMENT, "float32 has no steps below",
                    clv_specfit_scan(context, &s.library, &s.stars, s.truth[0], from[i], step[i], 3,
                                     NULL, values, NULL));
    synthetic_stars_clear(&s);
    clv_context_free(context);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_unit),      cmocka_unit_test(any_template_scale),
        cmocka_unit_test(outliers),      cmocka_unit_test(ignored),
        cmocka_unit_test(wrong_options), cmocka_unit_test(wrong_units),
        cmocka_unit_test(wrong_ranges),  cmocka_unit_test(steps_below_float),
    };
    test_choose(argc, argv);
    test_isolate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
