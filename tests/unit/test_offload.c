/* SPDX-License-Identifier: Apache-2.0 */
/* Host or device: the choice by what is known, played through without a device and without a clock. */
#include "test.h"

#include "base/alloc.h"
#include "runtime/offload/decide.h"
#include "runtime/offload/orders.h"

#include <math.h>
#include <pthread.h>

/* Host: 1 us for 1e3 of work; the device: 50 us, and ten times as fast. Alike at 5.56e4. */
static clv_kind known(bool built)
{
    clv_kind kind = { .built = built, .first_s = -1 };
    for (double work = 1e3; work < 2e7; work *= 4)
        clv_curve_add(&kind.curve, work, work * 1e-9, 50e-6 + work * 1e-10);
    return kind;
}

static clv_side choose(const clv_kind *kind, double work, double first_s)
{
    double seconds[CLV_SIDES];
    clv_kind_predict(kind, NULL, work, seconds);
    return clv_kind_choose(kind, NULL, work, seconds, first_s);
}

/* One call, as the library makes it: chosen, done, learnt from. `host_s` and `device_s` are what it
 * takes. */
static clv_side call(clv_kind *kind, double work, double host_s, double device_s)
{
    double said[CLV_SIDES];
    clv_kind_predict(kind, NULL, work, said);
    const clv_side side = clv_kind_choose(kind, NULL, work, said, kind->first_s);
    clv_kind_went(kind, NULL, work, side, said);
    if (side == CLV_SIDE_DEVICE)
        clv_kind_saw(kind, NULL, work, side, said[CLV_DEVICE], device_s, 0);
    else
        clv_kind_saw(kind, NULL, work, side, said[CLV_HOST], host_s, 0);
    return side;
}

static void a_curve_is_read_between_its_points(void **state)
{
    (void)state;
    clv_curve c = { 0 }, back;
    clv_curve_add(&c, 1e4, 1e-5, 5e-5);
    clv_curve_add(&c, 1e2, 1e-7, 5e-5);
    clv_curve_add(&c, 1e6, 1e-3, 2e-4);
    double s[CLV_SIDES];
    clv_curve_at(&c, 1e3, s);
    assert_true(s[CLV_HOST] > 0.99e-6 && s[CLV_HOST] < 1.01e-6 && s[CLV_DEVICE] > 4.99e-5 &&
                s[CLV_DEVICE] < 5.01e-5);
    clv_curve_at(&c, 1e7, s);
    assert_true(s[CLV_HOST] > 0.99e-2 && s[CLV_HOST] < 1.01e-2 && s[CLV_DEVICE] > 1.99e-3 &&
                s[CLV_DEVICE] < 2.01e-3);
    clv_curve_at(&c, 50, s);
    assert_true(s[CLV_HOST] < 0.51e-7 && s[CLV_DEVICE] == 5e-5);
    char text[400];
    clv_curve_write(&c, text, sizeof text);
    assert_true(clv_curve_read(text, &back));
    assert_int_equal(back.count, 3);
    assert_true(back.at[1].work == 1e4 && back.at[2].seconds[CLV_DEVICE] == 2e-4);
    static const char *const bad[] = { "",      "1:2",     "1:2:3 1:2:3", "x:1:1",
                                       "1:0:1", "1:1:1 2", "1:-1:1" };
    for (size_t i = 0; i < CLV_LEN(bad); ++i)
        assert_false(clv_curve_read(bad[i], &back));
}

static void a_table_of_curves_names_the_side(void **state)
{
    (void)state;
    static const struct {
        double at[3][3]; /* work, host, device */
        double work;
        clv_side side;
    } table[] = {
        { { { 1e3, 1e-6, 5e-5 }, { 1e5, 1e-4, 6e-5 }, { 1e7, 1e-2, 1e-3 } }, 1e3, 1 },
        { { { 1e3, 1e-6, 5e-5 }, { 1e5, 1e-4, 6e-5 }, { 1e7, 1e-2, 1e-3 } }, 1e5, 2 },
        { { { 1e3, 1e-6, 5e-5 }, { 1e5, 1e-4, 6e-5 }, { 1e7, 1e-2, 1e-3 } }, 5e4, 1 },
        { { { 1e3, 1e-6, 5e-5 }, { 1e5, 1e-4, 6e-5 }, { 1e7, 1e-2, 1e-3 } }, 7e4, 2 },
        { { { 1e3, 1e-6, 5e-5 }, { 1e5, 1e-4, 6e-5 }, { 1e7, 1e-2, 1e-3 } }, 1e9, 2 },
        /* a device that is slower everywhere */
        { { { 1e3, 1e-6, 5e-3 }, { 1e5, 1e-4, 6e-3 }, { 1e7, 1e-2, 1e-1 } }, 1e9, 1 },
        /* faster in the middle only: the host's caches end before the device's */
        { { { 1e3, 1e-6, 5e-5 }, { 1e5, 1e-4, 6e-5 }, { 1e7, 1e-2, 2e-2 } }, 2e5, 2 },
        { { { 1e3, 1e-6, 5e-5 }, { 1e5, 1e-4, 6e-5 }, { 1e7, 1e-2, 2e-2 } }, 9e6, 1 },
        /* below the first point a launch is not shorter */
        { { { 1e3, 6e-5, 5e-5 }, { 1e5, 1e-2, 6e-5 }, { 1e7, 1, 1e-3 } }, 500, 1 },
    };
    for (size_t i = 0; i < CLV_LEN(table); ++i) {
        clv_kind kind = { .built = true };
        for (int k = 0; k < 3; ++k)
            clv_curve_add(&kind.curve, table[i].at[k][0], table[i].at[k][1], table[i].at[k][2]);
        if (choose(&kind, table[i].work, 0) != table[i].side)
            fail_msg("row %zu: the other side expected", i);
    }
}

static void both_sides_of_the_break_even(void **state)
{
    (void)state;
    const clv_kind kind = known(true);
    for (double work = 100; work < 1e8; work *= 1.07) {
        const double host = work * 1e-9, device = 50e-6 + work * 1e-10;
        const bool right = (choose(&kind, work, 0) == CLV_SIDE_DEVICE) == (device < host);
        assert_true(right || fabs(log(device / host)) < 0.1);
    }
}

/* A first call that adds 2 ms: the host does it until it lost 2 ms, then the device does, for good. */
static void a_first_call_is_weighed(void **state)
{
    (void)state;
    clv_kind kind = known(false);
    kind.first_s = 2e-3;
    assert_int_equal(choose(&kind, 1e7, kind.first_s), CLV_SIDE_DEVICE); /* 10 ms, 1 + 2 there */
    assert_int_equal(choose(&kind, 1e6, kind.first_s), CLV_SIDE_HOST);   /* 1 ms, 0.15 + 2 */
    assert_int_equal(choose(&kind, 1e6, 0), CLV_SIDE_DEVICE);
    const double lost = 1e-3 - 150e-6; /* each time */
    int hosts = 0;
    while (call(&kind, 1e6, 1e-3, 150e-6) == CLV_SIDE_HOST)
        assert_true(++hosts < 10);
    assert_int_equal(hosts, (int)ceil(2e-3 / lost) - 1);
    kind.built = true; /* what the library notes after it */
    assert_int_equal(choose(&kind, 1e6, kind.first_s), CLV_SIDE_DEVICE);
    assert_int_equal(choose(&kind, 1e3, kind.first_s), CLV_SIDE_HOST);
}

/* Where the host is faster anyway, nothing is lost and nothing adds up. */
static void small_calls_never_pay_for_a_program(void **state)
{
    (void)state;
    clv_kind kind = known(false);
    kind.first_s = 2e-3;
    for (int i = 0; i < 10000; ++i)
        assert_int_equal(call(&kind, 1e4, 1e-5, 51e-6), CLV_SIDE_HOST);
    assert_true(kind.lost_s == 0);
}

static void timing_waits_until_it_pays(void **state)
{
    (void)state;
    clv_kind kind = { 0 };
    assert_false(clv_kind_is_due(&kind, 1e-3));
    assert_true(clv_kind_is_due(&kind, 1)); /* one long call is enough */
    int calls = 0;
    for (; !clv_kind_is_due(&kind, 1e-3) && calls < 1000; ++calls)
        kind.spent_s += 1e-3;
    assert_true(calls > 10 && calls < 1000);
}

/* The device turns out twice as slow as it was when it was timed. */
static void calls_teach(void **state)
{
    (void)state;
    clv_kind kind = known(true);
    const double work = 1e5, host = 100e-6, device = 120e-6; /* 60 us said */
    int calls = 0;
    while (call(&kind, work, host, device) == CLV_SIDE_DEVICE)
        assert_true(++calls < 20);
    assert_true(calls >= 5);                                  /* not after one that was held up */
    assert_int_equal(choose(&kind, 1e7, 0), CLV_SIDE_DEVICE); /* other sizes keep theirs */
    /* it recovers: after a while it gets its chance, and is kept */
    int back = 0;
    while (call(&kind, work, host, 60e-6) == CLV_SIDE_HOST)
        assert_true(++back < 200);
    assert_true(back > 20);
    for (int i = 0; i < 50; ++i)
        assert_int_equal(call(&kind, work, host, 60e-6), CLV_SIDE_DEVICE);
}

static void one_call_that_is_held_up_changes_nothing(void **state)
{
    (void)state;
    clv_kind kind = known(true);
    for (int i = 0; i < 20; ++i)
        assert_int_equal(call(&kind, 1e5, 100e-6, 60e-6), CLV_SIDE_DEVICE);
    assert_int_equal(call(&kind, 1e5, 100e-6, 1), CLV_SIDE_DEVICE); /* a second */
    for (int i = 0; i < 20; ++i)
        assert_int_equal(call(&kind, 1e5, 100e-6, 60e-6), CLV_SIDE_DEVICE);
}

/* A kind that was timed while the machine was busy: long calls put it right within a few of them. */
static void long_calls_teach_sooner(void **state)
{
    (void)state;
    clv_kind kind = { .built = true, .first_s = -1 };
    for (double work = 1e3; work < 2e7; work *= 4) /* the device is eight times as fast as that */
        clv_curve_add(&kind.curve, work, work * 1e-9, 50e-6 + work * 1.2e-9);
    int calls = 0;
    while (call(&kind, 1e8, 0.8, 0.1) == CLV_SIDE_HOST) /* 0.1 s said, of the device 0.12 */
        assert_true(++calls < 3);
    for (int i = 0; i < 20; ++i)
        assert_int_equal(call(&kind, 1e8, 0.8, 0.1), CLV_SIDE_DEVICE);
}

/* Within a few per cent the side stays what it was, on whichever side it was. */
static void noise_does_not_make_it_flutter(void **state)
{
    (void)state;
    uint64_t seed = 5;
    clv_kind kind = known(true);
    const double work = 5.2e4, alike[CLV_SIDES] = { 100e-6, 100e-6 };
    int changes = 0;
    clv_side last = CLV_SIDE_AUTO;
    for (int i = 0; i < 1000; ++i) {
        const double seconds[CLV_SIDES] = { 100e-6 * test_uniform(&seed, 0.99, 1.01),
                                            100e-6 * test_uniform(&seed, 0.99, 1.01) };
        const clv_side side = clv_kind_choose(&kind, NULL, work, seconds, 0);
        clv_kind_went(&kind, NULL, work, side, alike);
        changes += last && side != last;
        last = side;
    }
    assert_int_equal(changes, 0);
    const double device[CLV_SIDES] = { 100e-6, 80e-6 }, host[CLV_SIDES] = { 80e-6, 100e-6 };
    assert_int_equal(clv_kind_choose(&kind, NULL, work, device, 0), CLV_SIDE_DEVICE);
    assert_int_equal(clv_kind_choose(&kind, NULL, work, host, 0), CLV_SIDE_HOST);
}

/* Tells where to time next: at a change of sides first, then between far neighbours that are alike. */
static void timings_go_where_they_tell_most(void **state)
{
    (void)state;
    clv_curve c = { 0 };
    double work = 0;
    clv_curve_add(&c, 1e3, 1e-6, 50e-6);
    clv_curve_add(&c, 4e3, 4e-6, 50e-6);
    clv_curve_add(&c, 16e3, 48e-6, 50e-6);
    clv_curve_add(&c, 64e3, 64e-6, 60e-6);
    clv_curve_add(&c, 256e3, 256e-6, 70e-6);
    assert_true(clv_curve_next(&c, &work) && work == 32e3);
    clv_curve_add(&c, 32e3, 49e-6, 48e-6);
    assert_true(clv_curve_next(&c, &work) && work > 22e3 && work < 23e3);
    clv_curve_add(&c, work, 49e-6, 51e-6);
    assert_true(clv_curve_next(&c, &work) && work > 26e3 && work < 27e3);
    clv_curve_add(&c, work, 49e-6, 50e-6);
    assert_true(clv_curve_next(&c, &work) && work == 8e3);
    clv_curve_add(&c, work, 20e-6, 50e-6);
    assert_true(clv_curve_next(&c, &work) && work == 128e3);
    clv_curve_add(&c, work, 128e-6, 65e-6);
    assert_false(clv_curve_next(&c, &work));
}

/* The curve says device, the shape's own times say host; then calls there turn out slow. */
static void a_shape_goes_its_own_way_and_learns(void **state)
{
    (void)state;
    clv_kind kind = known(true);
    const double own[CLV_SIDES] = { 50e-6, 60e-6 }, near[CLV_SIDES] = { 98e-6, 100e-6 };
    assert_int_equal(choose(&kind, 1e5, 0), CLV_SIDE_DEVICE);
    clv_shape *s = clv_shape_keep(&kind, 1, own);
    assert_int_equal(clv_kind_choose(&kind, s, 1e5, own, 0), CLV_SIDE_HOST);
    s->side = CLV_SIDE_DEVICE;
    assert_int_equal(clv_kind_choose(&kind, s, 1e5, near, 0), CLV_SIDE_DEVICE);
    s->side = CLV_SIDE_HOST;
    double now = 0, said[CLV_SIDES];
    int calls = 0;
    do {
        clv_kind_predict(&kind, s, 1e5, said);
        s->side = clv_kind_choose(&kind, s, 1e5, said, 0);
        now += 120e-6;
        if (s->side == CLV_SIDE_HOST)
            clv_kind_saw(&kind, s, 1e5, s->side, said[CLV_HOST], 120e-6, now);
        assert_true(++calls < 120);
    } while (s->side == CLV_SIDE_HOST);
    assert_true(calls >
                86); /* 10 ms in which its threads wake up, and not after one that was held up */
    assert_int_equal(choose(&kind, 1e4, 0), CLV_SIDE_HOST);
}

enum { THREADS = 150 }; /* more than the record has rows at first */

static pthread_barrier_t all_ordered;

static void *order(void *mine)
{
    bool *right = mine;
    const clv_side side = (size_t)(right + 1) % 3 ? CLV_SIDE_DEVICE : CLV_SIDE_HOST;
    clv_offload decision;
    *right = clv_offload_force(side) == CLV_SIDE_AUTO && !clv_offload_dry(true);
    *right &= clv_offload_last(&decision) == CLV_E_ARGUMENT;
    pthread_barrier_wait(&all_ordered);
    *right &= clv_offload_force(side) == side && clv_offload_dry(true);
    clv_call_orders_here()->latest.of.side = side;
    clv_call_orders_here()->latest.basis = "";
    *right &= clv_offload_last(&decision) == CLV_OK && decision.side == side;
    return NULL; /* with its orders in force */
}

static void orders_end_with_their_thread(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    bool right[THREADS];
    assert_int_equal(clv_offload_force(CLV_SIDE_HOST), CLV_SIDE_AUTO);
    pthread_barrier_init(&all_ordered, NULL, THREADS);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < THREADS; ++i)
            assert_int_equal(pthread_create(&thread[i], NULL, order, &right[i]), 0);
        for (int i = 0; i < THREADS; ++i) {
            pthread_join(thread[i], NULL);
            assert_true(right[i]);
        }
    }
    pthread_barrier_destroy(&all_ordered);
    assert_int_equal(clv_offload_force(CLV_SIDE_AUTO), CLV_SIDE_HOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_curve_is_read_between_its_points),
        cmocka_unit_test(a_table_of_curves_names_the_side),
        cmocka_unit_test(both_sides_of_the_break_even),
        cmocka_unit_test(a_first_call_is_weighed),
        cmocka_unit_test(small_calls_never_pay_for_a_program),
        cmocka_unit_test(timing_waits_until_it_pays),
        cmocka_unit_test(calls_teach),
        cmocka_unit_test(one_call_that_is_held_up_changes_nothing),
        cmocka_unit_test(long_calls_teach_sooner),
        cmocka_unit_test(noise_does_not_make_it_flutter),
        cmocka_unit_test(timings_go_where_they_tell_most),
        cmocka_unit_test(a_shape_goes_its_own_way_and_learns),
        cmocka_unit_test(orders_end_with_their_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
