/* SPDX-License-Identifier: Apache-2.0 */
/* Makes random points with Philox on the host. */
#ifndef CLEAVE_HOST_ARRAY_PHILOX_H
#define CLEAVE_HOST_ARRAY_PHILOX_H

#include "base/philox.h"

/* Returns how many of the points [first, first + count) are inside the circle; see clv_monte_carlo_pi. */
uint64_t clv_philox_count(uint64_t first, uint64_t count, const uint32_t key[2]);

#endif
