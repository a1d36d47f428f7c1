/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 on the host, and points made of it. */
#ifndef CLEAVE_HOST_ARRAY_PHILOX_H
#define CLEAVE_HOST_ARRAY_PHILOX_H

#include <stdint.h>

typedef struct clv_philox {
    uint32_t word[4];
} clv_philox;

clv_philox clv_philox_make(clv_philox counter, const uint32_t key[2]);

/* Of points [first, first + count), how many are inside; see clv_monte_carlo_pi. */
uint64_t clv_philox_count(uint64_t first, uint64_t count, const uint32_t key[2]);

#endif
