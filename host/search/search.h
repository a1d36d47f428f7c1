/* SPDX-License-Identifier: Apache-2.0 */
/* A search, and the job that compares its queries with some rows. */
#ifndef CLEAVE_HOST_SEARCH_SEARCH_H
#define CLEAVE_HOST_SEARCH_SEARCH_H

#include "host/search/hits.h"
#include "runtime/blas/gemm.h"

#include <cleave/search.h>

struct clv_search {
    clv_context *context;
    size_t queries, width, top;
    size_t keep; /* candidates of a chunk: `top` and some more */
    clv_similarity similarity;
    clv_progress *progress;
    void *progress_user;
    float *given;   /* [queries, width], as they were given */
    double *length; /* of each query */
    float *padded;  /* [padded_queries, pitch]: for devices; of length 1 for cosines */
    size_t pitch, padded_queries;
    clv_hit *hits; /* [queries, top] */
    size_t *held;  /* hits of each query */
    size_t rows;
};

/* The comparison with the rows of one call. */
typedef struct clv_search_plan {
    clv_search *search;
    const float *rows;
    size_t stride;
    clv_hit *found; /* [queries, keep]; rows count from 0 in this call */
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

#endif
