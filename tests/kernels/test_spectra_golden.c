/* SPDX-License-Identifier: Apache-2.0 */
/* Every stage of spectral fitting against the goldens of the reference: float64 stages, and the
 * value at given points on every device. */
#include "data.h"
#include "device.h"
#include "spectra_files.h"
#include "test.h"

#include "base/alloc.h"
#include "host/io/tables/spectrum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void network(void **state)
{
    (void)state;
    clv_file_array params = golden_load("stages/1_nn/params");
    for (size_t a = 0; a < golden_library.library.arm_count; ++a) {
        const clv_spectra_arm *arm = &golden_library.library.arms[a];
        clv_file_array want = golden_load("stages/1_nn/spec_%c", arm->name[5]);
        double *work = clv_alloc(2 * clv_spectra_widest(arm), sizeof *work);
        double *got = clv_alloc(arm->points, sizeof *got);
        for (size_t i = 0; i < params.shape[0]; ++i) {
            clv_spectra_network(arm, golden_f64(&params) + 4 * i, work, got);
            golden_close("network", golden_f64(&want) + i * arm->points, got, arm->points, 2e-5);
        }
        clv_free(work), clv_free(got), clv_file_array_clear(&want);
    }
    clv_file_array_clear(&params);
}

static void outside_flag(void **state)
{
    (void)state;
    clv_file_array q = golden_load("stages/1_nn/outside_params"),
                   want = golden_load("stages/1_nn/outside_flag");
    const clv_spectra_arm *arm = &golden_library.library.arms[0];
    clv_spectra_hull hull;
    EXPECT_OK(clv_spectra_hull_create(arm->hull, arm->hull_count, &hull));
    for (size_t i = 0; i < q.shape[0]; ++i) {
        double x[4];
        for (size_t k = 0; k < 4; ++k) {
            const double v = golden_f64(&q)[4 * i + k];
            x[k] = ((k ? v : log10(v)) - arm->mean[k]) / arm->std[k];
        }
        assert_true(fabs(clv_spectra_outside(&hull, x) - golden_f64(&want)[i]) < 1e-5);
    }
    clv_spectra_hull_clear(&hull);
    clv_file_array_clear(&q), clv_file_array_clear(&want);
}

static void rotation(void **state)
{
    (void)state;
    clv_file_array lam = golden_load("stages/2_vsini/lam"), y = golden_load("stages/2_vsini/spec"),
                   v = golden_load("stages/2_vsini/vsini"),
                   want = golden_load("stages/2_vsini/result");
    const size_t n = y.shape[0];
    const double dln = log(golden_f64(&lam)[1] / golden_f64(&lam)[0]);
    double *got = clv_alloc(n, sizeof *got);
    for (size_t i = 0; i < v.shape[0]; ++i) {
        clv_rotate(golden_f64(&y), n, golden_f64(&v)[i] / CLV_LIGHT_KMS / dln, got);
        golden_close("rotation", golden_f64(&want) + i * n, got, n, 1e-9);
    }
    clv_free(got);
    clv_file_array_clear(&lam), clv_file_array_clear(&y), clv_file_array_clear(&v),
        clv_file_array_clear(&want);
}

static void spline(void **state)
{
    (void)state;
    clv_file_array x = golden_load("stages/3_spline/knots"), y = golden_load("stages/3_spline/y"),
                   w = golden_load("stages/3_spline/obs_lam"),
                   v = golden_load("stages/3_spline/vel"),
                   want = golden_load("stages/3_spline/result");
    const size_t n = x.shape[0], k = w.shape[0];
    double *z = clv_alloc(n, sizeof *z), *work = clv_alloc(n, sizeof *work),
           *got = clv_alloc(k, sizeof *got);
    clv_spline_prepare(golden_f64(&x), golden_f64(&y), n, z, work);
    for (size_t i = 0; i < v.shape[0]; ++i) {
        const double b = golden_f64(&v)[i] / CLV_LIGHT_KMS, factor = sqrt((1 - b) / (1 + b));
        for (size_t j = 0; j < k; ++j)
            got[j] =
                clv_spline_at(golden_f64(&x), golden_f64(&y), z, n, golden_f64(&w)[j] * factor);
        golden_close("spline", golden_f64(&want) + i * k, got, k, 1e-9);
    }
    clv_free(z), clv_free(work), clv_free(got);
    clv_file_array_clear(&x), clv_file_array_clear(&y), clv_file_array_clear(&w),
        clv_file_array_clear(&v);
    clv_file_array_clear(&want);
}

static void resolution(void **state)
{
    (void)state;
    clv_file_array raw = golden_load("stages/4_resolution/raw"),
                   vec = golden_load("stages/4_resolution/vec"),
                   want = golden_load("stages/4_resolution/result");
    const size_t nd = raw.shape[0], n = raw.shape[1];
    float *narrow = clv_alloc(nd * n, sizeof *narrow);
    double *rows = clv_alloc(nd * n, sizeof *rows), *got = clv_alloc(n, sizeof *got);
    for (size_t i = 0; i < nd * n; ++i)
        narrow[i] = (float)golden_f64(&raw)[i];
    EXPECT_OK(clv_resolution_rows(narrow, nd, n, 0.5 / 0.8, rows));
    clv_resolution_apply(rows, nd, n, golden_f64(&vec), got);
    golden_close("resolution", golden_f64(&want), got, n, 1e-5);
    memset(narrow, 0, nd * n * sizeof *narrow); /* a row that is all zero is no NaN */
    EXPECT_OK(clv_resolution_rows(narrow, nd, n, 0.5 / 0.8, rows));
    for (size_t i = 0; i < nd * n; ++i)
        assert_true(rows[i] == 0);
    clv_free(narrow), clv_free(rows), clv_free(got);
    clv_file_array_clear(&raw), clv_file_array_clear(&vec), clv_file_array_clear(&want);
}

static void basis_of(const clv_file_array *lam, unsigned terms, double *out)
{
    const size_t n = lam->shape[0];
    const double l0 = golden_f64(lam)[0], l1 = golden_f64(lam)[n - 1];
    for (size_t k = 0; k < n; ++k)
        clv_spectra_basis(2 * (golden_f64(lam)[k] - l0) / (l1 - l0) - 1, terms, out + k * terms);
}

static void basis(void **state)
{
    (void)state;
    clv_file_array lam = golden_load("stages/5_basis/lam");
    const size_t n = lam.shape[0];
    static const unsigned terms[] = { 1, 3, 5, 10, 15 };
    double *got = clv_alloc(15 * n, sizeof *got), *column = clv_alloc(n, sizeof *column);
    for (size_t t = 0; t < CLV_LEN(terms); ++t) {
        clv_file_array want = golden_load("stages/5_basis/rbf_%u", terms[t]);
        basis_of(&lam, terms[t], got);
        for (size_t j = 0; j < terms[t]; ++j) {
            for (size_t k = 0; k < n; ++k)
                column[k] = got[k * terms[t] + j];
            golden_close("basis", golden_f64(&want) + j * n, column, n, 1e-10);
        }
        clv_file_array_clear(&want);
    }
    clv_free(got), clv_free(column), clv_file_array_clear(&lam);
}

static void normal_equations(void **state)
{
    (void)state;
    clv_file_array d = golden_load("stages/7_chisq0/spec"),
                   s = golden_load("stages/7_chisq0/espec"),
                   lam = golden_load("stages/7_chisq0/lam"),
                   t = golden_load("stages/7_chisq0/templ"),
                   want = golden_load("stages/7_chisq0/npoly_chisq");
    const size_t n = lam.shape[0];
    double *b = clv_alloc(15 * n, sizeof *b);
    for (size_t i = 0; i < want.shape[0]; ++i) {
        const unsigned terms = (unsigned)golden_f64(&want)[2 * i];
        double a[15], value, sigmas = 0;
        basis_of(&lam, terms, b);
        for (size_t k = 0; k < n; ++k)
            sigmas += 2 * log(golden_f64(&s)[k]);
        assert_true(clv_spectra_value(b, terms, n, golden_f64(&t) + i / 3 * n, golden_f64(&d),
                                      golden_f64(&s), a, &value));
        value += sigmas;
        golden_close("normal equations", &golden_f64(&want)[2 * i + 1], &value, 1, 1e-8);
    }
    clv_free(b);
    clv_file_array_clear(&d), clv_file_array_clear(&s), clv_file_array_clear(&lam),
        clv_file_array_clear(&t);
    clv_file_array_clear(&want);
}

static void preparation(void **state)
{
    (void)state;
    golden_coadd c = golden_open("a", false);
    double *flux = clv_alloc(4096, sizeof *flux), *sigma = clv_alloc(4096, sizeof *sigma),
           *scratch = clv_alloc(4096, sizeof *scratch);
    unsigned char bad[4096];
    for (size_t i = 0; i < 4; ++i)
        for (size_t k = 0; k < 3; ++k) {
            const clv_spectrum *s = &c.items[i * 3 + k];
            clv_file_array d = golden_load("stages/6_prep/desi_%c_%zu_spec", "brz"[k], i),
                           e = golden_load("stages/6_prep/desi_%c_%zu_espec", "brz"[k], i),
                           m = golden_load("stages/6_prep/desi_%c_%zu_badmask", "brz"[k], i);
            assert_int_equal(c.row[i], i);
            assert_true(clv_spectrum_prepare(s, &golden_options, false, flux, sigma, bad, scratch));
            golden_close("flux", golden_f64(&d), flux, s->pixels, 1e-6);
            golden_close("sigma", golden_f64(&e), sigma, s->pixels, 1e-6);
            for (size_t p = 0; p < s->pixels; ++p)
                assert_int_equal(bad[p], ((unsigned char *)m.data)[p]);
            clv_file_array_clear(&d), clv_file_array_clear(&e), clv_file_array_clear(&m);
        }
    clv_free(flux), clv_free(sigma), clv_free(scratch);
    golden_close_coadd(&c);
}

/* What the goldens add to -2 log L where a point lies outside the library's hulls. */
static double penalty_at(const double *point, const golden_coadd *c)
{
    double sum = 0, pixels = 0;
    for (size_t k = 0; k < 3; ++k)
        pixels += (double)c->items[k].pixels;
    for (size_t a = 0; a < golden_library.library.arm_count; ++a) {
        const clv_spectra_arm *arm = &golden_library.library.arms[a];
        clv_spectra_hull hull;
        double x[4];
        for (size_t k = 0; k < 4; ++k)
            x[k] = ((k ? point[2 + k] : log10(point[2])) - arm->mean[k]) / arm->std[k];
        EXPECT_OK(clv_spectra_hull_create(arm->hull, arm->hull_count, &hull));
        sum += clv_spectra_outside(&hull, x) * 10 * pixels;
        clv_spectra_hull_clear(&hull);
    }
    return sum;
}

/* -2 log L and chi2 at the golden points. */
static void values_of(clv_context *context, bool fp64, const char *tag, size_t most)
{
    const bool b = *tag == 'b';
    golden_coadd c = golden_open(tag, b);
    clv_file_array points = golden_load("stages/8_chisq/combos_%s", tag),
                   want = golden_load("stages/8_chisq/chisq_%s", tag),
                   arms = golden_load("stages/8_chisq/chisq_arm_%s", tag);
    const size_t stars = CLV_MIN(want.shape[0], most), per = want.shape[1];
    clv_specfit_result *got = clv_zalloc(stars * per, sizeof *got);
    double worst = 0;
    c.stars.count = stars;
    EXPECT_OK(clv_specfit_at(context, &golden_library.library, &c.stars, golden_f64(&points), per,
                             &golden_options, got, NULL));
    for (size_t i = 0; i < stars * per; ++i) {
        const double limit = fp64 ? 0.02 + 1e-6 * fabs(golden_f64(&want)[i]) : 0.1;
        const double penalty = penalty_at(golden_f64(&points) + 6 * i, &c);
        const double off = fabs(got[i].neg2logl + penalty - golden_f64(&want)[i]) / limit;
        worst = off > worst || isnan(off) ? off : worst;
        for (size_t k = 0; k < 3; ++k)
            assert_true(fabs(got[i].chisq[k] - golden_f64(&arms)[3 * i + k]) <=
                        0.05 + 1e-4 * golden_f64(&arms)[3 * i + k]);
    }
    print_message("-2 log L of file %s: %.2f of the limit\n", tag, worst);
    assert_true(worst <= 1);
    clv_free(got);
    clv_file_array_clear(&points), clv_file_array_clear(&want), clv_file_array_clear(&arms);
    golden_close_coadd(&c);
}

static void values_in_plain_c(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    values_of(context, true, "a", 24);
    values_of(context, true, "b", 4);
    clv_context_free(context);
}

static void values_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    (void)test_left_out(device, device->slow, "all stars but 2 of file a and 1 of file b");
    values_of(device->context, device->facts->fp64, "a", device->slow ? 2 : 24);
    values_of(device->context, device->facts->fp64, "b", device->slow ? 1 : 8);
}

/* What a device without doubles does with all stars, not only with the few that a slow one is given. */
static void values_without_doubles_on(test_device *device)
{
    if (test_left_out(device, device->tiny || device->slow, "all stars without doubles: minutes") ||
        test_left_out(device, !device->facts->fp64, "has no doubles to take away"))
        return;
    test_device_disguise(device, device->facts->device_class);
    device->disguise.fp64 = false;
    values_of(device->context, false, "a", 24);
    values_of(device->context, false, "b", 8);
}

static void values_without_doubles(void **state)
{
    (void)state;
    test_each_device(values_without_doubles_on);
}

static void values_on_devices(void **state)
{
    (void)state;
    test_each_device(values_on);
}

static void moments(void **state)
{
    (void)state;
    clv_file_array v = golden_load("stages/9_scan/vel_grid"),
                   chi = golden_load("stages/9_scan/chisq"),
                   want = golden_load("stages/9_scan/best_chi_vel_err_skew_kurt");
    const size_t n = v.shape[0];
    for (size_t i = 0; i < chi.shape[0]; ++i) {
        const double *w = golden_f64(&want) + 5 * i;
        double got[4];
        clv_velocity_moments(golden_f64(&v), golden_f64(&chi) + i * n, n, got);
        print_message("velocity %.4f (%.4f), error %.4f (%.4f), %.3f (%.3f), %.3f (%.3f)\n", got[0],
                      w[1], got[1], w[2], got[2], w[3], got[3], w[4]);
        assert_true(fabs(got[0] - w[1]) < 1e-4 && fabs(got[1] / w[2] - 1) < 1e-6);
        assert_true(fabs(got[2] - w[3]) < 1e-6 && fabs(got[3] - w[4]) < 1e-6);
    }
    clv_file_array_clear(&v), clv_file_array_clear(&chi), clv_file_array_clear(&want);
}

/* The continuum-divided spectra, and where the cross-correlation peaks. */
static void start_values(void **state)
{
    (void)state;
    golden_coadd c = golden_open("a", false);
    clv_file_array want = golden_load("stages/10_ccf/vel_vsini_par");
    clv_spectra_plan *plan;
    clv_star_data d;
    EXPECT_OK(clv_spectra_plan_create(&golden_library.library, &c.stars, &golden_options, &plan));
    EXPECT_OK(clv_star_data_create(plan, &d));
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_OK(clv_star_prepare(plan, i, &d));
        for (size_t k = 0; k < 3; ++k) {
            clv_file_array spec = golden_load("stages/10_ccf/proc_spec_%zu_%c", i, "brz"[k]),
                           ivar = golden_load("stages/10_ccf/proc_ivar_%zu_%c", i, "brz"[k]);
            const float *q = d.ccf + 2 * k * plan->sizes.ccf_room, *w = q + plan->sizes.ccf_room;
            double off = 0, norm = 0;
            for (size_t n = 0; n < spec.shape[0]; ++n) {
                const double s = golden_f64(&spec)[n] * golden_f64(&ivar)[n];
                off += fabs((double)q[n] - s), norm += fabs(s);
            }
            print_message("star %zu %c: continuum-divided spectrum off by %.1e\n", i, "brz"[k],
                          off / norm);
            (void)w;
            assert_true(off / norm < 0.02);
            clv_file_array_clear(&spec), clv_file_array_clear(&ivar);
        }
    }
    clv_star_data_clear(&d), clv_spectra_plan_free(plan);
    clv_context *context;
    clv_specfit_result got[64];
    const clv_context_options o = { .size = sizeof(clv_context_options), .cache_dir = "" };
    EXPECT_OK(clv_context_create(&o, &context));
    assert_true(c.stars.count <= 64);
    EXPECT_OK(clv_specfit(context, &golden_library.library, &c.stars, &golden_options, got, NULL));
    size_t far = 0;
    for (size_t i = 0; i < c.stars.count; ++i)
        far += fabs(got[i].start_velocity - golden_f64(&want)[6 * i]) > 1;
    print_message("%zu of %zu start velocities off by more than 1 km/s\n", far, c.stars.count);
    assert_true(far <= 2);
    clv_context_free(context);
    clv_file_array_clear(&want), golden_close_coadd(&c);
}

/* One SDSS spectrum, of a white dwarf: what it says, and a fit that has no template like it. */
static void sdss_spectrum(void **state)
{
    (void)state;
    enum { POINTS = 2600 };
    clv_one_spectrum d;
    EXPECT_OK(clv_one_spectrum_read(test_data("specfit/real/spec-0266-51602-0031.fits"), NULL, &d));
    assert_string_equal(d.kind, "SDSS table");
    assert_true(d.plate == 266 && d.mjd == 51602 && d.fiber == 31 && d.medium == CLV_MEDIUM_VACUUM);
    assert_true(fabs(d.ra - 147.32107) < 1e-6 && fabs(d.dec + 0.0065757249) < 1e-9);
    const size_t n = d.pixels;
    const double *wave = d.wavelength;
    size_t good = 0;
    for (size_t k = 0; k < n; ++k)
        good += d.error[k] > 0, assert_true(d.lsf[k] > 0.5 && d.lsf[k] < 2);
    assert_true(n > 3500 && wave[0] > 3700 && wave[0] < 3900 && wave[n - 1] > 9000);
    assert_true(fabs(log10(wave[1] / wave[0]) - 1e-4) < 1e-6); /* told in float32 */
    static float weight[4 * POINTS], bias[POINTS], ccf[2048], flux[4000], ivar[4000];
    assert_true(n <= 4000 && good > 3500);
    for (size_t k = 0; k < n; ++k) {
        flux[k] = (float)d.flux[k];
        ivar[k] = d.error[k] > 0 ? (float)(1 / (d.error[k] * d.error[k])) : 0;
    }
    for (size_t i = 0; i < POINTS; ++i)
        weight[4 * i] = 0.01f * (float)(i % 7), bias[i] = 0.1f * sinf(0.03f * (float)i);
    const double parameters[4] = { 6000, 4, -1, 0 };
    const clv_spectra_arm arm = { .name = "sdss1",
                                  .points = POINTS,
                                  .first = 3700,
                                  .last = 9400,
                                  .layers = 1,
                                  .width = { 4, POINTS },
                                  .weight = { weight },
                                  .bias = { bias },
                                  .mean = { 3.75, 3, -1, 0.2 },
                                  .std = { 0.1, 1, 1, 0.2 },
                                  .ccf = ccf,
                                  .ccf_points = 2048,
                                  .ccf_log0 = log(wave[0]),
                                  .ccf_log1 = log(wave[n - 1]),
                                  .ccf_spline_kms = 3000 };
    const clv_spectra_library one = { sizeof(clv_spectra_library), 1, &arm, 1, parameters };
    const clv_spectrum spectrum = { .pixels = n, .wavelength = wave, .flux = flux, .ivar = ivar };
    const clv_spectra_stars stars = { sizeof(clv_spectra_stars), 1, 1, &spectrum };
    const clv_context_options o = { .size = sizeof(clv_context_options), .cache_dir = "" };
    clv_context *context;
    clv_specfit_result got;
    EXPECT_OK(clv_context_create(&o, &context));
    EXPECT_OK(clv_specfit(context, &one, &stars, NULL, &got, NULL));
    print_message("SDSS: v %.1f, chi2 %.0f of %zu pixels, S/N %.1f, warnings %u\n", got.velocity,
                  got.chisq[0], got.pixels[0], got.signal_to_noise[0], got.warnings);
    assert_true(isfinite(got.neg2logl) && got.chisq[0] > 0 && got.pixels[0] > 3000);
    assert_true(got.signal_to_noise[0] > 1 && !(got.warnings & CLV_SPECFIT_BAD_SPECTRUM));
    clv_context_free(context);
    clv_one_spectrum_clear(&d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network),           cmocka_unit_test(outside_flag),
        cmocka_unit_test(rotation),          cmocka_unit_test(spline),
        cmocka_unit_test(resolution),        cmocka_unit_test(basis),
        cmocka_unit_test(preparation),       cmocka_unit_test(normal_equations),
        cmocka_unit_test(moments),           cmocka_unit_test(values_in_plain_c),
        cmocka_unit_test(values_on_devices), cmocka_unit_test(values_without_doubles),
        cmocka_unit_test(start_values),      cmocka_unit_test(sdss_spectrum),
    };
    test_choose(argc, argv);
    test_isolate();
    return cmocka_run_group_tests(tests, golden_begin, golden_end);
}
