/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what happens to units whose device is late, lost, or shares its cores. */
#include "balance_test.h"

#include "simulator.h"

#include <math.h>

/* ---- speculation ---------------------------------------------------------------------------- */

/* Two devices, the second four times slower; each holds a chunk, nothing is free. Whoever asks
 * first gets the first units. */
typedef struct late {
    clv_balance *balance;
    clv_balance_lease fast, slow;
} late;

static late hand_out(void)
{
    const clv_balance_device devices[] = { known(1000), known(250) };
    late l = { .balance = make(&(clv_balance_job){ .units = 50, .min_chunk = 10 }, devices, 2) };
    l.slow = EXPECT_WORK(clv_balance_next(l.balance, 1, 0));
    assert_int_equal(l.slow.count, 10); /* its fifth: both end after 0.04 s */
    l.fast = EXPECT_WORK(clv_balance_next(l.balance, 0, 0));
    return l;
}

/* The fast device ends; the slow one does not. Returns when the fast one may do its units. */
static double end_fast(const late *l)
{
    double t = 0;
    clv_balance_lease lease = l->fast;
    for (;;) {
        t += 1e-5 + (double)lease.count / 1000;
        assert_true(clv_balance_done(l->balance, 0, lease.id, t, true));
        lease = clv_balance_next(l->balance, 0, t);
        if (lease.act == CLV_BALANCE_WAIT) break;
        assert_false(lease.speculative);
    }
    assert_true(lease.until > t);
    return lease.until;
}

static void an_overdue_chunk_is_done_by_another_device(void **state)
{
    (void)state;
    const late l = hand_out();
    const double t = end_fast(&l);
    assert_true(t < 0.06); /* the slow chunk should have ended after 0.04 s */
    const clv_balance_lease again = EXPECT_WORK(clv_balance_next(l.balance, 0, t));
    assert_true(again.speculative);
    assert_int_equal(again.first, l.slow.first);
    assert_int_equal(again.count, l.slow.count);
    assert_true(clv_balance_done(l.balance, 0, again.id, t + 0.01, true));
    assert_true(clv_balance_finished(l.balance));
    assert_false(clv_balance_done(l.balance, 1, l.slow.id, t + 1, true)); /* late: dropped */
    assert_int_equal(clv_balance_get_stats(l.balance, 1).dropped, 1);
    assert_int_equal(clv_balance_get_stats(l.balance, 1).units, 0);
    clv_balance_free(l.balance);
}

static void the_first_result_counts_whoever_brings_it(void **state)
{
    (void)state;
    const late l = hand_out();
    const double t = end_fast(&l);
    const clv_balance_lease again = EXPECT_WORK(clv_balance_next(l.balance, 0, t));
    assert_true(clv_balance_done(l.balance, 1, l.slow.id, t + 0.001, true));
    assert_true(clv_balance_finished(l.balance));
    assert_false(clv_balance_done(l.balance, 0, again.id, t + 0.01, true));
    clv_balance_free(l.balance);
}

static void a_copy_that_fails_leaves_the_original(void **state)
{
    (void)state;
    const late l = hand_out();
    const double t = end_fast(&l);
    clv_balance_lease again = EXPECT_WORK(clv_balance_next(l.balance, 0, t));
    assert_true(clv_balance_failed(l.balance, 0, again.id, t + 0.001, CLV_BALANCE_FAILED));
    again = EXPECT_WORK(clv_balance_next(l.balance, 0, t + 0.001));
    assert_true(again.speculative); /* still held by the slow device */
    assert_false(clv_balance_failed(l.balance, 1, 0, t + 0.002, CLV_BALANCE_LOST));
    assert_true(clv_balance_done(l.balance, 0, again.id, t + 0.01, true));
    assert_true(clv_balance_finished(l.balance));
    clv_balance_free(l.balance);
}

static void what_does_not_fit_at_once_is_done_in_pieces(void **state)
{
    (void)state;
    clv_balance_device devices[] = { known(1000), known(250) };
    devices[0].max_chunk = 20;
    clv_balance *b = make(&(clv_balance_job){ .units = 50 }, devices, 2);
    /* The other one did not ask yet: the slow one takes everything. */
    const clv_balance_lease slow = EXPECT_WORK(clv_balance_next(b, 1, 0.01));
    assert_int_equal(slow.count, 50);
    clv_balance_lease piece = EXPECT_WORK(clv_balance_next(b, 0, 0.011)); /* 0.05 s, not 0.2 */
    assert_true(piece.speculative);
    assert_true(piece.first == 0 && piece.count == 20);
    assert_true(clv_balance_done(b, 0, piece.id, 0.031, true));
    /* Nothing of the slow chunk can be committed any more: the rest of it is free. */
    piece = EXPECT_WORK(clv_balance_next(b, 0, 0.031));
    assert_false(piece.speculative);
    assert_int_equal(piece.first, 20);
    assert_false(clv_balance_done(b, 1, slow.id, 0.04, true));
    assert_false(clv_balance_finished(b));
    clv_balance_free(b);
}

static void a_chunk_in_time_is_left_alone(void **state)
{
    (void)state;
    const late l = hand_out();
    const double t = end_fast(&l); /* nothing was given twice so far */
    assert_true(clv_balance_done(l.balance, 1, l.slow.id, 0.999 * t, true));
    assert_true(clv_balance_finished(l.balance));
    assert_int_equal(clv_balance_get_stats(l.balance, 0).dropped, 0);
    clv_balance_free(l.balance);
}

static void a_chunk_of_unknown_length_is_done_again_by_an_idle_device(void **state)
{
    (void)state;
    const clv_balance_device devices[] = { known(1000), { .depth = 1, .pool = -1 } };
    clv_balance *b = make(&(clv_balance_job){ .units = 100 }, devices, 2);
    const clv_balance_lease probe = EXPECT_WORK(clv_balance_next(b, 1, 0));
    assert_int_equal(probe.count, 1);
    double t = 0;
    for (;;) {
        const clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 0, t));
        t += 1e-5 + (double)lease.count / 1000;
        assert_true(clv_balance_done(b, 0, lease.id, t, true));
        if (!lease.speculative) continue;
        assert_int_equal(lease.first, probe.first);
        break;
    }
    assert_true(clv_balance_finished(b)); /* one unit later than alone, not more */
    assert_true(t < 0.102);
    clv_balance_free(b);
}

static void other_schedules_do_nothing_twice(void **state)
{
    (void)state;
    for (int schedule = CLV_SCHEDULE_STATIC; schedule <= CLV_SCHEDULE_HGUIDED; ++schedule) {
        const clv_balance_device devices[] = { known(1000), known(1000) };
        const clv_balance_job job = { .units = 10,
                                      .min_chunk = 5,
                                      .schedule = (clv_schedule)schedule };
        clv_balance *b = make(&job, devices, 2);
        EXPECT_WORK(clv_balance_next(b, 0, 0));
        const clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 1, 0));
        assert_true(clv_balance_done(b, 1, lease.id, 0.1, true));
        assert_true(isinf(EXPECT_WAIT(clv_balance_next(b, 1, 1000)).until));
        clv_balance_free(b);
    }
}

/* ---- pools ---------------------------------------------------------------------------------- */

static void of_a_pool_the_best_one_works(void **state)
{
    (void)state;
    clv_balance_device devices[] = { known(100), known(1000), known(500) };
    for (size_t i = 0; i < 3; ++i)
        devices[i].pool = 7;
    for (int schedule = 0; schedule < 4; ++schedule) {
        const clv_balance_job job = { .units = 10000, .schedule = (clv_schedule)schedule };
        clv_balance *b = make(&job, devices, 3);
        EXPECT_WAIT(clv_balance_admit(b, 0, 0));
        EXPECT_WORK(clv_balance_admit(b, 1, 0));
        EXPECT_WAIT(clv_balance_next(b, 2, 0));
        EXPECT_WORK(clv_balance_next(b, 1, 0));
        EXPECT_WAIT(clv_balance_next(b, 0, 0.01));
        if (schedule == CLV_SCHEDULE_ADAPTIVE) expect_reason(b, 0, "device 1 works on the cores");
        /* It dies: the next best takes over, with the units that it held. */
        assert_false(clv_balance_failed(b, 1, 0, 0.02, CLV_BALANCE_LOST));
        EXPECT_WAIT(clv_balance_next(b, 0, 0.02));
        assert_int_equal(EXPECT_WORK(clv_balance_next(b, 2, 0.02)).first, 0);
        clv_balance_free(b);
    }
}

static void a_pool_passes_on_when_its_owner_fails_twice(void **state)
{
    (void)state;
    clv_balance_device devices[] = { known(1000), known(500) };
    devices[0].pool = devices[1].pool = 0;
    clv_balance *b = make(&(clv_balance_job){ .units = 10000 }, devices, 2);
    for (int i = 0; i < 2; ++i) {
        EXPECT_WAIT(clv_balance_next(b, 1, 0));
        const clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 0, 0));
        assert_int_equal(clv_balance_failed(b, 0, lease.id, 0, CLV_BALANCE_FAILED), i == 0);
    }
    EXPECT_WORK(clv_balance_next(b, 1, 0));
    clv_balance_free(b);
}

static void an_owner_that_does_not_answer_is_replaced_and_may_come_back(void **state)
{
    (void)state;
    clv_balance_device devices[] = { known(1000), known(500) };
    devices[0].pool = devices[1].pool = 0;
    clv_balance *b = make(&(clv_balance_job){ .units = 100000 }, devices, 2);
    const clv_balance_lease stalled = EXPECT_WORK(clv_balance_next(b, 0, 0));
    const double until = EXPECT_WAIT(clv_balance_next(b, 1, 0)).until;
    assert_true(until > 0.4 && until < 2); /* four chunks and a bit */
    clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 1, until));
    assert_true(
        clv_balance_done(b, 0, stalled.id, until + 0.01, true)); /* still the first result */
    EXPECT_WAIT(clv_balance_next(b, 0, until + 0.01));           /* not both at once */
    assert_true(clv_balance_done(b, 1, lease.id, until + 0.02, true));
    lease = EXPECT_WAIT(clv_balance_next(b, 1, until + 0.02));
    EXPECT_WORK(clv_balance_next(b, 0, until + 0.02)); /* it was only late */
    clv_balance_free(b);
}

/* Nothing is known: whoever comes first in the list, the fastest platform gets the cores. */
static void unknown_members_of_a_pool_are_tried(void **state)
{
    (void)state;
    static const double speeds[] = { 1, 15, 4 }; /* as measured between three CPU platforms */
    for (size_t shift = 0; shift < 3; ++shift) {
        sim_scenario scenario = { .seed = shift + 1, .device_count = 3 };
        scenario.job.units = 3000000;
        for (size_t i = 0; i < 3; ++i)
            scenario.devices[i] = (sim_device){ .told = { .depth = 1, .pool = 0 },
                                                .units_per_s = 1e5 * speeds[(i + shift) % 3],
                                                .chunk_s = 5e-5,
                                                .first_s = 0.02,
                                                .noise = 0.03,
                                                .dies_at = INFINITY };
        const sim_result result = sim_run(&scenario);
        assert_null(result.fault);
        assert_true(result.makespan < 2.0 * 1.05); /* the best one alone needs 2 s */
        for (size_t i = 0; i < 3; ++i)
            assert_int_equal(result.stats[i].units > 2900000, (i + shift) % 3 == 1);
    }
}

/* ---- deaths --------------------------------------------------------------------------------- */

static sim_scenario small_machine(int schedule, bool told)
{
    sim_scenario scenario = { .seed = 3, .device_count = 3 };
    scenario.job =
        (clv_balance_job){ .units = 5000, .align = 4, .schedule = (clv_schedule)schedule };
    for (size_t i = 0; i < 3; ++i)
        scenario.devices[i] = (sim_device){ .told = { .depth = 1 + i % 2, .pool = -1 },
                                            .units_per_s = 1000.0 * (double)(1 + 3 * i),
                                            .chunk_s = 1e-4,
                                            .noise = 0.02,
                                            .dies_at = INFINITY };
    for (size_t i = 0; told && i < 3; ++i)
        scenario.devices[i].told.units_per_s = scenario.devices[i].units_per_s;
    return scenario;
}

static void a_device_may_die_at_any_event(void **state)
{
    (void)state;
    size_t runs = 0;
    for (int what = 0; what < 16; ++what) {
        sim_scenario scenario = small_machine(what % 4, what / 4 % 2);
        const size_t events = sim_run(&scenario).events;
        for (size_t device = 0; device < 3; ++device) {
            scenario.devices[device].silently = what / 8;
            scenario.death_device = device;
            for (size_t k = 1; k <= events; ++k, ++runs) {
                scenario.death_event = k;
                const sim_result result = sim_run(&scenario);
                if (result.fault || !result.finished) {
                    sim_print(&scenario, &result);
                    fail_msg("device %zu dies at event %zu, schedule %d", device, k, what % 4);
                }
            }
            scenario.devices[device].silently = false;
        }
    }
    print_message("%zu deaths\n", runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overdue_chunk_is_done_by_another_device),
        cmocka_unit_test(the_first_result_counts_whoever_brings_it),
        cmocka_unit_test(a_copy_that_fails_leaves_the_original),
        cmocka_unit_test(what_does_not_fit_at_once_is_done_in_pieces),
        cmocka_unit_test(a_chunk_in_time_is_left_alone),
        cmocka_unit_test(a_chunk_of_unknown_length_is_done_again_by_an_idle_device),
        cmocka_unit_test(other_schedules_do_nothing_twice),
        cmocka_unit_test(of_a_pool_the_best_one_works),
        cmocka_unit_test(a_pool_passes_on_when_its_owner_fails_twice),
        cmocka_unit_test(an_owner_that_does_not_answer_is_replaced_and_may_come_back),
        cmocka_unit_test(unknown_members_of_a_pool_are_tried),
        cmocka_unit_test(a_device_may_die_at_any_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
