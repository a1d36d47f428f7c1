/* SPDX-License-Identifier: Apache-2.0 */
/* What every test includes: cmocka, and the two expectations that most lines are made of. */
#ifndef CLEAVE_TEST_H
#define CLEAVE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cleave/status.h>

/* The call succeeds; otherwise its message is the failure. */
#define EXPECT_OK(call) test_expect_status(CLV_OK, (call), #call, __FILE__, __LINE__)
/* The call fails in this way, and its message holds `part`. */
#define EXPECT_FAIL(status, part, call) \
    test_expect_failure((status), (part), (call), #call, __FILE__, __LINE__)

void test_expect_status(clv_status want, clv_status got, const char *call, const char *file,
                        int line);
void test_expect_failure(clv_status want, const char *part, clv_status got, const char *call,
                         const char *file, int line);

/* Groups of tests are run by test_group. */
#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown) \
    cmocka_run_group_tests_name(#tests, tests, setup, teardown)
#undef cmocka_run_group_tests_name
#define cmocka_run_group_tests_name(name, tests, setup, teardown) \
    test_group(name, tests, sizeof(tests) / sizeof *(tests), setup, teardown)

/* Takes the claims to run from the command line: those that are named, or with --without in front all others. To be
 * called at the beginning of main; without a name every claim runs. */
void test_choose(int argc, char **argv);

/* Runs the chosen claims, then what was handed to test_at_end; returns how many failed. A chosen claim that the group
 * lacks fails the program. */
int test_group(const char *name, const struct CMUnitTest *tests, size_t count,
               CMFixtureFunction setup, CMFixtureFunction teardown);
/* Clears up what tests that failed left behind, while everything is still there: exit() is too late
 * for drivers. One function. */
void test_at_end(void (*clear_up)(void));

/* True in the quick tier of a test that is declared BRIEF (tests/CMakeLists.txt): one case of each kind is enough. */
bool test_brief(void);

/* Exit code 77 with the reason on stdout: the runner shows it as skipped. */
void test_skip_all(const char *reason) __attribute__((noreturn));

/* Ends the calling test alone, with the reason on stdout. */
void test_skip(const char *reason);

/* Likewise for want of a device, which is a failure where $CLEAVE_TEST_PLATFORMS promises one. */
void test_skip_without_device(void);

/* A fresh directory for this process, removed at exit; borrowed. */
const char *test_temp_dir(void);

/* What a job's progress function was told last; `answer` is what it answers. */
typedef struct test_told {
    const char *job; /* that it expects */
    size_t calls, done, total;
    int answer;
} test_told;
/* A clv_progress; `user` is a test_told. */
int test_note(const char *job, size_t done, size_t total, void *user);

/* From the first call on the library's warnings are kept; the second call ends that and gives the last
 * of them, "" for none; borrowed until the next. */
void test_listen(void);
const char *test_heard(void);

/* Deterministic numbers: SplitMix64. */
uint64_t test_random(uint64_t *state);
double test_uniform(uint64_t *state, double low, double high);

#endif
