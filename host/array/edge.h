/* SPDX-License-Identifier: Apache-2.0 */
/* The pixels beyond the border of an image. */
#ifndef CLEAVE_HOST_ARRAY_EDGE_H
#define CLEAVE_HOST_ARRAY_EDGE_H

#include <cleave/array.h>

#include <stdint.h>

/* Returns the index of the element that replaces element `at` of a row of `length`, at any distance outside the
 * row; -1 stands for the constant. */
int64_t clv_edge_index(clv_edge edge, int64_t at, int64_t length);

#endif
