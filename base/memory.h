/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory is free. */
#ifndef CLEAVE_BASE_MEMORY_H
#define CLEAVE_BASE_MEMORY_H

#include <stdint.h>

/* Bytes that the kernel calls available (all there are, where it does not say), at most the limit of the container and
 * this process's limit of address space. */
uint64_t clv_memory_free(void);

/* The same with the swap that is free: more than this cannot be filled. */
uint64_t clv_memory_most(void);

#endif
