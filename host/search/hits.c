/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the heap of the best rows. */
#include "host/search/hits.h"

#include <math.h>
#include <stdlib.h>

static void sink(clv_hit *heap, size_t count, clv_hit hit)
{
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= count) break;
        if (child + 1 < count && clv_hit_is_better(heap[child], heap[child + 1])) ++child;
        if (clv_hit_is_better(heap[child], hit)) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = hit;
}

static void rise(clv_hit *heap, size_t i, clv_hit hit)
{
    while (i > 0) {
        const size_t parent = (i - 1) / 2;
        if (!clv_hit_is_better(heap[parent], hit)) break;
        heap[i] = heap[parent];
        i = parent;
    }
    heap[i] = hit;
}

void clv_hits_offer(clv_hit *heap, size_t *count, size_t most, clv_hit hit)
{
    if (isnan(hit.score) || (isinf(hit.score) && hit.score < 0)) return;
    if (*count < most)
        rise(heap, (*count)++, hit);
    else if (clv_hit_is_better(hit, heap[0]))
        sink(heap, *count, hit);
}

static int compare(const void *a, const void *b)
{
    const clv_hit *x = a, *y = b;
    return clv_hit_is_better(*x, *y) ? -1 : clv_hit_is_better(*y, *x) ? 1 : 0;
}

void clv_hits_sort(clv_hit *hits, size_t count)
{
    if (count > 1) qsort(hits, count, sizeof *hits, compare);
}
