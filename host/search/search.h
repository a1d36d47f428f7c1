/* SPDX-License-Identifier: Apache-2.0 */
/* Declares a search, and the job that compares its queries with rows. */
#ifndef CLEAVE_HOST_SEARCH_SEARCH_H
#define CLEAVE_HOST_SEARCH_SEARCH_H

#include "host/search/hits.h"
#include "runtime/blas/gemm.h"

#include <cleave/search.h>

struct clv_search {
    clv_context *context;
    size_t queries, width, top;
    size_t keep;     /* candidates of a chunk: `top` and some more, or those of the first pass */
    clv_codes codes; /* of the first pass */
    clv_similarity similarity;
    clv_progress *progress;
    void *progress_user;
    float *given;   /* [queries, width], as they were given */
    double *length; /* of each query */
    float *padded;  /* [padded_queries, pitch]: for devices; of length 1 for cosines */
    size_t pitch, padded_queries;
    uint64_t *bits; /* binary codes of the queries: see cl/search/bits.cl */
    size_t words;   /* of a query in `bits` */
    size_t room; /* hits that are held for each query: `top`, or the candidates of the first pass */
    clv_hit *hits; /* [queries, room] */
    size_t *held;  /* hits of each query */
    size_t rows;
    struct clv_rescore *rescore; /* the second pass, once it began */
};

/* The comparison with the rows of one call. */
typedef struct clv_search_plan {
    clv_search *search;
    const float *rows;
    const uint8_t *codes; /* in place of rows: the first pass */
    size_t stride;        /* numbers or bytes */
    clv_hit *found;       /* [queries, keep]; rows count from 0 in this call */
    size_t *found_count;
    clv_gemm_form form[CLV_MAX_WORKERS]; /* for products with many queries */
} clv_search_plan;

/* Keys of a chunk's results. */
enum { CLV_SEARCH_SCORES, CLV_SEARCH_ROWS };

clv_cost clv_search_cost(size_t first, size_t count, void *plan);
clv_status clv_search_setup(clv_worker *worker, void *plan);
clv_status clv_search_enqueue(clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_search_commit(const clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_search_reference(clv_slot *slot, size_t first, size_t count, void *plan);

/* Runs the job of a plan that has rows or codes: fills found and found_count, which the caller frees. */
clv_status clv_search_run(clv_search_plan *plan, size_t count, clv_report *report);

double clv_search_dot(const float *a, const float *b, size_t count);

/* The similarity of a query and a row in double, whichever device found the row. */
double clv_search_exact(const clv_search *search, size_t query, const float *row);

/* The second pass of a search; NULL before clv_search_candidates or clv_search_rescore. */
typedef struct clv_rescore clv_rescore;
/* Returns the rows that were rescored [queries, *room], *held of each query; those of the first pass before any was. */
const clv_hit *clv_rescore_hits(const clv_search *search, const size_t **held, size_t *room);
void clv_rescore_free(clv_rescore *rescore);

/* Makes s->bits of the queries. Returns CLV_E_MEMORY. */
clv_status clv_search_pack_queries(clv_search *search);

/* Width less twice the bits that differ: the product of a query and a row of binary codes. */
int64_t clv_search_bits_product(const clv_search *search, size_t query, const uint8_t *row);

#endif
