/* SPDX-License-Identifier: Apache-2.0 */
/* Points made of Philox, on the host. */
#ifndef CLEAVE_HOST_ARRAY_PHILOX_H
#define CLEAVE_HOST_ARRAY_PHILOX_H

#include "base/philox.h"

/* Of points [first, first + count), how many are inside; see clv_monte_carlo_pi. */
uint64_t clv_philox_count(uint64_t first, uint64_t count, const uint32_t key[2]);

#endif
