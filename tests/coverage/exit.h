/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the ends of processes in builds that count coverage. The compiler includes this file before all others; the
 * linker keeps one of each of the weak definitions.
 *
 * _exit is replaced, so that a process that ends by it, such as a helper of the probe, writes its counters first. A
 * limit of the size of files, which tests set to imitate a full disk, is raised before the counters are written: a part
 * of such a file would spoil what other processes have counted. */
#ifndef CLEAVE_TESTS_COVERAGE_EXIT_H
#define CLEAVE_TESTS_COVERAGE_EXIT_H

extern void __gcov_dump(void);
extern void _Exit(int) __attribute__((__noreturn__));
/* getrlimit and setrlimit, without the headers that the sources include later */
extern int clv_coverage_get_limit(int which, unsigned long limit[2]) __asm__("getrlimit");
extern int clv_coverage_set_limit(int which, const unsigned long limit[2]) __asm__("setrlimit");

__attribute__((__weak__)) int clv_coverage_raised;
__attribute__((__weak__, __destructor__)) void clv_coverage_raise(void);
void clv_coverage_raise(void)
{
    const int file_size = 1; /* RLIMIT_FSIZE of Linux */
    unsigned long limit[2] = { 0, 0 };
    if (clv_coverage_raised++ || clv_coverage_get_limit(file_size, limit)) return;
    const unsigned long none[2] = { ~0UL, ~0UL }, most[2] = { limit[1], limit[1] };
    if (limit[0] != ~0UL && clv_coverage_set_limit(file_size, none))
        (void)clv_coverage_set_limit(file_size, most); /* only root may raise the second number */
}

__attribute__((__weak__, __noreturn__)) void clv_coverage_exit(int code);
void clv_coverage_exit(int code)
{
    clv_coverage_raise();
    __gcov_dump();
    _Exit(code);
}

#define _exit clv_coverage_exit

#endif
