/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program and keeps its output and exit code. */
#ifndef CLEAVE_TESTS_RUN_H
#define CLEAVE_TESTS_RUN_H

#include <stddef.h>

typedef struct test_outcome {
    int code; /* exit code; 128 + the signal's number if a signal ended it */
    double seconds;
    char *out, *err; /* free with test_outcome_clear */
} test_outcome;

/* Runs a program and waits for it. `argv` ends with NULL; argv[0] is looked up in PATH. `changes` (may be NULL, ends
 * with NULL) are changes of its environment: "NAME=VALUE" to set, "NAME" to remove. If the program cannot be started,
 * the code is 127. */
test_outcome test_run(const char *const *argv, const char *const *changes);
void test_outcome_clear(test_outcome *outcome);

/* Returns the command under test, $CLEAVE_COMMAND, which CTest sets; without it, all tests are skipped. */
const char *test_command(void);
/* Writes a file below test_temp_dir(), making its folders; returns its path (static buffer). */
const char *test_write(const char *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
