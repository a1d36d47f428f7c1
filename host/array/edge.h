/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beyond the border of an image. */
#ifndef CLEAVE_HOST_ARRAY_EDGE_H
#define CLEAVE_HOST_ARRAY_EDGE_H

#include <cleave/array.h>

#include <stdint.h>

/* Where element `at` of a row of `length` is found when it lies outside, -1 for the constant. Any
 * distance. */
int64_t clv_edge_index(clv_edge edge, int64_t at, int64_t length);

#endif
