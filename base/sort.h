/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts in place. qsort allocates memory if the data exceed a kilobyte, and code that processes the frames of a
 * camera must not allocate memory. */
#ifndef CLEAVE_BASE_SORT_H
#define CLEAVE_BASE_SORT_H

#include <stddef.h>

enum { CLV_SORT_MOST_BYTES = 64 }; /* largest item */

/* Sorts in ascending order. Equal items may change places, but in the same way at every call. */
void clv_sort(void *items, size_t count, size_t size,
              int (*compare)(const void *left, const void *right));

/* Returns the number that would be at `index` if the numbers were sorted, and reorders the numbers. NaN is not
 * allowed. */
float clv_nth_float(float *numbers, size_t count, size_t index);

#endif
