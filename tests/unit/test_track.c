/* SPDX-License-Identifier: Apache-2.0 */
/* clv_link: against every assignment tried by hand, and the promises of its header. */
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "host/track/assign.h"

#include <cleave/track.h>

#include <math.h>
#include <string.h>

enum { MOST = 6 };

/* Least cost of links from `n` places to `m` spots, all ways tried. */
static double least_cost(const clv_point *from, size_t n, const clv_point *to, size_t m,
                         double range, size_t at, unsigned used)
{
    if (at == n) return 0;
    double best = range * range + least_cost(from, n, to, m, range, at + 1, used);
    for (size_t j = 0; j < m; ++j) {
        const double dy = from[at].y - to[j].y, dx = from[at].x - to[j].x, d2 = dy * dy + dx * dx;
        if (used & 1u << j || d2 > range * range) continue;
        best = fmin(best, d2 + least_cost(from, n, to, m, range, at + 1, used | 1u << j));
    }
    return best;
}

static double cost_of(const clv_point *p, const int64_t *particle, size_t n, size_t m, double range)
{
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
        double cost = range * range;
        for (size_t j = n; j < n + m; ++j) {
            const double dy = p[i].y - p[j].y, dx = p[i].x - p[j].x;
            if (particle[i] == particle[j]) cost = dy * dy + dx * dx;
            if (particle[i] == particle[j]) assert_true(dy * dy + dx * dx <= range * range);
        }
        sum += cost;
    }
    return sum;
}

static void two_frames_have_the_least_cost(void **unused)
{
    (void)unused;
    uint64_t state = 3;
    for (int round = 0; round < 3000; ++round) {
        clv_point p[2 * MOST];
        int64_t particle[2 * MOST];
        const size_t n = 1 + test_random(&state) % MOST, m = 1 + test_random(&state) % MOST;
        const bool coarse = round % 3 == 0; /* many ties */
        for (size_t i = 0; i < n + m; ++i) {
            p[i] = (clv_point){ i >= n, test_uniform(&state, 0, 5), test_uniform(&state, 0, 5) };
            if (coarse) p[i].y = floor(p[i].y), p[i].x = floor(p[i].x);
        }
        const double range = test_uniform(&state, 0.5, 4);
        EXPECT_OK(
            clv_link(p, n + m,
                     &(clv_link_options){ .size = sizeof(clv_link_options), .search_range = range },
                     particle, NULL));
        const double got = cost_of(p, particle, n, m, range),
                     want = least_cost(p, n, p + n, m, range, 0, 0);
        if (fabs(got - want) > 1e-9)
            fail_msg("round %d: %zu to %zu: cost %g, least is %g", round, n, m, got, want);
    }
}

static void the_order_of_the_input_does_not_matter(void **unused)
{
    (void)unused;
    enum { COUNT = 400 };
    static clv_point p[COUNT], q[COUNT];
    static int64_t a[COUNT], b[COUNT];
    static size_t from[COUNT];
    uint64_t state = 8;
    for (size_t i = 0; i < COUNT; ++i)
        p[i] = (clv_point){ (int64_t)(i / 40), floor(test_uniform(&state, 0, 30)),
                            floor(test_uniform(&state, 0, 30)) };
    for (size_t i = 0; i < COUNT; ++i)
        from[i] = i;
    for (size_t i = COUNT; i > 1; --i) {
        const size_t j = test_random(&state) % i, t = from[i - 1];
        from[i - 1] = from[j], from[j] = t;
    }
    for (size_t i = 0; i < COUNT; ++i)
        q[i] = p[from[i]];
    const clv_link_options o = { .size = sizeof(clv_link_options), .search_range = 5, .memory = 1 };
    size_t ta, tb;
    EXPECT_OK(clv_link(p, COUNT, &o, a, &ta));
    EXPECT_OK(clv_link(q, COUNT, &o, b, &tb));
    assert_int_equal(ta, tb);
    for (size_t i = 0; i < COUNT; ++i) {
        const clv_point *at = &p[from[i]];
        bool twin = false; /* spots of a frame at one place may change places */
        for (size_t j = 0; j < COUNT; ++j)
            twin = twin || (j != from[i] && memcmp(at, &p[j], sizeof *at) == 0);
        if (!twin) assert_int_equal(b[i], a[from[i]]);
    }
}

static void memory_bridges_gaps_and_no_more(void **unused)
{
    (void)unused;
    const clv_point p[] = { { 0, 5, 5 }, { 1, 5, 6 }, { 4, 5, 7 }, { 0, 50, 5 }, { 9, 50, 5 } };
    int64_t particle[5];
    size_t tracks;
    EXPECT_OK(clv_link(
        p, 5,
        &(clv_link_options){ .size = sizeof(clv_link_options), .search_range = 2, .memory = 2 },
        particle, &tracks));
    assert_int_equal(particle[0], 0);
    assert_int_equal(particle[1], 0);
    assert_int_equal(particle[2], 0);
    assert_int_equal(particle[3], 1);
    assert_int_equal(particle[4], 2);
    EXPECT_OK(clv_link(
        p, 5,
        &(clv_link_options){ .size = sizeof(clv_link_options), .search_range = 2, .memory = 1 },
        particle, &tracks));
    assert_int_equal(tracks, 4);
    assert_int_equal(particle[2], 2);
    EXPECT_OK(clv_link(p, 5,
                       &(clv_link_options){ .size = sizeof(clv_link_options),
                                            .search_range = 2,
                                            .memory = SIZE_MAX },
                       particle, &tracks)); /* for ever */
    assert_int_equal(tracks, 2);
    const clv_point ends[] = { { INT64_MIN, 5, 5 }, { INT64_MAX, 5, 6 } };
    const clv_link_options o = { .size = sizeof(clv_link_options),
                                 .search_range = 2,
                                 .memory = SIZE_MAX - 1 };
    EXPECT_OK(clv_link(ends, 2, &o, particle, &tracks));
    assert_int_equal(tracks, 1);
    EXPECT_OK(clv_link(ends, 2,
                       &(clv_link_options){ .size = sizeof(clv_link_options),
                                            .search_range = 2,
                                            .memory = SIZE_MAX - 2 },
                       particle, &tracks));
    assert_int_equal(tracks, 2);
}

static void short_tracks_get_no_number(void **unused)
{
    (void)unused;
    const clv_point p[] = { { 0, 0, 0 }, { 0, 9, 9 }, { 1, 9, 9 }, { 2, 9, 9 } };
    int64_t particle[4];
    size_t tracks;
    EXPECT_OK(clv_link(
        p, 4,
        &(clv_link_options){ .size = sizeof(clv_link_options), .search_range = 1, .min_length = 3 },
        particle, &tracks));
    assert_int_equal(tracks, 1);
    assert_int_equal(particle[0], -1);
    assert_int_equal(particle[1], 0);
    assert_int_equal(particle[3], 0);
}

/* A range that means "any distance": its square has no digits left for the links. */
static void a_range_without_limit_takes_the_nearest(void **unused)
{
    (void)unused;
    const clv_point p[] = { { 0, 0, 0 }, { 1, 1, 0 }, { 1, 2, 0 } };
    static const double ranges[] = { 1e3, 1e9, 1e12, 1e100, 1e150 };
    for (size_t i = 0; i < CLV_LEN(ranges); ++i) {
        const clv_link_options o = { .size = sizeof o, .search_range = ranges[i] };
        int64_t particle[3];
        EXPECT_OK(clv_link(p, 3, &o, particle, NULL));
        assert_int_equal(particle[1], 0);
        assert_int_equal(particle[2], 1);
    }
}

/* Frames of which float64 cannot tell neighbours apart. */
static void frames_may_be_times_in_nanoseconds(void **unused)
{
    (void)unused;
    const int64_t first = INT64_C(1700000000000000001);
    const clv_point p[] = { { first, 0, 0 }, { first + 1, 3, 0 }, { first + 2, 6, 0 } };
    for (int predict = CLV_PREDICT_VELOCITY; predict <= CLV_PREDICT_DRIFT; ++predict) {
        const clv_link_options o = { .size = sizeof o,
                                     .search_range = 1,
                                     .predict = (clv_link_predict)predict,
                                     .guess_velocity = { 0, 3, 0 } };
        int64_t particle[3];
        size_t tracks;
        EXPECT_OK(clv_link(p, 3, &o, particle, &tracks));
        assert_int_equal(tracks, 1);
    }
}

static void an_adaptive_search_ends(void **unused)
{
    (void)unused;
    const clv_point p = { 0, 0, 0 };
    int64_t particle;
    clv_link_options o = { .size = sizeof o, .search_range = 1, .adaptive_stop = 1e-323 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "adaptive_stop is 9.88131e-324, but it must be more than 0",
                clv_link(&p, 1, &o, &particle, NULL));
    o.adaptive_stop = 0.5, o.adaptive_step = 1 - 0x1p-53;
    EXPECT_FAIL(CLV_E_ARGUMENT, "takes 6.24e+15 steps from the search range 1 to adaptive_stop 0.5",
                clv_link(&p, 1, &o, &particle, NULL));
    o.adaptive_step = 0.99999;
    EXPECT_OK(clv_link(&p, 1, &o, &particle, NULL));
    o.adaptive_stop = 1;
    EXPECT_OK(clv_link(&p, 1, &o, &particle, NULL));
}

/* One group of hundreds: what other linkers refuse. */
static void a_large_group_is_solved(void **unused)
{
    (void)unused;
    enum { SIDE = 16 };
    static clv_point p[2 * SIDE * SIDE];
    static int64_t particle[2 * SIDE * SIDE];
    for (size_t i = 0; i < SIDE * SIDE; ++i) {
        p[i] = (clv_point){ 0, (double)(i / SIDE), (double)(i % SIDE) };
        p[SIDE * SIDE + i] = (clv_point){ 1, p[i].y + 0.3, p[i].x + 0.2 };
    }
    EXPECT_OK(clv_link(p, CLV_LEN(p),
                       &(clv_link_options){ .size = sizeof(clv_link_options), .search_range = 3 },
                       particle, NULL));
    for (size_t i = 0; i < SIDE * SIDE; ++i)
        assert_int_equal(particle[i], particle[SIDE * SIDE + i]);
}

static void odd_input_is_an_error_or_nothing(void **unused)
{
    (void)unused;
    clv_point p = { 0, (double)NAN, 0 };
    int64_t particle;
    size_t tracks = 9;
    EXPECT_OK(clv_link(NULL, 0,
                       &(clv_link_options){ .size = sizeof(clv_link_options), .search_range = 1 },
                       NULL, &tracks));
    assert_int_equal(tracks, 0);
    EXPECT_FAIL(CLV_E_ARGUMENT, "finite",
                clv_link(&p, 1,
                         &(clv_link_options){ .size = sizeof(clv_link_options), .search_range = 1 },
                         &particle, NULL));
    p.y = 0;
    EXPECT_FAIL(
        CLV_E_ARGUMENT, "search range",
        clv_link(&p, 1, &(clv_link_options){ .size = sizeof(clv_link_options) }, &particle, NULL));
    EXPECT_FAIL(
        CLV_E_ARGUMENT, "search range is 1e+200",
        clv_link(&p, 1,
                 &(clv_link_options){ .size = sizeof(clv_link_options), .search_range = 1e200 },
                 &particle, NULL));
    const clv_point far[] = { { 0, -1e308, 0 },
                              { 0, 1e308, 1 },
                              { 1, 0, 0 } }; /* no number apart */
    EXPECT_FAIL(CLV_E_ARGUMENT,
                "spot 0 is at z 0, y -1e+308, x 0, but positions must be finite and at most 1e+150",
                clv_link(far, 3,
                         &(clv_link_options){ .size = sizeof(clv_link_options), .search_range = 1 },
                         &particle, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_link(&p, 1, NULL, &particle, NULL));
}

/* Two frames that are one group: seconds of assignment. */
static void a_long_group_is_cancelled(void **unused)
{
    (void)unused;
    enum { COUNT = 6000 };
    clv_point *p = clv_alloc(COUNT, sizeof *p);
    int64_t *particle = clv_alloc(COUNT, sizeof *particle);
    uint64_t state = 5;
    for (size_t i = 0; i < COUNT; ++i) {
        p[i] =
            (clv_point){ (int64_t)i % 2, test_uniform(&state, 0, 9), test_uniform(&state, 0, 9) };
        particle[i] = -7;
    }
    test_told t = { .job = "link", .answer = 1 };
    clv_link_options o = {
        .size = sizeof o, .search_range = 20, .progress = test_note, .progress_user = &t
    };
    EXPECT_FAIL(CLV_E_CANCELLED, "link: cancelled", clv_link(p, COUNT, &o, particle, NULL));
    assert_int_equal(t.calls, 1);
    assert_int_equal(t.total, COUNT);
    for (size_t i = 0; i < COUNT; ++i)
        assert_int_equal(particle[i], -7);
    t.calls = 0; /* too short to be asked; the end is told, and nothing is left to cancel */
    EXPECT_OK(clv_link(p, 2, &o, particle, NULL));
    assert_int_equal(t.calls, 1);
    assert_int_equal(t.done, 2);
    o.size = offsetof(clv_link_options, progress); /* a caller that knows of no progress */
    t.calls = 0;
    EXPECT_OK(clv_link(p, 2, &o, particle, NULL));
    assert_int_equal(t.calls, 0);
    clv_free(p), clv_free(particle);
}

/* The assignment alone, as looking for edges may be cancelled before. */
static void an_assignment_is_cancelled(void **unused)
{
    (void)unused;
    enum { N = 200 };
    static double cost[N * N], numbers[3][N + 1];
    static size_t column[N], row[N + 1], way[N + 1];
    static unsigned char used[N + 1];
    uint64_t state = 6;
    for (size_t i = 0; i < N * N; ++i)
        cost[i] = test_uniform(&state, 0, 1);
    const clv_assign_work work = { numbers[0], numbers[1], numbers[2], row, way, used };
    test_told t = { .job = "link", .answer = 1 };
    clv_watch watch = clv_watch_begin("link", test_note, &t, 9);
    clv_sleep(0.15); /* it is told at most ten times a second */
    EXPECT_FAIL(CLV_E_CANCELLED, "link: cancelled after 4 of 9",
                clv_assign(cost, N, N, N, &work, &watch, 4, column));
    watch.next = 0;
    EXPECT_OK(clv_assign(cost, 30, 30, N, &work, &watch, 4, column)); /* over in no time */
    assert_int_equal(t.calls, 1);
}

static void every_allocation_may_fail(void **unused)
{
    (void)unused;
    enum { COUNT = 60 };
    static clv_point p[COUNT];
    int64_t particle[COUNT];
    uint64_t state = 4;
    for (size_t i = 0; i < COUNT; ++i)
        p[i] = (clv_point){ (int64_t)(i / 12), test_uniform(&state, 0, 9),
                            test_uniform(&state, 0, 9) };
    unsigned long k = 1;
    for (; k < 200; ++k) {
        clv_alloc_fail_at(k);
        const clv_status status = clv_link(
            p, COUNT, &(clv_link_options){ .size = sizeof(clv_link_options), .search_range = 3 },
            particle, NULL);
        clv_alloc_fail_at(0);
        if (!status) break;
        assert_int_equal(status, CLV_E_MEMORY);
    }
    assert_in_range(k, 10, 199);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_frames_have_the_least_cost),
        cmocka_unit_test(the_order_of_the_input_does_not_matter),
        cmocka_unit_test(memory_bridges_gaps_and_no_more),
        cmocka_unit_test(short_tracks_get_no_number),
        cmocka_unit_test(a_range_without_limit_takes_the_nearest),
        cmocka_unit_test(frames_may_be_times_in_nanoseconds),
        cmocka_unit_test(an_adaptive_search_ends),
        cmocka_unit_test(a_large_group_is_solved),
        cmocka_unit_test(odd_input_is_an_error_or_nothing),
        cmocka_unit_test(a_long_group_is_cancelled),
        cmocka_unit_test(an_assignment_is_cancelled),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
