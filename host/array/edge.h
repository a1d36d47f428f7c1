/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the pixels that stand in for pixels beyond the border of an image. */
#ifndef CLEAVE_HOST_ARRAY_EDGE_H
#define CLEAVE_HOST_ARRAY_EDGE_H

#include <cleave/array.h>

#include <stdint.h>

/* Returns the index of the element that replaces element `at` of a row of `length` elements. `at` may lie at any
 * distance outside the row. The index -1 stands for the constant value. */
int64_t clv_edge_index(clv_edge edge, int64_t at, int64_t length);

#endif
