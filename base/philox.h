/* SPDX-License-Identifier: Apache-2.0 */
/* Computes counter-based random numbers with Philox4x32-10. The same counter and key give the same four words. */
#ifndef CLEAVE_BASE_PHILOX_H
#define CLEAVE_BASE_PHILOX_H

#include <stdint.h>

typedef struct clv_philox {
    uint32_t word[4];
} clv_philox;

clv_philox clv_philox_make(clv_philox counter, const uint32_t key[2]);

#endif
