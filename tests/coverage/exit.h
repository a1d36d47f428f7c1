/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces _exit in builds that count coverage, so that a process that ends by it, such as a helper of the probe,
 * writes its counters first. The compiler includes this file before all others; the linker keeps one of the weak
 * definitions. */
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
