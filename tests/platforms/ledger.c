/* SPDX-License-Identifier: Apache-2.0 */
/* Which units were committed. */
#include "ledger.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* Index of the first range that ends after `unit`. */
static size_t after(const ledger *l, size_t unit)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (l->ranges[middle].end <= unit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool ledger_has_any(const ledger *l, size_t first, size_t count)
{
    const size_t i = after(l, first);
    return i < l->count && l->ranges[i].first < first + count;
}

bool ledger_add(ledger *l, size_t first, size_t count)
{
    if (ledger_has_any(l, first, count)) return false;
    const size_t i = after(l, first);
    const bool left = i > 0 && l->ranges[i - 1].end == first;
    const bool right = i < l->count && l->ranges[i].first == first + count;
    if (left && right) {
        l->ranges[i - 1].end = l->ranges[i].end;
        memmove(l->ranges + i, l->ranges + i + 1, (--l->count - i) * sizeof *l->ranges);
    } else if (left) {
        l->ranges[i - 1].end += count;
    } else if (right) {
        l->ranges[i].first = first;
    } else {
        if (!clv_reserve(&l->ranges, &l->capacity, l->count + 1, sizeof *l->ranges)) abort();
        memmove(l->ranges + i + 1, l->ranges + i, (l->count++ - i) * sizeof *l->ranges);
        l->ranges[i] = (struct ledger_range){ first, first + count };
    }
    return true;
}

bool ledger_is_whole(const ledger *l, size_t units)
{
    return l->count == 1 && l->ranges[0].first == 0 && l->ranges[0].end == units;
}

void ledger_clear(ledger *l)
{
    clv_free(l->ranges);
    *l = (ledger){ 0 };
}
