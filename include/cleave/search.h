/* SPDX-License-Identifier: Apache-2.0 */
/* Search among vectors: the rows that are most similar to each query. */
#ifndef CLEAVE_SEARCH_H
#define CLEAVE_SEARCH_H

#include <cleave/init.h>
#include <cleave/job.h>

CLV_BEGIN_DECLS

/** How similar a row r is to a query q. Frozen. */
typedef enum clv_similarity {
    CLV_SIMILARITY_COSINE, /**< q r / (|q| |r|); 0 if one of the two is all zeros */
    CLV_SIMILARITY_DOT,    /**< q r */
} clv_similarity;

enum { CLV_SEARCH_TOP_MOST = 16384 }; /**< the largest `top` */

typedef struct clv_search_options {
    size_t size; /**< sizeof(clv_search_options) */
    size_t top;  /**< rows to find for each query, at most CLV_SEARCH_TOP_MOST; 0: 10 */
    clv_similarity similarity;
    clv_progress
        *progress; /**< counts the rows of one clv_search_add and may cancel it; NULL: none */
    void *progress_user;
} clv_search_options;

/** The best rows so far of a number of queries, among rows that you add piece by piece. */
typedef struct clv_search clv_search;

/**
 * Begins a search. It copies the queries.
 *
 * @param queries  [count, width] float32, row major, all finite.
 * @param options  NULL means the defaults.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, a query that is not finite, an option out of range); CLV_E_SHAPE (no query, no
 *         width, 2^31 or more of either); CLV_E_MEMORY.
 */
CLV_API clv_status clv_search_create(clv_context *context, const float *queries, size_t count,
                                     size_t width, const clv_search_options *options,
                                     clv_search **search);
CLV_API void clv_search_free(clv_search *search); /**< before its context; accepts NULL */

/**
 * Compares every query with more rows. They are split over the context's devices; a device that shares the host's
 * memory reads them in place. Memory does not grow with the number of calls, so you can search more rows than fit into
 * memory.
 *
 * The devices find candidates in float32, a few more than you asked for. Their similarities are then computed again in
 * float64 on the host, and the best remain. The result is therefore the same whichever devices compute, and however
 * the rows are split over devices and calls, unless more rows than the additional candidates (8, or an eighth of `top`)
 * differ by rounding errors only.
 *
 * @param rows    [count, width] float32, used during the call only.
 * @param stride  floats from one row to the next, at least width; 0: width.
 * @param report  NULL, or the report to which the run is added.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_SHAPE (stride below width, 2^31 rows or more); what clv_job_run returns.
 *         After an error the search holds the best of the rows of earlier calls, and may hold some of this call's.
 * Threads: one call at a time per search.
 */
CLV_API clv_status clv_search_add(clv_search *search, const float *rows, size_t count,
                                  size_t stride, clv_report *report);

CLV_API size_t clv_search_rows(const clv_search *search); /**< rows that were added so far */
CLV_API size_t
clv_search_top(const clv_search *search); /**< `top` of the options, or the default */

/**
 * Writes the best rows of each query, the most similar one first; rows that are equally similar stand in the order in
 * which they were added.
 *
 * @param rows    out, [queries, top]: the number of the row, counted from 0 over all calls. -1: fewer rows exist whose
 *                similarity is a number. NULL: not wanted.
 * @param scores  out, [queries, top]: the similarity, the float64 value rounded to float32; minus infinity where the
 *                row is -1. NULL: not wanted.
 * @return CLV_OK; CLV_E_ARGUMENT (search is NULL).
 *
 * A row that holds NaN is never found. Range: rows and queries whose length lies between 1e-18 and 1e18, or is 0.
 */
CLV_API clv_status clv_search_result(const clv_search *search, int64_t *rows, float *scores);

CLV_END_DECLS

#endif
