/* SPDX-License-Identifier: Apache-2.0 */
/* Reads how much memory is free. */
#ifndef CLEAVE_BASE_MEMORY_H
#define CLEAVE_BASE_MEMORY_H

#include <stdint.h>

/* Returns the bytes that the operating system calls available (or all memory, if it does not say), but at most the
 * container's limit and this process's limit of address space. */
uint64_t clv_memory_free(void);

/* Returns the same as clv_memory_free, but with free swap added: no process can fill more than this. */
uint64_t clv_memory_most(void);

#endif
