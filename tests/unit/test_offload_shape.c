/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of one shape, whose sides are close: kept, learnt from and tried, played through without a device
 * and by a clock of our own. */
#include "test.h"

#include "base/alloc.h"
#include "runtime/offload/call.h"
#include "runtime/offload/decide.h"

#include <math.h>
#include <string.h>

/* A kind whose device is ready; its curve matters to no shape. */
static clv_kind new_kind(void)
{
    clv_kind kind = { .built = true, .first_s = -1 };
    clv_curve_add(&kind.curve, 1e3, 1e-6, 50e-6);
    clv_curve_add(&kind.curve, 1e6, 1e-3, 150e-6);
    return kind;
}

static clv_shape *keep(clv_kind *kind, uint64_t name, double host_s, double device_s)
{
    const double seconds[CLV_SIDES] = { host_s, device_s };
    return clv_shape_keep(kind, name, seconds);
}

static bool is_close(double host_s, double device_s)
{
    const double seconds[CLV_SIDES] = { host_s, device_s };
    return clv_shape_is_close(seconds);
}

static void close_is_what_a_curve_may_mistake(void **state)
{
    (void)state;
    assert_true(is_close(30e-6, 40e-6) && is_close(40e-6, 30e-6) && is_close(0.4, 0.5));
    assert_false(is_close(30e-6, 70e-6) || is_close(70e-6, 30e-6) || is_close(2e-6, 2e-6));
    const double brief[CLV_SIDES] = { 1e-3, 2e-3 }, lengthy[CLV_SIDES] = { 1e-3, 9e-3 };
    assert_true(clv_shape_is_brief(brief) && !clv_shape_is_brief(lengthy));
}

static void shapes_have_numbers_of_their_own(void **state)
{
    (void)state;
    assert_true(clv_call_shape(64, 16) != clv_call_shape(16, 64));
    assert_true(clv_call_shape(clv_call_shape(0, 32), 32) !=
                clv_call_shape(clv_call_shape(0, 64), 16));
}

static void a_curve_is_heard_beside_a_timing(void **state)
{
    (void)state;
    assert_true(fabs(clv_shape_between(4e-5, 4e-5) - 4e-5) < 1e-9);
    assert_true(fabs(clv_shape_between(4e-5, 5e-5) - sqrt(4e-5 * 5e-5)) < 1e-9);
    assert_true(fabs(clv_shape_between(5e-5, 4e-5) - sqrt(4e-5 * 5e-5)) < 1e-9);
    assert_true(clv_shape_between(4e-5, 9e-5) == 9e-5 && clv_shape_between(9e-5, 4e-5) == 4e-5);
}

static void what_is_used_is_kept(void **state)
{
    (void)state;
    clv_kind kind = new_kind();
    assert_null(clv_shape_find(&kind, 7));
    for (uint64_t name = 1; name <= 100; ++name) {
        (void)keep(&kind, name, 1e-6 * (double)name, 2e-6);
        assert_non_null(clv_shape_find(&kind, 1)); /* called all the time */
    }
    for (uint64_t name = 2; name <= 100; ++name)
        assert_int_equal(clv_shape_find(&kind, name) != NULL, name > 101 - CLV_SHAPES);
    (void)keep(&kind, 100, 3e-5, 4e-5); /* once more: the new figures, no second place */
    const clv_shape *shape = clv_shape_find(&kind, 100);
    assert_true(shape->seconds[CLV_HOST] == 3e-5 && shape->seconds[CLV_DEVICE] == 4e-5);
    assert_non_null(clv_shape_find(&kind, 1));
}

static void shapes_are_noted(void **state)
{
    (void)state;
    clv_kind kind = new_kind(), back = new_kind();
    char text[CLV_SHAPES_TEXT];
    for (uint64_t name = 1; name <= CLV_SHAPES; ++name)
        (void)keep(&kind, name * 0x0fedcba987654321u, 1.234e-5 * (double)name, 2.5e-300);
    clv_shapes_write(&kind, text, sizeof text);
    clv_shapes_read(text, &back);
    for (size_t i = 0; i < CLV_SHAPES; ++i) {
        const clv_shape *there = clv_shape_find(&back, kind.shape[i].name);
        assert_non_null(there);
        assert_true(fabs(there->seconds[CLV_HOST] / kind.shape[i].seconds[CLV_HOST] - 1) < 1e-3);
        assert_true(there->seconds[CLV_DEVICE] == 2.5e-300);
    }
    static const char *const bad[] = { "",      "1 a:1:1", "2 0:1:1",   "2 a:0:1",    "2 a:1:-1",
                                       "2 a:1", "2 x:1:1", "2 a:inf:1", "2 a:1e999:1" };
    for (size_t i = 0; i < CLV_LEN(bad); ++i) {
        clv_shapes_read(bad[i], &back);
        for (size_t k = 0; k < CLV_SHAPES; ++k)
            assert_true(back.shape[k].name == 0);
    }
    clv_shapes_read("2 a:1:2 b:x:1 c:1:1", &back); /* as far as it is one */
    assert_true(clv_shape_find(&back, 10) && !clv_shape_find(&back, 12));
}

/* One call, as the library makes it, which takes `times` of its side. */
static clv_side call(clv_kind *kind, clv_shape *s, const double times[CLV_SIDES], double *now)
{
    double said[CLV_SIDES];
    clv_kind_predict(kind, s, 1e5, said);
    const clv_side side = clv_shape_turn(s, clv_kind_choose(kind, s, 1e5, said, 0), *now);
    const int at = side == CLV_SIDE_DEVICE ? CLV_DEVICE : CLV_HOST;
    *now += times[at];
    clv_kind_saw(kind, s, 1e5, side, said[at], times[at], *now);
    return side;
}

/* Such calls for some seconds of them. Returns the seconds spent with the device. */
static double call_for(clv_kind *kind, clv_shape *s, const double times[CLV_SIDES], double seconds,
                       double *now)
{
    double with_device = 0;
    for (const double end = *now + seconds; *now < end;)
        if (call(kind, s, times, now) == CLV_SIDE_DEVICE) with_device += times[CLV_DEVICE];
    return with_device;
}

/* Seconds of calls until the device had them for 0.1 s on end, of `most`; negative: it never did. */
static double until_device(clv_kind *kind, clv_shape *s, const double times[CLV_SIDES], double most,
                           double *lost_s)
{
    double now = 1, there = 0;
    *lost_s = 0;
    while (now < 1 + most) {
        const double before = now;
        const clv_side side = call(kind, s, times, &now);
        *lost_s += now - before - fmin(times[CLV_HOST], times[CLV_DEVICE]);
        there = side == CLV_SIDE_DEVICE ? there + now - before : 0;
        if (there > 0.1) return now - 1;
    }
    return -1;
}

/* It was timed while somebody else had a core: the device seemed slow, and nobody calls it. */
static void the_other_side_is_heard_of_again(void **state)
{
    (void)state;
    static const double times[][CLV_SIDES] = { { 100e-6, 70e-6 },
                                               { 9e-3, 5e-3 },
                                               { 30e-6, 20e-6 } };
    double lost;
    for (size_t i = 0; i < CLV_LEN(times); ++i) {
        clv_kind kind = new_kind();
        clv_shape *s = keep(&kind, 1, times[i][CLV_HOST], 1.4 * times[i][CLV_HOST]);
        const double took = until_device(&kind, s, times[i], 60, &lost);
        assert_true(took > 0.1 && took < 2);
    }
    clv_kind kind = new_kind(); /* the closer the sides, the less it costs to ask */
    static const double alike[] = { 100e-6, 80e-6 };
    const double took = until_device(&kind, keep(&kind, 1, 100e-6, 105e-6), alike, 60, &lost);
    assert_true(took > 0.04 && took < 0.4);
}

/* A neighbour has a core for a while: the device is slow, calls leave it, and come back behind it. */
static void a_mood_passes(void **state)
{
    (void)state;
    static const double usual[] = { 100e-6, 70e-6 }, disturbed[] = { 100e-6, 140e-6 };
    clv_kind kind = new_kind();
    clv_shape *s = keep(&kind, 1, usual[CLV_HOST], usual[CLV_DEVICE]);
    double now = 1;
    assert_true(call_for(&kind, s, usual, 0.2, &now) > 0.17);
    assert_true(call_for(&kind, s, disturbed, 0.1, &now) < 0.05);
    now += 7; /* without such calls */
    (void)call_for(&kind, s, usual, 0.5, &now);
    assert_true(call_for(&kind, s, usual, 0.5, &now) > 0.45);
    (void)call_for(&kind, s, disturbed, 20, &now);
    now += 60;
    assert_true(call_for(&kind, s, disturbed, 0.1, &now) < 0.04);
}

/* The figures were those of a busy machine. What calls showed is noted: the first call of the next process
 * goes to the faster side. */
static void what_calls_showed_is_noted(void **state)
{
    (void)state;
    static const double times[] = { 100e-6, 70e-6 };
    clv_kind kind = new_kind(), next = new_kind();
    char text[CLV_SHAPES_TEXT];
    clv_shape *s = keep(&kind, 1, 90e-6, 130e-6);
    assert_false(s->taught);
    double now = 1, said[CLV_SIDES];
    (void)call_for(&kind, s, times, 1, &now);
    assert_true(s->taught);
    clv_shapes_write(&kind, text, sizeof text);
    clv_shapes_read(text, &next);
    clv_kind_predict(&next, clv_shape_find(&next, 1), 1e5, said);
    assert_true(said[CLV_DEVICE] > 65e-6 && said[CLV_DEVICE] < 85e-6);
    assert_int_equal(clv_kind_choose(&next, clv_shape_find(&next, 1), 1e5, said, 0),
                     CLV_SIDE_DEVICE);
}

/* Calls of 30 ms every 7 s: the faster side is found, and kept until it is not any more so. */
static void rare_calls_find_the_faster_side(void **state)
{
    (void)state;
    static const double times[] = { 60e-6, 51e-6 }, other[] = { 60e-6, 75e-6 };
    clv_kind kind = new_kind();
    clv_shape *s = keep(&kind, 1, 58e-6, 61e-6);
    double now = 1, with_device = 0;
    for (int visit = 0; visit < 30; ++visit, now += 7)
        with_device += call_for(&kind, s, times, 0.03, &now);
    assert_true(with_device > 0.8 * 30 * 0.03);
    with_device = 0; /* by now that is sure, and seldom asked */
    for (int visit = 0; visit < 30; ++visit, now += 7)
        with_device += call_for(&kind, s, times, 0.03, &now);
    assert_true(with_device > 0.95 * 30 * 0.03);
    with_device = 0;
    for (int visit = 0; visit < 30; ++visit, now += 7)
        with_device += call_for(&kind, s, other, 0.03, &now);
    assert_true(with_device < 0.2 * 30 * 0.03);
}

/* One that was timed and tried for a second while a neighbour had a core: asked again before long. */
static void a_second_of_tries_is_one_opinion(void **state)
{
    (void)state;
    static const double disturbed[] = { 100e-6, 104e-6 }, usual[] = { 100e-6, 45e-6 };
    clv_kind kind = new_kind();
    clv_shape *s = keep(&kind, 1, disturbed[CLV_HOST], disturbed[CLV_DEVICE]);
    double now = 1, with_device = 0;
    (void)call_for(&kind, s, disturbed, 1, &now);
    for (int visit = 0; visit < 10; ++visit, now += 8)
        with_device += call_for(&kind, s, usual, 0.02, &now);
    assert_true(with_device > 0.6 * 10 * 0.02);
}

/* Calls of 13 ms every 8 s: a try has no more time than that, and a few of its calls are enough. */
static void a_pause_ends_a_try(void **state)
{
    (void)state;
    static const double times[][CLV_SIDES] = { { 25e-6, 37e-6 },
                                               { 6e-6, 10e-6 },
                                               { 30e-6, 18e-6 } };
    for (size_t i = 0; i < CLV_LEN(times); ++i) {
        clv_kind kind = new_kind();
        clv_shape *s = keep(&kind, 1, times[i][CLV_HOST], times[i][CLV_DEVICE]);
        const bool device = times[i][CLV_DEVICE] < times[i][CLV_HOST];
        double now = 1, with_device = 0;
        (void)call_for(&kind, s, times[i], 1, &now);
        now += 60;
        for (int visit = 0; visit < 40; ++visit, now += 8)
            with_device += call_for(&kind, s, times[i], 0.013, &now);
        const double slower = device ? 1 - with_device / (40 * 0.013) : with_device / (40 * 0.013);
        assert_true(slower > 0 && slower < 0.15);
    }
}

static void what_stays_slower_costs_little(void **state)
{
    (void)state;
    static const double times[][CLV_SIDES] = { { 100e-6, 150e-6 },
                                               { 9e-3, 14e-3 },
                                               { 20e-6, 30e-6 } };
    for (size_t i = 0; i < CLV_LEN(times); ++i) {
        clv_kind kind = new_kind();
        double lost;
        clv_shape *s = keep(&kind, 1, times[i][CLV_HOST], times[i][CLV_DEVICE]);
        assert_true(until_device(&kind, s, times[i], 30, &lost) < 0);
        assert_true(lost > 0 && lost < 0.02 * 30);
    }
}

/* Long calls, one in a while: a side is never heard of for long, and to hear of it costs little. */
static void long_calls_now_and_then_cost_little(void **state)
{
    (void)state;
    static const double times[][CLV_SIDES] = { { 5e-3, 7.2e-3 },
                                               { 20e-3, 34e-3 },
                                               { 29e-3, 49e-3 } };
    for (size_t i = 0; i < CLV_LEN(times); ++i) {
        clv_kind kind = new_kind();
        clv_shape *s = keep(&kind, 1, times[i][CLV_HOST], times[i][CLV_DEVICE]);
        double now = 1, with_device = 0;
        const int calls = 1000;
        for (int n = 0; n < calls; ++n, now += 10)
            with_device += call(&kind, s, times[i], &now) == CLV_SIDE_DEVICE;
        assert_true(with_device > 0);
        assert_true(with_device * (times[i][CLV_DEVICE] - times[i][CLV_HOST]) <
                    0.08 * calls * times[i][CLV_HOST]);
    }
}

/* Calls that come one by one, with pauses between them, and long ones: a try ends all the same. */
static void a_try_ends_after_60_ms_of_calls(void **state)
{
    (void)state;
    static const double times[][CLV_SIDES] = { { 12e-3, 10e-3 }, { 0.04, 0.03 }, { 1e-3, 0.7e-3 } };
    for (size_t i = 0; i < CLV_LEN(times); ++i) {
        clv_kind kind = new_kind();
        clv_shape *s = keep(&kind, 1, times[i][CLV_HOST], times[i][CLV_DEVICE]);
        double now = 0, tried = 0, longest = 0;
        while (now < 60) {
            const clv_side side = call(&kind, s, times[i], &now);
            now += 0.06; /* a pause */
            tried = side == CLV_SIDE_HOST ? tried + times[i][CLV_HOST] : 0;
            longest = fmax(longest, tried);
        }
        assert_true(longest > 0 && longest < 0.1);
    }
    clv_kind kind = new_kind();
    static const double lengthy[] = { 1.2, 0.13 }; /* 0.2 said of the host */
    clv_shape *s = keep(&kind, 1, 0.2, 0.13);
    double now = 0;
    for (int i = 0; i < 100; ++i)
        assert_int_equal(call(&kind, s, lengthy, &now), CLV_SIDE_DEVICE);
}

/* Threads wake up: the first 10 ms of calls on a side are no lesson. */
static void a_side_that_wakes_up_teaches_nothing(void **state)
{
    (void)state;
    clv_kind kind = new_kind();
    clv_shape *s = keep(&kind, 1, 100e-6, 90e-6);
    double now = 0;
    clv_kind_saw(&kind, s, 1e5, CLV_SIDE_HOST, 100e-6, 100e-6, now += 100e-6);
    for (int i = 0; i < 45; ++i) {
        clv_kind_saw(&kind, s, 1e5, CLV_SIDE_DEVICE, 90e-6, 220e-6, now += 220e-6);
        assert_true(s->seconds[CLV_DEVICE] == 90e-6);
    }
    for (int i = 0; i < 50; ++i)
        clv_kind_saw(&kind, s, 1e5, CLV_SIDE_DEVICE, s->seconds[CLV_DEVICE], 220e-6, now += 220e-6);
    assert_true(s->seconds[CLV_DEVICE] > 180e-6); /* and then they are */
    s = keep(&kind, 1, 100e-6, 90e-6);
    for (int i = 0; i < 200; ++i) { /* held up once among many */
        const double took = i == 190 ? 8e-3 : 100e-6;
        clv_kind_saw(&kind, s, 1e5, CLV_SIDE_HOST, s->seconds[CLV_HOST], took, now += took);
    }
    assert_true(s->seconds[CLV_HOST] < 103e-6 && s->seconds[CLV_DEVICE] == 90e-6);
    s = keep(&kind, 1, 1e-3, 1e-3);
    for (int i = 0; i < 100; ++i) /* each after a pause: that is what is usual then */
        clv_kind_saw(&kind, s, 1e5, CLV_SIDE_HOST, s->seconds[CLV_HOST], 1.5e-3, now += 1);
    assert_true(s->seconds[CLV_HOST] > 1.4e-3);
}

/* The device, which is tried now and then, cannot do it. */
static void a_try_that_fails_is_not_repeated(void **state)
{
    (void)state;
    clv_kind kind = new_kind();
    static const double times[] = { 100e-6, 110e-6 };
    clv_shape *s = keep(&kind, 1, 100e-6, 110e-6);
    double now = 0;
    int tries = 0;
    for (int i = 0; i < 20000; ++i) {
        double said[CLV_SIDES];
        clv_kind_predict(&kind, s, 1e5, said);
        if (clv_shape_turn(s, clv_kind_choose(&kind, s, 1e5, said, 0), now) == CLV_SIDE_DEVICE) {
            ++tries;
            clv_shape_failed(s);
        }
        clv_kind_saw(&kind, s, 1e5, CLV_SIDE_HOST, said[CLV_HOST], times[0], now += times[0]);
    }
    assert_int_equal(tries, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_is_what_a_curve_may_mistake),
        cmocka_unit_test(shapes_have_numbers_of_their_own),
        cmocka_unit_test(a_curve_is_heard_beside_a_timing),
        cmocka_unit_test(what_is_used_is_kept),
        cmocka_unit_test(shapes_are_noted),
        cmocka_unit_test(the_other_side_is_heard_of_again),
        cmocka_unit_test(a_mood_passes),
        cmocka_unit_test(what_calls_showed_is_noted),
        cmocka_unit_test(rare_calls_find_the_faster_side),
        cmocka_unit_test(a_second_of_tries_is_one_opinion),
        cmocka_unit_test(a_pause_ends_a_try),
        cmocka_unit_test(what_stays_slower_costs_little),
        cmocka_unit_test(long_calls_now_and_then_cost_little),
        cmocka_unit_test(a_try_ends_after_60_ms_of_calls),
        cmocka_unit_test(a_side_that_wakes_up_teaches_nothing),
        cmocka_unit_test(a_try_that_fails_is_not_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
