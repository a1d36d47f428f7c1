/* SPDX-License-Identifier: Apache-2.0 */
/* Records which units are still open, and how many leases cover each of them. */
#include "runtime/job/balance/book.h"

#include "base/alloc.h"

#include <assert.h>
#include <string.h>

bool clv_book_init(clv_book *book, size_t units)
{
    *book = (clv_book){ 0 };
    return clv_book_restart(book, units);
}

bool clv_book_restart(clv_book *book, size_t units)
{
    book->open = book->free = units, book->count = 0;
    if (!clv_reserve(&book->segments, &book->capacity, 8, sizeof *book->segments)) return false;
    if (units) book->segments[book->count++] = (clv_segment){ .first = 0, .count = units };
    return true;
}

void clv_book_clear(clv_book *book)
{
    clv_free(book->segments);
    *book = (clv_book){ 0 };
}

const clv_segment *clv_book_lowest(const clv_book *book)
{
    for (size_t i = 0; i < book->count; ++i)
        if (!book->segments[i].covers) return &book->segments[i];
    return NULL;
}

/* Returns the index of the first segment that ends after `unit`. */
static size_t find(const clv_book *book, size_t unit)
{
    size_t low = 0, high = book->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const clv_segment *s = &book->segments[middle];
        if (s->first + s->count <= unit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_at(clv_book *book, size_t index, size_t count)
{
    memmove(book->segments + index, book->segments + index + count,
            (book->count - index - count) * sizeof *book->segments);
    book->count -= count;
}

/* Splits the segment that contains `unit` and its predecessor, if any, so that a segment begins at `unit`. The caller
 * has reserved room. */
static void split(clv_book *book, size_t unit)
{
    const size_t i = find(book, unit);
    if (i == book->count || book->segments[i].first >= unit) return;
    memmove(book->segments + i + 1, book->segments + i, (book->count - i) * sizeof *book->segments);
    ++book->count;
    clv_segment *left = &book->segments[i], *right = left + 1;
    right->count -= unit - left->first;
    left->count = unit - left->first;
    right->first = unit;
}

bool clv_book_take(clv_book *book, size_t first, size_t count)
{
    if (!clv_reserve(&book->segments, &book->capacity, book->count + 2, sizeof *book->segments))
        return false;
    split(book, first);
    split(book, first + count);
    for (size_t i = find(book, first); i < book->count; ++i) {
        clv_segment *s = &book->segments[i];
        if (s->first >= first + count) break;
        if (!s->covers) book->free -= s->count;
        ++s->covers;
    }
    return true;
}

/* Joins two free neighbours, so that the list is as short as the number of leases allows. */
static void join_free(clv_book *book, size_t index)
{
    if (index + 1 >= book->count) return;
    clv_segment *left = &book->segments[index], *right = left + 1;
    if (left->covers || right->covers || left->first + left->count != right->first) return;
    left->count += right->count;
    remove_at(book, index + 1, 1);
}

void clv_book_release(clv_book *book, size_t first, size_t count)
{
    const size_t begin = find(book, first);
    size_t end = begin;
    for (; end < book->count && book->segments[end].first < first + count; ++end) {
        clv_segment *s = &book->segments[end];
        assert(s->covers && s->first >= first && s->first + s->count <= first + count);
        if (--s->covers == 0) book->free += s->count;
    }
    for (size_t i = end + 1; i-- > (begin ? begin - 1 : 0);)
        join_free(book, i);
}

void clv_book_commit(clv_book *book, size_t first, size_t count)
{
    const size_t begin = find(book, first);
    size_t end = begin, units = 0;
    for (; end < book->count && book->segments[end].first < first + count; ++end) {
        assert(book->segments[end].covers);
        units += book->segments[end].count;
    }
    assert(units == count);
    book->open -= units;
    remove_at(book, begin, end - begin);
}
