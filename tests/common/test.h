/* SPDX-License-Identifier: Apache-2.0 */
/* What every test includes: cmocka, expectations for statuses, and functions to choose, skip and clean up tests. */
#ifndef CLEAVE_TEST_H
#define CLEAVE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cleave/status.h>

/* Fails the test, with the call's error message, unless `call` returns CLV_OK. */
#define EXPECT_OK(call) test_expect_status(CLV_OK, (call), #call, __FILE__, __LINE__)
/* Fails the test unless `call` returns `status` and its error message contains `part`. */
#define EXPECT_FAIL(status, part, call) \
    test_expect_failure((status), (part), (call), #call, __FILE__, __LINE__)

void test_expect_status(clv_status want, clv_status got, const char *call, const char *file,
                        int line);
void test_expect_failure(clv_status want, const char *part, clv_status got, const char *call,
                         const char *file, int line);

/* Makes cmocka's macros run groups of tests by test_group. */
#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown) \
    cmocka_run_group_tests_name(#tests, tests, setup, teardown)
#undef cmocka_run_group_tests_name
#define cmocka_run_group_tests_name(name, tests, setup, teardown) \
    test_group(name, tests, sizeof(tests) / sizeof *(tests), setup, teardown)

/* Takes the claims (single tests) to run from the command line: the ones that are named there or, after --without, all
 * others. Without a name every claim runs. Call it at the beginning of main. */
void test_choose(int argc, char **argv);

/* Runs the chosen claims, then the function given to test_at_end, and returns how many claims failed. If the group does
 * not have a chosen claim, the program fails. */
int test_group(const char *name, const struct CMUnitTest *tests, size_t count,
               CMFixtureFunction setup, CMFixtureFunction teardown);
/* Runs this program once for each claim, all at the same time, and returns its exit code. For programs whose claims
 * mostly wait. Call it from main if no claim was chosen. */
int test_at_once(const struct CMUnitTest *tests, size_t count);
/* Sets the one function that test_group calls at its end, to free what failed tests have left open. During exit() it
 * would be too late, because drivers have lost their data by then. */
void test_at_end(void (*clear_up)(void));

/* Returns true in the quick tier of a test that is declared BRIEF (tests/CMakeLists.txt). The test should then run only
 * one case of each kind. */
bool test_brief(void);

/* Prints the reason to stdout and ends the program with exit code 77, which the runner shows as skipped. */
void test_skip_all(const char *reason) __attribute__((noreturn));

/* Prints the reason to stdout and skips the calling test only. */
void test_skip(const char *reason);

/* Skips the calling test because there is no device. If $CLEAVE_TEST_PLATFORMS promises a device, the test fails
 * instead. */
void test_skip_without_device(void);

/* Gives the process a locale with a decimal comma, which it makes with localedef if none is installed, until
 * test_point; skips the calling test if there is none. */
void test_comma(void);
void test_point(void);

/* Returns a new directory of this process, which is removed at exit. The path is borrowed. */
const char *test_temp_dir(void);

/* The calls of the progress function test_note: their number, the latest `done` and `total`, and what to return. */
typedef struct test_told {
    const char *job; /* expected name of the job */
    size_t calls, done, total;
    int answer;
} test_told;
/* A clv_progress that fills the test_told `user` and returns its `answer`. */
int test_note(const char *job, size_t done, size_t total, void *user);

/* test_listen starts to keep the library's warnings. test_heard stops this and returns the latest warning, or "" if
 * there was none; the text is borrowed until the next test_listen. */
void test_listen(void);
const char *test_heard(void);

/* Return pseudo-random numbers by SplitMix64, the same for the same `state`: 64 bits, or uniform in [low, high). */
uint64_t test_random(uint64_t *state);
double test_uniform(uint64_t *state, double low, double high);

#endif
