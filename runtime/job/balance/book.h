/* SPDX-License-Identifier: Apache-2.0 */
/* Which units are still open, and how many leases cover each of them: a sorted list of segments,
 * so that a job of 10^9 units costs no more than its chunks in flight. */
#ifndef CLEAVE_RUNTIME_JOB_BALANCE_BOOK_H
#define CLEAVE_RUNTIME_JOB_BALANCE_BOOK_H

#include <stdbool.h>
#include <stddef.h>

/* Units [first, first + count), none of them committed; covers 0 means free. */
typedef struct clv_segment {
    size_t first, count;
    unsigned covers; /* live leases that hold these units */
} clv_segment;

typedef struct clv_book {
    clv_segment *segments; /* ascending, disjoint; committed units are in none */
    size_t count, capacity;
    size_t open; /* units not committed */
    size_t free; /* of these, units that no lease holds */
} clv_book;

bool clv_book_init(clv_book *book, size_t units);    /* false: no memory */
bool clv_book_restart(clv_book *book, size_t units); /* the same, in the book's present memory */
void clv_book_clear(clv_book *book);

/* Returns the free segment with the lowest units, or NULL. */
const clv_segment *clv_book_lowest(const clv_book *book);

/* Adds one lease to open units. Only this call needs memory; false leaves the book as it was. */
bool clv_book_take(clv_book *book, size_t first, size_t count);

/* Removes one lease from those units of the range that are still open. */
void clv_book_release(clv_book *book, size_t first, size_t count);

/* Marks units as done. All of them must be open, and the range must be one that was taken. */
void clv_book_commit(clv_book *book, size_t first, size_t count);

#endif
