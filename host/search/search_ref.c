/* SPDX-License-Identifier: Apache-2.0 */
/* Searches a chunk of rows in plain C: computes products of blocks of rows, and then the heaps of the best rows. */
#include "host/search/search.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>

enum { BLOCK = 64 };

static float dot(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; ++i)
        sum += (double)a[i] * (double)b[i];
    return (float)sum;
}

static float scale_of(const clv_search *s, const float *row)
{
    if (s->similarity == CLV_SIMILARITY_DOT) return 1;
    double square = 0;
    for (size_t i = 0; i < s->width; ++i)
        square += (double)row[i] * (double)row[i];
    return square > 0 ? (float)(1 / sqrt(square)) : square == 0 ? 0 : NAN;
}

/* Offers rows [at, at + rows) of the chunk to the heap of every query. */
static void offer(const clv_search *s, const float *products, const float *scale, size_t at,
                  size_t rows, clv_hit *heaps, size_t *counts)
{
    for (size_t q = 0; q < s->queries; ++q)
        for (size_t r = 0; r < rows; ++r)
            clv_hits_offer(
                heaps + q * s->keep, &counts[q], s->keep,
                (clv_hit){ (double)(products[q * BLOCK + r] * scale[r]), (int64_t)(at + r) });
}

/* Does the same as search_rows for rows of codes. */
static clv_status search_codes(const clv_search_plan *p, size_t first, size_t count,
                               float *products, clv_hit *heaps, size_t *counts)
{
    const clv_search *s = p->search;
    float scale[BLOCK];
    float *row = clv_alloc(s->width, sizeof *row);
    if (!row) return clv_fail(CLV_E_MEMORY, "search: not enough memory for a row");
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t rows = CLV_MIN(count - at, (size_t)BLOCK);
        for (size_t r = 0; r < rows; ++r) {
            const uint8_t *code = p->codes + (first + at + r) * p->stride;
            for (size_t i = 0; i < s->width && s->codes == CLV_CODES_INT8; ++i)
                row[i] = (float)((const int8_t *)code)[i];
            for (size_t q = 0; q < s->queries; ++q)
                products[q * BLOCK + r] = s->codes == CLV_CODES_INT8
                                              ? dot(s->padded + q * s->pitch, row, s->width)
                                              : (float)clv_search_bits_product(s, q, code);
            scale[r] = s->codes == CLV_CODES_INT8 ? scale_of(s, row) : 1;
        }
        offer(s, products, scale, at, rows, heaps, counts);
    }
    clv_free(row);
    return CLV_OK;
}

static void search_rows(const clv_search_plan *p, size_t first, size_t count, float *products,
                        clv_hit *heaps, size_t *counts)
{
    const clv_search *s = p->search;
    float scale[BLOCK];
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t rows = CLV_MIN(count - at, (size_t)BLOCK);
        const float *x = p->rows + (first + at) * p->stride;
        clv_gemm_host(&(clv_host_gemm){ .m = rows,
                                        .n = s->queries,
                                        .k = s->width,
                                        .a = x,
                                        .a_row = p->stride,
                                        .a_col = 1,
                                        .b = s->padded,
                                        .b_row = 1,
                                        .b_col = s->pitch,
                                        .c = products,
                                        .c_row = 1,
                                        .c_col = BLOCK,
                                        .alpha = 1 });
        for (size_t r = 0; r < rows; ++r)
            scale[r] = scale_of(s, x + r * p->stride);
        offer(s, products, scale, at, rows, heaps, counts);
    }
}

clv_status clv_search_reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_search_plan *p = user;
    const clv_search *s = p->search;
    const size_t places = s->queries * s->keep;
    void *scores, *rows;
    CLV_TRY(clv_slot_result_create(slot, CLV_SEARCH_SCORES, places * sizeof(float), &scores));
    CLV_TRY(clv_slot_result_create(slot, CLV_SEARCH_ROWS, places * sizeof(uint32_t), &rows));
    float *products = clv_alloc(s->queries * BLOCK, sizeof *products);
    clv_hit *heaps = clv_alloc(places, sizeof *heaps);
    size_t *counts = clv_zalloc(s->queries, sizeof *counts);
    const bool enough = products && heaps && counts;
    clv_status status =
        enough ? CLV_OK
               : clv_fail(CLV_E_MEMORY, "search: not enough memory for %zu candidates", places);
    if (!status && p->codes)
        status = search_codes(p, first, count, products, heaps, counts);
    else if (!status)
        search_rows(p, first, count, products, heaps, counts);
    if (!status)
        for (size_t i = 0; i < places; ++i) {
            const bool there = i % s->keep < counts[i / s->keep];
            ((float *)scores)[i] = there ? (float)heaps[i].score : -INFINITY;
            ((uint32_t *)rows)[i] = there ? (uint32_t)heaps[i].row : UINT32_MAX;
        }
    clv_free(products), clv_free(heaps), clv_free(counts);
    return status;
}
