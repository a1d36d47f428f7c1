/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts by heap sort, and finds the n-th number by quick select. */
#include "base/sort.h"

#include <assert.h>
#include <string.h>

/* Puts `item` into the heap [at, count) of items, whose root is a hole: the hole sinks to the bottom along the larger
 * children, then the item rises from there to its position. */
static void sift(char *items, size_t at, size_t count, size_t size, const char *item,
                 int (*compare)(const void *, const void *))
{
    const size_t top = at;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && compare(items + child * size, items + (child + 1) * size) < 0)
            ++child;
        memcpy(items + at * size, items + child * size, size);
    }
    for (size_t parent; at > top; at = parent) {
        parent = (at - 1) / 2;
        if (compare(items + parent * size, item) >= 0) break;
        memcpy(items + at * size, items + parent * size, size);
    }
    memcpy(items + at * size, item, size);
}

void clv_sort(void *items, size_t count, size_t size,
              int (*compare)(const void *left, const void *right))
{
    char *all = items, item[CLV_SORT_MOST_BYTES];
    assert(size <= sizeof item);
    for (size_t at = count / 2; at-- > 0;) {
        memcpy(item, all + at * size, size);
        sift(all, at, count, size, item, compare);
    }
    for (size_t last = count; last-- > 1;) {
        memcpy(item, all + last * size, size);
        memcpy(all + last * size, all, size);
        sift(all, 0, last, size, item, compare);
    }
}

float clv_nth_float(float *numbers, size_t count, size_t index)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        const float pivot = numbers[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;; ++i, --j) { /* ends with [low, j] <= pivot <= [j + 1, high] */
            while (numbers[i] < pivot)
                ++i;
            while (numbers[j] > pivot)
                --j;
            if (i >= j) break;
            const float kept = numbers[i];
            numbers[i] = numbers[j], numbers[j] = kept;
        }
        if (index <= j)
            high = j; /* the range shrinks: the pivot is not its last number */
        else
            low = j + 1;
    }
    return numbers[index];
}
