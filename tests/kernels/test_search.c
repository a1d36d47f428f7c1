/* SPDX-License-Identifier: Apache-2.0 */
/* Compares searches among vectors with float64: on every device, in both families of kernels, with all rows at once
 * and in pieces. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/search.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A search and its result. */
typedef struct search_case {
    size_t queries, rows, width, stride, top;
    clv_similarity similarity;
    float *q, *x;
    int64_t *found;
    float *scores;
} search_case;

static void case_make(search_case *c, uint64_t seed)
{
    c->stride = c->stride ? c->stride : c->width;
    c->q = clv_zalloc(c->queries * c->width, sizeof(float));
    c->x = clv_zalloc(c->rows * c->stride + 1, sizeof(float));
    c->found = clv_zalloc(c->queries * c->top, sizeof(int64_t));
    c->scores = clv_zalloc(c->queries * c->top, sizeof(float));
    assert_true(c->q && c->x && c->found && c->scores);
    for (size_t i = 0; i < c->queries * c->width; ++i)
        c->q[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t r = 0; r < c->rows;
         ++r) { /* rows of different lengths: cosines differ from products */
        const double scale = test_uniform(&seed, 0.1, 10);
        for (size_t i = 0; i < c->width; ++i)
            c->x[r * c->stride + i] = (float)(scale * test_uniform(&seed, -1, 1));
        for (size_t i = c->width; i < c->stride; ++i)
            c->x[r * c->stride + i] = NAN; /* between rows: never looked at */
    }
}

static void case_free(search_case *c)
{
    clv_free(c->q), clv_free(c->x), clv_free(c->found), clv_free(c->scores);
}

/* Runs the case in pieces of so many rows. */
static void run(clv_context *context, search_case *c, size_t piece)
{
    clv_search *search;
    const clv_search_options o = { .size = sizeof o, .top = c->top, .similarity = c->similarity };
    EXPECT_OK(clv_search_create(context, c->q, c->queries, c->width, &o, &search));
    for (size_t at = 0; at < c->rows; at += piece)
        EXPECT_OK(clv_search_add(search, c->x + at * c->stride, CLV_MIN(piece, c->rows - at),
                                 c->stride, NULL));
    assert_int_equal(clv_search_rows(search), c->rows);
    EXPECT_OK(clv_search_result(search, c->found, c->scores));
    clv_search_free(search);
}

static double similarity_of(const search_case *c, size_t q, size_t r)
{
    const float *a = c->q + q * c->width, *b = c->x + r * c->stride;
    double product = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < c->width; ++i) {
        product += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    if (c->similarity == CLV_SIMILARITY_DOT || isnan(product)) return product;
    return aa == 0 || bb == 0 ? 0 : product / (sqrt(aa) * sqrt(bb));
}

typedef struct ranked {
    double score;
    size_t row;
} ranked;

static int compare(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The rows are exactly those that sorting all of them in float64 gives, and so are the scores. */
static void check_result(const search_case *c, const char *name)
{
    ranked *all = clv_alloc(c->rows + 1, sizeof *all);
    assert_non_null(all);
    for (size_t q = 0; q < c->queries; ++q) {
        size_t count = 0;
        for (size_t r = 0; r < c->rows; ++r) {
            const double score = similarity_of(c, q, r);
            if (!isnan(score)) all[count++] = (ranked){ score, r };
        }
        qsort(all, count, sizeof *all, compare);
        for (size_t i = 0; i < c->top; ++i) {
            const int64_t want = i < count ? (int64_t)all[i].row : -1;
            const float score = i < count ? (float)all[i].score : -INFINITY;
            const size_t at = q * c->top + i;
            if (c->found[at] != want || c->scores[at] != score)
                fail_msg("%s: %zu queries, %zu rows of %zu, query %zu, rank %zu: row %lld, %.9g; "
                         "expected %lld, "
                         "%.9g",
                         name, c->queries, c->rows, c->width, q, i, (long long)c->found[at],
                         (double)c->scores[at], (long long)want, (double)score);
        }
    }
    clv_free(all);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static const search_case sizes[] = {
    { .queries = 1, .rows = 1, .width = 1, .top = 1 },
    { .queries = 1, .rows = 1, .width = 1, .top = 3 }, /* fewer rows than asked for */
    { .queries = 2,
      .rows = 37,
      .width = 5,
      .stride = 9,
      .top = 4,
      .similarity = CLV_SIMILARITY_DOT },
    { .queries = 3, .rows = 1000, .width = 16, .top = 10 },
    { .queries = 4, .rows = 47, .width = 6, .top = 20 },
    { .queries = 2,
      .rows = 300,
      .width = 300,
      .top = 20 }, /* more numbers than work-items of a group */
    { .queries = 5, .rows = 333, .width = 33, .top = 300 },
    { .queries = 8, .rows = 4097, .width = 7, .top = 10 }, /* two groups of a card */
    { .queries = 25, .rows = 600, .width = 40, .top = 7 }, /* products of many queries */
    { .queries = 9, .rows = 5000, .width = 24, .top = 40, .similarity = CLV_SIMILARITY_DOT },
    { .queries = 300, .rows = 450, .width = 12, .top = 5 }, /* two blocks of queries */
    { .queries = 2, .rows = 20000, .width = 3, .top = 2500 },
};

static void every_size(test_device *device)
{
    for (size_t i = 0; i < CLV_LEN(sizes); ++i) {
        search_case c = sizes[i];
        if (test_left_out(device, device->tiny && c.queries * c.rows * c.width > 8000,
                          "%zu rows of %zu: minutes", c.rows, c.width))
            continue;
        if (test_left_out(device, test_brief() && i % 3, "one case of each kind")) continue;
        case_make(&c, 7 + i);
        run(device->context, &c, c.rows);
        check_result(&c, device->name);
        case_free(&c);
    }
}

static void sizes_match_float64(void **state)
{
    (void)state;
    test_each_device(every_size);
}

static void every_size_of_a_card(test_device *device)
{
    test_device_as_card(device);
    every_size(device);
}

static void sizes_match_in_the_forms_of_cards(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, every_size_of_a_card);
}

static void sizes_match_in_plain_c(void **state)
{
    (void)state;
    clv_context *plain = test_plain_context();
    for (size_t i = 0; i < CLV_LEN(sizes); ++i) {
        search_case c = sizes[i];
        case_make(&c, 70 + i);
        run(plain, &c, c.rows);
        check_result(&c, "plain C");
        case_free(&c);
    }
    clv_context_free(plain);
}

/* ---- what files may hold ----------------------------------------------------------------------- */

/* Equal rows, rows of zeros, NaN, and tiny and huge rows among usual rows. */
static void every_oddity(test_device *device)
{
    for (int similarity = 0; similarity < 2; ++similarity) {
        search_case c = { .queries = 3,
                          .rows = device->tiny ? 60 : 200,
                          .width = device->tiny ? 6 : 20,
                          .top = device->tiny ? 20 : 60,
                          .similarity = (clv_similarity)similarity };
        case_make(&c, 3);
        for (size_t r = 0; r < c.rows; r += 4) /* 50 rows are the same as the first one */
            memcpy(c.x + r * c.width, c.x, c.width * sizeof(float));
        memset(c.x + 17 * c.width, 0, c.width * sizeof(float));
        memset(c.q + 2 * c.width, 0, c.width * sizeof(float)); /* its order is that of the rows */
        c.x[33 * c.width + 5] = NAN;
        for (size_t i = 0; i < c.width; ++i) { /* their squares are none in float32 */
            c.x[21 * c.width + i] = ldexpf(c.q[i], -85);
            c.x[22 * c.width + i] = ldexpf(c.q[c.width + i], 100);
        }
        run(device->context, &c, c.rows);
        check_result(&c, device->name);
        case_free(&c);
    }
}

/* More equal rows than are kept, and a few better ones behind them: the first of the equal ones remain. */
static void every_tie(test_device *device)
{
    enum { BETTER = 5 };
    const bool card = device->device->facts->device_class == CLV_CLASS_DISCRETE_GPU;
    if (test_left_out(device, device->tiny && card, "ties: there are some among the oddities"))
        return;
    search_case c = { .queries = 2, .rows = device->tiny ? 60 : 4400, .width = 4, .top = 10 };
    case_make(&c, 9);
    for (size_t r = 1; r < c.rows; ++r)
        memcpy(c.x + r * c.width, c.x, c.width * sizeof(float));
    for (size_t i = 0; i < BETTER; ++i)
        memcpy(c.x + (c.rows - 2 * i - 1) * c.width, c.q, c.width * sizeof(float));
    run(device->context, &c, c.rows);
    check_result(&c, device->name);
    case_free(&c);
}

static void ties_keep_the_first_rows(void **state)
{
    (void)state;
    test_each_device(every_tie);
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, every_tie);
}

static void oddities_are_ranked(void **state)
{
    (void)state;
    test_each_device(every_oddity);
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, every_oddity);
}

/* ---- pieces -------------------------------------------------------------------------------------- */

static void every_piece(test_device *device)
{
    search_case c = { .queries = 4, .rows = device->tiny ? 60 : 3000, .width = 24, .top = 12 };
    case_make(&c, 11);
    const size_t pieces[] = { 1000, 37, c.rows };
    for (size_t i = 0; i < CLV_LEN(pieces); ++i) {
        if (device->slow && pieces[i] < 100) continue;
        memset(c.found, 0, c.queries * c.top * sizeof *c.found);
        run(device->context, &c, pieces[i]);
        check_result(&c, device->name);
    }
    case_free(&c);
}

static void pieces_give_the_same(void **state)
{
    (void)state;
    test_each_device(every_piece);
}

/* ---- the interface --------------------------------------------------------------------------------- */

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    clv_context *plain = test_plain_context();
    clv_search *search = NULL;
    float q[8] = { 1, 2, 3, 4 };
    clv_search_options o = CLV_INIT(clv_search_options);
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_search_create(plain, NULL, 1, 4, &o, &search));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_search_create(NULL, q, 1, 4, &o, &search));
    EXPECT_FAIL(CLV_E_SHAPE, "[0,4]", clv_search_create(plain, q, 0, 4, &o, &search));
    EXPECT_FAIL(CLV_E_SHAPE, "[1,0]", clv_search_create(plain, q, 1, 0, &o, &search));
    o.top = CLV_SEARCH_TOP_MOST + 1;
    EXPECT_FAIL(CLV_E_ARGUMENT, "16385", clv_search_create(plain, q, 1, 4, &o, &search));
    o.top = 0, o.similarity = (clv_similarity)2;
    EXPECT_FAIL(CLV_E_ARGUMENT, "similarity 2", clv_search_create(plain, q, 1, 4, &o, &search));
    q[6] = NAN;
    EXPECT_FAIL(CLV_E_ARGUMENT, "element 2 of query 1 is nan",
                clv_search_create(plain, q, 2, 4, NULL, &search));
    q[6] = 0;
    EXPECT_OK(clv_search_create(plain, q, 2, 4, NULL, &search));
    assert_int_equal(clv_search_top(search), 10);
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_search_add(search, NULL, 1, 0, NULL));
    EXPECT_FAIL(CLV_E_SHAPE, "the stride is 3", clv_search_add(search, q, 1, 3, NULL));
    EXPECT_OK(clv_search_add(search, NULL, 0, 0, NULL));
    int64_t found[20];
    EXPECT_OK(clv_search_result(search, found, NULL));
    assert_true(found[0] == -1 && found[19] == -1);
    clv_search_free(search);
    clv_search_free(NULL);
    clv_context_free(plain);
}

/* What progress is told, and that it can cancel: rows of that call do not count then. */
static void progress_can_cancel(void **state)
{
    (void)state;
    clv_context *plain = test_plain_context();
    search_case c = { .queries = 30, .rows = 60000, .width = 64, .top = 3 };
    case_make(&c, 5);
    test_told told = { .job = "search", .answer = 1 };
    const clv_search_options o = {
        .size = sizeof o, .top = 3, .progress = test_note, .progress_user = &told
    };
    clv_search *search;
    EXPECT_OK(clv_search_create(plain, c.q, c.queries, c.width, &o, &search));
    EXPECT_FAIL(CLV_E_CANCELLED, "", clv_search_add(search, c.x, c.rows, 0, NULL));
    assert_int_equal(clv_search_rows(search), 0);
    assert_int_equal(told.total, c.rows);
    told.answer = 0;
    EXPECT_OK(clv_search_add(search, c.x, c.rows, 0, NULL));
    EXPECT_OK(clv_search_result(search, c.found, c.scores));
    check_result(&c, "after a cancelled call");
    clv_search_free(search);
    case_free(&c);
    clv_context_free(plain);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_match_float64),
        cmocka_unit_test(sizes_match_in_the_forms_of_cards),
        cmocka_unit_test(sizes_match_in_plain_c),
        cmocka_unit_test(oddities_are_ranked),
        cmocka_unit_test(ties_keep_the_first_rows),
        cmocka_unit_test(pieces_give_the_same),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(progress_can_cancel),
    };
    test_choose(argc, argv);
    test_share_compiled();
    return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
