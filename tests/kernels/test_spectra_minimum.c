/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that fits end at the minimum: computes in float64 how much a further Newton step would gain where a fit has
 * ended, on every device and in plain C. A fit takes its last step without evaluating it first. Without that step, at
 * most 0.0035 is left, and 0.00055 on average; with it 0.00014 and 0.00005. Fits that are stopped before they converge
 * say so. */
#include "device.h"
#include "test.h"

#include "host/spectra/spectra_job.h"
#include "host/synthetic/stars.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = CLV_SPECTRA_UNKNOWNS, STARS = 24, SEED = 41, POINTS = 2 * N };

static const double MOST_LEFT = 7e-4, USUALLY_LEFT = 2e-4;

/* Distances for central differences: small against the errors of these stars, large against rounding. */
static const double distance[N] = { 0.05, 0.2, 1, 0.003, 0.003, 0.003 };

static const double *unknowns_of(const clv_specfit_result *r, double x[N])
{
    x[0] = r->velocity, x[1] = r->vsini, x[2] = r->teff;
    x[3] = r->logg, x[4] = r->feh, x[5] = r->alpha;
    return x;
}

/* Gains of L2 = -2 log L by a Newton step from the results' points: with the slope g by central differences and the
 * covariance C there, L2 falls by g'C g / 4. A star at a limit of the library or of vsini gets NaN. */
static void gains_left(clv_context *plain, const synthetic_stars *s, const clv_specfit_result *r,
                       double *gain)
{
    static double points[STARS][POINTS][N];
    static clv_specfit_result at[STARS][POINTS];
    for (size_t i = 0; i < s->stars.count; ++i)
        for (int p = 0; p < POINTS; ++p) {
            unknowns_of(&r[i], points[i][p]);
            points[i][p][p / 2] += p % 2 ? distance[p / 2] : -distance[p / 2];
        }
    EXPECT_OK(
        clv_specfit_at(plain, &s->library, &s->stars, points[0][0], POINTS, NULL, at[0], NULL));
    for (size_t i = 0; i < s->stars.count; ++i) {
        double slope[N];
        gain[i] = 0;
        for (int a = 0; a < N; ++a)
            slope[a] = (at[i][2 * a + 1].neg2logl - at[i][2 * a].neg2logl) / (2 * distance[a]);
        for (int a = 0, e = 0; a < N; ++a)
            for (int b = 0; b <= a; ++b, ++e)
                gain[i] += (a == b ? 0.25 : 0.5) * slope[a] * slope[b] * r[i].covariance[e];
        if (r[i].warnings & CLV_SPECFIT_PARAMETER_EDGE || r[i].vsini < 2 * distance[1])
            gain[i] = NAN;
    }
}

/* Devices need fewer rounds than plain C, since their first ones use a single arm. Without this they need 6.5. */
static const double ROUNDS_OF_DEVICES = 6.15, ROUNDS_OF_PLAIN_C = 6.8;

static void expect_little_left(clv_context *context, const char *name, size_t count,
                               double most_rounds)
{
    synthetic_stars s;
    static clv_specfit_result found[STARS];
    double gain[STARS], worst = 0, sum = 0, rounds = 0;
    size_t judged = 0;
    EXPECT_OK(synthetic_stars_create(count, SEED, false, &s));
    clv_context *plain = test_plain_context();
    const clv_specfit_options options = { .size = sizeof options, .reject_sigma = INFINITY };
    EXPECT_OK(clv_specfit(context, &s.library, &s.stars, &options, found, NULL));
    gains_left(plain, &s, found, gain);
    for (size_t i = 0; i < count; ++i) {
        rounds += found[i].rounds / (double)count;
        if (isnan(gain[i])) continue;
        ++judged, sum += gain[i], worst = fmax(worst, gain[i]);
    }
    print_message(
        "%s: %zu stars, -2 log L may still fall by %.2g at most, %.2g on average, %.2f rounds\n",
        name, judged, worst, sum / (double)judged, rounds);
    assert_true(judged > count / 2);
    assert_true(worst < MOST_LEFT && sum / (double)judged < USUALLY_LEFT);
    assert_true(rounds < most_rounds);
    clv_context_free(plain);
    synthetic_stars_clear(&s);
}

static void on_a_device(test_device *device)
{
    if (test_left_out(device, device->tiny, "fits: too long")) return;
    const bool few = test_left_out(device, device->slow, "stars after the third");
    expect_little_left(device->context, device->name, few ? 3 : STARS, ROUNDS_OF_DEVICES);
}

static void devices_end_at_the_minimum(void **state)
{
    (void)state;
    test_each_device(on_a_device);
}

static void plain_c_ends_at_the_minimum(void **state)
{
    (void)state;
    clv_context *plain = test_plain_context();
    expect_little_left(plain, "plain C", STARS, ROUNDS_OF_PLAIN_C);
    clv_context_free(plain);
}

/* Returns how many of four stars have the warning after at most `rounds` rounds; 0: as many as usual. */
static int warned_after(clv_context *context, int rounds)
{
    enum { FEW = 4 };
    synthetic_stars s;
    clv_spectra_plan *plan;
    clv_specfit_result found[FEW];
    int warned = 0;
    memset(found, 0, sizeof found);
    EXPECT_OK(synthetic_stars_create(FEW, SEED, false, &s));
    EXPECT_OK(clv_spectra_plan_create(&s.library, &s.stars, NULL, &plan));
    plan->run.results = found;
    plan->wish.rounds = rounds, plan->wish.threads = 1;
    EXPECT_OK(clv_spectra_run_plan(context, plan, "specfit", NULL));
    for (int i = 0; i < FEW; ++i) {
        warned += (found[i].warnings & CLV_SPECFIT_BAD_HESSIAN) != 0;
        assert_true(isfinite(found[i].velocity));
    }
    clv_spectra_plan_free(plan);
    synthetic_stars_clear(&s);
    return warned;
}

static void stopped_fits_are_told_on(test_device *device)
{
    if (test_left_out(device, device->tiny || device->slow, "fits: too long")) return;
    assert_int_equal(warned_after(device->context, 1), 4);
    assert_int_equal(warned_after(device->context, 0), 0);
}

static void stopped_fits_are_told(void **state)
{
    (void)state;
    clv_context *plain = test_plain_context();
    assert_int_equal(warned_after(plain, 2), 4);
    assert_int_equal(warned_after(plain, 0), 0);
    clv_context_free(plain);
    test_each_device(stopped_fits_are_told_on);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_c_ends_at_the_minimum),
        cmocka_unit_test(devices_end_at_the_minimum),
        cmocka_unit_test(stopped_fits_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
