/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the allocations of the calling thread, in the library and in drivers. */
#ifndef CLEAVE_TESTS_MALLOCS_H
#define CLEAVE_TESTS_MALLOCS_H

/* malloc, calloc, realloc and aligned blocks of this thread so far; 0 for ever where a sanitizer
 * or another C library has its own malloc. */
unsigned long test_mallocs_here(void);

#endif
