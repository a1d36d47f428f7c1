/* SPDX-License-Identifier: Apache-2.0 */
/* Included before everything else in builds that count coverage: a process that ends by _exit, as helpers of the probe
 * do, notes what it ran. One definition is kept of all. */
#ifndef CLEAVE_TESTS_COVERAGE_EXIT_H
#define CLEAVE_TESTS_COVERAGE_EXIT_H

extern void __gcov_dump(void);
extern void _Exit(int) __attribute__((__noreturn__));

__attribute__((__weak__, __noreturn__)) void clv_coverage_exit(int code);
void clv_coverage_exit(int code)
{
    __gcov_dump();
    _Exit(code);
}

#define _exit clv_coverage_exit

#endif
