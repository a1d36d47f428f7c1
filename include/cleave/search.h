/* SPDX-License-Identifier: Apache-2.0 */
/* Searches among vectors: finds the rows that are most similar to each query. */
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

/** The largest value of `top`, and of the product of `top` and `rescore`, in clv_search_options. */
enum { CLV_SEARCH_TOP_MOST = 16384 };

/** Short forms of vectors, for a first pass over many of them: see clv_search_add_codes. Frozen. */
typedef enum clv_codes {
    CLV_CODES_NONE,
    CLV_CODES_INT8, /**< int8 [width]: 127 x / max |x|, rounded to the nearest whole number, ties to even; zeros for a
                           row of zeros or with a number that is not finite */
    CLV_CODES_BINARY, /**< uint8 [(width + 7) / 8]: bits x > 0, the first number in the highest bit of the first byte,
                           and zeros at the end: what numpy.packbits and sentence-transformers' "ubinary" give */
} clv_codes;

typedef struct clv_search_options {
    size_t size; /**< sizeof(clv_search_options) */
    size_t top;  /**< rows to find for each query, at most CLV_SEARCH_TOP_MOST; 0: 10 */
    clv_similarity similarity;
    /** Receives how many rows of one clv_search_add are done, and may cancel the call. NULL: none. */
    clv_progress *progress;
    void *progress_user;
    clv_codes first_pass; /**< CLV_CODES_NONE: all rows are compared as they are */
    size_t rescore; /**< with a first pass: candidates for each of the `top` rows; 0: 10, or what
                         CLV_SEARCH_TOP_MOST allows. More candidates find more of the best rows */
} clv_search_options;

/** An open search: its queries, and for each query the best of the rows that were added so far. */
typedef struct clv_search clv_search;

/**
 * Begins a search. The queries are copied.
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
 * Compares every query with more rows. The rows are split over the context's devices; a device that shares the host's
 * memory reads the rows in place. Memory does not grow with the number of calls, so you can search more rows than fit
 * into memory.
 *
 * The devices find candidates in float32, a few more than you asked for. The host then computes the similarities of the
 * candidates again in float64 and keeps the best. The result is therefore the same whichever devices compute, and
 * however the rows are split over devices and calls. The only exception: more rows than there are additional candidates
 * (8, or an eighth of `top`) differ from the last one only by rounding errors.
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

/** Returns the size in bytes of the code of one row; 0 if `codes` is CLV_CODES_NONE or not a value of clv_codes. */
CLV_API size_t clv_codes_bytes(clv_codes codes, size_t width);

/**
 * Makes the codes of rows, on the caller's thread.
 *
 * @param rows    [count, width] float32.
 * @param stride  floats from one row to the next, at least width; 0: width.
 * @param out     [count, clv_codes_bytes(codes, width)] bytes.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, unknown codes); CLV_E_SHAPE (width 0, stride below width).
 */
CLV_API clv_status clv_codes_make(clv_codes codes, const float *rows, size_t count, size_t width,
                                  size_t stride, void *out);

/**
 * The first pass of a search with `first_pass`: compares every query with the codes of more rows, in place of
 * clv_search_add. Codes take a quarter (int8) or a 32nd (binary) of the rows' memory, and a search among many rows
 * spends most of its time on reading them. The `top` times `rescore` rows whose codes are most similar become
 * candidates; clv_search_rescore then gives them their exact similarities. The rows found are the exact ones only if
 * they are among the candidates, which is likely but not certain.
 *
 * Similarities of codes: int8: the cosine of query and code; binary: the cosine of their signs,
 * 1 - 2 (bits that differ) / width. Of equally similar rows the first ones become candidates.
 *
 * @param codes   [count, clv_codes_bytes()] bytes, as clv_codes_make writes them; used during the call only.
 * @return the statuses of clv_search_add; CLV_E_ARGUMENT also if the search has no first pass, or was rescored.
 */
CLV_API clv_status clv_search_add_codes(clv_search *search, const void *codes, size_t count,
                                        clv_report *report);

/**
 * Lists the candidates of all queries, each row once, in ascending order.
 *
 * @param rows   out, as many as clv_search_candidates(search, NULL, &count) says; NULL: not wanted.
 * @param count  out: the number of candidates.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, no first pass); CLV_E_MEMORY.
 */
CLV_API clv_status clv_search_candidates(clv_search *search, int64_t *rows, size_t *count);

/**
 * The second pass: computes the exact similarities of candidates in float64. You may give the candidates in pieces;
 * each call continues where the one before ended. clv_search_result then writes the best of the candidates that were
 * given.
 *
 * @param rows    [count, width] float32: the vectors of the next candidates, in the order of clv_search_candidates.
 * @param stride  floats from one row to the next, at least width; 0: width.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, no first pass); CLV_E_SHAPE (stride below width, more rows than candidates are
 *         left); CLV_E_MEMORY.
 */
CLV_API clv_status clv_search_rescore(clv_search *search, const float *rows, size_t count,
                                      size_t stride);

CLV_API size_t clv_search_rows(const clv_search *search); /**< number of rows added so far */
CLV_API size_t
clv_search_top(const clv_search *search); /**< `top` of the options, or the default */

/**
 * Writes the best rows of each query, the most similar one first; rows that are equally similar stand in the order in
 * which they were added.
 *
 * @param rows    out, [queries, top]: the number of the row, counted from 0 over all calls. -1 if there are fewer rows
 *                whose similarity is a number. NULL: not wanted.
 * @param scores  out, [queries, top]: the similarity, the float64 value rounded to float32; minus infinity where the
 *                row is -1. NULL: not wanted.
 * @return CLV_OK; CLV_E_ARGUMENT (search is NULL); CLV_E_MEMORY.
 *
 * After a first pass without clv_search_rescore, this function writes the best candidates with the similarities of
 * their codes.
 *
 * A row that holds NaN is never found. The lengths of rows must be between 1e-36 and 1e36, or 0; for the similarity
 * CLV_SIMILARITY_DOT, so must the products of lengths of rows and queries.
 */
CLV_API clv_status clv_search_result(const clv_search *search, int64_t *rows, float *scores);

CLV_END_DECLS

#endif
