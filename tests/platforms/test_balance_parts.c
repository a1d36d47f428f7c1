/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the parts of the balancer: the book of units, the model of speeds, and the schedules with fixed rules. */
#include "balance_test.h"

#include "base/alloc.h"
#include "runtime/job/balance/book.h"
#include "runtime/job/balance/speed.h"

#include <math.h>

/* ---- the book, against one counter a unit --------------------------------------------------- */

enum { SMALL = 200, LIVE = 12 };

typedef struct model {
    int covers[SMALL]; /* -1: committed */
    size_t first[LIVE], count[LIVE];
    bool doomed[LIVE];
    size_t live;
} model;

static void expect_same(const clv_book *book, const model *m)
{
    size_t open = 0, idle = 0, next = 0, segments_free = 0;
    for (size_t i = 0; i < book->count; ++i) {
        const clv_segment *s = &book->segments[i];
        assert_true(s->count > 0 && s->first >= next);
        for (size_t u = next; u < s->first; ++u)
            assert_int_equal(m->covers[u], -1);
        for (size_t u = s->first; u < s->first + s->count; ++u)
            assert_int_equal(m->covers[u], s->covers);
        open += s->count;
        idle += s->covers ? 0 : s->count;
        if (!s->covers && i && !s[-1].covers)
            segments_free += s[-1].first + s[-1].count == s->first;
        next = s->first + s->count;
    }
    for (size_t u = next; u < SMALL; ++u)
        assert_int_equal(m->covers[u], -1);
    assert_int_equal(book->open, open);
    assert_int_equal(book->free, idle);
    assert_int_equal(segments_free, 0); /* free neighbours are one segment */
}

static void cover(model *m, size_t lease, int more)
{
    for (size_t u = m->first[lease]; u < m->first[lease] + m->count[lease]; ++u)
        if (m->covers[u] >= 0) m->covers[u] += more;
}

static void end_one(clv_book *book, model *m, size_t lease, bool commit)
{
    if (!m->doomed[lease] && commit) {
        clv_book_commit(book, m->first[lease], m->count[lease]);
        for (size_t u = m->first[lease]; u < m->first[lease] + m->count[lease]; ++u)
            m->covers[u] = -1;
        for (size_t i = 0; i < m->live; ++i) {
            if (i == lease || m->doomed[i] || m->first[i] >= m->first[lease] + m->count[lease] ||
                m->first[lease] >= m->first[i] + m->count[i])
                continue;
            clv_book_release(book, m->first[i], m->count[i]);
            cover(m, i, -1);
            m->doomed[i] = true;
        }
    } else if (!m->doomed[lease]) {
        clv_book_release(book, m->first[lease], m->count[lease]);
        cover(m, lease, -1);
    }
    --m->live;
    m->first[lease] = m->first[m->live], m->count[lease] = m->count[m->live];
    m->doomed[lease] = m->doomed[m->live];
}

/* A lease on the lowest free units, or, as a copy, on part of what one segment holds. */
static void begin_one(clv_book *book, model *m, uint64_t *random)
{
    const clv_segment *lowest = clv_book_lowest(book);
    if (test_random(random) % 3 == 0) lowest = &book->segments[test_random(random) % book->count];
    if (!lowest) return;
    m->first[m->live] = lowest->first;
    m->count[m->live] = 1 + test_random(random) % lowest->count;
    m->doomed[m->live] = false;
    assert_true(clv_book_take(book, m->first[m->live], m->count[m->live]));
    cover(m, m->live++, 1);
}

static void the_book_counts_every_unit_once(void **state)
{
    (void)state;
    uint64_t random = 42;
    for (int round = 0; round < 500; ++round) {
        clv_book book;
        model m = { .live = 0 };
        assert_true(clv_book_init(&book, SMALL));
        while (book.open) {
            if (m.live == LIVE || (m.live && test_random(&random) % 2))
                end_one(&book, &m, test_random(&random) % m.live, test_random(&random) % 3 > 0);
            else
                begin_one(&book, &m, &random);
            expect_same(&book, &m);
        }
        clv_book_clear(&book);
    }
}

static void the_book_says_when_memory_is_short(void **state)
{
    (void)state;
    clv_book book;
    assert_true(clv_book_init(&book, 1000));
    size_t taken = 0;
    clv_alloc_fail_at(1);
    while (clv_book_take(&book, 2 * taken, 1))
        ++taken;
    clv_alloc_fail_at(0);
    assert_int_equal(book.free, 1000 - taken); /* the refused one changed nothing */
    assert_true(clv_book_take(&book, 2 * taken, 1));
    clv_book_clear(&book);
}

static void a_balance_without_memory_waits_and_goes_on(void **state)
{
    (void)state;
    /* Eight devices with eight slots split the list until it has to grow. */
    clv_balance_device devices[8];
    for (size_t i = 0; i < 8; ++i)
        devices[i] = known(1000), devices[i].depth = 8;
    const clv_balance_job job = { .units = 100000, .batch = 10, .schedule = CLV_SCHEDULE_DYNAMIC };
    clv_balance *b = make(&job, devices, 8);
    size_t leases = 0, refused = 0;
    clv_alloc_fail_at(1);
    for (size_t i = 0; i < 64; ++i) {
        const clv_balance_lease lease = clv_balance_next(b, i % 8, 0);
        if (lease.act == CLV_BALANCE_WORK)
            ++leases;
        else
            ++refused, assert_true(lease.until < 1);
    }
    clv_alloc_fail_at(0);
    assert_int_equal(refused, 1);
    assert_int_equal(leases, 63);
    EXPECT_WORK(clv_balance_next(b, 6, 0));
    clv_balance_free(b);
}

/* ---- speeds --------------------------------------------------------------------------------- */

static void two_sizes_tell_the_fixed_cost_from_the_speed(void **state)
{
    (void)state;
    clv_speed speed = clv_speed_start(0, 0, 0);
    assert_false(clv_speed_known(&speed));
    clv_speed_observe(&speed, 100, 0.002 + 100e-6); /* 2 ms, and a million units a second */
    assert_true(clv_speed_known(&speed));
    for (size_t n = 1000; n <= 100000; n *= 10)
        clv_speed_observe(&speed, n, 0.002 + 1e-6 * (double)n);
    assert_true(fabs(speed.unit_s / 1e-6 - 1) < 0.02);
    assert_true(fabs(speed.chunk_s / 0.002 - 1) < 0.1);
    assert_true(fabs(clv_speed_predict(&speed, 50000) / 0.052 - 1) < 0.02);
}

static void noise_invents_no_fixed_cost(void **state)
{
    (void)state;
    uint64_t random = 7;
    clv_speed speed = clv_speed_start(1e6, 1e-5, 0);
    for (int i = 0; i < 200; ++i) {
        const double n = test_uniform(&random, 90000, 110000);
        clv_speed_observe(&speed, (size_t)n, 1e-6 * n * test_uniform(&random, 0.95, 1.05));
        assert_true(speed.chunk_s < 0.02);
        assert_true(fabs(clv_speed_predict(&speed, 1e5) / 0.1 - 1) < 0.06);
    }
    assert_true(speed.noise > 0.01 && speed.noise < 0.05);
}

static void work_that_every_chunk_repeats_is_known(void **state)
{
    (void)state;
    clv_speed speed = clv_speed_start(0, 0, 50); /* halo rows */
    clv_speed_observe(&speed, 10, 60e-3);
    assert_true(fabs(clv_speed_predict(&speed, 100) - 0.15) < 1e-6);
}

static void one_hiccup_is_forgotten_and_a_new_pace_is_learnt(void **state)
{
    (void)state;
    clv_speed speed = clv_speed_start(1e6, 1e-5, 0);
    for (int i = 0; i < 5; ++i)
        clv_speed_observe(&speed, 100000, 0.1);
    clv_speed_observe(&speed, 100000, 0.4);
    assert_true(fabs(speed.unit_s / 1e-6 - 1) < 0.01);
    assert_true(clv_speed_predict(&speed, 1e5) > 0.3); /* but plans are careful meanwhile */
    clv_speed_observe(&speed, 100000, 0.1);
    assert_true(fabs(clv_speed_predict(&speed, 1e5) / 0.1 - 1) < 0.01);

    clv_speed_observe(&speed, 100000, 0.4);
    clv_speed_observe(&speed, 100000, 0.42); /* twice: it is throttled */
    assert_true(fabs(clv_speed_predict(&speed, 1e5) / 0.41 - 1) < 0.05);
}

static void wrong_history_is_overruled_by_two_chunks(void **state)
{
    (void)state;
    clv_speed speed = clv_speed_start(1e5, 1e-5, 0);
    clv_speed_observe(&speed, 10000, 0.01);
    clv_speed_observe(&speed, 10000, 0.01); /* ten times as fast as it was */
    assert_true(fabs(clv_speed_predict(&speed, 1e4) / 0.01 - 1) < 0.05);
}

/* ---- schedules of fixed rules --------------------------------------------------------------- */

static size_t share_of(clv_balance *b, size_t device)
{
    size_t sum = 0;
    for (double t = 0;; t += 1) {
        const clv_balance_lease lease = clv_balance_next(b, device, t);
        if (lease.act != CLV_BALANCE_WORK) return sum;
        sum += lease.count;
        assert_true(clv_balance_done(b, device, lease.id, t, true));
    }
}

static void static_shares_follow_speed_in_blocks_of_align(void **state)
{
    (void)state;
    clv_balance_device devices[] = { known(100), known(200), known(701) };
    const clv_balance_job job = { .units = 1000, .align = 10, .schedule = CLV_SCHEDULE_STATIC };
    clv_balance *b = make(&job, devices, 3);
    assert_int_equal(share_of(b, 0), 100); /* 9.99 blocks: the largest remainder */
    assert_int_equal(share_of(b, 1), 200); /* 19.98 */
    assert_int_equal(share_of(b, 2), 700); /* 70.03 */
    assert_true(clv_balance_finished(b));
    clv_balance_free(b);

    devices[1].units_per_s = 0; /* one unknown: all count as equal */
    devices[2].max_chunk = 50;
    b = make(&(clv_balance_job){ .units = 900, .schedule = CLV_SCHEDULE_STATIC }, devices, 3);
    assert_int_equal(EXPECT_WORK(clv_balance_next(b, 0, 0)).count, 300);
    assert_int_equal(EXPECT_WORK(clv_balance_next(b, 1, 0)).count, 300);
    assert_int_equal(EXPECT_WORK(clv_balance_next(b, 2, 0)).count, 50);
    clv_balance_free(b);
}

static void chunks_stay_short_where_the_system_ends_long_launches(void **state)
{
    (void)state;
    static const clv_schedule schedules[] = { CLV_SCHEDULE_ADAPTIVE, CLV_SCHEDULE_STATIC,
                                              CLV_SCHEDULE_DYNAMIC };
    for (size_t i = 0; i < CLV_LEN(schedules); ++i) {
        clv_balance_device device = known(1000);
        clv_balance_job job = { .units = 100000, .schedule = schedules[i] };
        device.longest_s = 0.1;
        clv_balance *b = make(&job, &device, 1);
        assert_int_equal(EXPECT_WORK(clv_balance_next(b, 0, 0)).count, 100);
        clv_balance_free(b);

        job.min_chunk = 300; /* a job has no smaller chunks */
        b = make(&job, &device, 1);
        assert_int_equal(EXPECT_WORK(clv_balance_next(b, 0, 0)).count, 300);
        clv_balance_free(b);

        job.min_chunk = 0, device.units_per_s = 0; /* unknown, until a few units have been done */
        b = make(&job, &device, 1);
        clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, 0, 0));
        assert_int_equal(lease.count, 100000 / 4096);
        const double end = 1e-3 * (double)lease.count;
        assert_true(clv_balance_done(b, 0, lease.id, end, true));
        lease = EXPECT_WORK(clv_balance_next(b, 0, end));
        assert_int_equal(lease.count, 2 * (100000 / 4096)); /* chunks at most double */
        clv_balance_free(b);
    }
}

static void a_dead_devices_share_goes_to_the_others(void **state)
{
    (void)state;
    const clv_balance_device devices[] = { known(100), known(100), known(300) };
    const clv_balance_job job = { .units = 500, .schedule = CLV_SCHEDULE_STATIC };
    clv_balance *b = make(&job, devices, 3);
    assert_int_equal(share_of(b, 0), 100);
    EXPECT_WORK(clv_balance_next(b, 2, 0));
    assert_false(clv_balance_failed(b, 2, 0, 1, CLV_BALANCE_LOST));
    assert_int_equal(share_of(b, 0), 150);
    assert_int_equal(share_of(b, 1), 250);
    assert_true(clv_balance_finished(b));
    clv_balance_free(b);
}

static void too_small_a_share_is_none(void **state)
{
    (void)state;
    const clv_balance_device devices[] = { known(1), known(999) };
    const clv_balance_job job = { .units = 1000, .min_chunk = 10, .schedule = CLV_SCHEDULE_STATIC };
    clv_balance *b = make(&job, devices, 2);
    EXPECT_WAIT(clv_balance_next(b, 0, 0));
    assert_int_equal(share_of(b, 1), 1000);
    clv_balance_free(b);
}

static void dynamic_chunks_are_all_alike(void **state)
{
    (void)state;
    const clv_balance_device devices[] = { known(100), known(1) };
    const clv_balance_job job = { .units = 12800, .schedule = CLV_SCHEDULE_DYNAMIC };
    clv_balance *b = make(&job, devices, 2);
    for (size_t i = 0; i < 128; ++i) {
        const clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, i % 2, 0));
        assert_int_equal(lease.count, 100);
        assert_true(clv_balance_done(b, i % 2, lease.id, 0, true));
    }
    assert_true(clv_balance_finished(b));
    clv_balance_free(b);
}

static void hguided_chunks_shrink_with_what_is_left(void **state)
{
    (void)state;
    const clv_balance_device devices[] = { known(300), known(100) };
    const clv_balance_job job = { .units = 1000,
                                  .min_chunk = 20,
                                  .schedule = CLV_SCHEDULE_HGUIDED };
    clv_balance *b = make(&job, devices, 2);
    size_t left = 1000;
    for (size_t i = 0; left; ++i) {
        const clv_balance_lease lease = EXPECT_WORK(clv_balance_next(b, i % 2, 0));
        const size_t want = left * (i % 2 ? 1 : 3) / 8; /* remaining x P / (2 x sum P) */
        if (want > 20 && left > 2 * want)
            assert_in_range(lease.count, want - 1, want);
        else
            assert_true(lease.count >= 20 || lease.count == left);
        assert_true(clv_balance_done(b, i % 2, lease.id, 0, false));
        left -= lease.count;
    }
    clv_balance_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_book_counts_every_unit_once),
        cmocka_unit_test(the_book_says_when_memory_is_short),
        cmocka_unit_test(a_balance_without_memory_waits_and_goes_on),
        cmocka_unit_test(two_sizes_tell_the_fixed_cost_from_the_speed),
        cmocka_unit_test(noise_invents_no_fixed_cost),
        cmocka_unit_test(work_that_every_chunk_repeats_is_known),
        cmocka_unit_test(one_hiccup_is_forgotten_and_a_new_pace_is_learnt),
        cmocka_unit_test(wrong_history_is_overruled_by_two_chunks),
        cmocka_unit_test(static_shares_follow_speed_in_blocks_of_align),
        cmocka_unit_test(chunks_stay_short_where_the_system_ends_long_launches),
        cmocka_unit_test(a_dead_devices_share_goes_to_the_others),
        cmocka_unit_test(too_small_a_share_is_none),
        cmocka_unit_test(dynamic_chunks_are_all_alike),
        cmocka_unit_test(hguided_chunks_shrink_with_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
