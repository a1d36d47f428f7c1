/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of one shape, whose sides are close: timed, learnt from and tried, played through without a device
 * and by a clock of our own. */
#include "test.h"

#include "base/alloc.h"
#include "runtime/offload/exact.h"
#include "runtime/offload/kind.h"

#include <math.h>

static const clv_offload_kind built = { .built = true, .first_s = -1 };

static void doubtful_is_what_is_close_and_worth_timing(void **state)
{
    (void)state;
    assert_true(clv_exact_doubts(30e-6, 40e-6) && clv_exact_doubts(40e-6, 30e-6));
    assert_false(clv_exact_doubts(30e-6, 60e-6) || clv_exact_doubts(60e-6, 30e-6));
    assert_false(clv_exact_doubts(2e-6, 2e-6) || clv_exact_doubts(0.5, 0.5));
}

static void shapes_have_names_of_their_own(void **state)
{
    (void)state;
    const clv_offload_request a = { .work = 1024, .shape = clv_offload_shape(32, 32) };
    clv_offload_request b = a;
    assert_true(clv_exact_name(&a) == clv_exact_name(&b));
    b.work = 1025;
    assert_true(clv_exact_name(&a) != clv_exact_name(&b));
    b.work = 1024, b.shape = clv_offload_shape(64, 16);
    assert_true(clv_exact_name(&a) != clv_exact_name(&b));
    b.shape = clv_offload_shape(16, 64);
    assert_true(clv_offload_shape(64, 16) != b.shape && clv_exact_name(&a) != clv_exact_name(&b));
}

static void a_curve_is_heard_beside_a_timing(void **state)
{
    (void)state;
    assert_true(fabs(clv_exact_between(4e-5, 4e-5) - 4e-5) < 1e-9);
    assert_true(fabs(clv_exact_between(4e-5, 5e-5) - sqrt(4e-5 * 5e-5)) < 1e-9);
    assert_true(fabs(clv_exact_between(5e-5, 4e-5) - sqrt(4e-5 * 5e-5)) < 1e-9);
    assert_true(clv_exact_between(4e-5, 9e-5) == 9e-5 && clv_exact_between(9e-5, 4e-5) == 4e-5);
}

/* Timed when its calls took as long as that lasts, or when somebody asks; ever new ones never are. */
static void a_shape_is_timed_once_it_pays(void **state)
{
    (void)state;
    clv_exacts e = { 0 };
    int calls = 0;
    assert_true(clv_exact_is_due(&e, 7, 1e-3, true));
    for (; !clv_exact_is_due(&e, 7, 1e-3, false) && calls < 1000; ++calls) {
        clv_exact_waits(&e, 7, 1e-3);
        clv_exact_waits(&e, 1000 + (uint64_t)calls, 1e-5); /* others pass by */
    }
    assert_true(calls > 50 && calls < 1000);
    assert_false(clv_exact_is_due(&e, 8, 1e-3, false));
    assert_null(clv_exact_find(&e, 7));
    (void)clv_exact_put(&e, 7, 1e-4, 2e-4);
    assert_non_null(clv_exact_find(&e, 7));
    for (uint64_t name = 100; name < 5000; ++name) {
        assert_false(clv_exact_is_due(&e, name, 1e-3, false));
        clv_exact_waits(&e, name, 1e-3);
    }
    e.timed_s = 100; /* what a process may spend is spent */
    assert_false(clv_exact_is_due(&e, 9, 1e-3, true));
}

static void the_table_keeps_what_is_used(void **state)
{
    (void)state;
    clv_exacts e = { 0 };
    double host, device;
    for (uint64_t name = 1; name <= 100; ++name) {
        (void)clv_exact_put(&e, name, 1e-6 * (double)name, 2e-6);
        assert_non_null(clv_exact_find(&e, 1)); /* called all the time */
    }
    for (uint64_t name = 2; name <= 100; ++name)
        assert_int_equal(clv_exact_find(&e, name) != NULL, name > 101 - CLV_EXACT_SHAPES);
    (void)clv_exact_put(&e, 100, 3e-5, 4e-5); /* once more: the new figures, no second place */
    clv_exact_predict(clv_exact_find(&e, 100), &host, &device);
    assert_true(host == 3e-5 && device == 4e-5);
    assert_non_null(clv_exact_find(&e, 1));
}

static void shapes_are_noted(void **state)
{
    (void)state;
    clv_exacts e = { 0 }, back = { 0 };
    char text[CLV_EXACT_TEXT];
    for (uint64_t name = 1; name <= CLV_EXACT_SHAPES; ++name)
        (void)clv_exact_put(&e, name * 0x0fedcba987654321u, 1.234e-5 * (double)name, 2.5e-300);
    clv_exact_write(&e, text, sizeof text);
    clv_exact_read(text, &back);
    for (size_t i = 0; i < CLV_EXACT_SHAPES; ++i) {
        const clv_exact *there = clv_exact_find(&back, e.at[i].name);
        assert_non_null(there);
        assert_true(fabs(there->host_s / e.at[i].host_s - 1) < 1e-3);
        assert_true(there->device_s == 2.5e-300);
    }
    static const char *const bad[] = { "",      "2 a:1:1", "1 0:1:1",   "1 a:0:1",    "1 a:1:-1",
                                       "1 a:1", "1 x:1:1", "1 a:inf:1", "1 a:1e999:1" };
    for (size_t i = 0; i < CLV_LEN(bad); ++i) {
        clv_exact_read(bad[i], &back);
        for (size_t k = 0; k < CLV_EXACT_SHAPES; ++k)
            assert_true(back.at[k].name == 0);
    }
    clv_exact_read("1 a:1:2 b:x:1 c:1:1", &back); /* as far as it is one */
    assert_true(clv_exact_find(&back, 10) && !clv_exact_find(&back, 12));
}

/* Calls of a shape, 0.1 ms on the host; the device takes `device_s` of late. Returns how many seconds of
 * calls passed until the device had them for good; negative: it never did. */
static double until_device(clv_exact *e, const double times[2], double most_s, double *lost_s)
{
    double spent = 0, there = 0, host, device;
    *lost_s = 0;
    while (spent < most_s) {
        clv_exact_fade(e, spent);
        clv_exact_predict(e, &host, &device);
        const clv_side chosen = clv_kind_weigh(&built, e->last, host, device, 0);
        const clv_side side = clv_exact_turn(e, chosen, spent);
        const double took = times[side == CLV_SIDE_DEVICE];
        clv_exact_saw(e, side, side == CLV_SIDE_DEVICE ? device : host, took, spent += took);
        *lost_s += took - fmin(times[0], times[1]);
        there = side == CLV_SIDE_DEVICE ? there + took : 0;
        if (there > 0.1) return spent;
    }
    return -1;
}

/* It was timed while somebody else had a core: the device seemed slow, and nobody calls it. */
static void the_other_side_is_heard_of_again(void **state)
{
    (void)state;
    static const double times[][2] = { { 100e-6, 70e-6 }, { 9e-3, 5e-3 }, { 30e-6, 20e-6 } };
    for (size_t i = 0; i < CLV_LEN(times); ++i) {
        clv_exacts e = { 0 };
        double lost;
        clv_exact *x = clv_exact_put(&e, 1, times[i][0], 1.4 * times[i][0]);
        const double took = until_device(x, times[i], 60, &lost);
        assert_true(took > 0.1 && took < 2);
    }
    clv_exacts e = { 0 }; /* the closer the sides, the less it costs to ask */
    static const double alike[] = { 100e-6, 80e-6 };
    double lost;
    const double took = until_device(clv_exact_put(&e, 1, 100e-6, 105e-6), alike, 60, &lost);
    assert_true(took > 0.04 && took < 0.4);
}

/* Calls of a shape for some seconds of them, from `now` on. Returns the seconds spent with the device. */
static double call_for(clv_exact *e, const double times[2], double seconds, double *now)
{
    double with_device = 0, host, device;
    for (const double end = *now + seconds; *now < end;) {
        clv_exact_fade(e, *now);
        clv_exact_predict(e, &host, &device);
        const clv_side side =
            clv_exact_turn(e, clv_kind_weigh(&built, e->last, host, device, 0), *now);
        const double took = times[side == CLV_SIDE_DEVICE];
        *now += took;
        with_device += side == CLV_SIDE_DEVICE ? took : 0;
        clv_exact_saw(e, side, side == CLV_SIDE_DEVICE ? device : host, took, *now);
    }
    return with_device;
}

/* A neighbour has a core for a while: the device is slow, calls leave it. What they heard of it then is no
 * reason to stay away for ever; what it showed for long is what is expected of it. */
static void moods_are_forgotten(void **state)
{
    (void)state;
    static const double usual[] = { 100e-6, 70e-6 }, disturbed[] = { 100e-6, 140e-6 },
                        slower[] = { 100e-6, 90e-6 };
    clv_exacts e = { 0 };
    clv_exact *x = clv_exact_put(&e, 1, usual[0], usual[1]);
    double now = 1;
    assert_true(call_for(x, usual, 0.2, &now) > 0.17);
    assert_true(call_for(x, disturbed, 0.1, &now) < 0.05);
    now += 7; /* without such calls */
    assert_true(call_for(x, usual, 0.2, &now) >
                0.12); /* soon, and but for a try of the other side */
    (void)call_for(x, disturbed, 20, &now);
    now += 60;
    assert_true(call_for(x, disturbed, 0.1, &now) < 0.04);
    x = clv_exact_put(&e, 1, usual[0], usual[1]);
    (void)call_for(x, slower, 20, &now);
    (void)call_for(x, disturbed, 0.1, &now);
    double host, device;
    clv_exact_fade(x, now += 60);
    clv_exact_predict(x, &host, &device);
    assert_true(device > 85e-6 && device < 105e-6); /* neither as it was timed nor as at last */
}

/* The figures were those of a busy machine. Process by process they come closer to what calls take, and the
 * first call goes to the faster side. */
static void what_calls_showed_is_noted(void **state)
{
    (void)state;
    static const double times[] = { 100e-6, 70e-6 };
    clv_exacts e = { 0 };
    char text[CLV_EXACT_TEXT];
    assert_false(clv_exact_settle(&e));
    (void)clv_exact_put(&e, 1, 90e-6, 130e-6);
    assert_false(clv_exact_settle(&e));
    for (int process = 0; process < 6; ++process) {
        clv_exact *x = clv_exact_find(&e, 1);
        assert_non_null(x);
        double now = 1, host, device;
        (void)call_for(x, times, 1, &now);
        clv_exact_predict(x, &host, &device);
        const double before = device;
        (void)clv_exact_settle(&e);
        clv_exact_predict(x, &host, &device);
        assert_true(fabs(device / before - 1) < 1e-9); /* the same, by other means */
        clv_exact_write(&e, text, sizeof text);
        clv_exact_read(text, &e);
    }
    const clv_exact *x = clv_exact_find(&e, 1);
    assert_true(x->device_s > 65e-6 && x->device_s < 85e-6 && x->device_s < x->host_s);
    assert_false(clv_exact_settle(&e));
}

/* Calls of 30 ms every 7 s, too few for a side to be heard of between them: the faster one is found, and
 * kept. */
static void rare_calls_find_the_faster_side(void **state)
{
    (void)state;
    static const double times[] = { 60e-6, 51e-6 };
    clv_exacts e = { 0 };
    clv_exact *x = clv_exact_put(&e, 1, 58e-6, 61e-6);
    double now = 1, with_device = 0;
    for (int visit = 0; visit < 30; ++visit, now += 7)
        with_device += call_for(x, times, 0.03, &now);
    assert_true(with_device > 0.8 * 30 * 0.03);
    with_device = 0; /* by now that is sure, and seldom asked */
    for (int visit = 0; visit < 30; ++visit, now += 7)
        with_device += call_for(x, times, 0.03, &now);
    assert_true(with_device > 0.95 * 30 * 0.03);
    static const double other[] = { 60e-6, 75e-6 }; /* and not any more so */
    with_device = 0;
    for (int visit = 0; visit < 30; ++visit, now += 7)
        with_device += call_for(x, other, 0.03, &now);
    assert_true(with_device < 0.2 * 30 * 0.03);
}

/* One that was timed and tried for a second while a neighbour had a core: asked again before long. */
static void a_second_of_tries_is_one_opinion(void **state)
{
    (void)state;
    static const double disturbed[] = { 100e-6, 104e-6 }, usual[] = { 100e-6, 45e-6 };
    clv_exacts e = { 0 };
    clv_exact *x = clv_exact_put(&e, 1, disturbed[0], disturbed[1]);
    double now = 1, with_device = 0;
    (void)call_for(x, disturbed, 1, &now);
    for (int visit = 0; visit < 10; ++visit, now += 8)
        with_device += call_for(x, usual, 0.02, &now);
    assert_true(with_device > 0.6 * 10 * 0.02);
}

/* Calls of 13 ms every 8 s: a try has no more time than that, and a few of its calls are enough. */
static void a_pause_ends_a_try(void **state)
{
    (void)state;
    static const double times[][2] = { { 25e-6, 37e-6 }, { 6e-6, 10e-6 }, { 30e-6, 18e-6 } };
    for (size_t i = 0; i < CLV_LEN(times); ++i) {
        clv_exacts e = { 0 };
        clv_exact *x = clv_exact_put(&e, 1, times[i][0], times[i][1]);
        const bool device = times[i][1] < times[i][0];
        double now = 1, with_device = 0;
        (void)call_for(x, times[i], 1, &now);
        now += 60;
        for (int visit = 0; visit < 20; ++visit, now += 8)
            with_device += call_for(x, times[i], 0.013, &now);
        const double slower = device ? 1 - with_device / (20 * 0.013) : with_device / (20 * 0.013);
        assert_true(slower > 0 && slower < 0.15);
    }
}

static void what_stays_slower_costs_little(void **state)
{
    (void)state;
    static const double times[][2] = { { 100e-6, 150e-6 }, { 9e-3, 14e-3 }, { 20e-6, 30e-6 } };
    for (size_t i = 0; i < CLV_LEN(times); ++i) {
        clv_exacts e = { 0 };
        double lost;
        clv_exact *x = clv_exact_put(&e, 1, times[i][0], times[i][1]);
        assert_true(until_device(x, times[i], 30, &lost) < 0);
        assert_true(lost > 0 && lost < 0.02 * 30);
    }
}

/* Long calls, one in a while: a side is never heard of for long, and to hear of it costs little. */
static void long_calls_now_and_then_cost_little(void **state)
{
    (void)state;
    static const double times[][2] = { { 5e-3, 7.2e-3 }, { 20e-3, 34e-3 }, { 29e-3, 49e-3 } };
    for (size_t i = 0; i < CLV_LEN(times); ++i) {
        clv_exacts e = { 0 };
        clv_exact *x = clv_exact_put(&e, 1, times[i][0], times[i][1]);
        double now = 1, host, device, with_device = 0;
        const int calls = 1000;
        for (int n = 0; n < calls; ++n, now += 10) {
            clv_exact_fade(x, now);
            clv_exact_predict(x, &host, &device);
            const clv_side side =
                clv_exact_turn(x, clv_kind_weigh(&built, x->last, host, device, 0), now);
            const bool there = side == CLV_SIDE_DEVICE;
            with_device += there;
            clv_exact_saw(x, side, there ? device : host, times[i][there], now += times[i][there]);
        }
        assert_true(with_device > 0);
        assert_true(with_device * (times[i][1] - times[i][0]) < 0.08 * calls * times[i][0]);
    }
}

/* A side that calls leave is remembered as slower, also seconds after the very first choice. */
static void the_first_choice_leaves_no_side(void **state)
{
    (void)state;
    clv_exacts *exacts = clv_zalloc(1, sizeof *exacts);
    assert_non_null(exacts);
    clv_exact *e = clv_exact_put(exacts, 1, 100e-6, 120e-6);
    (void)clv_exact_turn(e, CLV_SIDE_HOST, 100);
    assert_true(e->usual[0] == 0 && e->usual[1] == 0);
    e->lean[0] = 0.4;
    (void)clv_exact_turn(e, CLV_SIDE_DEVICE, 103);
    assert_true(fabs(e->usual[0] - 0.1) < 1e-9 && e->usual[1] == 0);
    clv_free(exacts);
}

/* Calls that come one by one, with pauses between them, and long ones: a try ends all the same. */
static void a_try_ends_after_60_ms_of_calls(void **state)
{
    (void)state;
    static const double times[][2] = { { 12e-3, 10e-3 }, { 0.04, 0.03 }, { 1e-3, 0.7e-3 } };
    for (size_t i = 0; i < CLV_LEN(times); ++i) {
        clv_exacts e = { 0 };
        clv_exact *x = clv_exact_put(&e, 1, times[i][0], times[i][1]);
        double now = 0, tried = 0, longest = 0;
        while (now < 60) {
            const clv_side side = clv_exact_turn(x, CLV_SIDE_DEVICE, now);
            const double took = times[i][side == CLV_SIDE_DEVICE];
            now += took + 0.06; /* a pause */
            clv_exact_saw(x, side, took, took, now);
            tried = side == CLV_SIDE_HOST ? tried + took : 0;
            longest = fmax(longest, tried);
        }
        assert_true(longest > 0 && longest < 0.1);
    }
    clv_exacts e = { 0 };
    clv_exact *x = clv_exact_put(&e, 1, 0.2, 0.13); /* and the host takes 1.2 s in truth */
    double now = 0;
    for (int i = 0; i < 100; ++i) {
        assert_int_equal(clv_exact_turn(x, CLV_SIDE_DEVICE, now), CLV_SIDE_DEVICE);
        clv_exact_saw(x, CLV_SIDE_DEVICE, 0.13, 0.13, now += 0.13);
    }
}

/* Threads wake up: the first 10 ms of calls on a side are no lesson. */
static void a_side_that_wakes_up_teaches_nothing(void **state)
{
    (void)state;
    clv_exacts e = { 0 };
    double host, device;
    clv_exact *x = clv_exact_put(&e, 1, 100e-6, 90e-6);
    assert_true(clv_exact_saw(x, CLV_SIDE_HOST, 100e-6, 100e-6, 0));
    for (int i = 0; i < 50; ++i)
        assert_int_equal(clv_exact_saw(x, CLV_SIDE_DEVICE, 90e-6, 220e-6, i * 220e-6), i > 45);
    x = clv_exact_put(&e, 1, 100e-6, 90e-6);
    double now = 0;
    for (int i = 0; i < 20; ++i) { /* held up once among many */
        const double took = i == 10 ? 8e-3 : 100e-6;
        clv_exact_predict(x, &host, &device);
        clv_exact_saw(x, CLV_SIDE_HOST, host, took, now += took);
    }
    clv_exact_predict(x, &host, &device);
    assert_true(host < 102e-6 && device == 90e-6);
    now = 10;
    int lessons = 0;
    for (int i = 0; i < 60; ++i) /* 15 of 1 ms between pauses, of which the last five count */
        lessons += clv_exact_saw(x, CLV_SIDE_HOST, 100e-6, 1e-3, now += i % 15 ? 1e-3 : 1);
    assert_int_equal(lessons, 4 * 5);
    x = clv_exact_put(&e, 1, 100e-6, 90e-6);
    for (int i = lessons = 0; i < 101; ++i) /* each after a pause */
        lessons += clv_exact_saw(x, CLV_SIDE_HOST, 1e-3, 1e-3, now += 1);
    assert_true(lessons > 5 && lessons < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubtful_is_what_is_close_and_worth_timing),
        cmocka_unit_test(shapes_have_names_of_their_own),
        cmocka_unit_test(a_curve_is_heard_beside_a_timing),
        cmocka_unit_test(a_shape_is_timed_once_it_pays),
        cmocka_unit_test(the_table_keeps_what_is_used),
        cmocka_unit_test(shapes_are_noted),
        cmocka_unit_test(the_other_side_is_heard_of_again),
        cmocka_unit_test(moods_are_forgotten),
        cmocka_unit_test(what_calls_showed_is_noted),
        cmocka_unit_test(rare_calls_find_the_faster_side),
        cmocka_unit_test(a_second_of_tries_is_one_opinion),
        cmocka_unit_test(a_pause_ends_a_try),
        cmocka_unit_test(what_stays_slower_costs_little),
        cmocka_unit_test(long_calls_now_and_then_cost_little),
        cmocka_unit_test(the_first_choice_leaves_no_side),
        cmocka_unit_test(a_try_ends_after_60_ms_of_calls),
        cmocka_unit_test(a_side_that_wakes_up_teaches_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
