/* SPDX-License-Identifier: Apache-2.0 */
/* Compares clv_specfit on every device with its float64 reference: values, errors and bad fibres; and checks that the
 * bits do not depend on how the stars are split. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/spectra/spectra_feed.h"
#include "host/spectra/spectra_job.h"
#include "host/synthetic/stars.h"
#include "runtime/job/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STARS = 6, SEED = 11 };

static void fit_with(clv_context *context, const synthetic_stars *s, clv_specfit_result *out)
{
    const clv_specfit_options options = { .size = sizeof options, .models = true };
    clv_report *report;
    EXPECT_OK(clv_report_create(&report));
    EXPECT_OK(clv_specfit(context, &s->library, &s->stars, &options, out, report));
    for (size_t i = 0; i < clv_report_share_count(report); ++i) { /* the device, not plain C */
        const clv_share share = clv_report_share(report, i);
        if (clv_context_device_count(context) && strstr(share.device, "reference"))
            assert_int_equal(share.units, 0);
    }
    clv_report_free(report);
}

static void fit_reference(const synthetic_stars *s, clv_specfit_result *out)
{
    clv_context *context = test_plain_context();
    fit_with(context, s, out);
    clv_context_free(context);
}

static void expect_near(const char *what, double want, double got, double allowed)
{
    if (fabs(got - want) <= allowed || (isnan(want) && isnan(got))) return;
    print_error("%s: %.9g, expected %.9g within %.3g\n", what, got, want, allowed);
    fail();
}

static void expect_same_fit(const synthetic_stars *s, const clv_specfit_result *want,
                            const clv_specfit_result *got)
{
    assert_int_equal(want->warnings, got->warnings);
    if (want->warnings & CLV_SPECFIT_BAD_SPECTRUM) {
        assert_true(isnan(got->velocity) && isnan(got->neg2logl));
        return;
    }
    expect_near("-2 log L", want->neg2logl, got->neg2logl, 0.005 + 1e-6 * fabs(want->neg2logl));
    expect_near("start", want->start_velocity, got->start_velocity, 0.5);
    expect_near("velocity", want->velocity, got->velocity, 0.02 * want->velocity_error);
    expect_near("velocity error", 1, got->velocity_error / want->velocity_error, 0.05);
    expect_near("skewness", want->skewness, got->skewness, 0.02);
    expect_near("kurtosis", want->kurtosis, got->kurtosis, 0.05);
    expect_near("teff", want->teff, got->teff, 0.02 * want->teff_error);
    expect_near("teff error", 1, got->teff_error / want->teff_error, 0.1);
    for (size_t i = 0; i < s->stars.spectra; ++i) {
        assert_int_equal(want->pixels[i], got->pixels[i]);
        expect_near("chi2", want->chisq[i], got->chisq[i], 0.2 + 1e-3 * want->chisq[i]);
        assert_true(!want->model[i] == !got->model[i]);
        for (size_t k = 0; want->model[i] && k < s->stars.items[i].pixels; ++k)
            expect_near("model", (double)want->model[i][k], (double)got->model[i][k], 1);
    }
}

static void check(test_device *device, bool resolution, bool damaged)
{
    synthetic_stars s;
    clv_specfit_result want[STARS], got[STARS];
    EXPECT_OK(synthetic_stars_create(STARS, SEED, resolution, &s));
    if (damaged) synthetic_stars_damage(&s);
    if (device->slow) s.stars.count = damaged ? 4 : 1;
    (void)test_left_out(device, s.stars.count < STARS, "stars after %zu", s.stars.count);
    fit_reference(&s, want);
    fit_with(device->context, &s, got);
    for (size_t i = 0; i < s.stars.count; ++i)
        expect_same_fit(&s, &want[i], &got[i]);
    if (!damaged)
        for (size_t i = 0; i < s.stars.count; ++i)
            expect_near("truth", s.truth[i][0], got[i].velocity, 6 * got[i].velocity_error);
    clv_specfit_results_clear(want, s.stars.count), clv_specfit_results_clear(got, s.stars.count);
    synthetic_stars_clear(&s);
}

static void finds_the_stars(test_device *device)
{
    check(device, false, false);
}

static void sees_through_the_resolution(test_device *device)
{
    check(device, true, false);
}

static void keeps_bad_fibres_apart(test_device *device)
{
    check(device, false, true);
}

/* Work-items for each point, as cards get them, on whatever is here. */
static void cards_form_finds_them_too(test_device *device)
{
    if (test_left_out(device, device->slow, "fits in the form of cards: minutes")) return;
    test_device_disguise(device, CLV_CLASS_DISCRETE_GPU);
    check(device, false, false);
}

/* A star at its truth, judged and looked at along velocity: small enough for a simulated device. */
static void judges_a_point(test_device *device)
{
    enum { SPEEDS = 3 };
    synthetic_stars s;
    clv_specfit_result want[1], got[1];
    double scan[2][SPEEDS];
    EXPECT_OK(synthetic_stars_create(1, SEED, true, &s));
    clv_context *plain = test_plain_context();
    for (int k = 0; k < 2; ++k) {
        clv_context *context = k ? device->context : plain;
        EXPECT_OK(clv_specfit_at(context, &s.library, &s.stars, s.truth[0], 1, NULL, k ? got : want,
                                 NULL));
        EXPECT_OK(clv_specfit_scan(context, &s.library, &s.stars, s.truth[0], s.truth[0][0] - 40,
                                   40, SPEEDS, NULL, scan[k], NULL));
    }
    expect_near("-2 log L", want->neg2logl, got->neg2logl, 0.01);
    expect_near("in the scan", got->neg2logl, scan[1][1], 0.01);
    for (int k = 0; k < SPEEDS; ++k)
        expect_near("along velocity", scan[0][k], scan[1][k], 0.02);
    clv_context_free(plain);
    synthetic_stars_clear(&s);
}

/* All contexts of this file share what was compiled: the kernels are the same in each test. */
static const char *compiled(void)
{
    static char folder[300];
    snprintf(folder, sizeof folder, "%s/compiled", test_temp_dir());
    return folder;
}

static void each_device(void (*claim)(test_device *device))
{
    const clv_context_options options = { .size = sizeof(clv_context_options),
                                          .cache_dir = compiled() };
    for (size_t i = 0; i < test_device_count(); ++i) {
        test_device device;
        test_device_open(i, &options, &device);
        claim(&device);
        test_device_close(&device);
    }
}

static void a_point_matches(void **state)
{
    (void)state;
    each_device(judges_a_point);
}

/* A chunk of stars on this very thread, without a job: its memory is within reach. */
typedef struct chunk {
    clv_spectra_plan *plan;
    clv_worker *worker;
    size_t stars, bytes;
    unsigned char *bits; /* what came out */
} chunk;

static void chunk_begin(test_device *device, const synthetic_stars *s, chunk *c)
{
    const clv_specfit_options options = { .size = sizeof options, .models = true };
    EXPECT_OK(clv_spectra_plan_create(&s->library, &s->stars, &options, &c->plan));
    c->plan->wish.threads = 1, c->plan->wish.scans = true, c->stars = s->stars.count;
    c->worker = clv_zalloc(1, sizeof *c->worker);
    assert_non_null(c->worker);
    c->worker->device = device->device, c->worker->queue = device->queue;
    c->worker->slots[0] = (clv_slot){ .worker = c->worker, .queue = device->queue };
    EXPECT_OK(clv_spectra_setup(c->worker, c->plan));
    c->bits = NULL;
}

/* Results of the chunk, one behind the other. */
static void chunk_run(chunk *c)
{
    static const unsigned keys[] = { CLV_SPECTRA_STATES, CLV_SPECTRA_FOUND, CLV_SPECTRA_MODELS };
    clv_slot *slot = &c->worker->slots[0];
    const size_t bytes[] = { c->stars * CLV_SPECTRA_STATE * sizeof(float),
                             c->stars * CLV_SPECTRA_FOUND_BY_STAR * sizeof(float),
                             c->stars * c->plan->sizes.all_pixels * sizeof(float) };
    clv_slot_begin(slot);
    EXPECT_OK(clv_spectra_enqueue(slot, 0, c->stars, c->plan));
    EXPECT_OK(clv_slot_finish(slot));
    EXPECT_OK(clv_queue_wait(slot->queue));
    c->bytes = bytes[0] + bytes[1] + bytes[2];
    if (!c->bits) c->bits = clv_alloc(c->bytes, 1);
    assert_non_null(c->bits);
    for (size_t i = 0, at = 0; i < 3; at += bytes[i++])
        memcpy(c->bits + at, clv_slot_result(slot, keys[i]), bytes[i]);
    clv_slot_done(slot);
}

/* Every buffer of the chunk, where it will find it again. */
static void chunk_poison(chunk *c, uint32_t pattern)
{
    clv_slot *slot = &c->worker->slots[0];
    for (size_t i = 0; i < slot->keyed_count; ++i) {
        if (!slot->keyed[i].buffer) continue; /* a result that the host makes */
        EXPECT_OK(clv_fill_enqueue(slot->queue, slot->keyed[i].buffer, 0,
                                   slot->keyed[i].bytes / 4 * 4, pattern, NULL));
    }
    EXPECT_OK(clv_queue_wait(slot->queue));
}

static void chunk_end(chunk *c)
{
    clv_keyed_free(c->worker->slots[0].keyed, &c->worker->slots[0].keyed_count);
    clv_keyed_free(c->worker->keyed, &c->worker->keyed_count);
    clv_spectra_plan_free(c->plan);
    clv_free(c->worker), clv_free(c->bits);
}

/* A point judged and looked at along velocity in the form of cards, on a simulated device too. */
static void judges_as_a_card(test_device *device)
{
    synthetic_stars s;
    chunk c;
    if (test_left_out(device, device->slow, "a point in the form of cards: compiles for minutes"))
        return;
    EXPECT_OK(synthetic_stars_create(1, SEED, true, &s));
    test_device_disguise(device, CLV_CLASS_DISCRETE_GPU);
    chunk_begin(device, &s, &c);
    c.plan->wish.points = s.truth[0], c.plan->wish.scan_count = 3;
    c.plan->wish.scan_from = (float)s.truth[0][0] - 40, c.plan->wish.scan_step = 40;
    chunk_run(&c);
    float value;
    memcpy(&value, c.bits + CLV_S_VALUE * sizeof value, sizeof value);
    assert_true(isfinite(value));
    chunk_end(&c);
    synthetic_stars_clear(&s);
}

static void a_card_judges_a_point(void **state)
{
    (void)state;
    each_device(judges_as_a_card);
}

/* Whole fits of stars, good ones and bad: nothing of what the memory held before comes out. */
static void leaves_old_memory_alone(test_device *device)
{
    const clv_device_class forms[] = { CLV_CLASS_CPU, CLV_CLASS_DISCRETE_GPU };
    if (test_left_out(device, device->slow || device->tiny, "whole fits in two forms: minutes"))
        return;
    for (size_t f = 0; f < 2; ++f) {
        synthetic_stars s;
        chunk c;
        unsigned char *clean;
        EXPECT_OK(synthetic_stars_create(STARS, SEED, true, &s));
        synthetic_stars_damage(&s);
        test_device_disguise(device, forms[f]);
        chunk_begin(device, &s, &c);
        chunk_run(&c);
        chunk_poison(&c, 0);
        chunk_run(&c);
        clean = clv_alloc(c.bytes, 1);
        assert_non_null(clean);
        memcpy(clean, c.bits, c.bytes);
        chunk_poison(&c, 0x7fc0dead); /* a NaN */
        chunk_run(&c);
        assert_memory_equal(clean, c.bits, c.bytes);
        clv_free(clean);
        chunk_end(&c);
        synthetic_stars_clear(&s);
    }
}

static void old_memory_does_not_matter(void **state)
{
    (void)state;
    each_device(leaves_old_memory_alone);
}

static void matches_reference(void **state)
{
    (void)state;
    each_device(finds_the_stars);
}

static void matches_with_resolution(void **state)
{
    (void)state;
    each_device(sees_through_the_resolution);
}

static void bad_fibres_are_flagged(void **state)
{
    (void)state;
    each_device(keeps_bad_fibres_apart);
}

static void cards_form_matches(void **state)
{
    (void)state;
    each_device(cards_form_finds_them_too);
}

static void forget_models(clv_specfit_result *r)
{
    clv_specfit_result kept = *r;
    memset(kept.model, 0, sizeof kept.model);
    clv_specfit_results_clear(r, 1);
    *r = kept;
}

/* Names the star, and where in it the first difference is. */
static void expect_same_bits(const clv_specfit_result *want, const clv_specfit_result *got)
{
    for (size_t i = 0; i < STARS; ++i) {
        const unsigned char *a = (const void *)&want[i], *b = (const void *)&got[i];
        size_t at = 0;
        while (at < sizeof *want && a[at] == b[at])
            ++at;
        if (at == sizeof *want) continue;
        print_error("star %zu differs from byte %zu on: -2 log L %.17g and %.17g, velocity %.17g "
                    "and %.17g, %u and %u rounds\n",
                    i, at, want[i].neg2logl, got[i].neg2logl, want[i].velocity, got[i].velocity,
                    want[i].rounds, got[i].rounds);
        fail();
    }
}

static void bits_do_not_depend_on_the_split(void **state)
{
    (void)state;
    const char *cache = compiled();
    const clv_context_options splits[] = {
        { .size = sizeof(clv_context_options), .cache_dir = cache },
        { .size = sizeof(clv_context_options), .cache_dir = cache, .batch = 1 },
        { .size = sizeof(clv_context_options), .cache_dir = cache, .batch = 4 }
    };
    synthetic_stars s;
    EXPECT_OK(synthetic_stars_create(STARS, SEED, false, &s));
    for (size_t n = 0; n < test_device_count(); ++n) {
        clv_specfit_result first[STARS], now[STARS];
        for (size_t k = 0; k < sizeof splits / sizeof *splits; ++k) {
            test_device device;
            test_device_open(n, &splits[k], &device);
            if (!test_left_out(&device, device.slow, "fits in split %zu: minutes", k)) {
                fit_with(device.context, &s, k ? now : first);
                for (size_t i = 0; i < STARS; ++i) /* the pointers are not the results */
                    forget_models(k ? &now[i] : &first[i]);
                if (k) expect_same_bits(first, now);
            }
            test_device_close(&device);
        }
    }
    synthetic_stars_clear(&s);
}

/* What the star looks like when this very thread prepares it. */
typedef struct prepared {
    clv_spectra_plan *plan;
    clv_star_data data;
    size_t first, seen;
} prepared;

static clv_status compare_star(const clv_star_pack *pack, size_t index, void *user)
{
    prepared *p = user;
    const clv_spectra_plan *plan = p->plan;
    const size_t pixels = plan->sizes.all_pixels,
                 starts = plan->stars.spectra * 2 * plan->sizes.ccf_room;
    const clv_star_data *d = &p->data;
    assert_int_equal(index, p->seen++);
    EXPECT_OK(clv_star_prepare(plan, p->first + index, &p->data));
    assert_memory_equal(pack->pairs, d->pairs, 2 * pixels * sizeof(float));
    assert_memory_equal(pack->ccf, d->ccf, starts * sizeof(float));
    assert_memory_equal(pack->resolution, d->resolution,
                        pixels * plan->sizes.diagonals * sizeof(float));
    assert_true(pack->facts.log_sigmas == d->facts.log_sigmas);
    return CLV_OK;
}

static void stars_are_prepared_alike_by_any_thread(void **state)
{
    (void)state;
    static const size_t ranges[][3] = { { 0, 2, 3 }, { 2, 4, 0 }, { 1, 3, 2 }, { 0, 6, 6 } };
    synthetic_stars s;
    EXPECT_OK(synthetic_stars_create(STARS, SEED, true, &s));
    for (size_t threads = 1; threads <= 4; threads += 3) {
        prepared p = { 0 };
        clv_star_feed *feed;
        EXPECT_OK(clv_spectra_plan_create(&s.library, &s.stars, NULL, &p.plan));
        EXPECT_OK(clv_star_data_create(p.plan, &p.data));
        EXPECT_OK(clv_star_feed_create(p.plan, threads, &feed));
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; ++i) { /* some stars again */
            p.first = ranges[i][0], p.seen = 0;
            EXPECT_OK(
                clv_star_feed_bring(feed, p.first, ranges[i][1], ranges[i][2], compare_star, &p));
            assert_int_equal(p.seen, ranges[i][1]);
        }
        clv_star_feed_free(feed);
        clv_star_data_clear(&p.data), clv_spectra_plan_free(p.plan);
    }
    synthetic_stars_clear(&s);
}

/* Numbers of a library and options whose quotients are beyond every index. */
static void numbers_beyond_indices_are_refused(void **state)
{
    (void)state;
    static const struct {
        double log0, log1;
        const char *why;
    } ranges[] = { { 0, 1e-25, "steps of the first search, but at most 127 are possible" },
                   { 8, 8 + 0x1p-49, "steps of the first search, but at most 127 are possible" },
                   { 8, (double)INFINITY, "go from 8 to inf in ln(wavelength)" },
                   { -1e300, 8, "go from -1e+300 to 8 in ln(wavelength)" },
                   { (double)NAN, 8, "go from nan to 8 in ln(wavelength)" } };
    synthetic_stars s;
    clv_spectra_plan *plan;
    EXPECT_OK(synthetic_stars_create(1, SEED, false, &s));
    clv_spectra_arm arms[2];
    clv_spectra_library library = s.library;
    assert_int_equal(library.arm_count, 2);
    memcpy(arms, library.arms, sizeof arms);
    library.arms = arms;
    for (size_t i = 0; i < CLV_LEN(ranges); ++i) {
        arms[0].ccf_points = 256;
        arms[0].ccf_log0 = ranges[i].log0, arms[0].ccf_log1 = ranges[i].log1;
        EXPECT_FAIL(CLV_E_ARGUMENT, ranges[i].why,
                    clv_spectra_plan_create(&library, &s.stars, NULL, &plan));
    }
    arms[0] = *s.library.arms;
    arms[0].first = 1e-320; /* the range is more than a float64 can hold */
    EXPECT_FAIL(CLV_E_ARGUMENT, "wavelengths go from 9.99989e-321 to",
                clv_spectra_plan_create(&library, &s.stars, NULL, &plan));
    const clv_specfit_options options = { .size = sizeof options, .velocity_step_kms = 1e-300 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "give 2e+303 velocities; expected 2 to 19999",
                clv_spectra_plan_create(&s.library, &s.stars, &options, &plan));
    synthetic_stars_clear(&s);
}

/* Splines with more nodes than there is room for, and with nodes too far apart for a float64. */
static void continua_have_a_spline_of_any_width(void **state)
{
    (void)state;
    enum { PIXELS = 2000 };
    static const double kms[] = { 1, 1e-300, 1e-9, 1000, 1e9, 1e200, 1e308 };
    static double wave[PIXELS], flux[PIXELS], sigma[PIXELS], scratch[PIXELS], out[PIXELS];
    for (size_t k = 0; k < PIXELS; ++k) {
        wave[k] = 3600 + 3 * (double)k;
        flux[k] = 5 + 1e-4 * (double)k, sigma[k] = 0.1;
    }
    for (size_t i = 0; i < CLV_LEN(kms); ++i) {
        clv_continuum c;
        EXPECT_OK(clv_continuum_create(wave, PIXELS, kms[i], &c));
        clv_continuum_fit(&c, wave, PIXELS, flux, sigma, 6, scratch, out);
        for (size_t k = 0; k < PIXELS; ++k)
            if (!(fabs(out[k] / flux[k] - 1) < 0.1))
                fail_msg("a spline of %g km/s: %g at pixel %zu, not %g", kms[i], out[k], k,
                         flux[k]);
        clv_continuum_clear(&c);
    }
}

/* Devices have room for 110 points: templates with finer steps cannot rotate as fast. */
static void rotation_ends_where_its_kernel_has_no_room(void **state)
{
    (void)state;
    synthetic_stars s;
    clv_spectra_plan *plan;
    synthetic_stars_shape shape = synthetic_stars_small;
    EXPECT_OK(synthetic_stars_create_like(&shape, 1, SEED, false, &s));
    EXPECT_OK(clv_spectra_plan_create(&s.library, &s.stars, NULL, &plan));
    assert_true(plan->box.high[1] == 500);
    clv_spectra_plan_free(plan), synthetic_stars_clear(&s);
    shape.point = 0.02;
    EXPECT_OK(synthetic_stars_create_like(&shape, 1, SEED, false, &s));
    EXPECT_OK(clv_spectra_plan_create(&s.library, &s.stars, NULL, &plan));
    const double dln = fmin(plan->grid[0].dln, plan->grid[1].dln);
    assert_true(110 * dln * CLV_LIGHT_KMS < 400);
    assert_true(fabs(plan->box.high[1] / (110 * dln * CLV_LIGHT_KMS) - 1) < 1e-12);
    clv_spectra_plan_free(plan);
    clv_star_prior prior = { .value = { 0, 400 }, .fixed = { false, true } };
    s.stars.priors = &prior;
    EXPECT_FAIL(CLV_E_ARGUMENT, "vsini is to be fixed at 400, but the library and the limits allow",
                clv_spectra_plan_create(&s.library, &s.stars, NULL, &plan));
    synthetic_stars_clear(&s);
}

static void rejects_what_cannot_be(void **state)
{
    (void)state;
    synthetic_stars s;
    clv_specfit_result out[STARS];
    clv_specfit_options options = { .size = sizeof options, .max_velocity_kms = 5000 };
    clv_context *context = test_plain_context();
    EXPECT_OK(synthetic_stars_create(1, SEED, false, &s));
    EXPECT_FAIL(CLV_E_SHAPE, "covers",
                clv_specfit(context, &s.library, &s.stars, &options, out, NULL));
    options = (clv_specfit_options){ .size = sizeof options, .terms = 16 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "terms",
                clv_specfit(context, &s.library, &s.stars, &options, out, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_specfit(context, NULL, &s.stars, NULL, out, NULL));
    s.stars.count = 0;
    EXPECT_OK(clv_specfit(context, &s.library, &s.stars, NULL, out, NULL));
    synthetic_stars_clear(&s);
    clv_context_free(context);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_matches),
        cmocka_unit_test(a_card_judges_a_point),
        cmocka_unit_test(old_memory_does_not_matter),
        cmocka_unit_test(matches_reference),
        cmocka_unit_test(matches_with_resolution),
        cmocka_unit_test(bad_fibres_are_flagged),
        cmocka_unit_test(cards_form_matches),
        cmocka_unit_test(bits_do_not_depend_on_the_split),
        cmocka_unit_test(stars_are_prepared_alike_by_any_thread),
        cmocka_unit_test(numbers_beyond_indices_are_refused),
        cmocka_unit_test(continua_have_a_spline_of_any_width),
        cmocka_unit_test(rotation_ends_where_its_kernel_has_no_room),
        cmocka_unit_test(rejects_what_cannot_be),
    };
    test_choose(argc, argv);
    test_isolate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
