/* SPDX-License-Identifier: Apache-2.0 */
/* probe/helper/spawn.c: children that answer, hang, or are stopped together with us. */
#include "test.h"

#include "base/clock.h"
#include "probe/helper/spawn.h"

#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_kept),
        cmocka_unit_test(who_hangs_is_ended),
        cmocka_unit_test(a_stop_of_all_is_no_hang),
    };
    return cmocka_run_group_tests_name("probe_spawn", tests, NULL, NULL);
}
