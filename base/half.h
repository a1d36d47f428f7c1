/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between floats and numbers of 16 bits (IEEE 754 binary16). */
#ifndef CLEAVE_BASE_HALF_H
#define CLEAVE_BASE_HALF_H

#include <stdint.h>

/* Rounds to the nearest half, ties to even; too large values become infinite. */
uint16_t clv_half_of(float x);
/* Converts a half to a float, exactly. */
float clv_half_to_float(uint16_t half);

#endif
