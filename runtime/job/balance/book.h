/* SPDX-License-Identifier: Apache-2.0 */
/* Records which units are still open, and how many leases cover each of them. The record is a sorted list of
 * segments, so that a job of 10^9 units costs no more than its chunks in flight. */
#ifndef CLEAVE_RUNTIME_JOB_BALANCE_BOOK_H
#define CLEAVE_RUNTIME_JOB_BALANCE_BOOK_H

#include <stdbool.h>
#include <stddef.h>

/* Units [first, first + count), none of which is committed. */
typedef struct clv_segment {
    size_t first, count;
    unsigned covers; /* live leases that hold these units; 0: they are free */
} clv_segment;

typedef struct clv_book {
    clv_segment *segments; /* ascending, disjoint; no segment has committed units */
    size_t count, capacity;
    size_t open; /* units not committed */
    size_t free; /* open units that no lease holds */
} clv_book;

bool clv_book_init(clv_book *book, size_t units);    /* false: no memory */
bool clv_book_restart(clv_book *book, size_t units); /* the same, in the memory of `book` */
void clv_book_clear(clv_book *book);

/* Returns the free segment with the lowest units, or NULL. */
const clv_segment *clv_book_lowest(const clv_book *book);

/* Adds one lease to open units. Returns false if there is no memory, and leaves the book as it was. */
bool clv_book_take(clv_book *book, size_t first, size_t count);

/* Removes one lease from those units of the range that are still open. Allocates nothing. */
void clv_book_release(clv_book *book, size_t first, size_t count);

/* Marks units as done. All of them must be open, and the range must be one that was taken. */
void clv_book_commit(clv_book *book, size_t first, size_t count);

#endif
