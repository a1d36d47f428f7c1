/* SPDX-License-Identifier: Apache-2.0 */
/* Searches among vectors: checks the arguments, copies the queries, and returns the best rows. */
#include "host/search/search.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    DEFAULT_TOP = 10,
    QUERY_ROWS = 4, /* queries are padded to a multiple of this, as cl/search/dots.cl wants them */
    LANES = 16,
    SPARE = 8, /* candidates beyond `top`, or an eighth of it */
    RESCORE = 10
};

static clv_status check(const clv_context *context, const float *queries, size_t count,
                        size_t width, const clv_search_options *o, clv_search **out)
{
    if (!context || !queries || !out)
        return clv_fail(CLV_E_ARGUMENT, "search: context, queries or search is NULL");
    if (!count || !width || count > INT32_MAX || width > INT32_MAX || count > SIZE_MAX / 64 / width)
        return clv_fail(
            CLV_E_SHAPE,
            "search: the queries are [%zu,%zu], but both extents must lie between 1 and 2^31 - 1",
            count, width);
    if (o->top > CLV_SEARCH_TOP_MOST)
        return clv_fail(CLV_E_ARGUMENT,
                        "search: top is %zu, but at most %d rows per query are possible", o->top,
                        CLV_SEARCH_TOP_MOST);
    if ((unsigned)o->similarity > CLV_SIMILARITY_DOT)
        return clv_fail(CLV_E_ARGUMENT, "search: similarity %d is not one of clv_similarity",
                        (int)o->similarity);
    if ((unsigned)o->first_pass > CLV_CODES_BINARY)
        return clv_fail(CLV_E_ARGUMENT, "search: first_pass %d is not one of clv_codes",
                        (int)o->first_pass);
    if (o->first_pass && o->similarity != CLV_SIMILARITY_COSINE)
        return clv_fail(CLV_E_ARGUMENT,
                        "search: a first pass compares directions, so that the similarity "
                        "must be the cosine, which is the dot product for vectors of length 1");
    if (o->first_pass && o->rescore > CLV_SEARCH_TOP_MOST / (o->top ? o->top : DEFAULT_TOP))
        return clv_fail(CLV_E_ARGUMENT,
                        "search: top is %zu and rescore %zu, but their product must be at most %d",
                        o->top ? o->top : DEFAULT_TOP, o->rescore, CLV_SEARCH_TOP_MOST);
    for (size_t i = 0; i < count * width; ++i)
        if (!isfinite(queries[i]))
            return clv_fail(CLV_E_ARGUMENT,
                            "search: element %zu of query %zu is %g; a query must be finite",
                            i % width, i / width, (double)queries[i]);
    return CLV_OK;
}

/* Copies the queries twice: as they are, and as devices want them. */
static void take_queries(clv_search *s, const float *queries)
{
    memcpy(s->given, queries, s->queries * s->width * sizeof *queries);
    for (size_t q = 0; q < s->queries; ++q) {
        const float *given = queries + q * s->width;
        float *padded = s->padded + q * s->pitch;
        s->length[q] = sqrt(clv_search_dot(given, given, s->width));
        const double scale = s->similarity == CLV_SIMILARITY_DOT ? 1
                             : s->length[q] > 0                  ? 1 / s->length[q]
                                                                 : 0;
        for (size_t i = 0; i < s->width; ++i)
            padded[i] = (float)((double)given[i] * scale);
    }
}

clv_status clv_search_create(clv_context *context, const float *queries, size_t count, size_t width,
                             const clv_search_options *options, clv_search **search)
{
    clv_search_options o;
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_search_create", "clv_search_options"));
    CLV_TRY(check(context, queries, count, width, &o, search));
    clv_search *s = clv_zalloc(1, sizeof *s);
    if (!s) return clv_fail(CLV_E_MEMORY, "search: out of memory");
    s->context = context;
    s->queries = count, s->width = width;
    s->top = o.top ? o.top : DEFAULT_TOP;
    s->codes = o.first_pass;
    s->keep = s->codes
                  ? CLV_MIN(s->top * (o.rescore ? o.rescore : RESCORE), (size_t)CLV_SEARCH_TOP_MOST)
                  : s->top + CLV_MAX((size_t)SPARE, s->top / 8);
    s->room = s->codes ? s->keep : s->top;
    s->similarity = o.similarity;
    s->progress = o.progress, s->progress_user = o.progress_user;
    s->pitch = clv_round_up(width, LANES);
    s->padded_queries = clv_round_up(count, QUERY_ROWS);
    s->given = clv_alloc(count * width, sizeof *s->given);
    s->length = clv_alloc(count, sizeof *s->length);
    s->padded = clv_zalloc(s->padded_queries * s->pitch, sizeof *s->padded);
    s->hits = clv_alloc(count * s->room, sizeof *s->hits);
    s->held = clv_zalloc(count, sizeof *s->held);
    if (!s->given || !s->length || !s->padded || !s->hits || !s->held) {
        const size_t top = s->top;
        clv_search_free(s);
        return clv_fail(
            CLV_E_MEMORY,
            "search: not enough memory for %zu queries of %zu numbers and %zu rows each", count,
            width, top);
    }
    take_queries(s, queries);
    const clv_status status = s->codes == CLV_CODES_BINARY ? clv_search_pack_queries(s) : CLV_OK;
    if (status)
        clv_search_free(s);
    else
        *search = s;
    return status;
}

void clv_search_free(clv_search *s)
{
    if (!s) return;
    clv_free(s->given), clv_free(s->length), clv_free(s->padded);
    clv_free(s->hits), clv_free(s->held), clv_free(s->bits);
    clv_rescore_free(s->rescore);
    clv_free(s);
}

static void take_found(clv_search_plan *p)
{
    clv_search *s = p->search;
    for (size_t q = 0; q < s->queries; ++q)
        for (size_t i = 0; i < p->found_count[q]; ++i) {
            const size_t row = (size_t)p->found[q * s->keep + i].row;
            const clv_hit hit = { .score = clv_search_exact(s, q, p->rows + row * p->stride),
                                  .row = (int64_t)(s->rows + row) };
            clv_hits_offer(s->hits + q * s->room, &s->held[q], s->room, hit);
        }
}

clv_status clv_search_add(clv_search *s, const float *rows, size_t count, size_t stride,
                          clv_report *report)
{
    if (!s || (count && !rows)) return clv_fail(CLV_E_ARGUMENT, "search: search or rows is NULL");
    if (s->codes)
        return clv_fail(CLV_E_ARGUMENT, "search: this search has a first pass: add codes "
                                        "(clv_search_add_codes), and give rows to "
                                        "clv_search_rescore");
    if (!stride) stride = s->width;
    if (stride < s->width)
        return clv_fail(
            CLV_E_SHAPE,
            "search: the stride is %zu, which is less than the width of the queries, %zu", stride,
            s->width);
    if (count > INT32_MAX || (count && stride > SIZE_MAX / 8 / count))
        return clv_fail(CLV_E_SHAPE, "search: %zu rows in one call; at most 2^31 - 1 are accepted",
                        count);
    if (!count) return CLV_OK;
    clv_search_plan plan = { .search = s, .rows = rows, .stride = stride };
    const clv_status status = clv_search_run(&plan, count, report);
    if (!status) {
        take_found(&plan);
        s->rows += count;
    }
    clv_free(plan.found), clv_free(plan.found_count);
    return status;
}

size_t clv_search_rows(const clv_search *s)
{
    return s ? s->rows : 0;
}

size_t clv_search_top(const clv_search *s)
{
    return s ? s->top : 0;
}

clv_status clv_search_result(const clv_search *s, int64_t *rows, float *scores)
{
    if (!s) return clv_fail(CLV_E_ARGUMENT, "search: search is NULL");
    size_t room;
    const size_t *held;
    const clv_hit *hits = clv_rescore_hits(s, &held, &room);
    clv_hit *sorted = clv_alloc(room, sizeof *sorted);
    if (!sorted) return clv_fail(CLV_E_MEMORY, "search: not enough memory for %zu rows", room);
    for (size_t q = 0; q < s->queries; ++q) {
        memcpy(sorted, hits + q * room, held[q] * sizeof *sorted);
        clv_hits_sort(sorted, held[q]);
        for (size_t i = 0; i < s->top; ++i) {
            const bool there = i < held[q];
            if (rows) rows[q * s->top + i] = there ? sorted[i].row : -1;
            if (scores) scores[q * s->top + i] = there ? (float)sorted[i].score : -INFINITY;
        }
    }
    clv_free(sorted);
    return CLV_OK;
}
