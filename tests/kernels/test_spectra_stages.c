/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of spectral fitting on every device, stage by stage, against the goldens of the
 * reference: network, rotation, spline, resolution, normal equations, scan along velocity, start
 * values. */
#include "device.h"
#include "spectra_files.h"
#include "spectra_watch.h"
#include "test.h"

#include "base/alloc.h"
#include "host/spectra/spectra_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CCF_POINTS = 256, MOST_STARS = 24 };

/* A library of one template, whatever the parameters: the last layer's bias is its logarithm. */
typedef struct one_template {
    clv_spectra_arm arm;
    clv_spectra_library library;
    double parameters[4];
    float *memory;
} one_template;

static void one_template_create(one_template *o, double first, double last, const double *y,
                                size_t n)
{
    *o = (one_template){ .parameters = { 5000, 3, 0, 0 } };
    o->memory = clv_zalloc(5 * n + CCF_POINTS, sizeof *o->memory);
    assert_non_null(o->memory);
    for (size_t i = 0; i < n; ++i)
        o->memory[4 * n + i] = (float)log(y[i]);
    o->arm = (clv_spectra_arm){ .name = "one",
                                .points = n,
                                .first = first,
                                .last = last,
                                .layers = 1,
                                .width = { 4, n },
                                .weight = { o->memory },
                                .bias = { o->memory + 4 * n },
                                .mean = { 3.7, 3, 0, 0 },
                                .std = { 0.2, 1, 1, 1 },
                                .ccf = o->memory + 5 * n,
                                .ccf_points = CCF_POINTS,
                                .ccf_log0 = log(first),
                                .ccf_log1 = log(first) + CCF_POINTS * 1e-4,
                                .ccf_spline_kms = 1000 };
    o->library = (clv_spectra_library){ sizeof(clv_spectra_library), 1, &o->arm, 1, o->parameters };
}

/* A spectrum of `n` pixels without features, for stages that do not look at it. */
static clv_spectrum flat_spectrum(const double *wavelength, size_t n, const float *ones)
{
    return (clv_spectrum){ .pixels = n, .wavelength = wavelength, .flux = ones, .ivar = ones };
}

static float ones[4096];

/* ---- stages ------------------------------------------------------------------------------------ */

/* The point itself and the four neighbours that the differences need. */
static void network_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    clv_file_array params = golden_load("stages/1_nn/params");
    const size_t rows = device->slow ? 2 : params.shape[0];
    (void)test_left_out(device, device->slow, "points after %zu, arms after the first", rows);
    for (size_t a = 0; a < (device->slow ? 1 : golden_library.library.arm_count); ++a) {
        const clv_spectra_arm *arm = &golden_library.library.arms[a];
        const size_t n = arm->points, pitch = clv_round_up(n, 16) + 16;
        clv_file_array want = golden_load("stages/1_nn/spec_%c", arm->name[5]);
        double *points = clv_zalloc(rows * 6, sizeof *points), *got = clv_alloc(n, sizeof *got),
               *near = clv_alloc(n, sizeof *near), wave[16];
        double *work = clv_alloc(2 * clv_spectra_widest(arm), sizeof *work);
        for (size_t i = 0; i < rows; ++i)
            memcpy(points + 6 * i + 2, golden_f64(&params) + 4 * i, 4 * sizeof *points);
        for (size_t k = 0; k < 16; ++k)
            wave[k] = 0.5 * (arm->first + arm->last) + (double)k;
        clv_spectrum one = flat_spectrum(wave, 16, ones);
        one.arm = a;
        const clv_spectra_stars stars = { sizeof(clv_spectra_stars), 1, 1, &one };
        clv_spectra_plan *plan;
        EXPECT_OK(clv_spectra_plan_create(&golden_library.library, &stars, NULL, &plan));
        watch_run(device, plan, points, rows, CLV_WATCH_TEMPLATES, rows * pitch * 8);
        for (size_t i = 0; i < rows; ++i) {
            watch_lane(i, pitch, 0, n, 0, got);
            golden_close("network", golden_f64(&want) + i * n, got, n, 2e-5);
            for (size_t k = 0; k < 4; ++k) {
                double q[4];
                memcpy(q, points + 6 * i + 2, sizeof q);
                q[k] += q[k] + plan->box.step[2 + k] > plan->box.high[2 + k]
                            ? -plan->box.step[2 + k]
                            : plan->box.step[2 + k];
                clv_spectra_network(arm, q, work, near);
                watch_lane(i, pitch, 0, n, 2 + k, got);
                golden_close("its neighbour", near, got, n, 2e-5);
            }
        }
        watch_forget(plan);
        clv_free(points), clv_free(got), clv_free(near), clv_free(work),
            clv_file_array_clear(&want);
    }
    clv_file_array_clear(&params);
}

/* Pixels at the template's own points, at rest: what is left is the rotation. */
static void rotation_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    enum { EDGE = 80 };
    clv_file_array lam = golden_load("stages/2_vsini/lam"), y = golden_load("stages/2_vsini/spec"),
                   v = golden_load("stages/2_vsini/vsini"),
                   want = golden_load("stages/2_vsini/result");
    const size_t n = lam.shape[0], k = n - 2 * EDGE, turns = v.shape[0];
    const clv_specfit_options options = { .size = sizeof options, .max_velocity_kms = 100 };
    double points[8 * 6] = { 0 }, *got = clv_alloc(k, sizeof *got);
    one_template o;
    one_template_create(&o, golden_f64(&lam)[0], golden_f64(&lam)[n - 1], golden_f64(&y), n);
    for (size_t i = 0; i < turns; ++i)
        points[6 * i + 1] = golden_f64(&v)[i], memcpy(points + 6 * i + 2, o.parameters, 32);
    const clv_spectrum one = flat_spectrum(golden_f64(&lam) + EDGE, k, ones);
    const clv_spectra_stars stars = { sizeof(clv_spectra_stars), 1, 1, &one };
    clv_spectra_plan *plan;
    EXPECT_OK(clv_spectra_plan_create(&o.library, &stars, &options, &plan));
    const size_t all = plan->sizes.all_pixels;
    watch_run(device, plan, points, turns, CLV_WATCH_PIXELS, turns * all * 8);
    for (size_t i = 0; i < turns; ++i) {
        watch_lane(i, all, 0, k, 0, got);
        golden_close("rotation", golden_f64(&want) + i * n + EDGE, got, k, 3e-6);
    }
    watch_forget(plan);
    clv_free(o.memory), clv_free(got);
    clv_file_array_clear(&lam), clv_file_array_clear(&y), clv_file_array_clear(&v),
        clv_file_array_clear(&want);
}

static void spline_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    clv_file_array x = golden_load("stages/3_spline/knots"), y = golden_load("stages/3_spline/y"),
                   w = golden_load("stages/3_spline/obs_lam"),
                   v = golden_load("stages/3_spline/vel"),
                   want = golden_load("stages/3_spline/result");
    const size_t n = x.shape[0], k = w.shape[0], speeds = v.shape[0];
    double points[8 * 6] = { 0 }, *got = clv_alloc(k, sizeof *got);
    one_template o;
    one_template_create(&o, golden_f64(&x)[0], golden_f64(&x)[n - 1], golden_f64(&y), n);
    for (size_t i = 0; i < speeds; ++i)
        points[6 * i] = golden_f64(&v)[i], memcpy(points + 6 * i + 2, o.parameters, 32);
    const clv_spectrum one = flat_spectrum(golden_f64(&w), k, ones);
    const clv_spectra_stars stars = { sizeof(clv_spectra_stars), 1, 1, &one };
    clv_spectra_plan *plan;
    EXPECT_OK(clv_spectra_plan_create(&o.library, &stars, NULL, &plan));
    const size_t all = plan->sizes.all_pixels;
    watch_run(device, plan, points, speeds, CLV_WATCH_PIXELS, speeds * all * 8);
    for (size_t i = 0; i < speeds; ++i) {
        watch_lane(i, all, 0, k, 0, got);
        golden_close("spline", golden_f64(&want) + i * k, got, k, 1.5e-6);
    }
    watch_forget(plan);
    clv_free(o.memory), clv_free(got);
    clv_file_array_clear(&x), clv_file_array_clear(&y), clv_file_array_clear(&w),
        clv_file_array_clear(&v);
    clv_file_array_clear(&want);
}

/* Each pixel reads one point of the template, so that the template at the pixels is known. */
static void read_points(clv_spectra_plan *plan, size_t pixels, size_t margin)
{
    for (size_t k = 0; k < pixels; ++k)
        plan->tables.whole[k] = (int32_t)(k + margin), plan->tables.part[k] = 0;
}

/* A template with `t` in its middle, on a grid that covers `wave` with a margin of points. */
static void one_template_around(one_template *o, const double *wave, const double *t, size_t n,
                                size_t margin)
{
    double *y = clv_alloc(n + 2 * margin, sizeof *y);
    for (size_t i = 0; i < n + 2 * margin; ++i)
        y[i] = t[i < margin ? 0 : i - margin < n ? i - margin : n - 1];
    one_template_create(o, wave[0] * 0.98, wave[n - 1] * 1.02, y, n + 2 * margin);
    clv_free(y);
}

static void resolution_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    enum { MARGIN = 40 };
    clv_file_array raw = golden_load("stages/4_resolution/raw"),
                   vec = golden_load("stages/4_resolution/vec"),
                   want = golden_load("stages/4_resolution/result");
    const size_t nd = raw.shape[0], n = raw.shape[1];
    double *wave = clv_alloc(n, sizeof *wave), *got = clv_alloc(n, sizeof *got), point[6] = { 0 };
    float *narrow = clv_alloc(nd * n, sizeof *narrow);
    one_template o;
    for (size_t k = 0; k < n; ++k)
        wave[k] = 5800 + 0.8 * (double)k;
    for (size_t i = 0; i < nd * n; ++i)
        narrow[i] = (float)golden_f64(&raw)[i];
    one_template_around(&o, wave, golden_f64(&vec), n, MARGIN);
    memcpy(point + 2, o.parameters, sizeof o.parameters);
    clv_spectrum one = flat_spectrum(wave, n, ones);
    one.resolution = narrow, one.diagonals = nd;
    const clv_spectra_stars stars = { sizeof(clv_spectra_stars), 1, 1, &one };
    clv_spectra_plan *plan;
    EXPECT_OK(clv_spectra_plan_create(&o.library, &stars, NULL, &plan));
    read_points(plan, n, MARGIN);
    watch_run(device, plan, point, 1, CLV_WATCH_RESOLVED, plan->sizes.all_pixels * 8);
    watch_lane(0, plan->sizes.all_pixels, 0, n, 0, got);
    golden_close("resolution", golden_f64(&want), got, n, 1e-5);
    watch_lane(0, plan->sizes.all_pixels, 0, n, 6,
               got); /* the velocity's difference is seen through it too */
    assert_true(fabs(got[n / 2] - golden_f64(&want)[n / 2]) > 0);
    watch_forget(plan);
    clv_free(o.memory), clv_free(wave), clv_free(got), clv_free(narrow);
    clv_file_array_clear(&raw), clv_file_array_clear(&vec), clv_file_array_clear(&want);
}

static void normal_equations_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    enum { MARGIN = 40 };
    clv_file_array d = golden_load("stages/7_chisq0/spec"),
                   s = golden_load("stages/7_chisq0/espec"),
                   lam = golden_load("stages/7_chisq0/lam"),
                   t = golden_load("stages/7_chisq0/templ"),
                   want = golden_load("stages/7_chisq0/npoly_chisq");
    const size_t n = lam.shape[0];
    float *flux = clv_alloc(2 * n, sizeof *flux), *ivar = flux + n;
    double point[6] = { 0 };
    for (size_t i = 0; i < want.shape[0]; ++i) {
        const unsigned terms = (unsigned)golden_f64(&want)[2 * i];
        const clv_specfit_options options = { .size = sizeof options, .terms = terms };
        if (terms == 5 || test_left_out(device, device->slow && i != 1,
                                        "%u terms: a program for every number", terms))
            continue;
        one_template o;
        one_template_around(&o, golden_f64(&lam), golden_f64(&t) + i / 3 * n, n, MARGIN);
        memcpy(point + 2, o.parameters, sizeof o.parameters);
        const clv_spectrum one = flat_spectrum(golden_f64(&lam), n, ones);
        const clv_spectra_stars stars = { sizeof(clv_spectra_stars), 1, 1, &one };
        clv_spectra_plan *plan;
        EXPECT_OK(clv_spectra_plan_create(&o.library, &stars, &options, &plan));
        read_points(plan, n, MARGIN);
        /* data as the golden has them, not as a file would be prepared: sigma at ivar's place */
        for (size_t k = 0; k < n; ++k) {
            flux[k] = (float)golden_f64(&d)[k];
            ivar[k] = (float)(1 / (golden_f64(&s)[k] * golden_f64(&s)[k]));
        }
        clv_spectrum real = one;
        real.flux = flux, real.ivar = ivar;
        plan->stars.items = &real;
        watch_run(device, plan, point, 1, CLV_WATCH_NOTHING, 0);
        const double got = (double)watched.states[CLV_S_VALUE] +
                           (double)watched.states[CLV_S_LOST] + plan->run.facts[0].log_sigmas;
        const double wanted = golden_f64(&want)[2 * i + 1];
        const double limit = device->facts->fp64 ? 0.02 + 1e-6 * fabs(wanted) : 0.1;
        print_message("%u terms: %.5f, %.5f expected\n", terms, got, wanted);
        assert_true(fabs(got - wanted) <= limit);
        watch_forget(plan);
        clv_free(o.memory);
    }
    clv_free(flux);
    clv_file_array_clear(&d), clv_file_array_clear(&s), clv_file_array_clear(&lam),
        clv_file_array_clear(&t);
    clv_file_array_clear(&want);
}

/* A masked pixel in a line that is a hundred thousand times the continuum: it is part of L2 and
 * would be most of chi2, where it must not be. */
static void masked_pixels_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    enum { PIXELS = 256, POINTS = 700 };
    float flux[PIXELS], ivar[PIXELS];
    int32_t mask[PIXELS] = { 0 };
    double wave[PIXELS], y[POINTS], point[6] = { 0, 0, 5000, 3, 0, 0 }, whole = 0, good = 0;
    one_template o;
    for (size_t i = 0; i < POINTS; ++i)
        y[i] = 1 + 0.1 * sin(0.05 * (double)i);
    for (size_t k = 0; k < PIXELS; ++k) {
        const bool line = k >= 100 && k < 120;
        wave[k] = 5000 + 0.8 * (double)k;
        flux[k] = line ? 1e5f : 1, ivar[k] = line ? 1e-10f : 100;
        mask[k] = k >= 108 && k < 112;
    }
    one_template_create(&o, 4950, 5260, y, POINTS);
    clv_spectrum one = flat_spectrum(wave, PIXELS, flux);
    one.ivar = ivar, one.mask = mask;
    const clv_spectra_stars stars = { sizeof(clv_spectra_stars), 1, 1, &one };
    clv_specfit_result want[1], got[1];
    clv_context *context = test_plain_context();
    EXPECT_OK(clv_specfit_at(context, &o.library, &stars, point, 1, NULL, want, NULL));
    clv_context_free(context);
    EXPECT_OK(clv_specfit_at(device->context, &o.library, &stars, point, 1, NULL, got, NULL));
    whole = got->neg2logl - want->neg2logl, good = got->chisq[0] / want->chisq[0] - 1;
    print_message("masked pixels: L2 off by %.1e, chi2 %.6g (%.6g)\n", whole, got->chisq[0],
                  want->chisq[0]);
    assert_true(want->chisq[0] < 2e4 && want->neg2logl > 3e4); /* they are most of it */
    assert_true(fabs(whole) < 0.1 && fabs(good) < 1e-4);
    assert_int_equal(want->pixels[0], PIXELS - 4);
    clv_free(o.memory);
}

/* ---- along velocity ------------------------------------------------------------------------------ */

static void scan_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    golden_coadd c = golden_open("a", false);
    clv_file_array v = golden_load("stages/9_scan/vel_grid"),
                   want = golden_load("stages/9_scan/chisq"),
                   best = golden_load("stages/9_scan/best_chi_vel_err_skew_kurt");
    const size_t n = device->slow ? 40 : v.shape[0];
    const double from = golden_f64(&v)[0], step = golden_f64(&v)[1] - from;
    double points[8 * 6], *values = clv_alloc(8 * n, sizeof *values), worst = 0;
    c.stars.count = device->slow ? 1 : want.shape[0];
    (void)test_left_out(device, device->slow, "stars after the first, velocities after %zu", n);
    for (size_t i = 0; i < 8; ++i)
        memcpy(points + 6 * i, (double[]){ 0, 5, 5500, 4, -0.7, 0.1 }, 6 * sizeof *points);
    EXPECT_OK(clv_specfit_scan(device->context, &golden_library.library, &c.stars, points, from,
                               step, n, &golden_options, values, NULL));
    for (size_t i = 0; i < c.stars.count; ++i) {
        for (size_t k = 0; k < n; ++k) {
            const double w = golden_f64(&want)[i * v.shape[0] + k];
            /* far from the best velocity chi2 is large, and so is what the last bit of the golden's
             * float32 network does to it */
            const double off = fabs(values[i * n + k] - w) / (0.1 + 1e-6 * fabs(w));
            worst = off > worst || isnan(off) ? off : worst;
        }
        if (device->slow) continue; /* moments are of all velocities */
        const double *b = golden_f64(&best) + 5 * i;
        double moments[4];
        clv_velocity_moments(golden_f64(&v), values + i * n, n, moments);
        assert_true(fabs(moments[0] - b[1]) < 0.05 && fabs(moments[1] / b[2] - 1) < 0.02);
        assert_true(fabs(moments[2] - b[3]) < 0.02 && fabs(moments[3] - b[4]) < 0.05);
    }
    print_message("scan: %.2f of the limit\n", worst);
    assert_true(worst <= 1);
    clv_free(values);
    clv_file_array_clear(&v), clv_file_array_clear(&want), clv_file_array_clear(&best),
        golden_close_coadd(&c);
}

/* The same through the resolution matrix, against the value at each of the velocities. */
static void scan_with_resolution_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    enum { SPEEDS = 5 };
    golden_coadd c = golden_open("b", true);
    double points[SPEEDS * 6], values[SPEEDS];
    clv_specfit_result want[SPEEDS];
    c.stars.count = 1;
    for (size_t k = 0; k < SPEEDS; ++k) {
        const double x[6] = { -60 + 37 * (double)k, 12, 5500, 4, -0.7, 0.1 };
        memcpy(points + 6 * k, x, sizeof x);
    }
    EXPECT_OK(clv_specfit_at(device->context, &golden_library.library, &c.stars, points, SPEEDS,
                             NULL, want, NULL));
    EXPECT_OK(clv_specfit_scan(device->context, &golden_library.library, &c.stars, points, -60, 37,
                               SPEEDS, NULL, values, NULL));
    for (size_t k = 0; k < SPEEDS; ++k) {
        assert_true(fabs(values[k] - want[k].neg2logl) < 0.02 + 1e-6 * fabs(values[k]));
    }
    clv_specfit_results_clear(want, SPEEDS);
    golden_close_coadd(&c);
}

/* Start velocities, and the start templates that they belong to. */
static void starts_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    golden_coadd c = golden_open("a", false);
    clv_file_array want = golden_load("stages/10_ccf/vel_vsini_par");
    clv_spectra_plan *plan;
    size_t far = 0, other = 0;
    assert_true(c.stars.count <= MOST_STARS);
    if (test_left_out(device, device->slow, "stars after the first")) c.stars.count = 1;
    EXPECT_OK(clv_spectra_plan_create(&golden_library.library, &c.stars, &golden_options, &plan));
    plan->wish.stages = CLV_SPECTRA_STAGE_START; /* a fit would be longer than its start */
    watch_run(device, plan, NULL, 0, CLV_WATCH_NOTHING, 0);
    for (size_t i = 0; i < c.stars.count; ++i) {
        const double *w = golden_f64(&want) + 6 * i;
        const float *found = watched.found + CLV_SPECTRA_FOUND_BY_STAR * i;
        const double *p = golden_library.library.ccf_parameters + 4 * (size_t)found[1];
        const float *second = found + CLV_SPECTRA_PEAK;
        assert_true(second[2] >= 0 && fabs((double)(second[0] - found[0])) >= CLV_SPECTRA_APART);
        far += fabs((double)found[0] - w[0]) > 1;
        other += fabs(p[0] - w[2]) > 1 || fabs(p[1] - w[3]) > 1e-6 || fabs(p[2] - w[4]) > 1e-6;
    }
    print_message("of %zu starts %zu are off by more than 1 km/s, %zu with another template\n",
                  c.stars.count, far, other);
    assert_true(far <= 2 && other <= 2);
    watch_forget(plan);
    clv_file_array_clear(&want), golden_close_coadd(&c);
}

#define ON_EVERY_DEVICE(claim)        \
    static void claim(void **state)   \
    {                                 \
        (void)state;                  \
        test_each_device(claim##_on); \
    }
ON_EVERY_DEVICE(network)
ON_EVERY_DEVICE(rotation)
ON_EVERY_DEVICE(spline)
ON_EVERY_DEVICE(resolution)
ON_EVERY_DEVICE(normal_equations)
ON_EVERY_DEVICE(masked_pixels)
ON_EVERY_DEVICE(scan)
ON_EVERY_DEVICE(scan_with_resolution)
/* Templates between those of the small library: many, so that a few are correlated and the rest mixed of them. */
static clv_spectra_library many_templates(clv_spectra_arm *arm, float **memory, double **parameters)
{
    enum { TIMES = 3 };
    const clv_spectra_library *small = &golden_library.library;
    const size_t count = small->ccf_count, n = small->arms[0].ccf_points;
    *memory = clv_alloc(TIMES * count * n, sizeof **memory);
    *parameters = clv_alloc(TIMES * count * 4, sizeof **parameters);
    assert_true(*memory && *parameters);
    for (size_t t = 0; t < TIMES * count; ++t) {
        const size_t a = t % count, b = (t + 7) % count;
        const float share = 0.3f * (float)(t / count);
        for (size_t i = 0; i < n; ++i)
            (*memory)[t * n + i] =
                (1 - share) * small->arms[0].ccf[a * n + i] + share * small->arms[0].ccf[b * n + i];
        memcpy(*parameters + 4 * t, small->ccf_parameters + 4 * a, 4 * sizeof **parameters);
    }
    *arm = small->arms[0];
    arm->ccf = *memory;
    return (clv_spectra_library){ sizeof(clv_spectra_library), 1, arm, TIMES * count, *parameters };
}

/* chi2 of a template at a lag, less what a flat one has, from the prepared star. */
static double chi_of(const clv_spectra_plan *plan, const clv_star_data *star, size_t t, size_t lag)
{
    const clv_spectra_weights *w = &plan->tables.arm[0];
    const float *row = plan->tables.ccf + w->ccf + t * w->ccf_pitch + lag;
    double sum = 0;
    for (size_t n = 0; n < plan->grid[0].ccf_points; ++n) {
        const double m = (double)row[n], q = (double)star->ccf[n],
                     v = (double)star->ccf[plan->sizes.ccf_room + n];
        sum += v * (m * m - 1) - 2 * q * (m - 1);
    }
    return sum;
}

/* A mixture's chi2 is that of the template, to a small part of what templates and lags differ by. */
static void mixtures_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    clv_spectra_arm arm;
    float *memory;
    double *parameters;
    const clv_spectra_library library = many_templates(&arm, &memory, &parameters);
    golden_coadd coadd = golden_open("a", false);
    enum { STARS = 3 };
    clv_spectrum items[STARS];
    for (size_t i = 0; i < STARS; ++i)
        items[i] = coadd.items[5 * i * coadd.stars.spectra];
    const clv_spectra_stars stars = { sizeof(clv_spectra_stars), STARS, 1, items };
    clv_spectra_plan *plan;
    clv_star_data star;
    EXPECT_OK(clv_spectra_plan_create(&library, &stars, &golden_options, &plan));
    EXPECT_OK(clv_star_data_create(plan, &star));
    const clv_spectra_weights *w = &plan->tables.arm[0];
    print_message("%zu templates of %zu, %zu squares\n", w->crosses, library.ccf_count,
                  w->rows - w->crosses);
    assert_true(w->crosses > 4 && w->rows > w->crosses && w->rows < library.ccf_count);
    const size_t lags = plan->sizes.ccf_lags, reach = plan->grid[0].ccf_reach,
                 per_star = library.ccf_count * lags;
    plan->wish.stages = CLV_SPECTRA_STAGE_START;
    watch_run(device, plan, NULL, 0, CLV_WATCH_START_CHI, per_star);
    for (size_t i = 0; i < STARS; ++i) {
        double worst = 0, low = INFINITY, high = -INFINITY;
        EXPECT_OK(clv_star_prepare(plan, i, &star));
        for (size_t t = 0; t < library.ccf_count; t += device->slow ? 29 : 3)
            for (size_t lag = 0; lag <= 2 * reach; lag += 2) {
                const double want = chi_of(plan, &star, t, lag);
                const double got = (double)watched.watched[i * per_star + t * lags + lag];
                low = fmin(low, want), high = fmax(high, want);
                worst = fmax(worst, fabs(got - want));
            }
        print_message("star %zu: off by %.1e of %.1e\n", i, worst, high - low);
        assert_true(worst < 2e-3 * (high - low));
    }
    clv_star_data_clear(&star);
    watch_forget(plan);
    golden_close_coadd(&coadd);
    clv_free(memory), clv_free(parameters);
}

ON_EVERY_DEVICE(starts)
ON_EVERY_DEVICE(mixtures)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network),
        cmocka_unit_test(rotation),
        cmocka_unit_test(spline),
        cmocka_unit_test(resolution),
        cmocka_unit_test(normal_equations),
        cmocka_unit_test(masked_pixels),
        cmocka_unit_test(scan),
        cmocka_unit_test(scan_with_resolution),
        cmocka_unit_test(starts),
        cmocka_unit_test(mixtures),
    };
    test_share_compiled();
    test_choose(argc, argv);
    for (size_t i = 0; i < sizeof ones / sizeof *ones; ++i)
        ones[i] = 1;
    test_isolate();
    return cmocka_run_group_tests(tests, golden_begin, golden_end);
}
