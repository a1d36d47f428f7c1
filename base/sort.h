/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting in place: qsort takes memory for more than a kilobyte, a camera's loop must not. */
#ifndef CLEAVE_BASE_SORT_H
#define CLEAVE_BASE_SORT_H

#include <stddef.h>

enum { CLV_SORT_MOST_BYTES = 64 }; /* of an item */

/* Ascending; equal items may change places, in the same way at every call. */
void clv_sort(void *items, size_t count, size_t size,
              int (*compare)(const void *left, const void *right));

/* The item that would stand at `index` were the numbers sorted; they are reordered. No NaN. */
float clv_nth_float(float *numbers, size_t count, size_t index);

#endif
