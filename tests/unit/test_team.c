/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a team's threads do every part of a piece of work exactly once, that a caller who finds the team busy
 * works alone, and that threads that sleep are woken. */
#include "test.h"

#include "base/clock.h"
#include "base/team.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <string.h>

enum { PARTS = 40, PIECES = 2000 };

typedef struct piece {
    atomic_size_t next;
    atomic_uint done[PARTS], callers;
} piece;

static void share(void *user)
{
    piece *p = user;
    atomic_fetch_add(&p->callers, 1);
    for (size_t i; (i = atomic_fetch_add(&p->next, 1)) < PARTS;)
        atomic_fetch_add(&p->done[i], 1);
}

static void expect_pieces(clv_team *team, unsigned pieces, unsigned most)
{
    for (unsigned k = 0; k < pieces; ++k) {
        piece p;
        memset(&p, 0, sizeof p);
        clv_team_run(team, share, &p);
        for (size_t i = 0; i < PARTS; ++i)
            assert_int_equal(p.done[i], 1);
        assert_true(p.callers >= 1 && p.callers <= most);
    }
}

static void every_part_is_done_once(void **state)
{
    (void)state;
    clv_team *team = clv_team_start(3);
    assert_non_null(team);
    expect_pieces(team, PIECES, 4);
    clv_team_free(team);
}

static void without_threads_the_caller_works(void **state)
{
    (void)state;
    assert_null(clv_team_start(0));
    expect_pieces(NULL, 3, 1);
    clv_team_free(NULL);
}

static void a_team_ends_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 50; ++i) {
        clv_team *team = clv_team_start(2);
        assert_non_null(team);
        if (i % 2) expect_pieces(team, 1, 3);
        clv_team_free(team);
    }
}

/* Waits until another thread has come, for at most ten seconds. */
static void meet(void *user)
{
    piece *p = user;
    atomic_fetch_add(&p->callers, 1);
    for (const double until = clv_now() + 10; p->callers < 2 && clv_now() < until;)
        ;
}

static void sleepers_are_woken(void **state)
{
    (void)state;
    clv_team *team = clv_team_start(1);
    assert_non_null(team);
    for (int i = 0; i < 5; ++i) {
        for (const double until = clv_now() + 2e-3; clv_now() < until;)
            ; /* the team's thread falls asleep */
        piece p;
        memset(&p, 0, sizeof p);
        clv_team_run(team, meet, &p);
        assert_int_equal(p.callers, 2);
    }
    clv_team_free(team);
}

typedef struct slow {
    pthread_t caller;
    atomic_uint begun, ended;
} slow;

/* The caller ends when another thread has begun, which takes a millisecond longer. */
static void linger(void *user)
{
    slow *s = user;
    const bool waits = pthread_equal(s->caller, pthread_self());
    if (!waits) atomic_fetch_add(&s->begun, 1);
    const double until = clv_now() + (waits ? 10 : 1e-3);
    while (clv_now() < until && !(waits && s->begun))
        ;
    if (!waits) atomic_fetch_add(&s->ended, 1);
}

static void the_caller_waits_for_the_others(void **state)
{
    (void)state;
    clv_team *team = clv_team_start(1);
    assert_non_null(team);
    for (int i = 0; i < 5; ++i) {
        slow s = { .caller = pthread_self() };
        clv_team_run(team, linger, &s);
        assert_int_equal(s.begun, 1);
        assert_int_equal(s.ended, 1);
    }
    clv_team_free(team);
}

static void *call(void *team)
{
    expect_pieces(team, PIECES, 3);
    return NULL;
}

static void callers_do_not_wait_for_each_other(void **state)
{
    (void)state;
    clv_thread other;
    clv_team *team = clv_team_start(2);
    assert_non_null(team);
    assert_true(clv_thread_start(&other, "other", call, team));
    (void)call(team);
    pthread_join(other, NULL);
    clv_team_free(team);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_is_done_once),
        cmocka_unit_test(without_threads_the_caller_works),
        cmocka_unit_test(a_team_ends_at_once),
        cmocka_unit_test(sleepers_are_woken),
        cmocka_unit_test(the_caller_waits_for_the_others),
        cmocka_unit_test(callers_do_not_wait_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
