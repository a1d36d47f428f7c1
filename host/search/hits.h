/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the best rows of a query so far in a heap, whose root is the worst of these rows. */
#ifndef CLEAVE_HOST_SEARCH_HITS_H
#define CLEAVE_HOST_SEARCH_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct clv_hit {
    double score;
    int64_t row;
} clv_hit;

/* Tells whether `a` stands before `b` in the result: a higher score, or the same one and a lower row. */
static inline bool clv_hit_is_better(clv_hit a, clv_hit b)
{
    return a.score > b.score || (a.score == b.score && a.row < b.row);
}

/* Offers a row to the heap of up to `most` rows, *count of which are there. A score that is NaN or minus infinity is
 * refused. */
void clv_hits_offer(clv_hit *heap, size_t *count, size_t most, clv_hit hit);

/* Sorts the rows, the best first; they are no heap afterwards. */
void clv_hits_sort(clv_hit *hits, size_t count);

#endif
