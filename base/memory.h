/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory is free. */
#ifndef CLEAVE_BASE_MEMORY_H
#define CLEAVE_BASE_MEMORY_H

#include <stdint.h>

/* Bytes that the kernel calls available (all there are, where it does not say), at most this process's limit of address
 * space. */
uint64_t clv_memory_free(void);

/* Bytes of swap that are free; 0 where the kernel does not say. */
uint64_t clv_memory_swap(void);

#endif
