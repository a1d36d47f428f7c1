/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks that can be reckoned by hand: sorting, displacements, drift, filters, wrong arguments. */
#include "test.h"

#include "base/alloc.h"

#include <cleave/motion.h>

#include <math.h>
#include <string.h>

/* Two tracks over frames 3 to 6, one with a gap, in no order; the last point belongs to none. */
static const clv_point points[] = { { 4, 1, 2 },   { 3, 0, 0 },   { 6, 1, 7 },   { 3, 10, 10 },
                                    { 4, 12, 10 }, { 5, 12, 11 }, { 6, 13, 11 }, { 5, 99, 99 } };
static const int64_t particle[] = { 8, 8, 8, 2, 2, 2, 2, -1 };

static void near(double got, double want, double error)
{
    if (!(fabs(got - want) <= error)) fail_msg("%.17g, expected %.17g", got, want);
}

static clv_tracks *make(void)
{
    clv_tracks *tracks;
    EXPECT_OK(clv_tracks_create(points, NULL, particle, 8, &tracks));
    return tracks;
}

static void tracks_are_sorted_and_described(void **unused)
{
    (void)unused;
    clv_tracks *tracks = make();
    int64_t first, last;
    clv_tracks_frames(tracks, &first, &last);
    assert_int_equal(first, 3), assert_int_equal(last, 6);
    assert_int_equal(clv_tracks_count(tracks), 2), assert_int_equal(clv_tracks_axes(tracks), 2);
    const clv_track two = clv_tracks_at(tracks, 0), eight = clv_tracks_at(tracks, 1);
    assert_int_equal(two.particle, 2), assert_int_equal(two.spots, 4);
    assert_int_equal(eight.particle, 8), assert_int_equal(eight.spots, 3);
    near(eight.displacement, sqrt(1 + 49), 1e-12);
    near(two.extent, sqrt(9 + 1), 1e-12);
    clv_point sorted[8];
    assert_int_equal(clv_tracks_spots(tracks, sorted, NULL, NULL), 7);
    assert_int_equal(sorted[5].frame, 4), near(sorted[5].x, 2, 0);
    clv_tracks_free(tracks);
}

static void displacements_are_those_of_the_lag(void **unused)
{
    (void)unused;
    clv_tracks *tracks = make();
    clv_msd m[3];
    EXPECT_OK(clv_tracks_msd(tracks, 0, 3, m)); /* steps (2,0), (0,1), (1,0) */
    near(m[0].msd, 2, 1e-12), assert_int_equal(m[0].pairs, 3);
    near(m[1].msd, (5 + 2) / 2.0, 1e-12);
    near(m[2].msd, 10, 1e-12), near(m[2].mean[1], 3, 1e-12);
    EXPECT_OK(clv_tracks_msd(tracks, 1, 3, m)); /* frames 3, 4, 6 */
    near(m[0].msd, 5, 1e-12), assert_int_equal(m[0].pairs, 1);
    near(m[1].msd, 25, 1e-12), near(m[2].msd, 50, 1e-12);
    EXPECT_OK(clv_tracks_msd(tracks, CLV_ALL_TRACKS, 3, m));
    assert_int_equal(m[0].pairs, 4), assert_int_equal(m[0].tracks, 2);
    clv_tracks_free(tracks);
}

/* A spot in every second frame: no pairs at odd lags. What the others tell is that of trackpy 0.7 (column N of msd). */
static void lags_without_pairs_tell_nothing(void **unused)
{
    (void)unused;
    static const clv_point p[] = { { .frame = 0, .y = 0, .x = 0 },
                                   { .frame = 2, .y = 0.5, .x = 1 },
                                   { .frame = 4, .y = 0.2, .x = 3 },
                                   { .frame = 8, .y = 1, .x = 2 },
                                   { .frame = 10, .y = 2, .x = 5 } };
    static const int64_t id[CLV_LEN(p)] = { 0 };
    static const double tells[] = { 0, 7.074967, 0, 3.321728, 0, 1.965269 };
    clv_tracks *tracks;
    clv_msd msd[CLV_LEN(tells)];
    EXPECT_OK(clv_tracks_create(p, NULL, id, CLV_LEN(p), &tracks));
    EXPECT_OK(clv_tracks_msd(tracks, 0, CLV_LEN(tells), msd));
    for (size_t k = 0; k < CLV_LEN(tells); ++k) {
        near(msd[k].independent, tells[k], 1e-6);
        assert_true(isnan(msd[k].msd) == (tells[k] == 0));
    }
    near(msd[1].msd, 5.113333, 1e-6);
    clv_tracks_free(tracks);
}

static void drift_is_the_mean_step(void **unused)
{
    (void)unused;
    clv_tracks *tracks = make();
    double drift[4][3], smooth[4][3], share;
    EXPECT_OK(clv_tracks_drift(tracks, 0, drift[0], &share));
    static const double y[] = { 0, 1.5, 1.5, 2.5 }, x[] = { 0, 1, 2, 2 };
    for (int f = 0; f < 4; ++f)
        near(drift[f][1], y[f], 1e-12), near(drift[f][2], x[f], 1e-12);
    near(share, (2 * 0.5 + 1 + 1) / 4, 1e-12);
    EXPECT_OK(
        clv_tracks_drift(tracks, 2, smooth[0], NULL)); /* steps y 1.5, 0, 1: means 1.5, 0.75, 0.5 */
    near(smooth[3][1], 2.75, 1e-12);
    EXPECT_OK(clv_tracks_subtract(tracks, drift[0]));
    clv_point moved[7];
    clv_tracks_spots(tracks, moved, NULL, NULL);
    near(moved[3].y, 13 - 2.5, 1e-12);
    drift[2][1] = NAN;
    EXPECT_FAIL(CLV_E_ARGUMENT, "must be finite", clv_tracks_subtract(tracks, drift[0]));
    clv_tracks_free(tracks);
}

static void filters_keep_whole_tracks(void **unused)
{
    (void)unused;
    clv_tracks *tracks = make();
    EXPECT_OK(clv_tracks_filter(
        tracks, &(clv_track_filter){ .size = sizeof(clv_track_filter), .min_displacement = 5 }));
    assert_int_equal(clv_tracks_count(tracks), 1);
    clv_point left[3];
    assert_int_equal(clv_tracks_spots(tracks, left, NULL, NULL), 3);
    near(left[2].x, 7, 0);
    EXPECT_FAIL(CLV_E_ARGUMENT, "bound of length",
                clv_tracks_filter(tracks, &(clv_track_filter){ .size = sizeof(clv_track_filter),
                                                               .max_extent = NAN }));
    clv_tracks_free(tracks);
}

/* Steps of +1 and -1 in turn are errors of position alone; steps without a neighbour in common are motion alone. */
static void diffusion_tells_motion_from_errors(void **unused)
{
    (void)unused;
    enum { COUNT = 400 };
    static clv_point p[COUNT];
    static int64_t id[COUNT];
    clv_diffusion d;
    clv_tracks *tracks;
    uint64_t state = 5;
    double y = 0, x = 0;
    for (int i = 0; i < COUNT; ++i) {
        p[i] = (clv_point){ i, test_uniform(&state, -1, 1), test_uniform(&state, -1, 1) };
        id[i] = 0;
    }
    EXPECT_OK(clv_tracks_create(p, NULL, id, COUNT, &tracks));
    EXPECT_OK(clv_tracks_diffusion(tracks, 0, NULL, &d));
    assert_true(d.d < 0.004 && fabs(d.position_variance - 1 / 3.0) < 0.03);
    clv_tracks_free(tracks);
    for (int i = 0; i < COUNT; ++i)
        p[i].y = y += test_uniform(&state, -1, 1), p[i].x = x += test_uniform(&state, -1, 1);
    EXPECT_OK(clv_tracks_create(p, NULL, id, COUNT, &tracks));
    EXPECT_OK(clv_tracks_diffusion(tracks, 0, NULL, &d));
    assert_true(fabs(d.d - 1 / 6.0) < 4 * d.d_error && fabs(d.position_variance) < 0.05);
    clv_tracks_free(tracks);
}

static void wrong_arguments_are_named(void **unused)
{
    (void)unused;
    clv_tracks *tracks = make(), *none;
    clv_msd m;
    clv_diffusion d;
    double z[8] = { 0 };
    z[3] = INFINITY;
    EXPECT_FAIL(CLV_E_ARGUMENT, "point 3 is at z",
                clv_tracks_create(points, z, particle, 8, &none));
    assert_null(none);
    EXPECT_FAIL(CLV_E_ARGUMENT, "points is NULL",
                clv_tracks_create(NULL, NULL, particle, 8, &none));
    EXPECT_FAIL(CLV_E_ARGUMENT, "tracks is NULL",
                clv_tracks_create(points, NULL, particle, 8, NULL));
    static const int64_t same[8] = { 0 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "two spots in frame",
                clv_tracks_create(points, NULL, same, 8, &none));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no track 2", clv_tracks_msd(tracks, 2, 1, &m));
    EXPECT_FAIL(CLV_E_ARGUMENT, "msd is NULL", clv_tracks_msd(tracks, 0, 1, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "tracks is NULL", clv_tracks_diffusion(NULL, 0, NULL, &d));
    EXPECT_FAIL(CLV_E_ARGUMENT, "drift_share",
                clv_tracks_diffusion(tracks, 0,
                                     &(clv_diffusion_options){
                                         .size = sizeof(clv_diffusion_options), .drift_share = -1 },
                                     &d));
    EXPECT_FAIL(CLV_E_ARGUMENT, "drift is NULL", clv_tracks_drift(tracks, 1, NULL, NULL));
    clv_tracks_free(tracks), clv_tracks_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tracks_are_sorted_and_described),
        cmocka_unit_test(displacements_are_those_of_the_lag),
        cmocka_unit_test(lags_without_pairs_tell_nothing),
        cmocka_unit_test(drift_is_the_mean_step),
        cmocka_unit_test(filters_keep_whole_tracks),
        cmocka_unit_test(diffusion_tells_motion_from_errors),
        cmocka_unit_test(wrong_arguments_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
