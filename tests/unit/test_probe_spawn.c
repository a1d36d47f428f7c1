/* SPDX-License-Identifier: Apache-2.0 */
/* probe/helper/spawn.c: children that answer, hang, or are stopped together with us. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "test.h"

#include "base/clock.h"
#include "probe/helper/isolate.h"
#include "probe/helper/spawn.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static clv_child run(const char *script, double timeout_s)
{
    static char *const environment[] = { NULL };
    const char *argv[] = { "/bin/sh", "-c", script, NULL };
    clv_child child = { .argv = argv, .envp = environment };
    clv_child *children[] = { &child };
    assert_true(clv_children_run(children, 1, &(clv_patience){ .timeout_s = timeout_s }));
    child.argv = NULL;
    return child;
}

static void an_answer_is_kept(void **state)
{
    (void)state;
    clv_child child = run("echo said; echo complained >&2; echo answer >&3; exit 3", 60);
    assert_int_equal(child.end, CLV_CHILD_EXITED);
    assert_int_equal(child.code, 3);
    assert_string_equal(clv_text_get(&child.result), "answer\n");
    assert_string_equal(clv_text_get(&child.output[0]), "said\n");
    assert_string_equal(clv_text_get(&child.output[1]), "complained\n");
    clv_child_clear(&child);
}

static void who_hangs_is_ended(void **state)
{
    (void)state;
    clv_child child = run("trap '' TERM; echo begun >&3; while :; do sleep 1; done", 0.5);
    assert_int_equal(child.end, CLV_CHILD_TIMEOUT);
    assert_true(child.duration_s >= 0.5);
    clv_child_clear(&child);
}

/* The whole machine stands still for longer than the child may take: it did nothing wrong. */
static void a_stop_of_all_is_no_hang(void **state)
{
    (void)state;
    const double start = clv_now();
    clv_child child = run("(sleep 4; kill -CONT $PPID $$) & "
                          "kill -STOP $PPID; kill -STOP $$; sleep 0.5; echo answer >&3",
                          3);
    assert_true(clv_now() - start > 4);
    assert_int_equal(child.end, CLV_CHILD_EXITED);
    assert_string_equal(clv_text_get(&child.result), "answer\n");
    clv_child_clear(&child);
}

/* A timeout on a machine that is busy with other things is not the child's fault. */
static void who_could_not_run_is_told_apart(void **state)
{
    (void)state;
    cpu_set_t before, one;
    pid_t hogs[3];
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); ++i)
        if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0); /* children inherit it */
    clv_child idle = run("sleep 60", 0.3);
    for (size_t i = 0; i < sizeof hogs / sizeof *hogs; ++i)
        if (!(hogs[i] = fork()))
            for (;;)
                continue;
    clv_child busy = run("exec nice -n 19 sh -c 'while :; do :; done'", 1);
    for (size_t i = 0; i < sizeof hogs / sizeof *hogs; ++i)
        kill(hogs[i], SIGKILL), waitpid(hogs[i], NULL, 0);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(idle.end, CLV_CHILD_TIMEOUT);
    assert_false(idle.starved);
    assert_false(clv_child_was_hindered(&idle));
    /* it may be too starved to die at once */
    assert_true(busy.end == CLV_CHILD_TIMEOUT || busy.end == CLV_CHILD_UNKILLABLE);
    assert_true(busy.starved);
    assert_true(clv_child_was_hindered(&busy));
    clv_child_clear(&idle), clv_child_clear(&busy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_kept),
        cmocka_unit_test(who_hangs_is_ended),
        cmocka_unit_test(a_stop_of_all_is_no_hang),
        cmocka_unit_test(who_could_not_run_is_told_apart),
    };
    return cmocka_run_group_tests_name("probe_spawn", tests, NULL, NULL);
}
