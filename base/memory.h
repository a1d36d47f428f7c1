/* SPDX-License-Identifier: Apache-2.0 */
/* Tells how much memory is free. */
#ifndef CLEAVE_BASE_MEMORY_H
#define CLEAVE_BASE_MEMORY_H

#include <stdint.h>

/* Returns the bytes that the kernel calls available (all memory, where it does not say), but at most the
 * container's limit and this process's limit of address space. */
uint64_t clv_memory_free(void);

/* Does the same including free swap: more than this cannot be filled. */
uint64_t clv_memory_most(void);

#endif
