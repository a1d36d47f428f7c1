/* SPDX-License-Identifier: Apache-2.0 */
/* Tests search among vectors on the device under test: few queries, and many. */
#include "host/selftest/selftest.h"

#include "base/alloc.h"
#include "base/error.h"

#include <cleave/search.h>

enum { WIDTH = 48, ROWS = 3000, MANY = 40, TOP = 10 };

/* Vectors, queries and results of the device and of plain C. */
typedef struct searched {
    float queries[MANY * WIDTH], vectors[ROWS * WIDTH];
    int64_t rows[2][MANY * TOP];
    float scores[2][MANY * TOP];
} searched;

static clv_status run(clv_context *context, searched *s, size_t queries, int side)
{
    const clv_search_options options = { .size = sizeof options, .top = TOP };
    clv_search *search = NULL;
    clv_status status = clv_search_create(context, s->queries, queries, WIDTH, &options, &search);
    if (!status) status = clv_search_add(search, s->vectors, ROWS, 0, NULL);
    if (!status) status = clv_search_result(search, s->rows[side], s->scores[side]);
    clv_search_free(search);
    return status;
}

static void compare(selftest *test, clv_context *plain, searched *s, size_t queries)
{
    size_t other = 0;
    selftest_begin(test, "search, %zu queries: rows and similarities that differ", queries);
    clv_status status = run(plain, s, queries, 0);
    if (!status) status = run(test->context, s, queries, 1);
    for (size_t i = 0; i < queries * TOP && !status; ++i)
        other += s->rows[0][i] != s->rows[1][i] || !(s->scores[0][i] == s->scores[1][i]);
    selftest_end(test, status, (double)other, 0);
}

void selftest_search(selftest *test)
{
    const clv_context_options options = { .size = sizeof options,
                                          .mode = CLV_MODE_REFERENCE,
                                          .cache_dir = "" };
    clv_context *plain = NULL;
    searched *s = clv_zalloc(1, sizeof *s);
    clv_status status = s ? clv_context_create(&options, &plain)
                          : clv_fail(CLV_E_MEMORY, "not enough memory for vectors");
    if (status) {
        selftest_begin(test, "search");
        selftest_end(test, status, 0, 0);
    } else {
        uint32_t state = 11;
        float *all[] = { s->queries, s->vectors };
        const size_t counts[] = { MANY * WIDTH, ROWS * WIDTH };
        for (size_t part = 0; part < 2; ++part)
            for (size_t i = 0; i < counts[part]; ++i) {
                state = state * 1664525u + 1013904223u;
                all[part][i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
            }
        compare(test, plain, s, 3);
        compare(test, plain, s, MANY);
    }
    clv_context_free(plain);
    clv_free(s);
}
