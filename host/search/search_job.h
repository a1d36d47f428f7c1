/* SPDX-License-Identifier: Apache-2.0 */
/* Declares how a device searches a chunk of rows. */
#ifndef CLEAVE_HOST_SEARCH_SEARCH_JOB_H
#define CLEAVE_HOST_SEARCH_SEARCH_JOB_H

#include "host/search/search.h"

/* Buffers of a worker, and of a slot beside its results. */
enum {
    CLV_SEARCH_QUERIES,
    CLV_SEARCH_ROWS_IN = CLV_SEARCH_ROWS + 1,
    CLV_SEARCH_PRODUCTS,
    CLV_SEARCH_SCALES,
    CLV_SEARCH_PART_SCORES,
    CLV_SEARCH_PART_ROWS,
    CLV_SEARCH_SCRATCH
};

/* How a device searches. */
typedef struct clv_search_way {
    bool cores;     /* no barriers, one work-item for each strip or query */
    bool dots;      /* products by clv_search_dots */
    size_t block;   /* queries at a time */
    size_t step;    /* rows at a time */
    size_t segment; /* rows of a work-group; cards only */
    size_t group;   /* its work-items */
    size_t pitch;   /* floats between the products of two queries */
} clv_search_way;

/* A chunk on its way through a device. */
typedef struct clv_search_chunk {
    const clv_search_plan *plan;
    const clv_search *search;
    const clv_gemm_form *form;
    clv_search_way way;
    clv_slot *slot;
    clv_queue *queue;
    clv_buffer *queries, *products, *scales, *scores, *rows, *part_scores, *part_rows;
    clv_place x;
    size_t segments;
} clv_search_chunk;

/* Element of the row `at` of the chunk, in numbers or bytes. */
static inline size_t clv_search_offset(const clv_search_chunk *c, size_t at)
{
    return c->x.offset + at * c->x.stride[1];
}

/* Enqueues the products of queries [q, q + queries) and rows [at, at + count) of codes; of int8 and for the first
 * queries, also the rows' lengths. */
clv_status clv_search_enqueue_codes(const clv_search_chunk *chunk, size_t q, size_t queries,
                                    size_t at, size_t count);
/* Enqueues clv_search_dots for queries [q, q + queries), with the rows' lengths if `scaled`; without queries, only the
 * lengths. */
clv_status clv_search_enqueue_dots(const clv_search_chunk *chunk, size_t q, size_t queries,
                                   size_t at, size_t count, bool scaled);

#endif
