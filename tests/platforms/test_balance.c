/* SPDX-License-Identifier: Apache-2.0 */
/* Tests every rule of the balancer by itself, on a clock that the test sets. */
#include "balance_test.h"

#include "base/alloc.h"
#include "simulator.h"

#include <math.h>

enum { UNITS = 1000 };

/* ---- one device ----------------------------------------------------------------------------- */

static void one_unit_is_one_chunk(void **state)
{
    (void)state;
    const clv_balance_device device = { .depth = 2, .pool = -1 };
    clv_balance *b = make(&(clv_balance_job){ .units = 1, .align = 64 }, &device, 1);
    EXPECT_WORK(clv_balance_admit(b, 0, 0));
    const clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 0, 0));
    assert_int_equal(lease.first, 0);
    assert_int_equal(lease.count, 1);
    assert_true(lease.expected_s <= 0);
    EXPECT_WAIT(clv_balance_next(b, 0, 0));
    assert_false(clv_balance_finished(b));
    assert_true(clv_balance_done(b, 0, lease.id, 1, true));
    assert_true(clv_balance_finished(b));
    assert_false(clv_balance_stuck(b));
    EXPECT_LEAVE(clv_balance_next(b, 0, 1));
    EXPECT_LEAVE(clv_balance_admit(b, 0, 1));
    clv_balance_free(b);
}

static void no_units_are_done_at_once(void **state)
{
    (void)state;
    const clv_balance_device device = known(1);
    clv_balance *b = make(&(clv_balance_job){ .units = 0 }, &device, 1);
    assert_true(clv_balance_finished(b));
    EXPECT_LEAVE(clv_balance_admit(b, 0, 0));
    clv_balance_free(b);
}

static void without_devices_it_is_stuck_until_somebody_else_does_the_work(void **state)
{
    (void)state;
    clv_balance *b = make(&(clv_balance_job){ .units = 100 }, NULL, 0);
    assert_true(clv_balance_stuck(b));
    size_t first, count;
    assert_true(clv_balance_take(b, 60, &first, &count));
    assert_true(first == 0 && count == 60);
    assert_true(clv_balance_take(b, 60, &first, &count));
    assert_true(first == 60 && count == 40);
    assert_false(clv_balance_take(b, 60, &first, &count));
    assert_true(clv_balance_finished(b));
    clv_balance_free(b);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    const clv_balance_job job = { .units = 1 };
    clv_balance_device device = known(1);
    clv_balance *b;
    EXPECT_FAIL(CLV_E_ARGUMENT, "17 devices", clv_balance_create(&job, &device, 17, 0, &b));
    device.depth = 0;
    EXPECT_FAIL(CLV_E_ARGUMENT, "depth 0", clv_balance_create(&job, &device, 1, 0, &b));
    device.depth = 1;
    const clv_balance_job large = { .units = SIZE_MAX };
    EXPECT_FAIL(CLV_E_ARGUMENT, "2^62", clv_balance_create(&large, &device, 1, 0, &b));
    assert_null(b);
}

static void chunks_begin_at_multiples_and_only_the_last_is_small(void **state)
{
    (void)state;
    const clv_balance_device device = known(1000);
    const clv_balance_job job = { .units = 1003, .align = 64, .min_chunk = 100, .batch = 200 };
    clv_balance *b = make(&job, &device, 1);
    size_t next = 0;
    for (double t = 0; !clv_balance_finished(b); t += 1) {
        const clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 0, t));
        assert_int_equal(lease.first, next);
        assert_int_equal(lease.first % 64, 0);
        next += lease.count;
        assert_int_equal(lease.count,
                         next == 1003 ? 1003 % 192 : 192); /* batch, in blocks of align */
        assert_true(clv_balance_done(b, 0, lease.id, t + (double)lease.count / 1000, true));
    }
    assert_int_equal(next, 1003);
    clv_balance_free(b);
}

static void a_second_slot_waits_behind_the_first(void **state)
{
    (void)state;
    clv_balance_device device = known(1000);
    device.depth = 2;
    clv_balance *b = make(&(clv_balance_job){ .units = UNITS }, &device, 1);
    const clv_balance_lease first = EXPECT_WORK(clv_balance_next(b, 0, 0));
    const clv_balance_lease second = EXPECT_WORK(clv_balance_next(b, 0, 0));
    EXPECT_WAIT(clv_balance_next(b, 0, 0));
    assert_int_equal(second.first, first.count);
    /* It is half as fast as it was; the second chunk is measured from the end of the first. */
    const double t = (double)first.count / 500;
    assert_true(clv_balance_done(b, 0, first.id, t, true));
    assert_true(clv_balance_done(b, 0, second.id, t + (double)second.count / 500, true));
    const clv_balance_stats stats = clv_balance_get_stats(b, 0);
    assert_true(fabs(stats.units_per_s / 500 - 1) < 0.02);
    assert_true(fabs(stats.busy_s - (t + (double)second.count / 500)) < 1e-12);
    clv_balance_free(b);
}

static void a_lone_device_takes_longer_chunks(void **state)
{
    (void)state;
    const clv_balance_device devices[] = { known(1000), known(1000) };
    clv_balance *b = make(&(clv_balance_job){ .units = 100 * UNITS }, devices, 1);
    assert_in_range(EXPECT_WORK(clv_balance_next(b, 0, 0)).count, 249, 251);
    clv_balance_free(b);
    b = make(&(clv_balance_job){ .units = 100 * UNITS }, devices, 2);
    assert_in_range(EXPECT_WORK(clv_balance_next(b, 0, 0)).count, 99, 101);
    clv_balance_free(b);
}

/* ---- failures ------------------------------------------------------------------------------- */

static void failed_units_are_given_again_lowest_first(void **state)
{
    (void)state;
    const clv_balance_device devices[] = { known(1000), known(1000) };
    clv_balance *b = make(&(clv_balance_job){ .units = 100 * UNITS }, devices, 2);
    const clv_balance_lease first = EXPECT_WORK(clv_balance_next(b, 0, 0));
    const clv_balance_lease second = EXPECT_WORK(clv_balance_next(b, 1, 0));
    assert_int_equal(second.first, first.count);
    assert_true(clv_balance_failed(b, 0, first.id, 0.1, CLV_BALANCE_FAILED));
    assert_false(clv_balance_done(b, 0, first.id, 0.1, true)); /* it is no lease any more */
    assert_true(clv_balance_done(b, 1, second.id, 0.1, true));
    const clv_balance_lease again = EXPECT_WORK(clv_balance_next(b, 1, 0.1));
    assert_int_equal(again.first, 0);
    assert_int_equal(again.count, first.count);
    assert_false(again.speculative);
    clv_balance_free(b);
}

static void a_second_failure_in_a_row_ends_a_device(void **state)
{
    (void)state;
    const clv_balance_device device = known(1000);
    clv_balance *b = make(&(clv_balance_job){ .units = 100 * UNITS }, &device, 1);
    clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 0, 0));
    assert_true(clv_balance_failed(b, 0, lease.id, 0.1, CLV_BALANCE_FAILED));
    lease = EXPECT_WORK(clv_balance_next(b, 0, 0.1));
    assert_true(clv_balance_done(b, 0, lease.id, 0.2, true)); /* not in a row */
    lease = EXPECT_WORK(clv_balance_next(b, 0, 0.2));
    assert_true(clv_balance_failed(b, 0, lease.id, 0.3, CLV_BALANCE_FAILED));
    lease = EXPECT_WORK(clv_balance_next(b, 0, 0.3));
    assert_false(clv_balance_failed(b, 0, lease.id, 0.4, CLV_BALANCE_FAILED));
    EXPECT_LEAVE(clv_balance_next(b, 0, 0.4));
    assert_true(clv_balance_get_stats(b, 0).out);
    assert_true(clv_balance_stuck(b));
    expect_reason(b, 0, "dropped after a failure");
    clv_balance_free(b);
}

static void without_memory_chunks_are_halved_down_to_the_smallest(void **state)
{
    (void)state;
    clv_balance_device devices[] = { known(1e6), known(1) };
    devices[0].max_chunk = 640;
    const clv_balance_job job = { .units = 10 * UNITS, .align = 8, .min_chunk = 64 };
    clv_balance *b = make(&job, devices, 2);
    size_t want = 640;
    for (double t = 0; want; t += 1) {
        const clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 0, t));
        assert_int_equal(lease.count, want);
        assert_int_equal(lease.first, 0);
        const bool on = clv_balance_failed(b, 0, lease.id, t, CLV_BALANCE_NO_MEMORY);
        assert_int_equal(on, want > 64);
        want = want > 128 ? want / 16 * 8 : want > 64 ? 64 : 0;
        if (want) assert_int_equal(clv_balance_get_stats(b, 0).max_chunk, want);
    }
    expect_reason(b, 0, "does not hold the smallest chunk, 64 units");
    assert_false(clv_balance_stuck(b)); /* the other one is slow, but there */
    EXPECT_WORK(clv_balance_next(b, 1, 20));
    clv_balance_free(b);
}

static void a_memory_below_the_smallest_chunk_is_useless(void **state)
{
    (void)state;
    clv_balance_device device = known(1000);
    device.max_chunk = 99;
    clv_balance *b = make(&(clv_balance_job){ .units = UNITS, .min_chunk = 100 }, &device, 1);
    EXPECT_LEAVE(clv_balance_admit(b, 0, 0));
    assert_true(clv_balance_stuck(b));
    clv_balance_free(b);
    b = make(&(clv_balance_job){ .units = 99, .min_chunk = 100 }, &device, 1); /* all in one */
    assert_int_equal(EXPECT_WORK(clv_balance_next(b, 0, 0)).count, 99);
    clv_balance_free(b);
}

static void a_lost_device_gives_back_all_it_holds(void **state)
{
    (void)state;
    clv_balance_device devices[] = { known(1000), known(1000) };
    devices[0].depth = 2;
    clv_balance *b = make(&(clv_balance_job){ .units = UNITS }, devices, 2);
    const clv_balance_lease first = EXPECT_WORK(clv_balance_next(b, 0, 0));
    EXPECT_WORK(clv_balance_next(b, 0, 0));
    assert_false(clv_balance_failed(b, 0, 0, 0.05, CLV_BALANCE_LOST));
    assert_false(clv_balance_done(b, 0, first.id, 0.1, true));
    assert_false(clv_balance_stuck(b));
    double t = 0.1;
    for (size_t next = 0; !clv_balance_finished(b);) {
        const clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 1, t));
        assert_int_equal(lease.first, next);
        next += lease.count;
        t += (double)lease.count / 1000;
        assert_true(clv_balance_done(b, 1, lease.id, t, true));
    }
    clv_balance_free(b);
}

static void a_failed_set_up_ends_a_device(void **state)
{
    (void)state;
    const clv_balance_device device = known(1000);
    clv_balance *b = make(&(clv_balance_job){ .units = UNITS }, &device, 1);
    EXPECT_WORK(clv_balance_admit(b, 0, 0));
    assert_false(clv_balance_failed(b, 0, 0, 0.1, CLV_BALANCE_FAILED));
    assert_true(clv_balance_stuck(b));
    clv_balance_free(b);
}

static void a_hanging_device_is_given_up(void **state)
{
    (void)state;
    static const struct {
        double units_per_s;
        bool first;
        double after_s;
    } cases[] = {
        { 1000, false, 5 },    /* chunks of a quarter of a second: after five seconds */
        { 1, false, 10.0001 }, /* one unit takes a second: after ten */
        { 1000, true, 60 },    /* the first chunk: after a minute, kernels may be compiled */
        { 0, true, 600 },      /* unknown: after ten minutes */
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        const clv_balance_device device = known(cases[i].units_per_s);
        clv_balance *b = make(&(clv_balance_job){ .units = UNITS }, &device, 1);
        clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 0, 0));
        double t = 0, until;
        if (!cases[i].first) {
            t = lease.expected_s;
            assert_true(clv_balance_done(b, 0, lease.id, t, true));
            lease = EXPECT_WORK(clv_balance_next(b, 0, t));
        }
        assert_int_equal(clv_balance_tick(b, t, &until), 0);
        assert_true(fabs(until - t - cases[i].after_s) < 1e-3);
        assert_int_equal(clv_balance_tick(b, until - 1e-3, &until), 0);
        assert_int_equal(clv_balance_tick(b, until, &until), 1);
        assert_true(isinf(until));
        assert_true(clv_balance_get_stats(b, 0).out);
        assert_true(clv_balance_stuck(b));
        expect_reason(b, 0, "did not finish a chunk");
        assert_false(clv_balance_done(b, 0, lease.id, 601, true));
        EXPECT_LEAVE(clv_balance_next(b, 0, 601));
        clv_balance_free(b);
    }
}

static void without_host_memory_a_device_waits(void **state)
{
    (void)state;
    const clv_balance_device device = known(1000);
    clv_balance *b;
    for (unsigned long k = 1; k <= 3; ++k) {
        clv_alloc_fail_at(k);
        const clv_balance_job job = { .units = UNITS };
        EXPECT_FAIL(CLV_E_MEMORY, "not enough memory", clv_balance_create(&job, &device, 1, 0, &b));
        clv_alloc_fail_at(0);
        assert_null(b);
    }
}

/* ---- several devices ------------------------------------------------------------------------ */

static void a_slow_device_never_holds_the_last_chunk(void **state)
{
    (void)state;
    const clv_balance_device devices[] = { known(1000), known(1) };
    clv_balance *b = make(&(clv_balance_job){ .units = 500 }, devices, 2);
    /* One unit takes the second device a second, the first one does all in half a second. */
    EXPECT_WAIT(clv_balance_next(b, 1, 0));
    expect_reason(b, 1, "would have ended after 1 s, all work of the other devices after 500 ms");
    double t = 0;
    while (!clv_balance_finished(b)) {
        const clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 0, t));
        t += 1e-5 + (double)lease.count / 1000;
        assert_true(clv_balance_done(b, 0, lease.id, t, true));
        if (!clv_balance_finished(b)) EXPECT_WAIT(clv_balance_next(b, 1, t));
    }
    clv_balance_free(b);
}

static void a_long_job_takes_the_slow_device_too(void **state)
{
    (void)state;
    const clv_balance_device devices[] = { known(1000), known(10) };
    clv_balance *b = make(&(clv_balance_job){ .units = 100 * UNITS }, devices, 2);
    assert_in_range(EXPECT_WORK(clv_balance_next(b, 1, 0)).count, 1, 2);
    clv_balance_free(b);
}

static void a_long_set_up_must_be_worth_it(void **state)
{
    (void)state;
    clv_balance_device devices[] = { known(1000), known(100000) };
    devices[1].setup_s = 3;
    clv_balance *b = make(&(clv_balance_job){ .units = UNITS }, devices, 2);
    EXPECT_WORK(clv_balance_admit(b, 0, 0));
    EXPECT_WORK(clv_balance_next(b, 0, 0));
    EXPECT_WAIT(clv_balance_admit(b, 1, 0)); /* one second of work, three of set-up */
    expect_reason(b, 1, "its set-up takes 3 s, all work of the other devices 1 s");
    clv_balance_failed(b, 0, 0, 0.5, CLV_BALANCE_LOST);
    assert_false(clv_balance_stuck(b));
    EXPECT_WORK(clv_balance_admit(b, 1, 0.5)); /* now it is the only one */
    clv_balance_free(b);
    b = make(&(clv_balance_job){ .units = 100 * UNITS }, devices, 2);
    EXPECT_WORK(clv_balance_admit(b, 1, 0)); /* a hundred seconds of work */
    clv_balance_free(b);
}

static void an_unknown_device_with_a_set_up_waits_a_moment_for_speeds(void **state)
{
    (void)state;
    clv_balance_device devices[] = { { .depth = 1, .pool = -1 },
                                     { .depth = 1, .pool = -1, .setup_s = 2 } };
    clv_balance *b = make(&(clv_balance_job){ .units = UNITS }, devices, 2);
    assert_true(EXPECT_WAIT(clv_balance_admit(b, 1, 0)).until <= 0.02);
    clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 0, 0));
    assert_true(clv_balance_done(b, 0, lease.id, 1e-4 * (double)lease.count, true));
    EXPECT_WAIT(clv_balance_admit(b, 1, 1e-3)); /* 0.1 s are left, the set-up takes 2 s */
    clv_balance_free(b);
    b = make(&(clv_balance_job){ .units = UNITS }, devices, 2);
    EXPECT_WAIT(clv_balance_admit(b, 1, 0));
    EXPECT_WORK(clv_balance_next(b, 0, 0));
    EXPECT_WORK(clv_balance_admit(b, 1, 0.02)); /* nobody knows more: it begins */
    clv_balance_free(b);
}

static void first_chunks_of_an_unknown_device_are_small(void **state)
{
    (void)state;
    clv_balance_device devices[] = { { .depth = 2, .pool = -1 }, known(1e6) };
    const clv_balance_job job = { .units = 1000 * UNITS };
    clv_balance *b = make(&job, devices, 1);
    const clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 0, 0));
    assert_in_range(lease.count, 1, job.units / 4096);
    assert_true(isinf(EXPECT_WAIT(clv_balance_next(b, 0, 0)).until)); /* and only one at a time */
    /* The first launch of a kernel tells nothing. */
    assert_true(clv_balance_done(b, 0, lease.id, 5, false));
    assert_int_equal(clv_balance_get_stats(b, 0).samples, 0);
    assert_int_equal(EXPECT_WORK(clv_balance_next(b, 0, 5)).count, lease.count);
    clv_balance_free(b);
}

static void independent_devices_add_up(void **state)
{
    (void)state;
    sim_scenario scenario = { .seed = 1, .job = { .units = 1000 * UNITS }, .device_count = 4 };
    for (size_t i = 0; i < 4; ++i)
        scenario.devices[i] = (sim_device){ .told = known(1e5 * (double)(i + 1)),
                                            .units_per_s = 1e5 * (double)(i + 1),
                                            .chunk_s = 1e-5,
                                            .noise = 0.03,
                                            .dies_at = INFINITY };
    const sim_result result = sim_run(&scenario);
    assert_null(result.fault);
    assert_true(result.makespan < 1.02); /* a million units at a million units/s */
    assert_true(result.efficiency > 0.98);
    assert_true(result.imbalance < 0.03);
}

static void the_same_scenario_runs_the_same_way(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; ++seed) {
        sim_traits traits;
        const sim_scenario scenario = sim_random(seed, &traits);
        const sim_result first = sim_run(&scenario), second = sim_run(&scenario);
        assert_true(first.makespan == second.makespan);
        assert_int_equal(first.questions, second.questions);
        assert_int_equal(first.chunks, second.chunks);
    }
}

static void a_million_million_units_cost_no_more(void **state)
{
    (void)state;
    sim_scenario scenario = { .seed = 1, .device_count = 3 };
    scenario.job = (clv_balance_job){ .units = 1000000000000, .align = 64 };
    for (size_t i = 0; i < 3; ++i)
        scenario.devices[i] = (sim_device){ .told = { .depth = 2, .pool = -1 },
                                            .units_per_s = 1e11 / (double)(i + 1),
                                            .chunk_s = 1e-4,
                                            .dies_at = INFINITY };
    for (int schedule = 0; schedule < 4; ++schedule) {
        scenario.job.schedule = (clv_schedule)schedule;
        const sim_result result = sim_run(&scenario);
        assert_null(result.fault);
        assert_true(result.finished);
        assert_true(result.chunks < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_unit_is_one_chunk),
        cmocka_unit_test(no_units_are_done_at_once),
        cmocka_unit_test(without_devices_it_is_stuck_until_somebody_else_does_the_work),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(chunks_begin_at_multiples_and_only_the_last_is_small),
        cmocka_unit_test(a_second_slot_waits_behind_the_first),
        cmocka_unit_test(a_lone_device_takes_longer_chunks),
        cmocka_unit_test(failed_units_are_given_again_lowest_first),
        cmocka_unit_test(a_second_failure_in_a_row_ends_a_device),
        cmocka_unit_test(without_memory_chunks_are_halved_down_to_the_smallest),
        cmocka_unit_test(a_memory_below_the_smallest_chunk_is_useless),
        cmocka_unit_test(a_lost_device_gives_back_all_it_holds),
        cmocka_unit_test(a_failed_set_up_ends_a_device),
        cmocka_unit_test(a_hanging_device_is_given_up),
        cmocka_unit_test(without_host_memory_a_device_waits),
        cmocka_unit_test(a_slow_device_never_holds_the_last_chunk),
        cmocka_unit_test(a_long_job_takes_the_slow_device_too),
        cmocka_unit_test(a_long_set_up_must_be_worth_it),
        cmocka_unit_test(an_unknown_device_with_a_set_up_waits_a_moment_for_speeds),
        cmocka_unit_test(first_chunks_of_an_unknown_device_are_small),
        cmocka_unit_test(independent_devices_add_up),
        cmocka_unit_test(the_same_scenario_runs_the_same_way),
        cmocka_unit_test(a_million_million_units_cost_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
