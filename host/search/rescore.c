/* SPDX-License-Identifier: Apache-2.0 */
/* Searches in two passes: compares codes, and then computes the exact similarities of the candidates. */
#include "host/search/search.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>

/* A candidate of a query. */
typedef struct candidate {
    int64_t row;
    size_t query;
} candidate;

struct clv_rescore {
    candidate *all; /* by rows */
    size_t count, next;
    clv_hit *hits; /* [queries, top] */
    size_t *held;
};

void clv_rescore_free(clv_rescore *r)
{
    if (!r) return;
    clv_free(r->all), clv_free(r->hits), clv_free(r->held);
    clv_free(r);
}

const clv_hit *clv_rescore_hits(const clv_search *s, const size_t **held, size_t *room)
{
    const clv_rescore *r = s->rescore;
    const bool begun = r && r->next > 0;
    *held = begun ? r->held : s->held;
    *room = begun ? s->top : s->room;
    return begun ? r->hits : s->hits;
}

static clv_status check(const clv_search *s)
{
    if (!s) return clv_fail(CLV_E_ARGUMENT, "search: search is NULL");
    if (s->codes) return CLV_OK;
    return clv_fail(CLV_E_ARGUMENT, "search: this search has no first pass: add rows "
                                    "(clv_search_add), or set first_pass");
}

/* ---- the first pass ------------------------------------------------------------------------------- */

/* The similarity of the codes: what devices compute of bits is a whole number. */
static double similarity_of(const clv_search *s, double score)
{
    return s->codes == CLV_CODES_BINARY ? score / (double)s->width : score;
}

static void take_found(clv_search_plan *p)
{
    clv_search *s = p->search;
    for (size_t q = 0; q < s->queries; ++q)
        for (size_t i = 0; i < p->found_count[q]; ++i) {
            const clv_hit found = p->found[q * s->keep + i];
            clv_hits_offer(
                s->hits + q * s->room, &s->held[q], s->room,
                (clv_hit){ similarity_of(s, found.score), (int64_t)s->rows + found.row });
        }
}

clv_status clv_search_add_codes(clv_search *s, const void *codes, size_t count, clv_report *report)
{
    CLV_TRY(check(s));
    if (count && !codes) return clv_fail(CLV_E_ARGUMENT, "search: codes is NULL");
    if (s->rescore && s->rescore->next)
        return clv_fail(CLV_E_ARGUMENT,
                        "search: the candidates have been rescored, so no more codes can be added");
    if (count > INT32_MAX)
        return clv_fail(CLV_E_SHAPE, "search: %zu rows in one call; at most 2^31 - 1 are accepted",
                        count);
    if (!count) return CLV_OK;
    clv_rescore_free(s->rescore);
    s->rescore = NULL;
    clv_search_plan plan = { .search = s,
                             .codes = codes,
                             .stride = clv_codes_bytes(s->codes, s->width) };
    const clv_status status = clv_search_run(&plan, count, report);
    if (!status) {
        take_found(&plan);
        s->rows += count;
    }
    clv_free(plan.found), clv_free(plan.found_count);
    return status;
}

/* ---- the second pass ------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->query < y->query ? -1 : x->query > y->query;
}

/* Lists the candidates, if that was not done before. */
static clv_status begin(clv_search *s)
{
    if (s->rescore) return CLV_OK;
    size_t count = 0;
    for (size_t q = 0; q < s->queries; ++q)
        count += s->held[q];
    clv_rescore *r = clv_zalloc(1, sizeof *r);
    if (r) {
        r->all = clv_alloc(count + 1, sizeof *r->all);
        r->hits = clv_alloc(s->queries * s->top, sizeof *r->hits);
        r->held = clv_zalloc(s->queries, sizeof *r->held);
    }
    if (!r || !r->all || !r->hits || !r->held) {
        clv_rescore_free(r);
        return clv_fail(CLV_E_MEMORY, "search: not enough memory for %zu candidates", count);
    }
    for (size_t q = 0; q < s->queries; ++q)
        for (size_t i = 0; i < s->held[q]; ++i)
            r->all[r->count++] = (candidate){ s->hits[q * s->room + i].row, q };
    if (count) qsort(r->all, count, sizeof *r->all, compare);
    s->rescore = r;
    return CLV_OK;
}

/* Rows of the candidates from number `at` on, each once; NULL: only counts them. */
static size_t list(const clv_rescore *r, size_t at, int64_t *rows)
{
    size_t count = 0;
    for (size_t i = at; i < r->count; ++i) {
        if (i > at && r->all[i].row == r->all[i - 1].row) continue;
        if (rows) rows[count] = r->all[i].row;
        ++count;
    }
    return count;
}

clv_status clv_search_candidates(clv_search *s, int64_t *rows, size_t *count)
{
    CLV_TRY(check(s));
    if (!count) return clv_fail(CLV_E_ARGUMENT, "search: count is NULL");
    CLV_TRY(begin(s));
    *count = list(s->rescore, 0, rows);
    return CLV_OK;
}

clv_status clv_search_rescore(clv_search *s, const float *rows, size_t count, size_t stride)
{
    CLV_TRY(check(s));
    if (count && !rows) return clv_fail(CLV_E_ARGUMENT, "search: rows is NULL");
    if (!stride) stride = s->width;
    if (stride < s->width)
        return clv_fail(CLV_E_SHAPE, "search: stride %zu is below the width of the queries, %zu",
                        stride, s->width);
    CLV_TRY(begin(s));
    clv_rescore *r = s->rescore;
    const size_t left = list(r, r->next, NULL);
    if (count > left)
        return clv_fail(CLV_E_SHAPE, "search: got %zu rows, but %zu candidates are left", count,
                        left);
    for (size_t i = 0; i < count; ++i) {
        const int64_t row = r->all[r->next].row;
        for (; r->next < r->count && r->all[r->next].row == row; ++r->next) {
            const size_t q = r->all[r->next].query;
            clv_hits_offer(r->hits + q * s->top, &r->held[q], s->top,
                           (clv_hit){ clv_search_exact(s, q, rows + i * stride), row });
        }
    }
    return CLV_OK;
}
