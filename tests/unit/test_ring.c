/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of companions from the planets of a ring: results scatter by 1 in units of them, however few the planets. */
#include "test.h"

#include "host/patch/measure.h"

#include <math.h>

/* Returns numbers with a normal distribution, as two of Box and Muller's. */
static double normal(uint64_t *state)
{
    double u[2];
    for (int i = 0; i < 2; ++i) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        u[i] = ((double)(*state >> 11) + 0.5) * 0x1p-53;
    }
    return sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]);
}

/* Fluxes and positions scatter three times as much as the likelihood says. Returns in `flux` and `place` the standard
 * deviation of results in units of their errors. */
static void pulls(size_t planets, double *flux, double *place)
{
    enum { TRIALS = 40000, MOST = 24 };
    clv_fit_planet ring[MOST];
    uint64_t state = 28 + planets;
    *flux = *place = 0;
    for (int trial = 0; trial < TRIALS; ++trial) {
        for (size_t i = 0; i < planets; ++i)
            ring[i] = (clv_fit_planet){ .at = { .a = 1,
                                                .injected = 100,
                                                .flux = 100 + 6 * normal(&state),
                                                .aside_x = 0.3 * normal(&state),
                                                .aside_y = 0.3 * normal(&state) },
                                        .reach = 1,
                                        .flux_err = 2,
                                        .x_err = 0.1,
                                        .y_err = 0.1 };
        clv_companion c = { .flux = 100, .flux_err = 2, .x_err = 0.1, .y_err = 0.1 };
        clv_measure_by_ring(ring, planets, &c);
        assert_int_equal(c.ring, planets);
        *flux += pow(6 * normal(&state) / c.flux_err, 2) / TRIALS;
        *place += pow(0.3 * normal(&state) / c.x_err, 2) / TRIALS;
    }
    *flux = sqrt(*flux), *place = sqrt(*place);
}

static void results_scatter_by_one(void **state)
{
    (void)state;
    static const size_t counts[] = { 8, 12, 24 };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
        double flux, place;
        pulls(counts[i], &flux, &place);
        assert_true(fabs(flux - 1) < 0.025);
        assert_true(fabs(place - 1) < 0.015);
    }
}

static void five_planets_say_nothing(void **state)
{
    (void)state;
    clv_fit_planet ring[5];
    for (size_t i = 0; i < 5; ++i)
        ring[i] = (clv_fit_planet){ .at = { .a = 1, .injected = 100, .flux = 150 }, .flux_err = 2 };
    clv_companion c = { .flux = 100, .flux_err = 2, .x_err = 0.1, .y_err = 0.1 };
    clv_measure_by_ring(ring, 5, &c);
    assert_true(c.flux_err == 2 && c.x_err == 0.1 && c.y_err == 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(results_scatter_by_one),
                                        cmocka_unit_test(five_planets_say_nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
