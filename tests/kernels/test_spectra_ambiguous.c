/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that fits of faint stars, which have several minima, end at the lowest known minimum. They must end no higher
 * than the best of eight starts, and no higher than at the parameters that were found for the same stars without the
 * noise. A star's result must not depend on the other stars. */
#include "device.h"
#include "spectra_files.h"
#include "test.h"

#include "base/alloc.h"
#include "host/spectra/spectra_math.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SPECTRA = 3, MOST_STARS = 24, COPIES = 4, STARS = MOST_STARS * COPIES };

/* Fits in an instrumented library take ten times as long, and take the same ways for each star. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { DEVICE_STRIDE = 13, TOGETHER_STRIDE = 23, OTHER_STRIDE = 13 };
#else
enum { DEVICE_STRIDE = 1, TOGETHER_STRIDE = 7, OTHER_STRIDE = 5 };
#endif

static const double FAINT[COPIES] = { 5, 5, 3, 3 }; /* S/N */
static const double ALLOWED = 0.01;                 /* -2 log L */

typedef struct faint_stars {
    golden_coadd coadd;
    clv_spectra_stars stars;
    clv_spectrum items[STARS * SPECTRA];
    size_t origin[STARS]; /* the star of the coadd */
    float *pixels;
} faint_stars;

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
    const double r = sqrt(-2 * log(uniform(state)));
    return r * cos(6.283185307179586 * uniform(state));
}

static double median_of(const float *flux, size_t n)
{
    double *room = clv_alloc(n, sizeof *room);
    assert_non_null(room);
    for (size_t k = 0; k < n; ++k)
        room[k] = isfinite(flux[k]) ? (double)flux[k] : 0;
    const double middle = clv_median(room, n);
    clv_free(room);
    return middle;
}

/* Copies a spectrum and adds noise, so that its S/N is `faint`. Returns the end of the copy's pixels. */
static float *make_faint(const clv_spectrum *from, double faint, uint64_t *state, float *at,
                         clv_spectrum *to)
{
    const size_t n = from->pixels;
    float *flux = at, *ivar = at + n;
    const double wanted = fabs(median_of(from->flux, n)) / faint;
    for (size_t k = 0; k < n; ++k) {
        const double had = (double)from->ivar[k] > 0 ? 1 / (double)from->ivar[k] : INFINITY,
                     more = fmax(wanted * wanted - had, 0);
        flux[k] = from->flux[k] + (float)(sqrt(more) * normal(state));
        ivar[k] = (float)(1 / (had + more));
    }
    *to = *from, to->flux = flux, to->ivar = ivar;
    return at + 2 * n;
}

/* Opens every `stride`-th of the faint stars. */
static void open_faint(faint_stars *f, size_t stride)
{
    uint64_t state = 2026;
    f->coadd = golden_open("a", false);
    const size_t count = f->coadd.stars.count;
    size_t pixels = 0;
    assert_true(count <= MOST_STARS);
    for (size_t i = 0; i < count * SPECTRA; ++i)
        pixels += 2 * f->coadd.items[i].pixels;
    float *at = f->pixels = clv_alloc(COPIES * pixels, sizeof *f->pixels);
    assert_non_null(at);
    for (size_t i = 0; i < COPIES * count * SPECTRA; ++i)
        at = make_faint(&f->coadd.items[i % (count * SPECTRA)], FAINT[i / (count * SPECTRA)],
                        &state, at, &f->items[i]);
    f->stars = f->coadd.stars;
    f->stars.items = f->items, f->stars.count = 0;
    for (size_t i = 0; i < COPIES * count; i += stride) {
        memmove(&f->items[f->stars.count * SPECTRA], &f->items[i * SPECTRA],
                SPECTRA * sizeof f->items[0]);
        f->origin[f->stars.count++] = i % count;
    }
}

static void close_faint(faint_stars *f)
{
    clv_free(f->pixels);
    golden_close_coadd(&f->coadd);
}

static void fit(clv_context *context, const clv_spectra_stars *stars, unsigned starts,
                clv_specfit_result *out)
{
    clv_specfit_options options = golden_options;
    options.starts = starts;
    EXPECT_OK(clv_specfit(context, &golden_library.library, stars, &options, out, NULL));
}

/* Evaluates the faint stars at the parameters of the bright ones. */
static void look_at_truth(clv_context *context, const faint_stars *f, clv_specfit_result *out)
{
    static clv_specfit_result bright[STARS];
    static clv_spectrum items[STARS * SPECTRA];
    static double points[STARS][CLV_SPECTRA_UNKNOWNS];
    clv_spectra_stars stars = f->stars;
    stars.items = items;
    for (size_t i = 0; i < stars.count * SPECTRA; ++i)
        items[i] = f->coadd.items[f->origin[i / SPECTRA] * SPECTRA + i % SPECTRA];
    fit(context, &stars, 0, bright);
    for (size_t i = 0; i < f->stars.count; ++i) {
        const clv_specfit_result *r = &bright[i];
        const double x[] = { r->velocity, r->vsini, r->teff, r->logg, r->feh, r->alpha };
        memcpy(points[i], x, sizeof x);
    }
    EXPECT_OK(clv_specfit_at(context, &golden_library.library, &f->stars, points[0], 1,
                             &golden_options, out, NULL));
}

static size_t count_above(const char *name, const char *what, const clv_specfit_result *got,
                          const clv_specfit_result *want, size_t count)
{
    size_t above = 0;
    for (size_t i = 0; i < count; ++i) {
        const double more = got[i].neg2logl - want[i].neg2logl;
        if (!(more > ALLOWED)) continue;
        ++above;
        print_message("%s: star %zu ends %.3f above %s: %.1f and %.1f km/s, alpha %.2f and %.2f\n",
                      name, i, more, what, got[i].velocity, want[i].velocity, got[i].alpha,
                      want[i].alpha);
    }
    return above;
}

static void expect_lowest(clv_context *context, const char *name, size_t stride)
{
    static faint_stars f;
    static clv_specfit_result got[STARS], other[STARS];
    open_faint(&f, stride);
    fit(context, &f.stars, 0, got);
    look_at_truth(context, &f, other);
    const size_t above = count_above(name, "the truth", got, other, f.stars.count);
    fit(context, &f.stars, 8, other);
    assert_int_equal(above + count_above(name, "eight starts", got, other, f.stars.count), 0);
    close_faint(&f);
}

static void on_a_device(test_device *device)
{
    if (test_left_out(device, device->tiny || device->slow, "fits from many points: too long"))
        return;
    /* The first driver of a CPU fits all stars; its other drivers compile the same kernels, and fit every fifth. */
    const size_t stride = test_device_is_another_driver(device) ? OTHER_STRIDE : 1;
    expect_lowest(device->context, device->name, CLV_MAX(DEVICE_STRIDE, stride));
}

static void devices_find_the_lowest_minimum(void **state)
{
    (void)state;
    test_each_device(on_a_device);
}

static void plain_c_finds_the_lowest_minimum(void **state)
{
    (void)state;
    clv_context *plain = test_plain_context();
    expect_lowest(plain, "plain C", 19);
    clv_context_free(plain);
}

/* Fits the stars together and one by one. */
static void alone_as_together_on(test_device *device)
{
    static faint_stars f;
    static clv_specfit_result together[STARS], alone;
    if (test_left_out(device, device->tiny || device->slow, "fits one by one: too long")) return;
    open_faint(&f, TOGETHER_STRIDE);
    fit(device->context, &f.stars, 0, together);
    for (size_t i = 0; i < f.stars.count; ++i) {
        clv_spectra_stars one = f.stars;
        one.count = 1, one.items = f.items + i * SPECTRA;
        fit(device->context, &one, 0, &alone);
        assert_true(alone.neg2logl == together[i].neg2logl);
        assert_true(alone.velocity == together[i].velocity && alone.alpha == together[i].alpha);
        assert_int_equal(alone.starts_agreed, together[i].starts_agreed);
    }
    close_faint(&f);
}

static void other_stars_do_not_matter(void **state)
{
    (void)state;
    test_each_device(alone_as_together_on);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_c_finds_the_lowest_minimum),
        cmocka_unit_test(devices_find_the_lowest_minimum),
        cmocka_unit_test(other_stars_do_not_matter),
    };
    return cmocka_run_group_tests(tests, golden_begin, golden_end);
}
